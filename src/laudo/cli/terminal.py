"""Makes texts harmless to a terminal, which might obey characters in them, and tells whether it shows colours."""

import json
import os
import re
from typing import Final

_DIRECTION_MARKS: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Marks that change the direction of a text, so that it reads as another one."""
_REPLACE_CONTROLS: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_DIRECTION_MARKS}]").sub
"""Replaces such marks, and all control characters except tab and line feed."""
_REPLACE_CONTROLS_IN_JSON: Final = re.compile(f"[\x7f-\x9f{_DIRECTION_MARKS}]").sub
"""Replaces those of them that a JSON encoder does not escape."""


def plain(text: str) -> str:
    """Replace what a terminal would obey; a service, or whoever has a report made, may put it into a text."""
    return _REPLACE_CONTROLS("\N{REPLACEMENT CHARACTER}", text)


def as_json(value: object, *, indent: int | None = None) -> str:
    """Write JSON in which what a terminal would obey is escaped."""
    return escaped(json.dumps(value, ensure_ascii=False, indent=indent))


def escaped(text: str) -> str:
    """Escape what a terminal would obey in a text of JSON."""
    return _REPLACE_CONTROLS_IN_JSON(lambda found: f"\\u{ord(found[0]):04x}", text)


def colour() -> bool | None:
    """Give click's `color`: False if NO_COLOR is set or the terminal is dumb, else None: colours on terminals only."""
    return False if os.environ.get("NO_COLOR") or is_dumb() else None


def is_dumb() -> bool:
    """Tell whether the terminal can only print, as Emacs's shell and the consoles of many editors."""
    return os.environ.get("TERM") == "dumb"
