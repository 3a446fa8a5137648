"""The plain way: walk down an order and test each row, or collect all rows that match and sort them.

The unit of all costs is counting a row of an index: no row costs less.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from laudo.core import disclosure
from laudo.core.axes import Axis
from laudo.core.cursor import CHANGED, After
from laudo.core.facets import Numbers
from laudo.core.lookups import Asking, Plain, Rows, Words
from laudo.core.query import Query
from laudo.core.resources import Order

LOOK: Final = 2
"""What looking at a row costs, where the index holds all that is asked of it."""
FETCH: Final = 10
"""What fetching it costs, where the index does not."""
SORT: Final = 2
"""What two comparisons of rows cost, with what they move: sorting takes the more, the more rows are kept sorted."""

_TIED: Final = 2
"""How much dearer rows are where many share a value and are ordered against the walk: each is met twice."""
NEVER: Final = 1 << 62
"""What a way costs that there is not, as to walk an order that no index has."""
LEAST: Final = 256
"""Rows that a walk may always look at."""

Ends = Callable[[int], Asking[bool]]
"""Tells whether so many rows behind an item are known to be all."""


@disclosure.only("query", "numbers", "order", "total", "of", "met")
class Matching(Struct, frozen=True):
    """The rows that match a query, in an order: `total` of the list's `of`; `numbers` are their facets.

    They are collected by the values that filters name, or `through` the range of an axis or some of the words.
    Collecting meets `met` rows; None means just those that match.
    """

    query: Query
    numbers: Numbers
    order: Order
    total: int
    of: int
    through: Axis | Words | None = None
    met: int | None = None
    beginning: str = ""
    """A word with which all names begin that have it."""

    def take(self, limit: int, skip: int, after: After | None) -> Asking[Rows]:
        """Take rows in the way that likely costs less."""
        if self.collecting(limit + skip) <= self.walking(self.passed(limit, skip, after)):
            return (yield self.collected(limit, skip, after))
        return (yield from self.walked(limit, skip, after))

    def costing(self, limit: int, skip: int, after: After | None) -> int:
        """Tell what it costs to take rows."""
        return min(self.collecting(limit + skip), self.walking(self.passed(limit, skip, after)))

    def collecting(self, rows: int) -> int:
        """Tell what it costs to collect all rows and sort the first so many.

        It is less if the index that leads to them, that of the newest unless another one does, holds what sorts them.
        Rows come in no order: each time that twice as many have been seen, up to as many as are wanted had to be put in
        place among those, which are kept sorted.
        """
        axis, query = self.order.field.axis, self.query
        if query.words:
            meeting = LOOK if isinstance(self.through, Axis) and self.through.covers_words else FETCH
        else:
            by_facet = self.numbers is not None
            led = self.through if isinstance(self.through, Axis) else query.resource.newest_axis
            meeting = 0 if axis and axis.is_shown_by(led, by_facet=by_facet) else FETCH
        met = self.total if self.met is None else self.met
        kept = max(1, min(rows, self.total))
        compared = kept * (self.total // kept).bit_length() * kept.bit_length()
        return self.total + compared // 2 * SORT + met * meeting

    def walking(self, rows: int) -> int:
        """Tell what it costs to walk past so many rows that match, if these lie evenly."""
        axis, down_values = self.order.field.axis, self.down_values
        if axis is None:
            return NEVER
        if down_values and self.numbers:
            return self.of * 2 * FETCH  # It may lead through rows of others for long.
        return rows * self.of // max(self.total, 1) * self._testing(axis) * (_TIED if down_values else 1)

    @property
    def down_values(self) -> bool:
        """Whether the order goes down by values that any number of rows share, and up among rows of one value."""
        return self.order.descending and self.order.field.axis is not None and self.order.field.axis.repeats

    def passed(self, limit: int, skip: int, after: After | None = None) -> int:
        """Tell how many matching rows a walk to a page passes, the page's included, from the nearer end."""
        return limit + min(skip, max(0, self._left(skip, after) - limit))

    def _left(self, skip: int, after: After | None) -> int:
        """Tell how many matching rows there are at most from the first one taken on.

        Where the list has changed since, a walk by cursor may have passed items that are no longer there.
        """
        return max(0, self.total - skip - (after.seen if after and after.version != CHANGED else 0))

    def collected(self, limit: int, skip: int, after: After | None) -> Plain:
        """Ask for rows, all of which are collected and sorted."""
        return Plain(
            self.query,
            self.numbers,
            self.order,
            limit,
            skip,
            after,
            few=True,
            through=self.through,
            beginning=self.beginning,
        )

    def walked(self, limit: int, skip: int, after: After | None, ends: Ends | None = None) -> Asking[Rows]:
        """Walk, at no more than twice the cost of collecting, which is done then: rows may lie unevenly.

        Where that is worth half of all rows, all may be looked at: a limit makes each that is met dearer. Where too few
        come, `ends` may tell that there are no more.
        """
        left = self._left(skip, after)
        wanted, behind = min(limit, left), max(0, left - limit)
        most = self.patience(limit + skip)
        bounded = most < self.of // 2
        plain = replace(self.collected(wanted, skip, after), few=False, most=most if bounded else None)
        if behind < skip:
            plain = replace(plain, skip=behind, backwards=True)
        rows = yield plain
        [(_, shown, _)] = rows
        if shown == wanted or not bounded or (ends and (yield from ends(skip + shown))):
            return rows
        return (yield self.collected(limit, skip, after))

    def patience(self, rows: int) -> int:
        """Tell how many rows of the order may be looked at for so many: what costs twice as much as collecting them."""
        axis = self.order.field.axis
        return LEAST + 2 * self.collecting(rows) // self._testing(axis) if axis else 0

    def _testing(self, axis: Axis) -> int:
        """Tell what it costs to test a row: less where the axis' index holds all that it is tested for."""
        query = self.query
        held = (
            not query.exact
            and (query.period is None or axis.covers_recency)
            and (not query.words or axis.covers_words)
            and (self.numbers is None or axis.covers_facet)
        )
        return LOOK if held else FETCH
