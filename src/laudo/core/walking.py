"""The plain way: walk down an order and test each row, or collect all rows that match and sort them.

The unit of all costs is counting one row of an index: nothing that is done with a row costs less.
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
"""What it costs to look at a row if the index holds all that is asked of it."""
FETCH: Final = 10
"""What it costs to fetch a row if the index does not."""
SORT: Final = 2
"""What it costs to compare rows twice while sorting, and to move them."""

_TIED: Final = 2
"""How many times as much a row costs where many share a value and ties go against the walk: each is looked at twice."""
NEVER: Final = 1 << 62
"""The cost of a way that does not exist, such as walking an order that no index has."""
LEAST: Final = 256
"""How many rows a walk may look at in any case."""

Ends = Callable[[int], Asking[bool]]
"""Tells whether this many rows after an item are known to be all."""


@disclosure.only("query", "numbers", "order", "total", "among", "looked_at")
class Matching(Struct, frozen=True):
    """The rows that match a query, in an order: `total` rows, which have the facets `numbers`.

    `among` is how many rows a walk may meet to pass them all: those of the list, or of the range that holds them.

    They are found by the values that filters name, or by `through`: the range of an axis, or some of the words.
    Collecting them looks at `looked_at` rows; None means only at those that match.
    """

    query: Query
    numbers: Numbers
    order: Order
    total: int
    among: int
    through: Axis | Words | None = None
    looked_at: int | None = None
    beginning: str = ""
    """One of the words, if all names that have it begin with it."""

    def take(self, limit: int, skip: int, after: After | None) -> Asking[Rows]:
        """Take rows in the way that likely costs less."""
        if self.collect_cost(limit + skip) <= self.walk_cost(self.passed(limit, skip, after)):
            return (yield self.collected(limit, skip, after))
        return (yield from self.walked(limit, skip, after))

    def cost(self, limit: int, skip: int, after: After | None) -> int:
        """Tell what it costs to take rows in the cheaper way."""
        return min(self.collect_cost(limit + skip), self.walk_cost(self.passed(limit, skip, after)))

    def collect_cost(self, rows: int) -> int:
        """Tell what it costs to collect all matching rows and sort the first `rows` of them.

        It costs less if the index that leads to the rows holds what sorts them. That is the index of the newest rows,
        unless `through` names another one. Rows come in no particular order, and the first `rows` of those seen are
        kept sorted: each time that twice as many have been seen, up to `rows` of them had to be inserted.
        """
        axis, query = self.order.field.axis, self.query
        if query.words:
            per_row = LOOK if isinstance(self.through, Axis) and self.through.covers_words else FETCH
        else:
            by_facet = self.numbers is not None
            lead_axis = self.through if isinstance(self.through, Axis) else query.resource.newest_axis
            per_row = 0 if axis and axis.is_covered_by(lead_axis, by_facet=by_facet) else FETCH
        looked_at = self.total if self.looked_at is None else self.looked_at
        kept = max(1, min(rows, self.total))
        compared = kept * (self.total // kept).bit_length() * kept.bit_length()
        return self.total + compared // 2 * SORT + looked_at * per_row

    def walk_cost(self, rows: int) -> int:
        """Tell what it costs to walk past `rows` matching rows, if they lie evenly; NEVER if the order has no axis."""
        axis, down_values = self.order.field.axis, self.down_values
        if axis is None:
            return NEVER
        if down_values and self.numbers:
            return self.among * 2 * FETCH  # It may pass long runs of rows with other facets.
        return rows * self.among // max(self.total, 1) * self._test_cost(axis) * (_TIED if down_values else 1)

    @property
    def down_values(self) -> bool:
        """Whether the order goes down by values that any number of rows may share, and up among rows with one value."""
        return self.order.descending and self.order.field.axis is not None and self.order.field.axis.repeats

    def passed(self, limit: int, skip: int, after: After | None = None) -> int:
        """Tell how many matching rows a walk from the nearer end passes, including those of the page."""
        return limit + min(skip, max(0, self._left(skip, after) - limit))

    def _left(self, skip: int, after: After | None) -> int:
        """Tell how many matching rows there are at most from the first one taken on.

        If the list has changed since, items seen are not subtracted: some of them may no longer be there.
        """
        return max(0, self.total - skip - (after.seen if after and after.version != CHANGED else 0))

    def collected(self, limit: int, skip: int, after: After | None) -> Plain:
        """Ask for rows by collecting and sorting all that match."""
        return Plain(
            self.query,
            self.numbers,
            self.order,
            limit,
            skip,
            after,
            collect=True,
            through=self.through,
            beginning=self.beginning,
        )

    def walked(self, limit: int, skip: int, after: After | None, ends: Ends | None = None) -> Asking[Rows]:
        """Walk to rows, but collect them once the walk has cost twice as much: rows may lie unevenly.

        A limit makes each row that is looked at cost more, so a walk that may look at half of all rows has none. If too
        few rows come, `ends` may tell that there are no more.
        """
        left = self._left(skip, after)
        wanted, following = min(limit, left), max(0, left - limit)
        most = self.patience(limit + skip)
        bounded = most < self.among // 2
        plain = replace(self.collected(wanted, skip, after), collect=False, most=most if bounded else None)
        if following < skip:
            plain = replace(plain, skip=following, backwards=True)
        rows = yield plain
        [(_, shown, _)] = rows
        if shown == wanted or not bounded or (ends and (yield from ends(skip + shown))):
            return rows
        return (yield self.collected(limit, skip, after))

    def patience(self, rows: int) -> int:
        """Tell how many rows a walk may look at to find `rows`: as many as cost twice what collecting these costs."""
        axis = self.order.field.axis
        return LEAST + 2 * self.collect_cost(rows) // self._test_cost(axis) if axis else 0

    def _test_cost(self, axis: Axis) -> int:
        """Tell what it costs to test a row: less if the axis' index holds all that it is tested for."""
        query = self.query
        is_covered = (
            not query.exact
            and (query.period is None or axis.covers_recency)
            and (not query.words or axis.covers_words)
            and (self.numbers is None or axis.covers_facet)
        )
        return LOOK if is_covered else FETCH
