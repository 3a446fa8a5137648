"""How many processors a process may use: those that the scheduler lets it run on, within its container's quota."""

import os
from math import ceil, inf
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/")


def cores(root: Path = _ROOT) -> int:
    """Count the processors that this process may keep busy, rounded up."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, ceil(min(available, _lowest_quota(root))))


def _lowest_quota(root: Path) -> float:
    """Give the CPU quota of the process on Linux, in processors: the lowest of its control group and its parents.

    In cgroup v2, /sys/fs/cgroup/GROUP/cpu.max holds the quota, or "max", and its period, in microseconds:
    docs.kernel.org/admin-guide/cgroup-v2.html. Inside a container, its own group can appear as the root.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):  # There is no such file, or a group's name is not UTF-8.
        return inf
    group = next((line.removeprefix("0::").lstrip("/") for line in lines if line.startswith("0::")), "")
    top = root / "sys/fs/cgroup"
    groups = [top / group, *(top / group).parents]
    return min(map(_quota, (each for each in groups if each.is_relative_to(top))))


def _quota(group: Path) -> float:
    try:
        time, period = (group / "cpu.max").read_text().split()
        return inf if time == "max" else int(time) / int(period)
    except (OSError, ValueError):
        return inf
