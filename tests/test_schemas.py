"""The service and the OpenAPI document accept the same values."""

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

import pytest
from openapi_schema_validator import OAS31Validator

from laudo.core import openapi, query
from laudo.core.errors import ApiError
from laudo.core.resources import LISTS

DOCUMENT: Final = openapi.document(max_rows=1000)
PARAMETERS: Final = {
    resource.name: {
        parameter["name"]: parameter for parameter in DOCUMENT["paths"][f"/{resource.name}"]["get"]["parameters"]
    }
    for resource in LISTS
}
INSTANTS: Final = (
    *("2026-01-29", "2026-01-30", "2026-01-31", "2026-04-30", "2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31"),
    *("2026-02-10T12:00:00-03:00", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.001Z", "2026-01-31T17:30+05:30"),
    *("2026-01-31 12:00Z", "2026-01-31T12:00:00,5-0300", "2026-01-31T23:59:59.123456789-03", "0001-01-01T00:00Z"),
)
NO_INSTANTS: Final = (
    *(
        "",
        "2026-02-29",
        "1900-02-29",
        "2026-04-31",
        "2026-13-01",
        "0000-01-01",
        "0000-02-29",
        "2026-01-00",
        "2026-W05-6",
    ),
    *(
        "2026-01-31T12:00:00",
        "2026-01-31T24:00Z",
        "2026-01-31T12:00:60Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00 Z",
    ),
    *("2026-01-31T12:00.5Z", "2026-01-31T12:00-03:00:30", "2026-01-31T12:00+24:00", "2026-01-31T12:00:00.1234567890Z"),
)
OUT_OF_THE_CALENDAR: Final = ("9999-12-31T23:59:59-00:01", "0001-01-01T00:00:00+14:00")
RELATORIOS: Final = {
    "tipo_pessoa": ("PESSOA", "EMPRESA"),
    "status": ("PROCESSANDO", "EM ANALISE", "CONCLUIDO", "PRE-PROCESSANDO", "PENDENTE"),
    "resultado": ("VALID", "INVALID"),
    "pendente_validacao_manual": ("true", "false"),
    "numero_documento": ("12345678909", "12ABC34501DE35", "12abc34501de35"),
    "numero": ("0F8FAD5B-d9cb-469f-a165-70867728950e",),
    "nome": ("consultaPessoaDefault", "Иван", "🙂 x", " ", "x" * 200),
}
SPELLED_OTHERWISE: Final = {
    "tipo_pessoa": ("Pessoa", "pessoa", "Pessôa", "empresa"),
    "status": ("em análise", "EM ANÁLISE", "Concluído", "pre-processando", "Pré-Processando"),
    "resultado": ("valid", "Inválid"),
    "pendente_validacao_manual": ("TRUE", "False"),
}
PESSOAS: Final = {
    "cpf": ("12345678909",),
    "nome": (
        "mar sil",
        "Иван",
        "Ἀθηνᾶ Αθηνά",
        "山田太郎",
        "やまだ",
        "김철수",
        "محمد",
        "אברהם",
        "Nguyễn",
        "🙂 Zoë",
        "２ x",
        "'d 1",
        "x" * 200,
    ),
    "busca": ("", "123", "Иван", "Sílva", "x" * 200),
}
REFUSED_BY_RELATORIOS: Final = {
    "tipo_pessoa": ("PF", "Pessoas", "PESSOA ", ""),
    "status": ("EM  ANALISE", "EM_ANALISE", "ARQUIVADO"),
    "pendente_validacao_manual": ("1", "sim"),
    "numero_documento": ("529.982.247-25", "5299822472", "12ABC34501DE3A", ""),
    "numero": ("123", ""),
    "nome": ("", "a\x00", "x" * 201),
    "sort": ("", "--numero", "Nome", "tipo_pessoa=Pessoa"),
    "limit": ("",),
}
REFUSED_BY_PESSOAS: Final = {
    "cpf": ("529.982.247-25", "5299822472", ""),
    "nome": ("", " ", "-", "/@[`{", "a\x00", "x" * 201),
    "busca": (" ", "x" * 201),
}
SINCE_AND_UNTIL: Final = ("atualizado_em_de", "atualizado_em_ate")
ACCEPTED: Final = [
    *(("relatorios", name, text) for name, texts in RELATORIOS.items() for text in texts),
    *(("pessoas", name, text) for name, texts in PESSOAS.items() for text in texts),
    *((resource.name, name, text) for resource in LISTS for name in SINCE_AND_UNTIL for text in INSTANTS),
]
ACCEPTED_BESIDES: Final = [("relatorios", name, text) for name, texts in SPELLED_OTHERWISE.items() for text in texts]
REFUSED_BESIDES: Final = [
    *(("pessoas", name, text) for name in ("nome", "busca") for text in ("🙂", "a\x80")),
    *((resource.name, name, text) for resource in LISTS for name in SINCE_AND_UNTIL for text in OUT_OF_THE_CALENDAR),
]
NOT_ACCEPTED: Final = [
    *(("relatorios", name, text) for name, texts in REFUSED_BY_RELATORIOS.items() for text in texts),
    *(("pessoas", name, text) for name, texts in REFUSED_BY_PESSOAS.items() for text in texts),
    *((resource.name, name, text) for resource in LISTS for name in SINCE_AND_UNTIL for text in NO_INSTANTS),
]


def service_accepts(resource: str, name: str, text: str) -> bool:
    """Tell whether `query.parse`, the only reader of parameters, accepts a value."""
    try:
        query.parse(next(each for each in LISTS if each.name == resource), f"{name}={quote(text)}", max_rows=1000)
    except ApiError:
        return False
    return True


def matches(schema: dict[str, Any], value: object) -> bool:
    """Tell whether a value is valid for a schema of the document, which may refer to other schemas of it."""
    is_valid: bool = OAS31Validator({**schema, "components": DOCUMENT["components"]}).is_valid(value)
    return is_valid


def parts(whole: object) -> Iterator[dict[str, Any]]:
    """Yield every object inside a JSON value, with the value itself."""
    if isinstance(whole, dict):
        yield whole
    if isinstance(whole, dict | list):
        for part in whole.values() if isinstance(whole, dict) else whole:
            yield from parts(part)


def examples(part: object, place: str = "") -> Iterator[tuple[str, dict[str, Any], object]]:
    """Yield every example below a part of the document, as (place, schema, example)."""
    if isinstance(part, dict):
        if "schema" in part and "example" in part:
            yield place, part["schema"], part["example"]
        if isinstance(part.get("examples"), list):
            yield from ((place, part, example) for example in part["examples"])
    inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for name, each in inner:
        yield from examples(each, f"{place}/{name}")


def test_every_parameter_has_a_plain_type_for_generated_clients() -> None:
    schemas = [parameter["schema"] for parameters in PARAMETERS.values() for parameter in parameters.values()]
    assert {schema.get("type") for schema in schemas} == {"string", "integer"}
    assert [schema for schema in schemas if {"anyOf", "oneOf", "allOf", "$ref"} & schema.keys()] == []


def test_patterns_use_only_syntax_common_to_all_regex_engines() -> None:
    patterns = {part["pattern"] for part in parts(DOCUMENT) if isinstance(part.get("pattern"), str)}
    assert len(patterns) > 8
    for pattern in patterns:
        assert pattern.isascii()
        assert pattern[0] + pattern[-1] == "^$"
        # Only escapes that PCRE, RE2, Ruby and ECMAScript read alike, and no groups that begin with a question mark.
        assert set(re.findall(r"\\x?.", pattern)) <= {*(rf"\x{digit}" for digit in range(8)), r"\."}
        assert "(?" not in pattern


def test_every_example_matches_its_schema() -> None:
    found = list(examples(DOCUMENT))
    assert len(found) > 90
    assert [(place, example) for place, schema, example in found if not matches(schema, example)] == []


@pytest.mark.parametrize(("resource", "name", "text"), ACCEPTED)
def test_the_document_accepts_values_that_the_service_accepts(resource: str, name: str, text: str) -> None:
    assert service_accepts(resource, name, text)
    assert matches(PARAMETERS[resource][name]["schema"], text)


@pytest.mark.parametrize(("resource", "name", "text"), NOT_ACCEPTED)
def test_the_document_refuses_values_that_the_service_refuses(resource: str, name: str, text: str) -> None:
    assert not service_accepts(resource, name, text)
    assert not matches(PARAMETERS[resource][name]["schema"], text)


@pytest.mark.parametrize("resource", PARAMETERS)
def test_the_document_and_the_service_accept_the_same_numbers(resource: str) -> None:
    numbers = {"rows": (-25, 0, 1, 24, 25, 26, 50, 975, 1000, 1025), "page": (-1, 0, 1, 10**6, 10**9 - 1, 10**9)}
    for name, asked in numbers.items():
        accepted = [number for number in asked if service_accepts(resource, name, str(number))]
        assert accepted == [each for each in asked if matches(PARAMETERS[resource][name]["schema"], each)]
        assert len(accepted) > 2


def test_default_values_in_the_document_are_the_services_defaults() -> None:
    for resource in LISTS:
        schemas = {name: parameter["schema"] for name, parameter in PARAMETERS[resource.name].items()}
        defaults = {name: schema["default"] for name, schema in schemas.items() if "default" in schema}
        assert defaults == {"rows": 25, "sort": "-atualizado_em"}
        asked = "&".join(f"{name}={value}" for name, value in defaults.items())
        assert query.parse(resource, asked, max_rows=1000).order == query.parse(resource, "", max_rows=1000).order


def test_fields_have_the_types_and_values_of_the_service() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    for resource in LISTS:
        for field in resource.fields:
            said = schemas[f"item_{resource.name}"]["properties"][field.name]
            stored = [field.kind.parse(choice) for choice in field.kind.choices]
            for value in stored:
                assert matches(said, value)
            assert matches(said, None) == field.nullable
            named = schemas[field.name] if field.nullable else said
            assert named.get("enum", []) == [value for value in stored if isinstance(value, str)]
            formats = {"numero": "uuid", "atualizado_em": "date-time"}
            assert named.get("format") == formats.get(field.name)


def test_all_properties_of_a_body_are_required_and_no_others_allowed() -> None:
    """So all keys are required in the types of generated clients."""
    for name, schema in DOCUMENT["components"]["schemas"].items():
        if schema["type"] == "object":
            assert set(schema["required"]) == set(schema["properties"]), name
            assert schema["additionalProperties"] is (name == "openapi"), name


@pytest.mark.parametrize(("resource", "name", "text"), ACCEPTED_BESIDES)
def test_the_service_accepts_more_spellings_than_the_document(resource: str, name: str, text: str) -> None:
    assert service_accepts(resource, name, text)
    assert not matches(PARAMETERS[resource][name]["schema"], text)


@pytest.mark.parametrize(("resource", "name", "text"), REFUSED_BESIDES)
def test_the_service_refuses_values_that_a_portable_pattern_cannot(resource: str, name: str, text: str) -> None:
    assert not service_accepts(resource, name, text)
    assert matches(PARAMETERS[resource][name]["schema"], text)
