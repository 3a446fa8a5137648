"""A walk over all items of a list: which page to ask for next, and which of its items are new; it sends nothing.

By cursor, if the service offers them, a walk neither repeats nor misses an item that does not change.

Otherwise it goes by page numbers. Items inserted before others push them on to the next page, where the walk recognizes
them by their keys and leaves them out. It remembers 20,000 keys. If it continues from a place, it has only the keys of
two pages, and repeats items that were pushed farther.

While items are only inserted before it, an item keeps its distance from the end. If a page begins nearer to the end
than the previous page ended, items have moved: back to pages already read, because others were removed, or on, because
this page was answered before the previous one. The walk then goes back, and continues from there. It may miss an
item if the total does not show the move: in an order in which changed items can come anywhere, or with several pages
under way.
"""

from collections import deque
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Generic
from urllib.parse import urlencode

from laudo.client.calls import I, ListCall, Listed
from laudo.client.errors import AnswerError, BadRequestError, ParameterError, StatusError

ROWS: Final = (1000, 500, 100, 25)
"""Page sizes to try if none is asked for: the walk stays with the first one that the service accepts and fills."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a walk continues: by cursor if it has one, otherwise by page number.

    `seen` are the keys of the items on the two previous pages, to recognize those that are pushed on. `total` is the
    list's total when the previous page was read, which shows whether items have moved since. `question` is a digest of
    the list, its filters and its order.
    """

    rows: int
    question: str = field(repr=False)
    page: int = 1
    cursor: str | None = field(default=None, repr=False)
    seen: tuple[str, ...] = field(default=(), repr=False)
    total: int = 0


@dataclass(frozen=True, slots=True)
class Batch(Generic[I]):
    """The new items of one page, the total at that time, and where to continue: None if this was the last page."""

    itens: tuple[I, ...] = field(repr=False)
    total: int
    place: Place | None


