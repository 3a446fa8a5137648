"""Settings: one frozen record, and the only place that reads flags, environment and laudo.toml for it.

Each field of `Settings` is one row: kind, default, what it is about. Flags, LAUDO_* variables, TOML keys and
`laudo config` are made from these rows, and a test compares the documentation with them.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote

from laudo.core.likeness import suggestion
from laudo.server.config.kinds import ADDRESS, FILE, ORIGINS, STORE, STORES, SWITCH, TROUBLES, Kind, number
from laudo.server.config.processors import cores

if TYPE_CHECKING:
    from laudo.server.database import Bounds

T = TypeVar("T")

PREFIX: Final = "LAUDO_"
DEFAULT_FILE: Final = Path("laudo.toml")
FOREIGN: Final = ("LAUDO_CONFIG", "LAUDO_URL", "LAUDO_TOKEN")
"""Variables with our prefix that are not settings: other parts read them."""
_TEST_PREFIX: Final = "LAUDO_TEST_"
_KUBERNETES: Final = re.compile(
    "LAUDO_(SERVICE_(HOST|PORT(_.*)?)|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)=.*"
    "|LAUDO_PORT=(tcp|udp|sctp)://.*"
)
"""Variables that Kubernetes sets in each pod for a Service named `laudo`."""


class ConfigError(Exception):
    """A setting cannot be used; the text names it, where it came from, and what is accepted."""


def mask(url: str) -> str:
    """Give a store's URL without its passwords."""
    masked = re.sub(r"://([^:/?]*):.*@", r"://\1:***@", url)
    masked = re.sub(r"://([^:/?@[]*):(?!\d*([,/?]|$))[^/?@]*(?=[/?]|$)", r"://\1:***", masked)
    return re.sub(r"([?&])([^=&]*)=[^&]*", _masked, masked)


def _masked(parameter: re.Match[str]) -> str:
    """Hide the value of a parameter that is secret; its name may be percent-encoded, which libpq decodes."""
    is_secret = re.search("password|secret|scram_.*_key", unquote(parameter[2]), re.IGNORECASE)
    return f"{parameter[1]}{parameter[2]}=***" if is_secret else parameter[0]


