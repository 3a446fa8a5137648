"""How many processors there are for a process: what a scheduler lets it run on, and what a container was given."""

import os
from math import ceil, inf
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/")


def cores(root: Path = _ROOT) -> int:
    """Count the processors that this process may keep busy, one that it has a part of as a whole one."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, ceil(min(there, _granted(root))))


def _granted(root: Path) -> float:
    """Give how many processors' time the process has on Linux: the least of its control group and those around that.

    In version 2 of these groups, /sys/fs/cgroup/GROUP/cpu.max has microseconds of time and of the period that they are
    for, or "max": docs.kernel.org/admin-guide/cgroup-v2.html. From inside a container its own group can be the root.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):  # There is no such file, or a group's name is no UTF-8.
        return inf
    group = next((line.removeprefix("0::").lstrip("/") for line in lines if line.startswith("0::")), "")
    top = root / "sys/fs/cgroup"
    within = [top / group, *(top / group).parents]
    return min(map(_quota, (each for each in within if each.is_relative_to(top))))


def _quota(group: Path) -> float:
    try:
        time, period = (group / "cpu.max").read_text().split()
        return inf if time == "max" else int(time) / int(period)
    except (OSError, ValueError):
        return inf
