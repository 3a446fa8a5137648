"""Kinds of value: how a text of a request or of an import becomes what is stored, and what JSON shows."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import filterfalse, pairwise
from typing import Final

Stored = str | int | bool | None

DAY: Final = 86_400_000
"""Milliseconds in a day."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of value.

    `parse` turns a text into what is stored, and raises ValueError if the text is not of this kind. `accepts` says in
    Portuguese what is accepted, and `english` says the same in English. `encoding` says, in Portuguese, what must be
    encoded in a URL. The others describe the value for OpenAPI and the command line.
    """

    parse: Callable[[str], Stored]
    accepts: str
    english: str
    example: str
    json_type: str = "string"
    pattern: str | None = None
    choices: tuple[str, ...] = ()
    format: str | None = None
    encoding: str = ""

    @property
    def accepts_in_address(self) -> str:
        """Say what is accepted in a URL, including how to encode it."""
        return f"{self.accepts} ({self.encoding})" if self.encoding else self.accepts


def fold(text: str) -> str:
    """Give a text without case and accents: `EM ANÁLISE` and `em analise` fold to the same."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(filterfalse(unicodedata.combining, decomposed)).casefold()


unwritable: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]").search
"""Finds what no text may hold, asked for or stored: a control character, or half of a surrogate pair."""


def words(text: str) -> tuple[str, ...]:
    """Give the folded words of a name; whatever is neither letter nor digit separates them.

    One letter may fold to eighteen. What comes after the 500th is left out, so that an index can hold the rest.
    """
    folded = fold(text)[:_MOST_FOLDED]
    if folded.isascii() and folded.replace(" ", "").isalnum():
        return tuple(folded.split())
    return tuple("".join(c if c.isalnum() else " " for c in folded).split())


def needed_words(asked: Iterable[str]) -> tuple[str, ...]:
    """Leave out each word that another one begins with, and give the longest first, as the fewest names have these."""
    ordered = sorted(set(asked))
    needed = [word for word, following in pairwise((*ordered, "")) if not following.startswith(word)]
    return tuple(sorted(needed, key=len, reverse=True))


def prefix_end(beginning: str) -> str:
    """Give the first text after all that begin with `beginning`, by code point, as both engines order texts."""
    return beginning[:-1] + chr(ord(beginning[-1]) + 1)


def render_instant(milliseconds: int) -> str:
    """Write an instant (UTC milliseconds since 1970) as `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    day, rest = divmod(milliseconds, DAY)
    minute, rest = divmod(rest, 60_000)
    second, millisecond = divmod(rest, 1000)
    return f"{_date(day)}T{MINUTES[minute]}{SECONDS[second]}{MILLISECONDS[millisecond]}"


def render(kind: Kind, value: Stored) -> str:
    """Write a filter's value so that `kind.parse` reads the same again."""
    if kind in {SINCE, UNTIL}:
        instant = int(value or 0)
        return _LAST_DAY if instant == _END else render_instant(instant)
    return str(value).lower() if isinstance(value, bool) else str(value)


def enumeration(*choices: str, accepted: tuple[str, ...] = ()) -> Kind:
    """Make a kind whose values are `choices`, compared without case and accents; `accepted` is how docs write them."""
    table = {fold(choice): choice for choice in choices}

    def parse(text: str) -> str:
        try:
            return table[fold(text)]
        except KeyError:
            raise ValueError from None

    shown = accepted or choices
    listed = ", ".join(shown)
    return Kind(parse, f"um destes valores: {listed}", f"one of {listed}", shown[0], choices=shown)


@lru_cache(maxsize=65536)
def _date(day: int) -> str:
    return datetime.fromtimestamp(day * 86_400, UTC).strftime("%Y-%m-%d").rjust(10, "0")


def _matching(pattern: str, convert: Callable[[str], Stored]) -> Callable[[str], Stored]:
    matches = re.compile(pattern, re.ASCII).fullmatch

    def parse(text: str) -> Stored:
        if not matches(text):
            raise ValueError
        return convert(text)

    return parse


def parse_instant(text: str) -> int:
    """Read an instant of the form that INSTANT accepts as UTC milliseconds since 1970; raises ValueError."""
    if not _INSTANT(text):
        raise ValueError
    try:
        return _milliseconds(datetime.fromisoformat(text).astimezone(UTC))
    except OverflowError:
        raise ValueError from None


def _milliseconds(moment: datetime) -> int:
    elapsed = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (elapsed.days * 86_400 + elapsed.seconds) * 1000 + elapsed.microseconds // 1000


def _bool(text: str) -> bool:
    try:
        return _BOOLEANS[fold(text)]
    except KeyError:
        raise ValueError from None


def _with_words(text: str) -> str:
    """Refuse a text without words, or with some that `words` leaves out: no filter asks for less than it says."""
    if not words(text) or len(fold(text)) > _MOST_FOLDED:
        raise ValueError
    return text


def _searchable(text: str) -> str:
    return _with_words(text) if text else text


def _since(text: str) -> int:
    since = _day(text) if _DATE(text) else _bound(text)
    if since == _END:
        raise ValueError
    return since


def _until(text: str) -> int:
    return _day(text) + DAY if _DATE(text) else _bound(text)


def _bound(text: str) -> int:
    """Give the first millisecond that is not before an instant: the next one, if the text has finer decimals."""
    return parse_instant(text) + (_FINER(text) is not None)


def _day(text: str) -> int:
    return _milliseconds(datetime.fromisoformat(text).replace(tzinfo=UTC))


