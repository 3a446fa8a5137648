"""The house rules that tests can check: one table of fields, a pure core, imports in one direction, short modules."""

import ast
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import falcon
import pytest

import reference
from factories import Account, Store, relatorio
from laudo.core import plan, query, sql, values
from laudo.core.facets import Facets
from laudo.core.lookups import Plain
from laudo.core.openapi.parameters import of_list
from laudo.core.plan import Page
from laudo.core.resources import LISTS, PESSOAS, RELATORIOS, Filter, Resource
from laudo.core.sql import SQLITE, Owner
from laudo.server import app, keys
from laudo.server.config import Settings
from laudo.server.edges import Edges, add_error_handlers
from laudo.server.stores import open_store
from strategies import PESSOA_SORTS, PESSOA_VALUES, RELATORIO_SORTS, RELATORIO_VALUES
from wsgi import Client

ROOT: Final = Path(__file__).parent.parent
SOURCE: Final = ROOT / "src" / "laudo"
MODULES: Final = sorted(SOURCE.rglob("*.py"))
MOST_LINES: Final = 300
LONGEST_NAME: Final = 75
PURE: Final = {
    "__future__",
    "base64",
    "bisect",
    "collections",
    "dataclasses",
    "datetime",
    "difflib",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "hmac",
    "html",
    "itertools",
    "laudo",
    "math",
    "msgspec",
    "operator",
    "re",
    "struct",
    "types",
    "typing",
    "unicodedata",
    "urllib",
}
"""What the core may import: nothing that reads a file, a socket, a clock, the environment or random numbers."""


# A filter is one row of the table.

BY_MENSAGEM: Final = Filter("mensagem", values.TEXT, "Somente os relatórios com esta mensagem.", "Only with this text.")
ARCHIVED: Final = Filter(
    "status", values.enumeration(*values.STATUS.choices, "ARQUIVADO"), "Somente nesta situação.", "Only in this state."
)


_OTHER_FIELD: Final = "let BY_MENSAGEM and the tests below filter by a field that has none"


def with_row(row: Filter) -> Resource:
    """Return the list of reports with a filter added, or replaced if there is one of that name."""
    others = tuple(known for known in RELATORIOS.filters if known.name != row.name)
    return replace(RELATORIOS, filters=(*others, row))


def parameters(resource: Resource) -> dict[str, dict[str, Any]]:
    """Return the parameters that the OpenAPI document describes for a list, by name."""
    return {parameter["name"]: parameter for parameter in of_list(resource, max_rows=1000)}


def test_a_new_filter_row_is_parsed_and_its_name_accepted() -> None:
    resource = with_row(BY_MENSAGEM)
    asked = query.parse(resource, "mensagem=V%C3%A1lido.", max_rows=1000)
    assert [(condition.filter.name, condition.value) for condition in asked.conditions] == [("mensagem", "Válido.")]
    assert asked.names == ("mensagem",)
    assert "mensagem" in query.accepted_names(resource)
    assert "mensagem" not in query.accepted_names(RELATORIOS), f"there is such a filter now: {_OTHER_FIELD}"


def test_a_new_filter_row_becomes_sql_after_the_owner() -> None:
    asked = query.parse(with_row(BY_MENSAGEM), "mensagem=x", max_rows=1000)
    facets = Facets([(1, 30, "CONCLUIDO", "Pessoa", "a", None, False)])
    first = next(plan.page(asked, facets))
    assert isinstance(first, Plain)
    statement = sql.statement(first, Owner(7, 8), SQLITE)
    assert statement.text.count("WHERE id_organizacao = ? AND id_conta = ? AND mensagem = ?") == 2
    assert statement.params[:6] == (7, 8, "x", 7, 8, "x")


def test_a_plan_runs_no_statement_if_the_facets_answer_the_query() -> None:
    facets = Facets([(1, 30, "CONCLUIDO", "Pessoa", "a", None, False)])
    for text, total in (("status=PENDENTE", 0), ("status=CONCLUIDO&page=3", 30), ("sort=-nome&page=9", 30)):
        with pytest.raises(StopIteration) as done:
            next(plan.page(query.parse(RELATORIOS, text, max_rows=1000), facets))
        assert done.value.value == Page(total, 0, b"")


def test_a_new_status_value_is_parsed() -> None:
    asked = query.parse(with_row(ARCHIVED), "status=arquivado", max_rows=1000)
    assert [condition.value for condition in asked.conditions] == ["ARQUIVADO"]


