"""The kinds of settings: how the text of a setting is parsed, and how people are told what it accepts."""

import re
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Kind(NamedTuple, Generic[T]):
    """How a text is parsed, or refused with a ValueError, and what is accepted."""

    parse: Callable[[str], T]
    accepts: str


def _matching(pattern: str, accepts: str) -> Kind[str]:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError
        return text

    return Kind(parse, accepts)


def number(lowest: int, highest: int, *, multiple_of: int = 1) -> Kind[int]:
    def parse(text: str) -> int:
        value = int(text) if re.fullmatch(r"[0-9]{1,10}", text) else -1
        if not lowest <= value <= highest or value % multiple_of:
            raise ValueError
        return value

    noun = "a number" if multiple_of == 1 else f"a multiple of {multiple_of}"
    return Kind(parse, f"{noun} from {lowest} to {highest}")


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise ValueError
    return _BOOLEANS[text.lower()]


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(dict.fromkeys(origin.strip() for origin in text.split(",") if origin.strip()))
    if not all(map(_ORIGIN, origins)):
        raise ValueError
    return origins


def _stores(text: str) -> tuple[str, ...]:
    """Split URLs only where a scheme follows, so that one may name several hosts, with commas between them."""
    urls = tuple(url for url in re.split(r"[ ,]+(?=postgres(?:ql)?://)|[ ,]+$", text.strip()) if url)
    if not all(re.fullmatch(r"postgres(ql)?://[\x21-\x7e\xa0-\U0010ffff]+", url) for url in urls):
        raise ValueError
    return urls


def _troubles(text: str) -> tuple[str, ...]:
    troubles = tuple(trouble.strip() for trouble in text.split(",") if trouble.strip())
    found = [_TROUBLE(trouble) for trouble in troubles]
    shares = {trouble["what"]: int(trouble["share"]) for trouble in found if trouble}
    if len(shares) < len(troubles) or sum(shares.values()) > 100:  # noqa: PLR2004 - percent
        raise ValueError
    return troubles


_TROUBLE: Final = re.compile(r"(?a)(?P<what>401|429|500|503|\d{1,3}(\.\d{1,3})?s|cut)=(?P<share>\d{1,3})").fullmatch
_ORIGIN: Final = re.compile(r"(https(?!.*:443$)|http(?!.*:80$))://[a-z0-9.-]+(:[0-9]{1,5})?").fullmatch
"""An origin as browsers write it, without the scheme's default port: with that, none would ever be equal."""
_BOOLEANS: Final = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(("false", "0", "no", "off"), False)
SWITCH: Final = Kind(_boolean, "true or false")
STORE: Final = _matching(r"[a-z][a-z0-9+]*://[\x20-\x7e\xa0-\U0010ffff]+", "a URL such as sqlite:///laudo.db")
STORES: Final = Kind(_stores, "URLs such as postgresql://user@replica/database, separated by commas or spaces")
ADDRESS: Final = _matching(r"[0-9A-Za-z:_-]{1,63}(\.[0-9A-Za-z:_-]{1,63})*\.?", "an address or a host name")
"""At most 63 characters between dots: for longer ones, Python's look-up fails as if laudo were broken."""
FILE: Final = _matching(r"[^\x00-\x1f]+", "the path of a file")
ORIGINS: Final = Kind(_origins, "origins such as https://app.example.com, without a default port, separated by commas")
TROUBLES: Final = Kind(
    _troubles, "shares of 401, 429, 500, 503, seconds of delay or cut, such as 503=10,5s=2,cut=1, in total at most 100"
)
