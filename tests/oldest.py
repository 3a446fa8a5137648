"""Prints the oldest accepted versions of laudo's own dependencies in pyproject.toml, as constraints for pip."""

import re
import sys
import tomllib
from pathlib import Path

_FOR_TESTS = {"test", "dev", "bench"}


def main() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *(each for name in extras.keys() - _FOR_TESTS for each in extras[name])]
    oldest = [re.sub(r"\[.*]", "", each).replace(">=", "==") for each in sorted(needed)]
    sys.stdout.writelines(f"{each}\n" for each in oldest)


main()