def test_a_new_filter_row_is_documented() -> None:
    assert parameters(with_row(BY_MENSAGEM))["mensagem"]["description"].startswith(BY_MENSAGEM.description)
    assert "ARQUIVADO" in parameters(with_row(ARCHIVED))["status"]["schema"]["enum"]
    for resource in LISTS:
        assert set(query.accepted_names(resource)) <= set(parameters(resource))


def test_a_new_filter_row_is_served(store: Store, store_url: str, account: Account) -> None:
    store.write(account, [relatorio(1), relatorio(2, mensagem="Outra.")])
    store.write(store.account(account.id_organizacao), [relatorio(3, mensagem="Outra.")])
    settings = Settings(store=store_url, key_file=str(store.key_file), log=False)
    database = open_store(store_url)
    service = app.Service(settings, database, keys.load(store.key_file))
    edges = Edges(settings, service.repeats, service.limits)
    served = falcon.App(middleware=[edges])
    served.add_route("/relatorios", app.List(service, with_row(BY_MENSAGEM)))
    add_error_handlers(served)
    asking = Client(edges.wrap(served), account.token)
    assert [item["mensagem"] for item in asking.get("/relatorios?mensagem=Outra.").itens] == ["Outra."]
    assert asking.get("/relatorios?mensagen=x").json["message"].endswith("mensagem.")
    database.close()


@pytest.mark.parametrize(
    ("resource", "fields", "readers", "sorts", "tried"),
    [
        (RELATORIOS, reference.RELATORIO, reference.RELATORIO_FILTERS, RELATORIO_SORTS, RELATORIO_VALUES),
        (PESSOAS, reference.PESSOA, reference.PESSOA_FILTERS, PESSOA_SORTS, PESSOA_VALUES),
    ],
    ids=["relatorios", "pessoas"],
)
def test_every_field_and_filter_is_compared_with_the_reference(
    resource: Resource,
    fields: tuple[str, ...],
    readers: Mapping[str, object],
    sorts: tuple[str, ...],
    tried: Mapping[str, object],
) -> None:
    names, filters = [field.name for field in resource.fields], [row.name for row in resource.filters]
    assert list(fields) == names, "write the field into tests/reference.py"
    assert sorted(readers) == sorted(filters), "write the filter into tests/reference.py"
    assert sorted(tried) == sorted(filters), "give values of the filter in tests/strategies.py"
    assert sorted(sorts) == sorted(sign + name for name in names for sign in ("", "-")), "sort by it in strategies.py"


# The core is pure.

_IMPURE: Final = "the core neither reads nor writes; do it in `server/` and hand over the value"


def imported(module: Path) -> set[str]:
    """Return the top-level names of the packages that a module imports, also inside functions."""
    nodes = list(ast.walk(ast.parse(module.read_text("utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return {
        name.partition(".")[0]
        for name in plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    }


@pytest.mark.parametrize("module", sorted(SOURCE.glob("core/**/*.py")), ids=lambda path: path.stem)
def test_the_core_imports_nothing_that_reads_or_writes(module: Path) -> None:
    foreign = sorted(imported(module) - PURE)
    assert not foreign, f"{_IMPURE}; if a package is pure, add it to PURE: {foreign}"
    names = {node.id for node in ast.walk(ast.parse(module.read_text("utf-8"))) if isinstance(node, ast.Name)}
    found = names & {"open", "print", "input", "exec", "eval", "__import__"}
    assert not found, f"{_IMPURE}: {found}"


_LAYERS: Final = """\
A new module: add it to the layers of its contract in pyproject.toml, above all that it imports.
A broken contract: a module imports one that is above it, or beside it (|); move the function, or the module's layer."""


def test_imports_go_one_way_and_the_list_of_modules_is_closed() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([linter, "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{result.stdout}\n{_LAYERS}"


# Modules are short, and say what they are for.


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_has_at_most_300_lines_and_opens_with_its_charter(module: Path) -> None:
    text = module.read_text("utf-8")
    lines = len(text.splitlines())
    assert lines <= MOST_LINES, f"{lines} lines: make it a folder of the same name, with a module for each concern"
    charter = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0].rstrip()
    assert charter.endswith((".", ":")), "open it with a docstring: one sentence, with its full stop, on what it is for"


# Names of tests are short.


def test_test_names_are_at_most_75_characters_long() -> None:
    trees = [ast.parse(file.read_text("utf-8")) for file in Path(__file__).parent.rglob("test_*.py")]
    names = [each.name for tree in trees for each in tree.body if isinstance(each, ast.FunctionDef)]
    tests = [name for name in names if name.startswith("test_")]
    assert len(tests) > 1000
    too_long = [name for name in tests if len(name) > LONGEST_NAME]
    assert not too_long, f"say it in at most {LONGEST_NAME} characters: {too_long}"