class Walk(Generic[I]):
    """One walk: make each `next_call`, and `take` the answers in the order of the calls, if it `accepts` them.

    It is over when there is no next call although every answer was taken.
    """

    def __init__(self, call: ListCall[I], *, rows: int | None, workers: int = 1, start: Place | None = None) -> None:
        """`workers` above 1 walks by page numbers, the only way to ask in parallel; a `start` decides itself.

        Raises ParameterError if `start` is no place, or one of another list, other filters, another order or another
        page size.
        """
        if not isinstance(start, Place | None):
            raise ParameterError("start must be the place of a batch")
        self._call = call
        self._question = _digest(call)
        if start and start.question != self._question:
            raise ParameterError("start belongs to another list, or to other filters or another order")
        if start and rows not in {None, start.rows}:
            raise ParameterError(f"rows must be {start.rows}, as in the walk that start belongs to, or left out")
        self._by_number = workers > 1 if start is None else start.cursor is None
        self._sizes = deque((start.rows,) if start else (rows,) if rows else ROWS)
        self._pending: deque[int] = deque()
        self._next = start.page if start else 1
        self._last = self._next
        self._cursor = start.cursor if start else None
        self._cycles = _CycleDetector()
        self._empty_pages = 0
        self._started = self._done = False
        self._total = start.total if start else 0
        self._left: int | None = None
        self._rereads = 0
        self._seen = _Seen(start.seen if start else ())

    def next_call(self) -> ListCall[I] | None:
        """Give the next call to make; None if nothing is left, or if an answer must come first."""
        if self._done or (self._pending and (self._cursor or not self._started)):
            return None
        if not self._cursor and self._next > self._last:
            return None
        page, self._next = self._next, self._next + 1
        self._pending.append(page)
        place = {"cursor": self._cursor} if self._cursor else {"page": str(page)}
        return self._call.at(**place, rows=str(self._rows))

    def refused(self, error: StatusError) -> None:
        """Try smaller pages if the first one is refused and nobody asked for its size; otherwise raise the error."""
        if self._started or len(self._sizes) == 1 or not _may_be_about_rows(error):
            raise error
        self._try_smaller()

    def accepts(self, listed: Listed[I]) -> bool:
        """Tell whether to take an answer; smaller pages are tried if it lacks items that it should have."""
        rows = listed.linhas if listed.linhas > 0 else self._rows
        if self._started or len(self._sizes) == 1 or listed.cursor or _missing(listed, 1, rows) <= 0:
            return True
        self._try_smaller()
        return False

    def take(self, listed: Listed[I]) -> Batch[I]:
        """Take the answer to the earliest call without one; AnswerError if the list cannot be walked in this way."""
        page = self._pending.popleft()
        self._started = True
        self._by_number = self._by_number or not (self._cursor or listed.cursor)
        if not self._by_number:
            return self._take_by_cursor(listed)
        if listed.pagina != page:
            raise AnswerError("the answer is not the page that was requested")
        rows = listed.linhas if listed.linhas > 0 else self._rows
        self._last = -(-listed.total // rows)
        is_filled = page > 1 or rows <= ROWS[-1]
        if _missing(listed, page, rows) > (_MOST_MISSING if is_filled and page == self._last else 0):
            raise AnswerError("a page has fewer items than it says; ask for smaller pages")
        self._reread_if_moved(listed.total, page, rows)
        new = self._seen.unseen(listed.itens)
        self._done = not self._pending and self._next > self._last
        return Batch(new, listed.total, self._place(rows))

    @property
    def _rows(self) -> int:
        return self._sizes[0]

    def _try_smaller(self) -> None:
        self._sizes.popleft()
        self._next = self._pending.popleft()

    def _take_by_cursor(self, listed: Listed[I]) -> Batch[I]:
        self._cycles.check(listed.cursor)
        self._empty_pages = 0 if listed.itens else self._empty_pages + 1
        if listed.cursor and self._empty_pages > _MOST_EMPTY:
            raise AnswerError(f"{self._empty_pages} pages in a row are empty, and each names a next page")
        self._cursor = listed.cursor
        self._done = listed.cursor is None
        place = None if self._done else Place(self._rows, self._question, self._next, listed.cursor)
        return Batch(listed.itens, listed.total, place)

    def _place(self, rows: int) -> Place | None:
        """Give the place of the earliest page without an answer: one already requested, or the next."""
        if self._done:
            return None
        earliest = min((*self._pending, self._next))
        expected = (self._left or 0) + (earliest - 1) * rows
        seen = self._seen.last(2 * self._rows)
        return Place(self._rows, self._question, earliest, seen=seen, total=expected)

    def _reread_if_moved(self, total: int, page: int, rows: int) -> None:
        """Note how many items are left after a page; go back if items moved between this page and the previous one."""
        before = total - (page - 1) * rows
        if self._left is None:
            self._left = self._total - (page - 1) * rows if self._total else before
        if before >= self._left or page == 1 or self._rereads > _MOST_REREADS:
            self._left = min(self._left, before - rows)
            return
        first = max(1, (total - self._left) // rows + 1)
        if min((*self._pending, self._next)) > first:
            self._rereads += page - first + 1
            self._next = first


class _CycleDetector:
    """Notices cursors that lead in a circle, by Brent's algorithm: it remembers one, replaced ever more rarely."""

    __slots__ = ("_left", "_length", "_mark")

    def __init__(self) -> None:
        self._mark: str | None = None
        self._length = self._left = 1

    def check(self, cursor: str | None) -> None:
        """Take the next cursor; AnswerError at the latest after three times as many cursors as there are."""
        if cursor and cursor == self._mark:
            raise AnswerError("the pages lead in a circle: the next one was already requested")
        self._left -= 1
        if not self._left:
            self._mark = cursor
            self._length *= 2
            self._left = self._length


class _Seen:
    """The keys of the latest items, up to a limit, so that a list of any length can be walked."""

    __slots__ = ("_keys",)

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = dict.fromkeys(keys)

    def unseen(self, itens: tuple[I, ...]) -> tuple[I, ...]:
        """Give the items not seen before, and remember them."""
        new = tuple(item for item in itens if item.key not in self._keys)
        for item in new:
            self._keys[item.key] = None
        while len(self._keys) > _REMEMBERED:
            del self._keys[next(iter(self._keys))]
        return new

    def last(self, count: int) -> tuple[str, ...]:
        return tuple(self._keys)[-count:]


def _digest(call: ListCall[Any]) -> str:
    """Digest a question without its place in the list; no value can be read from it."""
    pairs = sorted(pair for pair in call.parameters if pair[0] not in _PLACE_PARAMETERS)
    return sha256(f"{call.path}?{urlencode(pairs)}".encode()).hexdigest()[:16]


def _missing(listed: Listed[I], page: int, rows: int) -> int:
    """Count the items that this page lacks, by the total that came with it."""
    return min(rows, listed.total - (page - 1) * rows) - len(listed.itens)


def _may_be_about_rows(error: StatusError) -> bool:
    """Tell whether a refusal may be about `rows`: it says so, or does not say what it is about."""
    return isinstance(error, BadRequestError) and (not error.keys or "rows" in error.keys)


_PLACE_PARAMETERS: Final = ("page", "rows", "cursor")
_REMEMBERED: Final = 20_000
_MOST_REREADS: Final = 1000
_MOST_EMPTY: Final = 100
"""How many empty pages a walk by cursor accepts in a row: a service of the contract has none before the end."""
_MOST_MISSING: Final = 2
"""How many items the last page may lack, if pages of this size are known to be filled: the total may be newer."""
