"""The Dockerfile copies all files of the package and nothing else, and agrees with the settings."""

import re
import tomllib
from pathlib import Path
from typing import Final

from laudo.server.config import SETTINGS, Settings

ROOT: Final = Path(__file__).parent.parent
DOCKERFILE: Final = (ROOT / "Dockerfile").read_text("utf-8")
IGNORED: Final = (ROOT / ".dockerignore").read_text("utf-8").splitlines()


def test_the_image_gets_exactly_the_files_that_the_package_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {"src", "pyproject.toml", project["readme"], *project["license-files"]}
    assert [line for line in IGNORED if not line.startswith(("#", "!", "**/"))] == ["*"]
    assert {line.removeprefix("!") for line in IGNORED if line.startswith("!")} == needed


def test_the_image_uses_a_supported_python_version() -> None:
    minor = int(re.findall(r"python:3\.(\d+)-slim", DOCKERFILE)[0])
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    assert f"Programming Language :: Python :: 3.{minor}" in classifiers


def test_the_image_exposes_the_default_port_and_names_only_known_settings() -> None:
    assert re.findall(r"^EXPOSE (\d+)$", DOCKERFILE, re.MULTILINE) == [str(Settings().port)]
    assert set(re.findall(r"\bLAUDO_\w+", DOCKERFILE)) <= {setting.variable for setting in SETTINGS}
