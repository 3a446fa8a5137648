import json
from collections.abc import Iterator
from typing import Any

import msgspec
import schemathesis
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from schemathesis.config import SchemathesisConfig

from laudo.core import openapi
from laudo.server.config import Settings
from live.server import Server

DOCUMENT: dict[str, Any] = openapi.document(max_rows=Settings().max_rows)


def test_the_document_served_is_the_one_tested_here(server: Server) -> None:
    assert server.ask("/openapi.json").json == msgspec.to_builtins(DOCUMENT)


def test_the_document_is_valid_openapi_3_1(server: Server) -> None:
    served = server.ask("/openapi.json").json
    assert served["openapi"].startswith("3.1.")
    validate(served, cls=OpenAPIV31SpecValidator)


def test_every_operation_has_an_id_of_its_own() -> None:
    ids = [operation["operationId"] for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))


def test_generated_clients_have_names_for_everything_and_nothing_that_is_unused() -> None:
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


def parts(whole: object) -> Iterator[dict[str, Any]]:
    """Give every object inside of one."""
    if isinstance(whole, dict):
        yield whole
    if isinstance(whole, dict | list):
        for part in whole.values() if isinstance(whole, dict) else whole:
            yield from parts(part)


# Every check that schemathesis has, on valid and invalid requests, the same ones in each run.


def without_cursors() -> dict[str, Any]:
    """Leave out the parameter of which no schema can tell good values: only the service makes them."""
    document: dict[str, Any] = json.loads(openapi.encode(DOCUMENT))
    for methods in document["paths"].values():
        for operation in methods.values():
            operation["parameters"] = [each for each in operation["parameters"] if each["name"] != "cursor"]
    return document


schema = schemathesis.openapi.from_dict(
    without_cursors(),
    config=SchemathesisConfig.from_dict(
        {
            "seed": 1,
            # The token is given to every request, so that schemathesis must not believe that it took it away.
            "generation": {
                "mode": "all",
                "deterministic": True,
                "max-examples": 40,
                "with-security-parameters": False,
            },
            # Stricter than its own, for which a 401 would do every time.
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
