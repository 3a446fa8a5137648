"""Numbers between bounds, as the command line takes them: the only place that names their kinds.

What click calls them, an "integer range", nobody has typed who typed something else than a number.
"""

from typing import Final

import click


class Whole(click.IntRange):
    """A whole number."""

    name = "integer"


class Real(click.FloatRange):
    """One that may have a fraction."""

    name = "number"


Id: Final = Whole(1, 2**31 - 1)
