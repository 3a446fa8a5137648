"""What a terminal would make of a text, and of colours: what is printed has nothing that it would obey."""

import json
import os
import re
from typing import Final

_TURNING: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""The marks that turn the direction of a text, so that it reads as another one."""
_OBEYED: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_TURNING}]").sub
"""Finds such marks, and control characters but for the two that part words."""
_OBEYED_IN_JSON: Final = re.compile(f"[\x7f-\x9f{_TURNING}]").sub
"""Finds what who writes JSON has not escaped already."""


def plain(text: str) -> str:
    """Give a text for people without what a terminal would obey: a service, or who has a report made, may write it."""
    return _OBEYED("\N{REPLACEMENT CHARACTER}", text)


def as_json(value: object, *, indent: int | None = None) -> str:
    """Write JSON in which nothing is itself that a terminal would obey."""
    return escaped(json.dumps(value, ensure_ascii=False, indent=indent))


def escaped(text: str) -> str:
    """Escape in JSON what a terminal would obey."""
    return _OBEYED_IN_JSON(lambda found: f"\\u{ord(found[0]):04x}", text)


def colour() -> bool | None:
    """Give click's `color`: never when NO_COLOR is set, or where the terminal has none, else only on a terminal."""
    return False if os.environ.get("NO_COLOR") or is_dumb() else None


def is_dumb() -> bool:
    """Tell whether a terminal does nothing but print, as Emacs's shell and the consoles of many editors."""
    return os.environ.get("TERM") == "dumb"
