"""The page looked for: the rows that a query's filters leave of a list, and the item after which the page begins."""

from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from laudo.core.axes import Axis
from laudo.core.cursor import After, skipped
from laudo.core.facets import Facets, Group, remaining
from laudo.core.lookups import Plain, Words
from laudo.core.query import Query
from laudo.core.walking import Matching


class Target(Struct, frozen=True):
    """The page that a query asks for, of the rows whose facets are in `group`; `facets` are all that the owner has.

    If the query has a cursor, the page comes right after the item `after`. For a numbered page, `after` may be any item
    before it.
    """

    query: Query
    facets: Facets
    group: Group
    after: After | None

    @property
    def skip(self) -> int:
        """How many rows lie between the item, or else the beginning of the list, and the page."""
        return skipped(self.query, self.after)

    @property
    def without_distant_item(self) -> Self:
        """The same page, without the item unless the page begins right after it."""
        return replace(self, after=None) if self.after and self.skip else self

    @property
    def groups(self) -> list[Group]:
        """The groups to read in turn: one if the order has an axis, else one for each value, from the item's on."""
        field, descending = self.query.order.field, self.query.order.descending
        if field.axis is not None:
            return [self.group]
        split = self.facets.groups(self.query)
        return remaining(split, self.after.value, descending=descending) if self.after else split

    def item_in(self, group: Group) -> After | None:
        """Give the item if it is in this group, otherwise None."""
        after = self.after
        return after if after and (self.query.order.field.axis or after.value == group.value) else None

    def plain(
        self, *, counted: bool, most: int | None = None, through: Axis | Words | None = None, beginning: str = ""
    ) -> Plain:
        """Ask for the page the plain way: all matching rows are collected and sorted, unless `most` or more are met."""
        query, numbers = self.query, self.group.numbers
        return Plain(
            query,
            numbers,
            query.order,
            query.rows,
            self.skip,
            self.after,
            collect=True,
            counted=counted,
            most=most,
            through=through,
            beginning=beginning,
        )

    def matching(
        self,
        total: int,
        *,
        among: int | None = None,
        through: Axis | Words | None = None,
        looked_at: int | None = None,
        beginning: str = "",
    ) -> Matching:
        """Describe the `total` rows that match all filters; a walk may meet `among`, by default the whole list."""
        query, numbers = self.query, self.group.numbers
        among = self.facets.total if among is None else among
        return Matching(query, numbers, query.order, total, among, through, looked_at, beginning)
