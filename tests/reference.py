"""The two lists in plain Python: says what the service must answer, without using its core.

A store is a sequence of `(id_conta, report)`. A report is a mapping with the fields of an import, but `atualizado_em`
is in milliseconds. `accounts` maps id_conta to id_organizacao. Only a service knows what its cursors mean, so every
cursor is refused here, like one that nobody issued.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, Final
from urllib.parse import unquote_to_bytes

Report = Mapping[str, Any]
Item = dict[str, Any]
Test = Callable[[Item], bool]
Reader = Callable[[str], Test]
"""Turns the text of a parameter into a test of items; raises ValueError if the text is not accepted."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A 200 with its exact body, or a 400 with the names of the parameters at fault."""

    status: int
    body: bytes = b""
    keys: frozenset[str] = frozenset()


class Known(Item):
    """A report or a person; its JSON is made once, however many pages show it."""

    @property
    def shown(self) -> Item:
        """The item as it is in the body."""
        return self | {"atualizado_em": instant(self["atualizado_em"])}

    @cached_property
    def json(self) -> str:
        return _json(self.shown)


@dataclass(frozen=True, slots=True)
class Api:
    """The service with one store."""

    reports: Sequence[tuple[int, Report]]
    accounts: Mapping[int, int]
    max_rows: int = 1000
    _items: dict[tuple[str, int], list[Known]] = field(default_factory=dict, init=False, repr=False)
    """The whole lists, each made once; the dictionaries below share their items."""
    _ordered: dict[tuple[str, int, str], list[Known]] = field(default_factory=dict, init=False, repr=False)
    """The same lists in each order, each sorted once; filtering keeps the order."""
    _matching: dict[tuple[object, ...], list[Known]] = field(default_factory=dict, init=False, repr=False)
    """What matches each query, searched once for all of its pages."""

    def relatorios(self, id_conta: int, query_string: str) -> Answer:
        return self._answer("relatorios", id_conta, query_string)

    def pessoas(self, id_conta: int, query_string: str) -> Answer:
        return self._answer("pessoas", id_conta, query_string)

    def listing(self, resource: str, id_conta: int, query_string: str) -> "Listing":
        """Give all items that an accepted query matches; raises ValueError for any other."""
        listing, wrong = self._read(resource, id_conta, query_string)
        if wrong:
            raise ValueError(wrong)
        return listing

    def _answer(self, resource: str, id_conta: int, query_string: str) -> Answer:
        listing, wrong = self._read(resource, id_conta, query_string)
        if wrong:
            return Answer(400, keys=frozenset(wrong - {""}))
        return Answer(200, listing.page(int(listing.given.get("page", "1"))))

    def _read(self, resource: str, id_conta: int, query_string: str) -> tuple["Listing", set[str]]:
        """Give the listing and the names at fault; if there are any, the listing is meaningless."""
        is_pessoas = resource == "pessoas"
        readers = PESSOA_READERS if is_pessoas else RELATORIO_READERS
        given, wrong = _given(query_string, {*readers, "cursor"})
        tests: dict[str, Test] = {}
        for name in given.keys() - {"cursor"}:
            try:
                tests[name] = readers[name](given[name])
            except ValueError:
                wrong.add(name)
        sort = given.get("sort", "-atualizado_em")
        if "rows" not in wrong and int(given.get("rows", "25")) > self.max_rows:
            wrong.add("rows")
        if sort.removeprefix("-") not in (PESSOA if is_pessoas else RELATORIO):
            wrong.add("sort")
        if "cursor" in given and (not wrong or "page" in given or not given["cursor"]):
            wrong.add("cursor")
        if wrong:
            return Listing([], given, is_pessoas), wrong
        filters = tests.keys() - PAGING
        question = (resource, id_conta, sort, frozenset((name, given[name]) for name in filters))
        if (items := self._matching.get(question)) is None:
            items = self._all(resource, id_conta, sort)
            for name in filters:
                items = [item for item in items if tests[name](item)]
            self._matching[question] = items
        return Listing(items, given, is_pessoas), wrong

    def _all(self, resource: str, id_conta: int, sort: str) -> list[Known]:
        """Give all items that a caller may see, in the order of `sort`."""
        is_pessoas = resource == "pessoas"
        owner = self.accounts[id_conta] if is_pessoas else id_conta
        if (ordered := self._ordered.get((resource, owner, sort))) is None:
            if (items := self._items.get((resource, owner))) is None:
                items = self._items[resource, owner] = (self._pessoas if is_pessoas else self._relatorios)(owner)
            ordered = self._ordered[resource, owner, sort] = _sorted(items, sort, "cpf" if is_pessoas else "numero")
        return ordered

    def _relatorios(self, id_conta: int) -> list[Known]:
        mine = (report for owner, report in self.reports if owner == id_conta)
        return [Known(zip(RELATORIO, _relatorio(report), strict=True)) for report in mine]

    def _pessoas(self, id_organizacao: int) -> list[Known]:
        newest: dict[str, tuple[int, Report]] = {}
        for id_conta, report in self.reports:
            if self.accounts[id_conta] != id_organizacao or report["tipo_pessoa"] != "Pessoa":
                continue
            known = newest.setdefault(report["numero_documento"], (id_conta, report))
            if _age(id_conta, report) < _age(*known):
                newest[report["numero_documento"]] = (id_conta, report)
        return [
            Known(cpf=cpf, nome=report["nome_pessoa"], atualizado_em=report["atualizado_em"])
            for cpf, (_, report) in newest.items()
        ]


