"""Query string → one frozen Query: the only reader of parameters."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final
from urllib.parse import quote_plus, unquote_to_bytes

from laudo.core import errors
from laudo.core.axes import Period
from laudo.core.errors import ApiError
from laudo.core.likeness import nearest
from laudo.core.resources import NEWEST, Filter, Match, Order, Resource
from laudo.core.values import Stored, needed_words, render, unwritable, words

STEP: Final = 25
"""`rows` is a multiple of this."""

PAGING: Final = ("page", "rows", "sort", "cursor")
IGNORED: Final = ("limit",)
"""Accepted and ignored: a published client sends it."""

MOST_PAIRS: Final = 32
MOST_CHARACTERS: Final = 200
MOST_CURSOR_CHARACTERS: Final = 4000
"""A cursor holds a value of the last item, which may be a long text."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter with the value asked for, already of the filter's kind."""

    filter: Filter = field(repr=False)
    value: Stored = field(repr=False)


@dataclass(frozen=True)
class Query:
    """What a request for a list asks. Conditions stand in the table's order, so equal questions are equal.

    Queries are parsed once and kept, so their properties are cached too.
    """

    resource: Resource = field(repr=False)
    page: int
    rows: int
    order: Order
    conditions: tuple[Condition, ...]
    cursor: str | None = field(default=None, repr=False)
    """The cursor as sent, in place of a page number; only `core.cursor` can tell whether it is one of ours."""

    @cached_property
    def offset(self) -> int:
        """How many items stand before the page."""
        return (self.page - 1) * self.rows

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the filters used, for the log."""
        return tuple(name for name, _ in self.asked)

    @cached_property
    def on_facets(self) -> tuple[Condition, ...]:
        """The conditions that facets answer."""
        return tuple(each for each in self.conditions if each.filter.name in self.resource.facet_fields)

    @cached_property
    def exact(self) -> tuple[Condition, ...]:
        """The conditions that name one report, one document or one person."""
        equal = (each for each in self.conditions if each.filter.match is Match.EQUAL)
        return tuple(each for each in equal if each.filter.name not in self.resource.facet_fields)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The beginnings of words that a name must have, the longest first."""
        asked = [each for each in self.conditions if each.filter.match in {Match.WORDS, Match.SEARCH}]
        return needed_words(word for each in asked if not _is_prefix(each) for word in words(str(each.value)))

    @cached_property
    def prefix(self) -> str:
        """The digits with which the CPF must begin."""
        return next((str(each.value) for each in self.conditions if _is_prefix(each)), "")

    @cached_property
    def period(self) -> Period | None:
        """The period whose rows are shown, None for all time."""
        ends = {each.filter.match: each.value for each in self.conditions if isinstance(each.value, int)}
        period = Period(ends.get(Match.SINCE), ends.get(Match.UNTIL))
        return None if period == (None, None) else period

    def during(self, period: Period) -> "Query":
        """The same query with another period."""
        ends = {Match.SINCE: period.since, Match.UNTIL: period.until}
        kept = (each for each in self.conditions if each.filter.match not in ends)
        given = ((each, ends.get(each.match)) for each in self.resource.filters)
        return replace(self, conditions=(*kept, *(Condition(each, end) for each, end in given if end is not None)))

    @cached_property
    def echo(self) -> str:
        """What `result.busca` repeats."""
        given = dict(self.asked)
        return next((str(given[name]) for name in self.resource.echo if name in given), "")

    @cached_property
    def asked(self) -> tuple[tuple[str, Stored], ...]:
        """The filters' names and values, without order and page."""
        return tuple((condition.filter.name, condition.value) for condition in self.conditions)

    @cached_property
    def written(self) -> str:
        """Order and filters as a query string, which parses to the same."""
        sort = f"sort={'-' if self.order.descending else ''}{self.order.field.name}"
        asked = [f"{each.filter.name}={quote_plus(render(each.filter.kind, each.value))}" for each in self.conditions]
        return "&".join([sort, *asked])

    @cached_property
    def question(self) -> bytes:
        """What is asked of which list in which order, whatever the page: equal for equal questions."""
        return f"{self.resource.name}?{self.written}".encode()

    @cached_property
    def place(self) -> bytes:
        """Which page of the answer is asked for."""
        return repr((self.page, self.rows, self.cursor)).encode()


def _is_prefix(condition: Condition) -> bool:
    text = str(condition.value)
    return condition.filter.match is Match.SEARCH and text.isascii() and text.isdigit()


@lru_cache(maxsize=1024)
def parse(resource: Resource, query_string: str, *, max_rows: int) -> Query:
    """Read the query string of a list.

    `query_string` is the raw one, its bytes as latin-1 characters (as WSGI hands it over). Raises ApiError (400) that
    names every parameter at fault.
    """
    accepted = accepted_names(resource)
    given, problems = _split(query_string, accepted)
    reader = _Reader(given, problems)
    query = Query(
        resource=resource,
        page=reader.page(),
        rows=reader.rows(max_rows),
        order=reader.order(resource),
        conditions=tuple(reader.conditions(resource)),
        cursor=reader.cursor(),
    )
    _refuse(problems)
    return query


def parse_none(query_string: str) -> None:
    """Read the query string of a resource that takes no parameters; raises ApiError (400) when there is one."""
    if query_string:
        _refuse(_split(query_string, ())[1])


