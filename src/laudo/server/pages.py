"""Answers a question about a list from one snapshot: the body, its ETag and its links."""

from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from operator import attrgetter
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from laudo.core import cursor, disclosure, links, plan, response, sql
from laudo.core.cursor import After
from laudo.core.errors import ApiError
from laudo.core.facets import Facets
from laudo.core.lookups import Asked, DamagedError, Plain, Read, Whole
from laudo.core.plan import Page
from laudo.core.points import Counted
from laudo.core.query import Query
from laudo.core.resources import Resource
from laudo.core.sql import Dialect, Owner, Statement
from laudo.core.values import Stored
from laudo.server import driver
from laudo.server.callers import Caller
from laudo.server.database import Connection, Lost, Reader, Row
from laudo.server.endpoint import matches
from laudo.server.recent import Recent

_FACET_BYTES: Final = 32_000_000
"""Bytes of facets that a worker remembers: enough for 220 owners with a hundred each, or 1,600 with five."""
_MAX_ENDS: Final = 4096
"""Pages whose last item a worker remembers: after it the next page begins."""
_PAGES_BACK: Final = 8
"""How many pages back an end is looked for: if pages are requested all at once, the previous one is not done yet."""
_COUNT_BYTES: Final = 2_500_000
"""Bytes of counts that a worker remembers: enough for 5,000 totals, or for 30 with all points of an order."""
_OVERHEAD_BYTES: Final = 1_000
"""About how many bytes an answer takes up besides its body and its links."""
_PURPOSE: Final = b"laudo pages"
_DISAGREE: Final = "a page does not have as many items as its total says; `laudo verify` names what is damaged"
_NOT_YET: Final = "this server of the store does not have the account yet; try another one, or try again in a moment"


class State(NamedTuple):
    """Whose list it is, and the version that changes whenever the list may have changed."""

    owner: Owner
    version: int


_Filtered = tuple[State, str, tuple[tuple[str, Stored], ...]]
"""The state of a list, its name, and the filters asked for."""


@disclosure.only("etag")
class Answer(Struct, frozen=True):
    """What is sent for one question about one state of a list."""

    etag: str
    body: bytes
    link: str


class Draft(Struct, frozen=True):
    """An answer that is started before the store is asked: it is valid if the list is still in this state."""

    state: State
    steps: plan.Steps
    next_step: Statement | Page
    """The statement that is still to be run, whose rows are sent to `steps`; the page, if there is none."""


