import ast
import json
import os
import re
import shutil
import subprocess
import sys
from typing import Any

import msgspec
import pytest
import schemathesis
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from schemathesis.config import SchemathesisConfig

from laudo.core import openapi
from laudo.server.config import Settings
from live.server import Server
from test_schemas import parts

DOCUMENT: dict[str, Any] = openapi.document(max_rows=Settings().max_rows)


def test_the_served_document_equals_the_tested_one(server: Server) -> None:
    assert server.ask("/openapi.json").json == msgspec.to_builtins(DOCUMENT)


def test_the_document_is_valid_openapi_3_1(server: Server) -> None:
    served = server.ask("/openapi.json").json
    assert served["openapi"].startswith("3.1.")
    validate(served, cls=OpenAPIV31SpecValidator)


def test_every_operation_has_a_unique_id() -> None:
    ids = [operation["operationId"] for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))


def test_all_tags_and_components_are_declared_and_used() -> None:
    operations = [operation for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    assert {tag for operation in operations for tag in operation["tags"]} == {tag["name"] for tag in DOCUMENT["tags"]}
    for tag in DOCUMENT["tags"]:
        assert tag["name"].isascii()
        assert tag["name"].isidentifier()
        assert tag["description"]
    kinds = ("headers", "schemas", "responses")
    components = {f"#/components/{kind}/{name}" for kind in kinds for name in DOCUMENT["components"][kind]}
    assert components == {part["$ref"] for part in parts(DOCUMENT) if "$ref" in part}
    for schema in parts(DOCUMENT["components"]["schemas"]):
        assert set(schema.get("required", ())) <= set(schema.get("properties", ()))


def test_schemas_leave_no_name_or_type_for_generators_to_invent() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    inner = [part for schema in schemas.values() for part in parts(schema) if part is not schema]
    assert [part for part in inner if isinstance(part.get("properties"), dict) and "type" in part] == []
    assert [part for part in inner if "const" in part and "type" not in part] == []
    assert [part for part in inner if None in part.get("enum", ())] == []


def test_every_sort_order_has_a_name_for_generated_clients() -> None:
    listed = [operation for path in ("/relatorios", "/pessoas") for operation in DOCUMENT["paths"][path].values()]
    orders = [each["schema"] for operation in listed for each in operation["parameters"] if each["name"] == "sort"]
    named = [dict(zip(order["x-enum-varnames"], order["enum"], strict=True)) for order in orders]
    assert named
    for names in named:
        assert names["ATUALIZADO_EM"] == "atualizado_em"
        assert names["ATUALIZADO_EM_DESC"] == "-atualizado_em"
        assert all(name.isidentifier() for name in names)
        assert len(names) == len(set(names.values()))


# The examples of the reference, run as they are.


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_the_curl_and_python_examples_give_the_same_answer(server: Server, path: str) -> None:
    if not (shutil.which("curl") and shutil.which("bash")):
        pytest.skip("the examples need bash and curl")
    chapter = server.ask("/docs.md").body.decode().partition(f"## GET {path}\n")[2].partition("\n## ")[0]
    [asked], [script] = (re.findall(f"```{kind}\n(.*?)\n```", chapter, re.DOTALL) for kind in ("sh", "python"))
    shown, printed = (_run(server, *command) for command in (("bash", "-c", asked), (sys.executable, "-c", script)))
    answer = json.loads(shown)
    assert "error" not in answer
    assert "itens" not in answer.get("result", {}) or answer["result"]["itens"]
    assert ast.literal_eval(printed) == answer


def _run(server: Server, *command: str) -> str:
    access = {"LAUDO_URL": server.url, "LAUDO_TOKEN": server.place.token, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(command, env=os.environ | access, capture_output=True, encoding="utf-8", check=True).stdout


# All checks of schemathesis, on valid and invalid requests, which are the same in each run.


PRINTABLE = r"[^\x00-\x1f\x7f-\x9f]"
WORD = (
    r"[0-9A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02c1\u1e00-\u1eff"  # Latin
    r"\u0391-\u03a1\u03a3-\u03f5\u0400-\u0481\u048a-\u052f"  # Greek, Cyrillic
    r"\u0531-\u0556\u0561-\u0587\u10d0-\u10fa\u05d0-\u05ea\u0620-\u064a\u0671-\u06d3"  # Armenian to Arabic
    r"\u0904-\u0939\u0e01-\u0e30\u3041-\u3096\u30a1-\u30fa"  # Devanagari, Thai, Japanese
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]"  # Chinese, Korean
)
TEXT = f"^{PRINTABLE}+$"
NAME = f"^{PRINTABLE}*{WORD}{PRINTABLE}*$"
TEXTS = {
    "/relatorios": {"nome": TEXT, "limit": TEXT},
    "/pessoas": {"nome": NAME, "busca": f"^$|{NAME}", "limit": TEXT},
}


def to_generate_from() -> dict[str, Any]:
    """Add patterns for texts that the document cannot give; leave out cursors, which only the service can make."""
    document: dict[str, Any] = json.loads(openapi.encode(DOCUMENT))
    for path, methods in document["paths"].items():
        texts = TEXTS.get(path, {})
        for operation in methods.values():
            operation["parameters"] = [each for each in operation["parameters"] if each["name"] != "cursor"]
            for each in operation["parameters"]:
                each["schema"] |= {"pattern": texts[each["name"]]} if each["name"] in texts else {}
    return document


schema = schemathesis.openapi.from_dict(
    to_generate_from(),
    config=SchemathesisConfig.from_dict(
        {
            "seed": 1,
            # Every request gets the token, so schemathesis must not expect a refusal because it left the token out.
            "generation": {
                "mode": "all",
                "deterministic": True,
                "max-examples": 40,
                "with-security-parameters": False,
            },
            # Stricter than the default, which would accept a 401 for every request.
            "checks": {
                "positive_data_acceptance": {"expected-statuses": ["200", "204", "304"]},
                "negative_data_rejection": {"expected-statuses": ["400", "401"]},
            },
        }
    ),
)


@schema.parametrize()
def test_the_service_does_what_the_document_says(case: schemathesis.Case[Any], server: Server) -> None:
    case.call_and_validate(base_url=server.url, headers={"Authorization": server.place.token})