@dataclass(frozen=True, slots=True)
class Listing:
    """All items that a query matches, in its order; `given` has the query's parameters."""

    _items: Sequence[Known]
    given: Mapping[str, str]
    is_pessoas: bool

    @property
    def items(self) -> list[Item]:
        """The items as they are in the body."""
        return [item.shown for item in self._items]

    @property
    def total(self) -> int:
        return len(self._items)

    def page(self, number: int) -> bytes:
        """Give the body of a page."""
        rows = int(self.given.get("rows", "25"))
        total = str(self.total) if self.is_pessoas else self.total
        itens = ",".join(item.json for item in self._items[(number - 1) * rows :][:rows])
        result = [f'"itens":[{itens}]', f'"paginacao":{_json({"atual": number, "linhas": rows, "total": total})}']
        if self.is_pessoas:
            busca = next((self.given[name] for name in ("busca", "nome", "cpf") if name in self.given), "")
            result.insert(0, f'"busca":{_json(busca)}')
        return f'{{"result":{{{",".join(result)}}},"status_code":200}}'.encode()


@lru_cache(1 << 16)
def instant(milliseconds: int) -> str:
    """Write an instant as it is in the body."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fold(text: str) -> str:
    """Remove case and accents from a text."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in apart if not unicodedata.combining(c)).casefold()


@lru_cache(1 << 16)
def words(text: str) -> tuple[str, ...]:
    """Give the words of a name as they are compared: runs of letters and digits; everything else separates them."""
    return tuple("".join(c if c.isalnum() else " " for c in fold(text)[:500]).split())


def _age(id_conta: int, report: Report) -> tuple[int, str, int]:
    return (-report["atualizado_em"], report["numero"], id_conta)


def _sorted(items: list[Known], sort: str, key: str) -> list[Known]:
    """Sort by the key, then by the field. Python's sort is stable, so ties keep the key's order, also in reverse."""
    field = sort.removeprefix("-")
    by_key = sorted(items, key=lambda item: str(item[key]))
    known = [item for item in by_key if item[field] is not None]
    unknown = [item for item in by_key if item[field] is None]
    is_name = key == "cpf" and field == "nome"
    return (
        sorted(
            known,
            key=lambda item: " ".join(words(item[field])) if is_name else item[field],
            reverse=sort.startswith("-"),
        )
        + unknown
    )


# Reading the query string.


def _given(query_string: str, accepted: set[str]) -> tuple[dict[str, str], set[str]]:
    """Give the parameters that can be read, and the names at fault; "" stands for a fault that has no name."""
    pairs = [pair.partition("=") for pair in query_string.split("&")]
    if len(pairs) > 32:
        return {}, {""}
    given: dict[str, str] = {}
    wrong: set[str] = set()
    for raw_name, equals, raw_value in pairs:
        if not raw_name and not equals:
            continue
        name, value = _text(raw_name), _text(raw_value)
        if name is None:
            wrong.add("")
        elif name not in accepted or value is None or name in given:
            wrong.add(name)
        else:
            given[name] = value
    return given, wrong


@lru_cache(1 << 16)
def _text(raw: str) -> str | None:
    if re.search("%(?![0-9a-fA-F]{2})", raw):
        return None
    try:
        text = unquote_to_bytes(raw.replace("+", " ").encode("latin-1")).decode("utf-8")
    except UnicodeDecodeError:
        return None
    is_refused = len(text) > 200 or any(unicodedata.category(c) == "Cc" for c in text)
    return None if is_refused else text


def _check(*, accepted: bool) -> None:
    if not accepted:
        raise ValueError