def _row(kind: Kind[T], default: T, about: str, *, shown: str | None = None) -> T:
    """Make a field; `shown` is the text in documents for a default that depends on the machine."""
    return field(default=default, metadata={"kind": kind, "about": about, "shown": shown})


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """How a server runs; the order of the fields is the order in which documents list them."""

    store: str = _row(
        STORE,
        "sqlite:///laudo.db",
        "Where the data is: sqlite:///relative.db, sqlite:////absolute.db or postgresql://user@host/database.",
    )
    key_file: str = _row(
        FILE,
        "laudo.key",
        "File with the key that tokens are hashed with; created on first use, with mode 0600.",
    )
    host: str = _row(ADDRESS, "127.0.0.1", "Address to listen on.")
    port: int = _row(number(1, 65_535), 8000, "Port to listen on.")
    workers: int = _row(number(1, 256), cores(), "Number of worker processes.", shown="the number of cores")
    max_rows: int = _row(number(25, 10_000, multiple_of=25), 1000, "The largest `rows` that a request may ask for.")
    rate_limit: int = _row(
        number(0, 1_000_000), 0, "Requests per second for each token in each worker; 0 for no limit."
    )
    busy_limit_ms: int = _row(
        number(0, 1_000_000),
        0,
        "Milliseconds per second that each worker may spend on the requests of each token; 0 for no limit.",
    )
    allowed_origins: tuple[str, ...] = _row(
        ORIGINS, (), "Origins whose pages may call the API (CORS); none when empty."
    )
    idle_timeout_ms: int = _row(
        number(1000, 3_600_000),
        75_000,
        "Milliseconds that a connection may stay idle; set it above the idle timeout of a proxy in front.",
    )
    server_timing: bool = _row(SWITCH, default=False, about="Send a Server-Timing header with the time of each stage.")
    cache_bytes: int = _row(
        number(0, 1_000_000_000),
        8_000_000,
        "Bytes of answers that each of a worker's two caches, by request and by list, may hold; 0 for none.",
    )
    pool_size: int = _row(number(1, 100), 4, "PostgreSQL: connections of each worker.")
    pool_timeout_ms: int = _row(
        number(1, 60_000), 1000, "PostgreSQL: milliseconds that a request waits for a free connection."
    )
    connect_timeout_ms: int = _row(
        number(1, 60_000),
        2000,
        "PostgreSQL: milliseconds that connecting to a host may take, rounded up to seconds, at least two.",
    )
    statement_timeout_ms: int = _row(
        number(1, 600_000), 2000, "Milliseconds that each statement of a request may take."
    )
    prepare: bool = _row(
        SWITCH, default=True, about="PostgreSQL: use prepared statements; turn it off for PgBouncer before 1.21."
    )
    read_store: tuple[str, ...] = _row(
        STORES, (), "PostgreSQL: replicas that answer in place of the store while they are fresh."
    )
    read_lag_ms: int = _row(
        number(200, 3_600_000),
        5000,
        "PostgreSQL: milliseconds that a replica may lag, and that a revoked token may still work.",
    )
    metrics_host: str = _row(ADDRESS, "127.0.0.1", "Address where metrics are served.")
    metrics_port: int = _row(number(0, 65_535), 0, "Port where metrics are served; 0 for none.")
    log: bool = _row(SWITCH, default=True, about="Write one JSON line per request to standard output.")
    rehearse: tuple[str, ...] = _row(
        TROUBLES,
        (),
        "For testing clients: of 100 requests, 503=10,5s=2,cut=1 refuses 10, delays 2 by 5 s and cuts off 1 answer.",
    )

    @property
    def bounds(self) -> "Bounds":
        """Limits of a worker's use of a store."""
        from laudo.server.database import Bounds  # noqa: PLC0415 - what only reads settings loads no store

        return Bounds(
            pool_size=self.pool_size,
            pool_timeout_ms=self.pool_timeout_ms,
            connect_timeout_ms=self.connect_timeout_ms,
            statement_timeout_ms=self.statement_timeout_ms,
            prepare=self.prepare,
        )

    def __repr__(self) -> str:
        """Show no password."""
        return f"Settings({', '.join(f'{setting.name}={setting.show(self)}' for setting in SETTINGS)})"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table, as flags, variables, keys and documents see it."""

    name: str
    parse: Callable[[str], object]
    accepts: str
    default: object
    default_shown: str
    about: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    @property
    def is_switch(self) -> bool:
        return isinstance(self.default, bool)

    def defaulting(self, value: object) -> "Setting":
        """Give the same row with another default, as a command may have its own."""
        return replace(self, default=value, default_shown=_format(value))

    def show(self, settings: Settings) -> str:
        """Give the value as a person would write it, without passwords."""
        value = getattr(settings, self.name)
        return _format(tuple(map(mask, value))) if isinstance(value, tuple) else mask(_format(value))


def _format(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ",".join(str(item) for item in value)
    return str(value)


def _rows() -> Iterator[Setting]:
    for row in fields(Settings):
        kind, about, shown = row.metadata["kind"], row.metadata["about"], row.metadata["shown"]
        yield Setting(row.name, kind.parse, kind.accepts, row.default, shown or _format(row.default), about)


SETTINGS: Final = tuple(_rows())


@dataclass(frozen=True, slots=True)
class _Given:
    value: object = field(repr=False)
    source: str


def load(flags: Mapping[str, object], environ: Mapping[str, str], file: Path | None) -> Settings:
    """Give the settings: flags win over the environment, that over the TOML file, that over the defaults.

    `flags` is by setting name; None means not given. Without `file`, LAUDO_CONFIG names it, else ./laudo.toml
    is read if there is one. Raises ConfigError.
    """
    return resolve(flags, environ, file)[0]


def resolve(
    flags: Mapping[str, object], environ: Mapping[str, str], file: Path | None
) -> tuple[Settings, dict[str, str]]:
    """Give the settings and, by name, where each came from."""
    given = _from_file(_path(environ, file)) | _from_environment(environ) | _from_flags(flags)
    values = {s.name: _value(s, given[s.name]) for s in SETTINGS if s.name in given}
    sources = {s.name: given[s.name].source if s.name in given else "default" for s in SETTINGS}
    return Settings(**values), sources


def _value(setting: Setting, given: _Given) -> Any:  # noqa: ANN401 - each setting has its own type
    with suppress(ValueError):
        return setting.parse(_text(given.value))
    raise ConfigError(f"{setting.name} (from {given.source}) is not {setting.accepts}")


def _text(value: object) -> str:
    """Give what a variable would hold in place of this value of a flag or TOML key; raises ValueError."""
    match value:
        case str():
            return value
        case bool() | int() | list() | tuple():
            return _format(value)
    raise ValueError


def _from_flags(flags: Mapping[str, object]) -> dict[str, _Given]:
    table = {setting.name: setting for setting in SETTINGS}
    return {name: _Given(value, table[name].flag) for name, value in flags.items() if value is not None}


def _from_environment(environ: Mapping[str, str]) -> dict[str, _Given]:
    table = {setting.variable: setting for setting in SETTINGS}
    ours = [name for name in environ if name.startswith(PREFIX) and not _is_foreign(name, environ[name])]
    for name in ours:
        if name not in table:
            hint = _suggestion(name, (*table, *FOREIGN), prefix=PREFIX)
            raise ConfigError(f"unknown environment variable {name!r}{hint}")
    return {table[name].name: _Given(environ[name], name) for name in ours}


def _is_foreign(name: str, value: str) -> bool:
    return name in FOREIGN or name.startswith(_TEST_PREFIX) or _KUBERNETES.fullmatch(f"{name}={value}") is not None


def _from_file(path: Path | None) -> dict[str, _Given]:
    if path is None:
        return {}
    names = tuple(setting.name for setting in SETTINGS)
    keys = _toml(path)
    for key in keys:
        if key not in names:
            raise ConfigError(f"unknown key {key!r} in {path}{_suggestion(key, names)}")
    return {key: _Given(value, str(path)) for key, value in keys.items()}


def _path(environ: Mapping[str, str], file: Path | None) -> Path | None:
    if file is not None:
        return file
    if named := environ.get("LAUDO_CONFIG"):
        return Path(named)
    return DEFAULT_FILE if DEFAULT_FILE.exists() or DEFAULT_FILE.is_symlink() else None


def _toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot read the settings file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the settings file {path} is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the settings file {path} is not valid TOML: {error}") from error


def _suggestion(name: str, known: tuple[str, ...], *, prefix: str = "") -> str:
    """Suggest the name that was meant; the common prefix is not compared."""
    found = suggestion(name.removeprefix(prefix), [each.removeprefix(prefix) for each in known])
    return f"; hint: did you mean {prefix}{found}?" if found else f"; hint: the known ones are {', '.join(known)}"
