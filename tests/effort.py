"""How much Python runs: what a request may cost is counted in lines, which are the same on every machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines(call: Callable[[], object]) -> int:
    """Count the lines of Python that a call runs, each as often as it does."""
    count = 0

    def one_more(_frame: FrameType, _event: str, _argument: Any) -> Any:  # noqa: ANN401 - as Python calls it
        nonlocal count
        count += 1
        return one_more

    before = sys.gettrace()
    sys.settrace(one_more)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
