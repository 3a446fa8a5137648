"""Which of the accepted names a wrong one is most like."""

from collections.abc import Iterable
from functools import cache, partial
from itertools import pairwise
from typing import Final


def nearest(name: str, accepted: Iterable[str]) -> str:
    """Give the accepted name that shares the most pairs of letters with a wrong one; the first of several.

    The time grows with the length of the name, which a client chooses, and not with its square.
    """
    return max(accepted, key=partial(_likeness, _pairs(name)))


def suggestion(name: str, accepted: Iterable[str]) -> str | None:
    """Give the nearest accepted name, or None if the two are too different for a typing mistake."""
    found = nearest(name, accepted)
    return found if _likeness(_pairs(name), found) >= _LEAST else None


def _likeness(pairs: frozenset[str], accepted: str) -> float:
    """Give the share of letter pairs that two names have in common, from 0 to 1."""
    wanted = _pairs_of_accepted(accepted)
    return 2 * len(pairs & wanted) / (len(pairs) + len(wanted))


def _pairs(name: str) -> frozenset[str]:
    return frozenset(map("".join, pairwise(f" {name.casefold()} ")))


_LEAST: Final = 0.4
_pairs_of_accepted: Final = cache(_pairs)