class Pages:
    """Remembers facets, whole answers, totals and the ends of pages, each until the list's version changes.

    So the next page begins where the previous one ended, as with a cursor, and what was counted for one page or order
    is not counted again for another.
    """

    def __init__(self, key: bytes, *, cache_bytes: int) -> None:
        """`key` signs cursors; up to `cache_bytes` of answers are kept; with 0 neither answers, counts nor ends are."""
        self._secret = blake2b(_PURPOSE, key=key).digest()
        self._facets: Recent[tuple[Resource, Owner, bool], tuple[State, Facets]] = Recent(_FACET_BYTES, _facets_weight)
        self._answers: Recent[tuple[State, bytes, bytes], Answer] = Recent(cache_bytes, _weight)
        self._ends: Recent[tuple[State, bytes, int], After] = Recent(_MAX_ENDS if cache_bytes else 0)
        self._counted: Recent[_Filtered, Counted] = Recent(_COUNT_BYTES if cache_bytes else 0, attrgetter("weight"))

    def kept(self, caller: Caller, query: Query, *, if_none_match: str | None) -> Answer | str | None:
        """Give what is kept for a question: the answer, its ETag alone if `if_none_match` lists it, or None.

        For a question with a cursor, a matching ETag is not enough: `answer` must check the cursor first.
        """
        state = _state(caller, query)
        answer = self._answers.get((state, query.question, query.place))
        if answer is not None:
            return answer.etag if matches(if_none_match, answer.etag) else answer
        if if_none_match and query.cursor is None and matches(if_none_match, etag := self._etag(state, query)):
            return etag
        return None

    def draft(self, dialect: Dialect, caller: Caller, query: Query) -> Draft | None:
        """Plan an answer of at most one statement; None if it needs more, or facets not remembered, or has a cursor."""
        state = _state(caller, query)
        steps = None if query.cursor is not None else self._planned(query, state, None)
        if steps is None:
            return None
        next_step = driver.step(steps)
        if isinstance(next_step, Page):
            return Draft(state, steps, next_step)
        if not isinstance(next_step, Read | Whole | Plain):
            return None
        return Draft(state, steps, sql.in_one_statement(next_step, query.resource, state.owner, dialect))

    def answer_in_one_statement(
        self, reader: Reader, caller: Caller, query: Query, draft: Draft | None, rows: list[Row] | None
    ) -> Answer | None:
        """Answer with one statement; None when one is not enough or the list has changed since `caller` was read.

        One statement is a snapshot by itself, and this one also gives the version that it sees. If a `draft` was made
        for this state of the list, its `rows` may have come together with the caller.
        """
        if draft is None or draft.state != _state(caller, query):
            draft, rows = self.draft(reader.dialect, caller, query), None
        if draft is None:
            return None
        next_step: Statement | Asked | Page | None = draft.next_step
        if isinstance(next_step, Statement):
            [(seen, *row)] = reader.fetch(next_step) if rows is None else rows
            next_step = driver.step(draft.steps, [tuple(row)]) if seen == draft.state.version else None
        if not isinstance(next_step, Page):
            return None
        return self._answered(query, next_step, None, draft.state)

    def answer(
        self, connection: Connection, caller: Caller, query: Query, *, if_none_match: str | None = None
    ) -> Answer | str:
        """Answer from a snapshot, which may be newer than `caller`; the ETag alone if `if_none_match` lists it.

        Raises ApiError (400) for a cursor that is not ours, DamagedError if items and total disagree.
        """
        state = _state(caller, query)
        after = cursor.unseal(query, secret=self._secret, owner=state.owner) if query.cursor else None
        if if_none_match and matches(if_none_match, etag := self._etag(state, query)):
            return etag
        steps = self._planned(query, state, after)
        found = driver.drive_if(state.version, steps, connection, query.resource, state.owner) if steps else None
        if found is None:
            state, facets = self._read_facets(connection, query, state.owner)
            steps = plan.page(query, facets, *self._start_and_count(query, state, after))
            found = driver.drive(steps, connection, state.owner)
        return self._answered(query, found, after, state)

    def _answered(self, query: Query, found: Page, after: After | None, state: State) -> Answer:
        page = query.page if after is None else after.page
        if after is None and found.shown != max(0, min(query.rows, found.total - query.offset)):
            raise DamagedError(_DISAGREE)
        self._keep_counted(query, state, found)
        following = None
        if (end := _page_end(query, found, after, state.version)) is not None:
            following = cursor.seal(end, query, secret=self._secret, owner=state.owner)
            if end.version == state.version:
                self._ends.keep((state, query.question, end.seen), end)
        answer = Answer(
            self._etag(state, query),
            response.page(query, page=page, items=found.items, total=found.total),
            links.header(query, page=page, total=found.total, following=following),
        )
        self._answers.keep((state, query.question, query.place), answer)
        return answer

    def _keep_counted(self, query: Query, state: State, found: Page) -> None:
        """Keep what was counted of a list, without losing the points that pages in other orders have found."""
        filtered = state, query.resource.name, query.asked
        before = self._counted.get(filtered)
        if before is None or (found.points and found.points is not before.points):
            self._counted.keep(filtered, Counted(found.total, found.points, found.lead))

    def _planned(self, query: Query, state: State, after: After | None) -> plan.Steps | None:
        """Plan a page; None if that needs facets, and those of this version are not remembered."""
        start, counted = self._start_and_count(query, state, after)
        facets = self._known_facets(query, state)
        if facets is None:
            return plan.whole(query, start, counted.total if counted else None)
        return plan.whole(query, start, facets.total) or plan.page(query, facets, start, counted)

    def _known_facets(self, query: Query, state: State) -> Facets | None:
        """Give the facets that a plan takes, if read in this state: all, which serve every plan, or just their sum."""
        for one_by_one in {True, plan.takes_facets(query)}:
            as_of, facets = self._facets.get((query.resource, state.owner, one_by_one)) or (None, None)
            if as_of == state:
                return facets
        return None

    def _read_facets(self, connection: Connection, query: Query, owner: Owner) -> tuple[State, Facets]:
        """Give the state of a list that a snapshot sees, and the facets that a plan takes: all, or just their sum.

        Raises Lost if the snapshot knows no such owner.
        """
        resource, one_by_one = query.resource, plan.takes_facets(query)
        rows = connection.fetch(sql.with_version(sql.facets(resource, owner, one_by_one=one_by_one), resource, owner))
        seen = rows or connection.fetch(sql.version(resource, owner))
        if not seen:
            raise Lost(_NOT_YET)
        found = State(owner, seen[0][0]), Facets([row[1:] for row in rows])
        self._facets.keep((resource, owner, one_by_one), found)
        return found

    def _start_and_count(self, query: Query, state: State, after: After | None) -> tuple[After | None, Counted | None]:
        """Give an item before the page, a cursor's own or a remembered one, and what was counted in this state."""
        counted = self._counted.get((state, query.resource.name, query.asked))
        if after is not None:
            return (after if after.version == state.version else replace(after, version=cursor.CHANGED)), counted
        ends = range(query.offset, max(0, query.offset - query.rows * _PAGES_BACK), -query.rows)
        kept = (self._ends.get((state, query.question, each)) for each in ends)
        return next(filter(None, kept), None), counted

    def _etag(self, state: State, query: Query) -> str:
        """Make the ETag of an answer, which differs for each version, owner and question."""
        identity = b"%d %d %d %s %s" % (*state.owner, state.version, query.place, query.question)
        return f'"{blake2b(identity, key=self._secret, digest_size=12).hexdigest()}"'