# The parts of an instant's text after its date, as tables: imports write and read tens of thousands a second.
MINUTES: Final = tuple(f"{minute // 60:02}:{minute % 60:02}:" for minute in range(1440))
SECONDS: Final = tuple(f"{second:02}." for second in range(60))
MILLISECONDS: Final = tuple(f"{millisecond:03}Z" for millisecond in range(1000))

_MOST_FOLDED: Final = 500
"""Characters of up to four bytes: PostgreSQL takes 2,046 bytes in a word and 2,704 in an entry of an index."""
_DATE_PATTERN: Final = (
    r"(([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-"
    r"((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    r"|([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)"
)
"""Days that exist: each month with its length, and February 29 in leap years only."""
# Only this part of ISO 8601: Python reads more, and how much depends on its version.
_TIME_PATTERN: Final = (
    r"[Tt ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]{1,9})?)?(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"
)
_DATE: Final = re.compile(_DATE_PATTERN).fullmatch
_INSTANT: Final = re.compile(_DATE_PATTERN + _TIME_PATTERN).fullmatch
_FINER: Final = re.compile(r"[.,][0-9]{3}[0-9]*[1-9]").search
"""Finds decimals finer than milliseconds; Python reads six of them and drops the rest."""
_LAST_DAY: Final = "9999-12-31"
_END: Final = _day(_LAST_DAY) + DAY
"""The one instant that a filter can ask for but no text of an instant can name."""
INSTANTS: Final = range(_day("0001-01-01"), _END)
"""The milliseconds that `render_instant` can write; a damaged store may hold others."""
_BOOLEANS: Final = {"true": True, "false": False}
_UUID: Final = r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"

PESSOA: Final = "Pessoa"
EMPRESA: Final = "Empresa"

STATUS: Final = enumeration("PROCESSANDO", "EM ANALISE", "CONCLUIDO", "PRE-PROCESSANDO", "PENDENTE")
TIPO_PESSOA: Final = enumeration(PESSOA, EMPRESA, accepted=("PESSOA", "EMPRESA"))
RESULTADO: Final = enumeration("VALID", "INVALID")
BOOLEAN: Final = Kind(
    _bool,
    "um destes valores: true, false",
    "true or false",
    "false",
    json_type="boolean",
    choices=("true", "false"),
)
TEXT: Final = Kind(str, "um texto de 1 a 200 caracteres", "a text of 1 to 200 characters", "consultaPessoaDefault")
_LENGTH: Final = f"até 200 caracteres (no máximo {_MOST_FOLDED} após a normalização Unicode)"
_LENGTH_ENGLISH: Final = f"up to 200 characters (at most {_MOST_FOLDED} after Unicode normalization)"
NAME: Final = Kind(
    _with_words,
    f"um nome com ao menos uma letra ou um dígito e {_LENGTH}",
    f"a name with at least one letter or digit and {_LENGTH_ENGLISH}",
    "maria silva",
)
SEARCH: Final = Kind(
    _searchable,
    f"o início de um CPF, só com dígitos, ou palavras de um nome, com {_LENGTH}",
    f"the first digits of a CPF, or words of a name, with {_LENGTH_ENGLISH}",
    "maria",
)
UUID: Final = Kind(
    _matching(_UUID, str.lower),
    "um UUID, como 0f8fad5b-d9cb-469f-a165-70867728950e",
    "a UUID, such as 0f8fad5b-d9cb-469f-a165-70867728950e",
    "0f8fad5b-d9cb-469f-a165-70867728950e",
    pattern=f"^{_UUID}$",
    format="uuid",
)
CPF: Final = Kind(
    _matching(r"[0-9]{11}", str),
    "um CPF de 11 dígitos (0 a 9), sem máscara nem espaços",
    "a CPF of 11 digits (0 to 9), without mask or spaces",
    "12345678909",
    pattern="^[0-9]{11}$",
)
DOCUMENTO: Final = Kind(
    _matching(r"[0-9]{11}|[0-9A-Za-z]{12}[0-9]{2}", str.upper),
    "um CPF de 11 dígitos ou um CNPJ de 14 caracteres (0 a 9 e A a Z), sem máscara nem espaços",
    "a CPF of 11 digits or a CNPJ of 14 characters (0 to 9 and A to Z), without mask or spaces",
    "12345678909",
    pattern="^([0-9]{11}|[0-9A-Za-z]{12}[0-9]{2})$",
)
INSTANT: Final = Kind(
    parse_instant,
    "data e hora com fuso (ISO 8601), como 2026-01-31T12:00:00Z",
    "a date and time with a time zone (ISO 8601), such as 2026-01-31T12:00:00Z",
    "2026-01-31T12:00:00.000Z",
    format="date-time",
)
_RANGE_PATTERN: Final = f"^{_DATE_PATTERN}({_TIME_PATTERN})?$"
_RANGE_ACCEPTS: Final = "uma data, como 2026-01-31, ou data e hora com fuso (ISO 8601), como 2026-01-31T12:00:00Z"
_RANGE_ENGLISH: Final = f"a date, such as 2026-01-31, or {INSTANT.english}"
_PLUS: Final = "o + do fuso se escreve %2B na URL"
SINCE: Final = Kind(_since, _RANGE_ACCEPTS, _RANGE_ENGLISH, "2026-01-01", pattern=_RANGE_PATTERN, encoding=_PLUS)
UNTIL: Final = Kind(_until, _RANGE_ACCEPTS, _RANGE_ENGLISH, "2026-01-31", pattern=_RANGE_PATTERN, encoding=_PLUS)
