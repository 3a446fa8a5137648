"""The page that is looked for: what a query's filters leave of a list, and behind which item it begins."""

from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from laudo.core.axes import Axis
from laudo.core.cursor import After, skipped
from laudo.core.facets import Facets, Group, remaining
from laudo.core.lookups import Plain, Words
from laudo.core.query import Query
from laudo.core.walking import Matching


class Sought(Struct, frozen=True):
    """A page of the rows whose facets are in `group`, of all that an owner has.

    It follows the item `after` if the query has a cursor; of a page that has a number that may be any item before it.
    """

    query: Query
    facets: Facets
    group: Group
    after: After | None

    @property
    def skip(self) -> int:
        """How many rows stand between where the page is looked for, which is the beginning or an item, and it."""
        return skipped(self.query, self.after)

    @property
    def placed(self) -> Self:
        """The same page, looked for by its place unless it begins right behind the item."""
        return replace(self, after=None) if self.after and self.skip else self

    @property
    def groups(self) -> list[Group]:
        """The parts that one axis orders each: one, or one for each value of the facets' field, from the item's on."""
        field, descending = self.query.order.field, self.query.order.descending
        if field.axis is not None:
            return [self.group]
        split = self.facets.groups(self.query)
        return remaining(split, self.after.value, descending=descending) if self.after else split

    def passed(self, group: Group) -> After | None:
        """Give the item only if it is in this part."""
        after = self.after
        return after if after and (self.query.order.field.axis or after.value == group.value) else None

    def plain(
        self, *, counted: bool, most: int | None = None, through: Axis | Words | None = None, beginning: str = ""
    ) -> Plain:
        """Ask for it the plain way: all rows that match are collected and sorted, unless `most` or more are met."""
        query, numbers = self.query, self.group.numbers
        return Plain(
            query,
            numbers,
            query.order,
            query.rows,
            self.skip,
            self.after,
            few=True,
            counted=counted,
            most=most,
            through=through,
            beginning=beginning,
        )

    def matching(
        self,
        total: int,
        *,
        of: int | None = None,
        through: Axis | Words | None = None,
        met: int | None = None,
        beginning: str = "",
    ) -> Matching:
        """Give the rows that match all filters: `total` of them."""
        query, numbers = self.query, self.group.numbers
        of = self.facets.total if of is None else of
        return Matching(query, numbers, query.order, total, of, through, met, beginning)