def _equal(field: str, pattern: str, spelled: Callable[[str], str] = str) -> Reader:
    def read(text: str) -> Test:
        _check(accepted=re.fullmatch(pattern, text) is not None)
        value = spelled(text)
        return lambda item: item[field] == value

    return read


def _one_of(field: str, choices: Mapping[str, object]) -> Reader:
    def read(text: str) -> Test:
        _check(accepted=fold(text) in choices)
        value = choices[fold(text)]
        return lambda item: item[field] == value

    return read


def _nome(text: str) -> Test:
    asked = words(text)
    _check(accepted=bool(asked) and len(fold(text)) <= 500)
    return lambda item: all(any(had.startswith(word) for had in words(item["nome"])) for word in asked)


def _busca(text: str) -> Test:
    if not text:
        return _anything(text)
    if re.fullmatch("[0-9]+", text):
        return lambda item: item["cpf"].startswith(text)
    return _nome(text)


def _anything(_text: str) -> Test:
    return lambda _item: True


def _matching(pattern: str) -> Reader:
    def read(text: str) -> Test:
        _check(accepted=re.fullmatch(pattern, text) is not None)
        return lambda _item: True

    return read


def _rows(text: str) -> Test:
    _check(accepted=re.fullmatch("[1-9][0-9]{0,8}", text) is not None and int(text) % 25 == 0)
    return lambda _item: True


@lru_cache(1 << 16)
def _bound(text: str, *, until: bool) -> int:
    """Give the milliseconds of a date or instant; a date as the end of a period includes its day."""
    is_date = re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is not None
    moment = datetime.fromisoformat(f"{text}T00:00:00Z" if is_date else text)
    _check(accepted=moment.tzinfo is not None)
    elapsed = moment - datetime(1970, 1, 1, tzinfo=UTC)
    _check(accepted=_FIRST <= elapsed < _END)
    decimals = re.search("[.,]([0-9]+)", text)
    finer = decimals is not None and int(decimals[1].ljust(9, "0")) % 1_000_000 > 0
    bound = (elapsed + timedelta(days=is_date and until)) // timedelta(milliseconds=1) + finer
    _check(accepted=until or bound < _END // timedelta(milliseconds=1))
    return bound


def _since(text: str) -> Test:
    bound = _bound(text, until=False)
    return lambda item: item["atualizado_em"] >= bound


def _before(text: str) -> Test:
    bound = _bound(text, until=True)
    return lambda item: item["atualizado_em"] < bound


_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

RELATORIO: Final = (
    "numero",
    "status",
    "tipo_pessoa",
    "nome",
    "atualizado_em",
    "resultado",
    "mensagem",
    "pendente_validacao_manual",
    "numero_documento",
)
_relatorio: Final = itemgetter(*RELATORIO)
PESSOA: Final = ("cpf", "nome", "atualizado_em")

_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
_END: Final = datetime(9999, 12, 31, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=1)

STATUS: Final = ("PROCESSANDO", "EM ANALISE", "CONCLUIDO", "PRE-PROCESSANDO", "PENDENTE")
_HEX: Final = "[0-9a-fA-F]"

PAGING: Final[dict[str, Reader]] = {
    "page": _matching("[1-9][0-9]{0,8}"),
    "rows": _rows,
    "sort": _anything,  # the fields differ between the lists, so `_read` checks them
    "limit": _matching(".+"),
}
_DATES: Final[dict[str, Reader]] = {"atualizado_em_de": _since, "atualizado_em_ate": _before}
RELATORIO_FILTERS: Final[dict[str, Reader]] = {
    "numero_documento": _equal("numero_documento", "[0-9]{11}|[0-9A-Za-z]{12}[0-9]{2}", str.upper),
    "tipo_pessoa": _one_of("tipo_pessoa", {"pessoa": "Pessoa", "empresa": "Empresa"}),
    "nome": _equal("nome", ".+"),
    "numero": _equal("numero", f"{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}", str.lower),
    "resultado": _one_of("resultado", {"valid": "VALID", "invalid": "INVALID"}),
    "status": _one_of("status", {choice.lower(): choice for choice in STATUS}),
    "pendente_validacao_manual": _one_of("pendente_validacao_manual", {"true": True, "false": False}),
    **_DATES,
}
PESSOA_FILTERS: Final[dict[str, Reader]] = {
    "cpf": _equal("cpf", "[0-9]{11}"),
    "nome": _nome,
    "busca": _busca,
    **_DATES,
}
RELATORIO_READERS: Final = PAGING | RELATORIO_FILTERS
PESSOA_READERS: Final = PAGING | PESSOA_FILTERS