class Drafter:
    """Drafts an answer for the caller remembered for a token, so that one round trip brings the caller and the page."""

    def __init__(
        self, pages: Pages, dialect: Dialect, parse: Callable[[], Query], *, if_none_match: str | None
    ) -> None:
        """`parse` gives the question, or raises ApiError; `if_none_match` is the header of the request."""
        self._pages = pages
        self._dialect = dialect
        self._parse = parse
        self._if_none_match = if_none_match
        self.draft: Draft | None = None

    def __call__(self, caller: Caller) -> Statement | None:
        """Give the statement to run; None if the answer is kept, or needs none or more than one."""
        with suppress(ApiError):
            query = self._parse()
            if self._pages.kept(caller, query, if_none_match=self._if_none_match) is None:
                self.draft = self._pages.draft(self._dialect, caller, query)
        next_step = self.draft and self.draft.next_step
        return next_step if isinstance(next_step, Statement) else None


def _weight(answer: Answer) -> int:
    """Give about how many bytes an answer takes up, including its question, which each of its links repeats."""
    return len(answer.body) + len(answer.link) + _OVERHEAD_BYTES


def _facets_weight(kept: tuple[State, Facets]) -> int:
    """Give the same for an owner's facets; at most the limit, so that larger ones are kept, too, but alone."""
    return min(kept[1].weight, _FACET_BYTES)


def _state(caller: Caller, query: Query) -> State:
    version = caller.version_organizacao if query.resource.whole_organization else caller.version_conta
    return State(caller.owner, version)


def _page_end(query: Query, found: Page, after: After | None, version: int) -> After | None:
    """Give where a page ends; None if nothing follows.

    If the list has changed since the walk began, a full page counts as a sign that more follows.
    """
    page, before, began = (after.page, after.seen, after.version) if after else (query.page, query.offset, version)
    seen = before + found.shown
    state = version if began == version else cursor.CHANGED
    has_more = found.shown == query.rows and (state == cursor.CHANGED or seen < found.total)
    return cursor.follow(query, found.items, page=page + 1, seen=seen, version=state) if has_more else None
