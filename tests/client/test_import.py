"""Which modules the import of the client loads, and what mypy reports for code that uses it."""

import subprocess
import sys
from pathlib import Path

import pytest

ENGINES = {"apsw", "falcon", "granian", "click", "laudo.server", "pandas", "polars", "pyarrow", "prometheus_client"}


def test_importing_the_client_loads_neither_server_nor_data_frames() -> None:
    script = "import sys, laudo.client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    # httpx imports click, if it is installed, for a command of its own.
    assert not set(done.stdout.split()) & (ENGINES - {"click"})


USE = """
import asyncio
from collections.abc import Iterable
from datetime import date
from uuid import UUID
from laudo.client import AsyncLaudo, Item, Laudo, LaudoError, Moment, Relatorio, RelatorioFilters, Status, to_dicts

def counted(client: Laudo, *, status: Status, since: Moment) -> int:
    filters: RelatorioFilters = {"status": status, "atualizado_em_de": since}
    return client.contar(**filters)

def keys(itens: Iterable[Item]) -> list[str]:
    return [each.key for each in itens]

def names(client: Laudo) -> list[str]:
    page = client.relatorios(status="CONCLUIDO", tipo_pessoa="PESSOA", rows=100, atualizado_em_de=date(2026, 1, 1))
    first: Relatorio = page.itens[0]
    total: int = page.total + client.contar(resultado=None, numero=UUID(int=1))
    rows = to_dicts(client.pessoas(nome="maria").all(workers=2))
    return [first.nome, str(total), str(len(rows))] + [each.numero for each in page]

async def later(client: AsyncLaudo) -> list[str]:
    page = await client.pessoas(busca="maria")
    async with client:
        return [each.cpf async for each in page]

with Laudo("https://api.example.com", "token") as client:
    try:
        print(names(client), counted(client, status="PENDENTE", since="2026-01-01"), keys(client.pessoas()))
        print(client.wait_for("x", timeout=3).atualizado_em.year, client.usuario().email)
    except LaudoError as error:
        print(error.status, error.message, error.request_id)
print(asyncio.run(later(AsyncLaudo("https://api.example.com", "token"))))
"""

MISUSE = {
    'client.relatorios(status="PRONTO")': "arg-type",
    'client.relatorios(numero_documeto="1")': "call-arg",
    "client.pessoas(cpf=1)": "arg-type",
    "client.contar(page=2)": "call-arg",
    "client.usuario().token": "attr-defined",
    "client.relatorios().itens[0].cpf": "attr-defined",
    'client.relatorios().itens[0].nome = "x"': "misc",
}


def test_mypy_strict_accepts_correct_use_and_reports_misuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = 'from laudo.client import Laudo\n\nclient = Laudo("https://api.example.com", "token")\n'
    api = pytest.importorskip("mypy.api")
    (tmp_path / "use.py").write_text(USE)
    (tmp_path / "misuse.py").write_text(head + "\n".join(MISUSE) + "\n")
    monkeypatch.setenv("MYPYPATH", str(Path(__file__).parents[2] / "src"))
    options = ["--strict", "--no-error-summary", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    shown, errors, _ = api.run([*options, "--config-file", "", str(tmp_path / "use.py"), str(tmp_path / "misuse.py")])
    assert errors == ""
    found = {
        int(line.split(":")[1]): line.rsplit("[", 1)[1].rstrip("]") for line in shown.splitlines() if "error" in line
    }
    assert "use.py" not in shown.replace("misuse.py", ""), shown
    assert list(found.values()) == list(MISUSE.values()), shown