def accepted_names(resource: Resource) -> tuple[str, ...]:
    """Give every parameter name that a list accepts, in the order in which docs show them."""
    return (*PAGING, *(filter_.name for filter_ in resource.filters), *IGNORED)


BAD_CURSOR: Final = (
    "O parâmetro cursor deve ser o valor informado no cabeçalho Link, "
    "para a mesma conta, os mesmos filtros e a mesma ordenação."
)

Problems = dict[str, str]
"""Parameter at fault → what to do about it, in Portuguese; `""` stands for the query string as a whole."""


def _refuse(problems: Problems) -> None:
    if problems:
        message = " ".join(dict.fromkeys(problems.values()))
        raise ApiError(errors.INVALID, message=message, keys=tuple(key for key in problems if key))


def _split(query_string: str, accepted: tuple[str, ...]) -> tuple[dict[str, str], Problems]:
    given: dict[str, str] = {}
    problems: Problems = {}
    if not query_string:
        return given, problems
    pairs = query_string.split("&")
    if len(pairs) > MOST_PAIRS:
        return given, {"": f"A URL deve ter no máximo {MOST_PAIRS} parâmetros."}
    for pair in filter(None, pairs):
        raw_name, _, raw_value = pair.partition("=")
        name = _decode(raw_name)
        most = MOST_CURSOR_CHARACTERS if name == "cursor" else MOST_CHARACTERS
        value = _decode(raw_value, most=most)
        if name is None:
            problems[""] = f"O nome de um parâmetro {_ENCODED.format(most)}"
        elif name not in accepted:
            problems[name] = _unknown(name, accepted)
        elif value is None:
            problems[name] = f"O valor do parâmetro {name} {_ENCODED.format(most)}"
        elif name in IGNORED and not value:
            problems[name] = f"O parâmetro {name} não pode ser vazio."
        elif name in given:
            problems[name] = f"O parâmetro {name} deve aparecer uma única vez."
        else:
            given[name] = value
    return given, problems


def _unknown(name: str, accepted: tuple[str, ...]) -> str:
    if not accepted:
        return f'O parâmetro "{name}" não existe. Este endereço não aceita parâmetros.'
    if not name:
        return 'Falta o nome de um parâmetro antes do sinal "=".'
    return f'O parâmetro "{name}" não existe. O mais parecido é {nearest(name, accepted)}.'


def _decode(raw: str, *, most: int = MOST_CHARACTERS) -> str | None:
    """Give the text of a percent-encoded name or value; None if it is malformed, too long or has control characters."""
    if raw.isascii() and raw.isalnum():
        return raw if len(raw) <= most else None
    if _BAD_PERCENT(raw):
        return None
    try:
        text = unquote_to_bytes(raw.replace("+", " ").encode("latin-1")).decode()
    except UnicodeDecodeError:
        return None
    return None if len(text) > most or unwritable(text) else text


_ENCODED: Final = "deve estar em UTF-8, codificado para URL, com até {} caracteres e sem caracteres de controle."
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})").search
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}").fullmatch
_CURSOR: Final = re.compile(r"[A-Za-z0-9_-]+").fullmatch
"""The characters of a cursor; other text is refused here, because what is parsed is kept, and this may be long."""


class _Reader:
    """Takes the given parameters one by one and collects what is wrong with them."""

    __slots__ = ("_given", "_problems")

    def __init__(self, given: dict[str, str], problems: Problems) -> None:
        self._given = given
        self._problems = problems

    def page(self) -> int:
        text = self._given.get("page", "1")
        if _NUMBER(text):
            return int(text)
        self._problems["page"] = "O parâmetro page deve ser um número inteiro de 1 a 999999999."
        return 1

    def rows(self, most: int) -> int:
        text = self._given.get("rows", str(STEP))
        if _NUMBER(text) and int(text) % STEP == 0 and int(text) <= most:
            return int(text)
        self._problems["rows"] = f"O parâmetro rows deve ser um múltiplo de {STEP}, de {STEP} a {most}."
        return STEP

    def cursor(self) -> str | None:
        text = self._given.get("cursor")
        if text is not None and "page" in self._given:
            self._problems["cursor"] = "O parâmetro cursor substitui page: envie somente um dos dois."
        elif text is not None and not _CURSOR(text):
            self._problems["cursor"] = BAD_CURSOR
        return text

    def order(self, resource: Resource) -> Order:
        text = self._given.get("sort", f"-{NEWEST}")
        try:
            return Order(resource.field(text.removeprefix("-")), text.startswith("-"))
        except KeyError:
            names = ", ".join(field_.name for field_ in resource.fields)
            self._problems["sort"] = (
                f"O parâmetro sort deve ser um destes campos, com - na frente para ordem decrescente: {names}."
            )
            return Order(resource.field(NEWEST), descending=True)

    def conditions(self, resource: Resource) -> Iterator[Condition]:
        for filter_ in resource.filters:
            if filter_.name not in self._given:
                continue
            try:
                value = filter_.parse(self._given[filter_.name])
            except ValueError:
                self._problems[filter_.name] = f"O parâmetro {filter_.name} deve ser {filter_.kind.accepts_in_address}."
            else:
                yield Condition(filter_, value)
