"""Which of the names that are accepted a wrong one is most like."""

from collections.abc import Iterable
from functools import cache, partial
from itertools import pairwise
from typing import Final


def nearest(name: str, accepted: Iterable[str]) -> str:
    """Give the accepted name that shares most pairs of letters with a wrong one, the first of several.

    The time that it takes grows with the length of the name, which a client chooses, not with its square.
    """
    return max(accepted, key=partial(_likeness, _pairs(name.casefold())))


def _likeness(pairs: frozenset[str], accepted: str) -> float:
    wanted = _pairs_of_accepted(accepted)
    return len(pairs & wanted) / (len(pairs) + len(wanted))


def _pairs(name: str) -> frozenset[str]:
    return frozenset(map("".join, pairwise(f" {name} ")))


_pairs_of_accepted: Final = cache(_pairs)
