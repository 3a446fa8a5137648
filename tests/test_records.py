import csv
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.pretty import pretty_repr

from laudo.core import documents, values
from laudo.core.cursor import After
from laudo.core.sql.dialect import Statement
from laudo.server.accounts import Usuario
from laudo.server.ingest import lines as ingest_lines
from laudo.server.ingest import ndjson, rows, tabular
from laudo.server.ingest.batches import Batch
from laudo.server.ingest.fields import ACCEPTED, FaultError
from laudo.server.ingest.lines import Line, Unread
from laudo.server.ingest.pessoas import Known
from laudo.server.ingest.records import Format, RecordsError, Rejected, Relatorio, Source, read
from laudo.server.ingest.removal import StoredReport

Item = tuple[int, Relatorio] | Rejected

LINE: dict[str, object] = {
    "numero": "0F8FAD5B-D9CB-469F-A165-70867728950E",
    "status": "EM ANÁLISE",
    "tipo_pessoa": "PESSOA",
    "nome": "consultaPessoaDefault",
    "atualizado_em": "2026-01-31T12:00:00.123Z",
    "resultado": None,
    "mensagem": "Válido.",
    "pendente_validacao_manual": False,
    "numero_documento": "52998224725",
    "nome_pessoa": "Maria da Silva",
}
RELATORIO = Relatorio(
    numero="0f8fad5b-d9cb-469f-a165-70867728950e",
    status="EM ANALISE",
    tipo_pessoa="Pessoa",
    nome="consultaPessoaDefault",
    atualizado_em=1769860800123,
    resultado=None,
    mensagem="Válido.",
    pendente_validacao_manual=False,
    numero_documento="52998224725",
    nome_pessoa="Maria da Silva",
)
CNPJ = "12ABC34501DE35"
NOT_UTF8 = "not valid UTF-8; accepted: UTF-8, which Excel calls CSV UTF-8"
GOOD = json.dumps(LINE).encode()
HEADER = ",".join(LINE)
ROW = (
    "0f8fad5b-d9cb-469f-a165-70867728950e,em analise,pessoa,consultaPessoaDefault,2026-01-31T12:00:00.123Z,"
    ",Válido.,,52998224725,Maria da Silva"
)

TEXTS = st.characters(exclude_categories=("Cc", "Cs"))
NAMES = st.text(TEXTS, min_size=1, max_size=200)
CPFS = (
    st.text("0123456789", min_size=9, max_size=9)
    .map(lambda base: base + documents.cpf_digits(base))
    .filter(documents.is_cpf)
)
CNPJS = (
    st.text("0123456789ABCXYZ", min_size=12, max_size=12)
    .map(lambda base: base + documents.cnpj_digits(base))
    .filter(documents.is_cnpj)
)


@st.composite
def relatorios(draw: st.DrawFn) -> Relatorio:
    tipo_pessoa: Literal["Pessoa", "Empresa"] = draw(st.sampled_from(["Pessoa", "Empresa"]))
    person = tipo_pessoa == "Pessoa"
    return Relatorio(
        numero=str(draw(st.uuids())),
        status=draw(st.sampled_from(values.STATUS.choices)),
        tipo_pessoa=tipo_pessoa,
        nome=draw(NAMES),
        atualizado_em=draw(st.integers(0, 253_402_300_799_999)),
        resultado=draw(st.sampled_from(["VALID", "INVALID", None])),
        mensagem=draw(st.text(TEXTS, max_size=500)),
        pendente_validacao_manual=draw(st.booleans()),
        numero_documento=draw(CPFS if person else CNPJS),
        nome_pessoa=draw(NAMES if person else st.text(TEXTS, max_size=200)),
    )


def items(content: bytes, name: str = "", file_format: Format | None = None) -> list[Item]:
    found = read(Source(io.BytesIO(content), name), file_format=file_format)
    return [each for each in found if each is not None]


def line(**changed: object) -> bytes:
    return json.dumps({key: value for key, value in (LINE | changed).items() if value is not ...}).encode()


def only(content: bytes) -> Relatorio:
    [item] = items(content)
    assert isinstance(item, tuple)
    return item[1]


def relatorio(**changed: object) -> Relatorio:
    return only(line(**changed))


def reason(content: bytes) -> str:
    [item] = items(content, file_format="ndjson")
    assert isinstance(item, Rejected)
    return item.reason


def wire(found: Relatorio) -> dict[str, object]:
    return msgspec.structs.asdict(found) | {"atualizado_em": values.render_instant(found.atualizado_em)}


def table(rows: Iterable[Mapping[str, object]], separator: str = ",") -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(ACCEPTED), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


class Trickle(io.BytesIO):
    """A stream that returns a few bytes at a time, as a pipe may."""

    most = 7

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(min(self.most, -1 if size is None else size))


# Reports read back equal


@given(st.lists(relatorios(), max_size=5), st.booleans())
def test_reports_written_as_ndjson_read_back_equal(reports: list[Relatorio], ascii_only: bool) -> None:
    content = "".join(json.dumps(wire(found), ensure_ascii=ascii_only) + "\n" for found in reports)
    assert items(content.encode()) == list(enumerate(reports, 1))


@given(st.lists(relatorios(), max_size=5), st.sampled_from(",;"))
def test_reports_written_as_csv_read_back_equal(reports: list[Relatorio], separator: str) -> None:
    assert items(table(map(wire, reports), separator)) == list(enumerate(reports, 2))


@given(st.lists(relatorios(), max_size=3), st.booleans())
def test_compression_and_short_reads_change_nothing(reports: list[Relatorio], as_csv: bool) -> None:
    plain = table(map(wire, reports)) if as_csv else b"".join(msgspec.json.encode(wire(one)) + b"\n" for one in reports)
    expected = items(plain)
    assert items(gzip.compress(plain)) == expected
    assert list(read(Source(Trickle(plain)))) == expected
    members = [gzip.compress(b""), b"\0" * 20, gzip.compress(plain), gzip.compress(b"\n"), b"\0\0"]
    assert list(read(Source(Trickle(b"".join(members))))) == expected


def test_gzip_is_recognized_even_if_its_first_byte_comes_alone() -> None:
    stream = Trickle(gzip.compress(GOOD))
    stream.most = 1
    assert list(read(Source(stream))) == [(1, RELATORIO)]


def test_a_line_with_every_field_becomes_a_report() -> None:
    assert items(GOOD) == [(1, RELATORIO)]


def test_a_row_with_every_column_becomes_a_report() -> None:
    assert items(f"{HEADER}\n{ROW}\n".encode()) == [(2, RELATORIO)]


def test_columns_may_have_any_order_and_optional_ones_may_be_absent() -> None:
    header = "numero_documento,nome,tipo_pessoa,numero,status,atualizado_em"
    found = only(f"{header}\n{CNPJ},x,empresa,{RELATORIO.numero},concluido,2026-01-31T12:00:00Z".encode())
    assert (found.numero_documento, found.nome_pessoa, found.mensagem) == (CNPJ, "", "")
    assert (found.resultado, found.pendente_validacao_manual) == (None, False)


@pytest.mark.parametrize("absent", [..., None])
def test_optional_fields_may_be_absent_or_null(absent: object) -> None:
    found = relatorio(resultado=absent, mensagem=absent, pendente_validacao_manual=absent)
    assert (found.resultado, found.mensagem, found.pendente_validacao_manual) == (None, "", False)


@pytest.mark.parametrize("absent", [..., None, ""])
def test_a_company_needs_no_nome_pessoa(absent: object) -> None:
    assert relatorio(tipo_pessoa="Empresa", numero_documento=CNPJ, nome_pessoa=absent).nome_pessoa == ""


@pytest.mark.parametrize(("given", "kept"), [(True, True), (False, False), ("TRUE", True), ("False", False)])
def test_pendente_validacao_manual_is_a_boolean_or_its_text(given: object, kept: bool) -> None:
    assert relatorio(pendente_validacao_manual=given).pendente_validacao_manual is kept


def test_letters_of_a_cnpj_are_upper_cased() -> None:
    assert relatorio(tipo_pessoa="Empresa", numero_documento=CNPJ.lower()).numero_documento == CNPJ


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000Z", 0),
        ("1970-01-01T00:00Z", 0),
        ("1970-01-01T00:00:00.9Z", 900),
        ("1970-01-01T00:00:00.123999999Z", 123),
        ("1970-01-01T03:00:00.1239+03:00", 123),
        ("1969-12-31T21:00:00-03:00", 0),
        ("1969-12-31 21:00:00-0300", 0),
        ("2024-02-29T23:59:59.999Z", 1709251199999),
        ("9999-12-31T23:59:59.999Z", 253402300799999),
        ("9999-12-31T23:59:59.999999999+00:00", 253402300799999),
    ],
)
def test_an_instant_is_kept_to_the_millisecond(text: str, milliseconds: int) -> None:
    assert relatorio(atualizado_em=text).atualizado_em == milliseconds


def test_a_byte_order_mark_carriage_returns_and_blank_lines_are_accepted() -> None:
    content = b"\xef\xbb\xbf\r\n" + GOOD + b"\r\n\r\n  \n" + GOOD
    assert items(content) == [(2, RELATORIO), (5, RELATORIO)]
    content = f"\ufeff{HEADER}\r\n\r\n{ROW}\r\n \n{ROW}".encode()
    assert items(content) == [(3, RELATORIO), (5, RELATORIO)]


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\xef\xbb\xbf", b" \r\n\t\n", gzip.compress(b"", mtime=0), HEADER.encode()]
)
def test_a_file_without_reports_yields_nothing(content: bytes) -> None:
    assert items(content) == []
    assert items(content, "reports.csv") == []


@pytest.mark.parametrize("name", ["a.ndjson", "A.JSONL", "a.ndjson.gz", "a.json", "-", ""])
def test_ndjson_is_recognized_by_file_name_or_first_character(name: str) -> None:
    content = gzip.compress(GOOD) if name.endswith(".gz") else GOOD
    assert items(content, name) == [(1, RELATORIO)]


@pytest.mark.parametrize("name", ["a.csv", "A.CSV.gz", "-", ""])
def test_csv_is_recognized_by_file_name_or_first_character(name: str) -> None:
    content = f"{HEADER}\n{ROW}".encode()
    assert items(gzip.compress(content) if name.endswith(".gz") else content, name) == [(2, RELATORIO)]


def test_an_explicit_format_overrides_the_file_name() -> None:
    assert items(GOOD, "reports.csv", "ndjson") == [(1, RELATORIO)]


# A bad line is rejected with a reason, and the others are read


UUID = "accepted: a UUID, such as 0f8fad5b-d9cb-469f-a165-70867728950e"
STATUS = "accepted: one of PROCESSANDO, EM ANALISE, CONCLUIDO, PRE-PROCESSANDO, PENDENTE"
NOME = "accepted: 1 to 200 characters, no control characters"
PESSOA = "accepted: 1 to 200 characters (for Empresa it may be empty), no control characters"
MENSAGEM = "accepted: up to 500 characters, no control characters"
RESULTADO = "accepted: VALID, INVALID or null (in a CSV an empty cell)"
INSTANT = "accepted: an ISO 8601 instant with Z or offset, such as 2026-01-31T12:00:00.000Z, from 1970 to 9999"
DOCUMENTO = "accepted: 11 digits (CPF) for Pessoa, 14 characters (CNPJ) for Empresa, valid and without mask"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"numero": ...}, f"numero is missing; {UUID}"),
        ({"numero": 7}, f"numero has the wrong type; {UUID}"),
        ({"numero": None}, f"numero has the wrong type; {UUID}"),
        ({"numero": ""}, f"numero is not accepted; {UUID}"),
        ({"numero": "0f8fad5bd9cb469fa16570867728950e"}, f"numero is not accepted; {UUID}"),
        ({"numero": "0f8fad5b-d9cb-469f-a165-70867728950e\n"}, f"numero is not accepted; {UUID}"),
        ({"status": "FEITO"}, f"status is not accepted; {STATUS}"),
        ({"status": "x" * 5000}, f"status is not accepted; {STATUS}"),
        ({"status": {"deep": ["er"]}}, f"status has the wrong type; {STATUS}"),
        ({"tipo_pessoa": "Outro"}, "tipo_pessoa is not accepted; accepted: one of PESSOA, EMPRESA"),
        ({"nome": ""}, f"nome is missing or empty; {NOME}"),
        ({"nome": "x" * 201}, f"nome is too long; {NOME}"),
        ({"nome": "a\x00b"}, f"nome holds a control character; {NOME}"),
        ({"nome": "a\x85b"}, f"nome holds a control character; {NOME}"),
        ({"nome": "a\ud800b"}, f"nome holds half of a surrogate pair; {NOME}"),
        ({"atualizado_em": "2026-01-31"}, f"atualizado_em is not accepted; {INSTANT}"),
        ({"atualizado_em": "2026-01-31T12:00:00"}, f"atualizado_em is not accepted; {INSTANT}"),
        ({"atualizado_em": "2026-01-31T12:00:00.Z"}, f"atualizado_em is not accepted; {INSTANT}"),
        ({"atualizado_em": "2026-01-31T12:00:00.1234567890Z"}, f"atualizado_em is not accepted; {INSTANT}"),
        ({"atualizado_em": "2026-02-29T12:00:00.000Z"}, f"atualizado_em is not accepted; {INSTANT}"),
        ({"atualizado_em": "2026-01-31T24:00:00.000Z"}, f"atualizado_em is not accepted; {INSTANT}"),
        ({"atualizado_em": "2026-01-31T23:59:60.000Z"}, f"atualizado_em is not accepted; {INSTANT}"),
        ({"atualizado_em": "1969-12-31T23:59:59.999Z"}, f"atualizado_em is not accepted; {INSTANT}"),
        ({"atualizado_em": "1970-01-01T00:00:00+00:01"}, f"atualizado_em is not accepted; {INSTANT}"),
        ({"atualizado_em": "9999-12-31T23:59:59-00:01"}, f"atualizado_em is not accepted; {INSTANT}"),
        ({"atualizado_em": "2026-01-31T12:00:00.00٣Z"}, f"atualizado_em is not accepted; {INSTANT}"),
        ({"atualizado_em": 1769860800123}, f"atualizado_em has the wrong type; {INSTANT}"),
        ({"resultado": ""}, f"resultado is not accepted; {RESULTADO}"),
        ({"resultado": False}, f"resultado has the wrong type; {RESULTADO}"),
        ({"mensagem": "x" * 501}, f"mensagem is too long; {MENSAGEM}"),
        ({"mensagem": "a\nb"}, f"mensagem holds a control character; {MENSAGEM}"),
        (
            {"pendente_validacao_manual": "sim"},
            "pendente_validacao_manual is not accepted; accepted: true or false",
        ),
        ({"pendente_validacao_manual": 1}, "pendente_validacao_manual has the wrong type; accepted: true or false"),
        ({"numero_documento": 52998224725}, f"numero_documento has the wrong type; {DOCUMENTO}"),
        ({"numero_documento": "529.982.247-25"}, f"numero_documento has a mask; {DOCUMENTO}"),
        ({"numero_documento": "52998224724"}, f"numero_documento has wrong check digits; {DOCUMENTO}"),
        ({"numero_documento": "11111111111"}, f"numero_documento has wrong check digits; {DOCUMENTO}"),
        ({"numero_documento": "5299822472٥"}, f"numero_documento is not accepted for Pessoa; {DOCUMENTO}"),
        ({"numero_documento": CNPJ}, f"numero_documento is not accepted for Pessoa; {DOCUMENTO}"),
        (
            {"numero_documento": "52998224725", "tipo_pessoa": "Empresa"},
            f"numero_documento is not accepted for Empresa; {DOCUMENTO}",
        ),
        (
            {"numero_documento": "12ıBC34501DE35", "tipo_pessoa": "Empresa"},
            f"numero_documento is not accepted for Empresa; {DOCUMENTO}",
        ),
        (
            {"numero_documento": "12.abc.345/01DE-35", "tipo_pessoa": "Empresa"},
            f"numero_documento has a mask; {DOCUMENTO}",
        ),
        (
            {"numero_documento": "0" * 14, "tipo_pessoa": "Empresa"},
            f"numero_documento has wrong check digits; {DOCUMENTO}",
        ),
        ({"nome_pessoa": ...}, f"nome_pessoa is missing or empty; {PESSOA}"),
        ({"nome_pessoa": ""}, f"nome_pessoa is missing or empty; {PESSOA}"),
        ({"nome_pessoa": "x" * 201}, f"nome_pessoa is too long; {PESSOA}"),
        ({"nome_pessoa": "a\x7fb"}, f"nome_pessoa holds a control character; {PESSOA}"),
        ({"cpf": "52998224725"}, f"unknown field at position 11; accepted: {', '.join(ACCEPTED)}"),
        ({"Nome_Pesoa": "x"}, "unknown field at position 11; nearest accepted name: nome_pessoa"),
    ],
)
def test_a_rejection_names_the_wrong_field_and_what_is_accepted(changed: dict[str, object], expected: str) -> None:
    assert reason(line(**changed)) == expected


def not_json(character: int) -> str:
    return f"not valid JSON at character {character}; accepted: one whole object per line"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"x", not_json(1)),
        (b"\0", not_json(1)),
        (b"{", not_json(2)),
        (GOOD[:-1], not_json(len(GOOD))),
        (GOOD + GOOD, not_json(len(GOOD) + 1)),
        (GOOD + b"\0", not_json(len(GOOD) + 1)),
        (b'{"nome":"a\0b"}', not_json(11)),
        (b'{"nome":NaN}', "not valid JSON: NaN and Infinity are not JSON values"),
        (b'{"nome":-Infinity}', "not valid JSON: NaN and Infinity are not JSON values"),
        (b'{"nome":"\xff"}', NOT_UTF8),
        (b'{"nome":"\xed\xa0\x80"}', NOT_UTF8),
        (b"\xef\xbb\xbf\xef\xbb\xbf" + GOOD, not_json(1)),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"9" * 60_000, "not a JSON object"),
        (b"[" * 60_000, "nested too deeply; accepted: one object of texts and booleans"),
        (b'{"a":' * 10_000, "nested too deeply; accepted: one object of texts and booleans"),
        (b'{"nome":' + b"[" * 60_000, "nested too deeply; accepted: one object of texts and booleans"),
        (b'{"' + b'[\\"' * 5_000, not_json(2)),
        (b"{}", f"numero is missing; {UUID}"),
        (GOOD[:-1] + b',"nome":"x"}', "nome appears twice"),
        (GOOD[:-1] + b',"nome" : "consultaPessoaDefault"}', "nome appears twice"),
        (GOOD[:-1] + b',"resultado":"VALID"}', "resultado appears twice"),
        (line(resultado=None)[:-1] + b',"resultado":null}', "resultado appears twice"),
        (GOOD[:-1] + b',"n\\u006fme":"x"}', "nome appears twice"),
        (GOOD[:-1] + b',"x":1,"x":1}', f"unknown field at position 11; accepted: {', '.join(ACCEPTED)}"),
        (b" " * 65_537, "longer than 64 KiB"),
        (b"{" * 1_000_000, "longer than 64 KiB"),
    ],
)
def test_a_line_that_is_not_one_valid_json_object_is_rejected(content: bytes, expected: str) -> None:
    assert reason(content) == expected


def test_a_line_may_have_64_kib_and_not_one_byte_more() -> None:
    assert items(GOOD.ljust(65_536) + b"\n" + GOOD.ljust(65_537) + b"\n" + GOOD) == [
        (1, RELATORIO),
        Rejected(2, "longer than 64 KiB"),
        (3, RELATORIO),
    ]


def test_a_line_that_is_too_long_counts_all_of_its_quotes_and_no_others() -> None:
    line = b'"' + b"x" * 3 * ingest_lines.LONGEST + b'""'
    found = [each for _, each in filter(None, Source(io.BytesIO(line + b"\n" + line)).lines())]
    assert found == [ingest_lines.Unread(ingest_lines.TOO_LONG, quotes=3, beginning=line[:64])] * 2


@pytest.mark.parametrize("separator", [b"\n", b"\r\n"])
def test_lines_after_a_bad_line_are_still_read(separator: bytes) -> None:
    content = separator.join([GOOD, b"{", b"", b"\xff", GOOD, b"x" * 200_000, GOOD])
    assert items(content, file_format="ndjson") == [
        (1, RELATORIO),
        Rejected(2, not_json(1 + len(separator))),
        Rejected(4, NOT_UTF8),
        (5, RELATORIO),
        Rejected(6, "longer than 64 KiB"),
        (7, RELATORIO),
    ]


COLUMNS = "accepted: 10, as in the header"
COLUMNS_ARE = "the first line must name columns, separated by commas or semicolons:"
BAD_QUOTES = "the quotes are not valid in CSV"
MEND = "hint: close or remove that quote, and import the file again"
NEVER_CLOSED = f"the quote that opens a cell on line {{}} is never closed; nothing after it was read; {MEND}"
SPANS = (
    f"longer than 64 KiB, up to line {{}}: the quote that opens a cell on line {{}} was probably never closed; {MEND}"
)
QUOTED = ROW.replace("Válido.", '"{}"')


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (ROW + ",", f"the number of columns is 11; {COLUMNS}"),
        ("x", f"the number of columns is 1; {COLUMNS}"),
        (ROW.replace(",", ";"), f"the number of columns is 1; {COLUMNS}"),
        (ROW.replace("Maria da Silva", ""), f"nome_pessoa is missing or empty; {PESSOA}"),
        (ROW.replace("em analise", ""), f"status is not accepted; {STATUS}"),
        (ROW.replace("Válido.", "a\0b"), f"mensagem holds a control character; {MENSAGEM}"),
        (ROW.replace("Válido.", "a\rb"), f"mensagem holds a control character; {MENSAGEM}"),
        (QUOTED.format("a\nb"), f"mensagem holds a control character; {MENSAGEM}"),
        (QUOTED.format(f"a\n{ROW}\nb"), f"mensagem holds a control character; {MENSAGEM}"),
        (QUOTED.format(f'a""\n{ROW}\n""b'), f"mensagem holds a control character; {MENSAGEM}"),
        (QUOTED.format(f"a\n{'x' * 70_000}\n{ROW}\nb"), SPANS.format(6, 3)),
        (QUOTED.format(f"a\n{'x' * 70_000}" + "\n" * 70_000 + ROW), SPANS.format(70_004, 3)),
        (QUOTED.format("x" * 70_000 + f"\n{ROW}\n"), SPANS.format(5, 3)),
        (f'"a\n",{QUOTED}'.format("x\n" * 40_000), SPANS.format(40_004, 4)),
        (QUOTED.format("x" * 70_000), "longer than 64 KiB"),
        (QUOTED.format("x" * 501), f"mensagem is too long; {MENSAGEM}"),
        (ROW.replace("Válido.", '"a"b'), BAD_QUOTES),
        ("x" * 70_000, "longer than 64 KiB"),
    ],
)
def test_a_wrong_row_is_rejected_with_the_number_of_its_first_line(row: str, expected: str) -> None:
    content = f"{HEADER}\n{ROW}\n{row}\n{ROW}\n"
    assert items(content.encode()) == [
        (2, RELATORIO),
        Rejected(3, expected),
        (content.count("\n"), RELATORIO),
    ]


def test_the_word_null_is_accepted_only_in_free_text_cells() -> None:
    cells = dict(zip(LINE, ROW.split(","), strict=True))
    lines = (",".join((cells | {name: "null"}).values()) for name in LINE)
    told = items("\n".join((HEADER, *lines)).encode())
    taken = {name: getattr(each[1], name) for name, each in zip(LINE, told, strict=True) if isinstance(each, tuple)}
    assert taken == {"nome": "null", "mensagem": "null", "nome_pessoa": "null"}
    assert Rejected(7, f"resultado is not accepted; {RESULTADO}") in told


def test_a_quote_inside_an_unquoted_cell_is_an_ordinary_character() -> None:
    found = only(f"{HEADER}\n{ROW}".replace("Maria da", 'Maria "da"').encode())
    assert found.nome_pessoa == 'Maria "da" Silva'


def test_no_row_is_read_from_inside_an_unclosed_quote() -> None:
    content = f'{HEADER}\n{ROW}\n"{ROW}\n{ROW}\n{ROW}\n'
    assert items(content.encode()) == [(2, RELATORIO), Rejected(3, NEVER_CLOSED.format(3), final=True)]


def test_an_unclosed_quote_is_reported_with_the_line_where_it_opens() -> None:
    content = f'{HEADER}\n{ROW}\n"a\n""\nb",c,"d",",e\n' + f"{ROW}\n" * 1000
    assert items(content.encode()) == [(2, RELATORIO), Rejected(3, NEVER_CLOSED.format(5), final=True)]


@pytest.mark.parametrize(
    ("rest", "given"),
    [
        ([(4, b'b",c')], (3, b'a,"\nb",c')),
        ([None], (3, Unread(NEVER_CLOSED.format(3), final=True))),
        ([(4, Unread("truncated", final=True))], (3, Unread("truncated", final=True))),
    ],
)
def test_rows_before_an_open_quote_are_yielded_without_waiting(
    rest: list[tuple[int, Line] | None], given: tuple[int, Line]
) -> None:
    """None means that no input arrives for a while; the reports so far are then stored, even in the middle of a row."""
    rows = tabular.rows(iter([(2, b"a,b"), (3, b'a,"'), None, *rest]), ",")
    assert [next(rows), next(rows)] == [(2, b"a,b"), None]
    assert list(filter(None, rows)) == [given]


def test_rows_after_a_line_too_long_that_closes_a_quote_are_read() -> None:
    wrong = ROW.replace("Válido.", '"Válido.') + "\n" + "x" * ingest_lines.LONGEST + 'x"\n'
    assert items(f"{HEADER}\n{wrong}{ROW}\n".encode()) == [Rejected(2, SPANS.format(3, 2)), (4, RELATORIO)]


def test_rows_after_a_quote_that_closes_much_later_are_read() -> None:
    """The next quoted cell closes the quote, so the lines between them belong to one cell and are not rows."""
    wrong = ROW.replace("Válido.", '"Válido.') + "\n"
    content = f"{HEADER}\n{ROW}\n{wrong}" + f"{ROW}\n" * 1000 + f"{QUOTED.format('a')}\n{ROW}\n"
    assert items(content.encode()) == [
        (2, RELATORIO),
        Rejected(3, SPANS.format(1004, 3)),
        (1005, RELATORIO),
    ]


def test_a_row_that_is_not_utf8_is_rejected() -> None:
    assert items(f"{HEADER}\n{ROW}".encode("latin-1")) == [Rejected(2, NOT_UTF8)]


# A file that cannot be read at all

ARRAY = "the file is a JSON array; accepted: NDJSON, one object per line, or CSV"
ANSWER = (
    "the file is an answer of the API; write its items one per line, as `jq -c '.result.itens[]'` does, "
    "and add nome_pessoa"
)
SPREAD = (
    "the file has an object on several lines; write one object per line, as `jq -c .` does, "
    "or `jq -c '.result.itens[]'` for an answer of the API"
)


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (ROW, "", f"line 1: no header; {COLUMNS_ARE} {', '.join(ACCEPTED)}"),
        ("\n\nx", "", f"line 3: no header; {COLUMNS_ARE} {', '.join(ACCEPTED)}"),
        (
            "Numero;x",
            "",
            f"line 1: no header; {COLUMNS_ARE.replace('columns', 'columns in lower case')} {', '.join(ACCEPTED)}",
        ),
        (HEADER + ",nome", "", "line 1: the header names nome twice"),
        (HEADER + ",nome_pesoa", "", "line 1: column 11 of the header is unknown; nearest accepted name: nome_pessoa"),
        (HEADER.replace("numero,", ""), "", "line 1: the header lacks numero"),
        ("nome;status", "", "line 1: the header lacks numero, tipo_pessoa, atualizado_em, numero_documento"),
        ('"nome\nnumero', "", "line 1: the header has a quote that is never closed"),
        ('nome,"a"b', "", f"line 1: {BAD_QUOTES}"),
        ("x" * 70_000, "a.csv", "line 1: the header is longer than 64 KiB"),
        (f"[{json.dumps(LINE)}]", "", ARRAY),
        (f"[{json.dumps(LINE)}]", "a.ndjson", ARRAY),
        (f"[{','.join([json.dumps(LINE)] * 300)}]", "a.json", ARRAY),
        (json.dumps({"result": {"itens": [LINE]}, "status_code": 200}), "a.json", ANSWER),
        (json.dumps({"result": {"itens": [LINE] * 300}, "status_code": 200}), "a.ndjson", ANSWER),
        (json.dumps({"result": {"itens": [LINE]}, "status_code": 200}, indent=4), "a.json", SPREAD),
        (json.dumps(LINE, indent=4), "", SPREAD),
        (json.dumps(LINE), "a.ndjson.gz", "the name ends in .gz, but the content is not gzip"),
    ],
)
def test_an_unreadable_file_raises_an_error_that_says_why(content: str, name: str, expected: str) -> None:
    with pytest.raises(RecordsError) as error:
        items(content.encode(), name)
    assert str(error.value) == expected


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("content", [HEADER, json.dumps(LINE)])
def test_the_error_names_an_encoding_other_than_utf8(encoding: str, content: str, mark: str) -> None:
    with pytest.raises(RecordsError, match=f"the file is {encoding[:6].upper()}; accepted: UTF-8"):
        items(f"{mark}{content}\n".encode(encoding))


# Gzip that ends early or is damaged


TRUNCATED = "truncated gzip: the file ends too early; nothing from this line on was read"
CORRUPT = "corrupt gzip: the data is damaged; nothing from this line on was read"


@given(st.data())
def test_a_truncated_gzip_yields_its_readable_lines_and_one_rejection(data: st.DataObject) -> None:
    reports = data.draw(st.lists(relatorios(), min_size=1, max_size=4))
    whole = gzip.compress(b"".join(msgspec.json.encode(wire(found)) + b"\n" for found in reports))
    found = items(whole[: data.draw(st.integers(2, len(whole) - 1))])
    assert found[-1] == Rejected(len(found), TRUNCATED, final=True)
    assert found[:-1] == list(enumerate(reports, 1))[: len(found) - 1]


def test_a_cut_off_row_of_a_truncated_gzip_is_not_a_report() -> None:
    content = gzip.compress(f'{HEADER}\n{ROW}\n"{ROW}\n{ROW}'.encode())
    assert items(content[:-8]) == [(2, RELATORIO), Rejected(3, TRUNCATED, final=True)]
    assert items(gzip.compress(f"{HEADER}\n{ROW}".encode())[:-8]) == [Rejected(2, TRUNCATED, final=True)]


@pytest.mark.parametrize("damage", [b"\x1f\x8bnot gzip", gzip.compress(GOOD, mtime=0)[:-8] + b"\0" * 8])
def test_a_corrupt_gzip_is_rejected(damage: bytes) -> None:
    assert items(damage) == [Rejected(1, CORRUPT, final=True)]


def test_garbage_after_a_gzip_is_rejected_and_the_reports_before_are_read() -> None:
    assert items(gzip.compress(GOOD + b"\n") + b"\0\0garbage") == [(1, RELATORIO), Rejected(2, CORRUPT, final=True)]


# Arbitrary content


@given(
    st.lists(
        st.tuples(st.sampled_from([*LINE, "x"]), st.sampled_from(['"a"', '"\\""', '"\\u0022"', "null", "true", "7"]))
    )
)
def test_the_fast_parser_agrees_with_the_strict_parser(pairs: list[tuple[str, str]]) -> None:
    complete = [(name, json.dumps(value)) for name, value in LINE.items()]
    for candidates in (pairs, complete + pairs, pairs + complete, list(dict(complete + pairs).items())):
        text = ",".join(f'"{name}" : {value}' for name, value in candidates)
        assert outcome(ndjson.parse, f"{{{text}}}".encode()) == outcome(ndjson.parse_strictly, f"{{{text}}}".encode())


@settings(max_examples=300)
@given(
    st.binary(max_size=60), st.integers(0, len(GOOD)), st.integers(0, 40), st.sampled_from(["", "a.csv", "a.ndjson"])
)
def test_no_content_raises_anything_but_records_error(noise: bytes, start: int, length: int, name: str) -> None:
    for base in (GOOD + b"\n" + GOOD, f"{HEADER}\n{ROW}\n{ROW}".encode(), gzip.compress(GOOD), b"\x1f\x8b"):
        try:
            items(base[:start] + noise + base[start + length :], name)
        except RecordsError:
            continue


SECRET = "Zulmira"


@given(st.sampled_from([*LINE, SECRET]), st.text(max_size=3), st.text(max_size=3), st.booleans())
def test_no_rejection_repeats_a_value_of_the_line(name: str, before: str, after: str, as_csv: bool) -> None:
    changed = LINE | {name: f"{before}{SECRET}{after}"}
    content = table([{key: str(changed[key]) for key in ACCEPTED}]) if as_csv else json.dumps(changed).encode()
    [item] = items(content, file_format="csv" if as_csv else "ndjson")
    assert SECRET not in repr(item)


def test_the_repr_of_a_report_shows_only_its_numero() -> None:
    assert repr(RELATORIO) == "Relatorio(numero='0f8fad5b-d9cb-469f-a165-70867728950e')"
    assert RELATORIO.__rich_repr__() == [("numero", RELATORIO.numero)]
    draft = ndjson.parse(GOOD)
    assert draft is not None
    assert (repr(draft), draft.__rich_repr__()) == ("Draft()", [])


def test_no_repr_shows_personal_data() -> None:
    cpf, nome, email = RELATORIO.numero_documento, RELATORIO.nome_pessoa, "ana@example.com"
    batch = rows.prepared([RELATORIO])
    held = [
        *(batch, Batch(batch, [], 1), Known(1, nome), StoredReport(1, nome, json.dumps(LINE))),
        *(Statement("SELECT ?", (cpf,)), After(2, 25, 7, nome, cpf), Usuario(1, 1, 1, email, nome, enabled=True)),
    ]
    text = " ".join([*map(repr, held), *map(pretty_repr, held)])
    for secret in (cpf, nome, email):
        assert secret not in text
    assert "Statement('SELECT ?')" in text


def test_invalid_documents_are_accepted_on_request_but_not_masks() -> None:
    content = b"\n".join(
        [
            line(numero_documento="11111111111"),
            line(numero_documento="529.982.247-25"),
            line(tipo_pessoa="Empresa", numero_documento="aa" + "0" * 12),
        ]
    )
    found = list(read(Source(io.BytesIO(content)), accept_invalid_documents=True))
    assert [item.reason if isinstance(item, Rejected) else item[1].numero_documento for item in found if item] == [
        "11111111111",
        f"numero_documento has a mask; {DOCUMENTO}",
        "AA000000000000",
    ]


# Input that is still being written


LINES = {"ndjson": [GOOD, GOOD, GOOD], "csv": [HEADER.encode(), ROW.encode(), ROW.encode()]}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("lines", LINES.values(), ids=LINES.keys())
def test_reports_from_a_pipe_are_yielded_before_the_rest_arrives(
    monkeypatch: pytest.MonkeyPatch, lines: list[bytes], packed: bool
) -> None:
    """None is yielded while no more input arrives; an incomplete line is kept until the rest of it arrives."""
    monkeypatch.setattr(ingest_lines, "WAIT", 0.02)
    packer = zlib.compressobj(wbits=31) if packed else None
    ours, theirs = os.pipe()

    def send(content: bytes) -> None:
        os.write(theirs, packer.compress(content) + packer.flush(zlib.Z_SYNC_FLUSH) if packer else content)

    with os.fdopen(ours, "rb") as stream:
        found = read(Source(stream))
        send(b"\n".join([*lines[:2], lines[2][:20]]))
        seen = list(takewhile(bool, found))
        assert len(seen) == len(items(b"\n".join(lines))) - 1
        send(lines[2][20:] + b"\n")
        seen += takewhile(bool, found)
        assert seen == items(b"\n".join(lines))
        os.write(theirs, packer.flush() if packer else b"")
        os.close(theirs)
        assert list(found) == []


def test_reports_from_a_pipe_are_yielded_after_each_member_of_a_gzip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_lines, "WAIT", 0.02)
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as stream:
        found = read(Source(stream))
        for number in (1, 2):
            os.write(theirs, gzip.compress(GOOD + b"\n"))
            assert list(takewhile(bool, found)) == [(number, RELATORIO)]
        os.close(theirs)
        assert list(found) == []


def test_reports_from_a_pipe_wait_no_longer_while_more_keep_coming(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(ingest_lines, "WAIT", 100_000.0)
    monkeypatch.setattr(ingest_lines, "monotonic", lambda: now)
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as stream, os.fdopen(theirs, "wb", 0) as pipe:
        found = read(Source(stream))
        for number in (1, 2):
            pipe.write(GOOD + b"\n")
            assert next(found) == (number, RELATORIO)
            now += 60_000
        assert next(found) is None


# Progress and memory


def test_a_source_reports_its_size_and_the_bytes_consumed() -> None:
    content = gzip.compress(GOOD + b"\n")
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        source = Source(file)
        assert (source.consumed, source.size) == (0, len(content))
        assert list(read(source)) == [(1, RELATORIO)]
        assert (source.consumed, source.size) == (len(content), len(content))


def test_a_source_without_a_file_has_no_size() -> None:
    assert Source(io.BytesIO(GOOD)).size is None


STREAMS = {
    "a line of 100 MB": "repeat(b'x' * 65536, 1600)",
    "a quoted cell of 100 MB": "chain([header, b'\"'], repeat(b'x' * 65536, 1600))",
    "a quoted cell of many lines": "chain([header, b'\"'], repeat((b'x' * 63 + b'\\n') * 1024, 1600))",
    "a gzip bomb of 100 MB": "iter([gzip.compress(b'{' * 1024) + bomb()])",
    "many blank lines": "repeat(b'\\n' * 65536, 50)",
    "many different values": "(b'{\"status\":\"%d' % n + b'x' * 60000 + b'\"}\\n' for n in range(1600))",
}
PEAK = """
import gzip, io, resource, sys, zlib
from itertools import chain, repeat
from laudo.server.ingest.records import Source, read

def bomb():
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(b"{" * 65536) for _ in range(1600)) + packer.flush()

class Stream:
    def __init__(self, blocks):
        self.blocks = blocks
    def read1(self, size):
        return next(self.blocks, b"")

def peak():
    try:
        # On Linux a new process inherits ru_maxrss from its parent, but not VmHWM.
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)

header = sys.argv[2].encode() + b"\\n"
for _ in read(Source(Stream(eval(sys.argv[1])))):
    pass
print(peak())
"""


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS.keys())
def test_memory_stays_below_50_mb(stream: str) -> None:
    ran = subprocess.run([sys.executable, "-c", PEAK, stream, HEADER], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 50_000  # KiB


def outcome(parse: object, content: bytes) -> object:
    assert callable(parse)
    try:
        return parse(content)
    except FaultError as fault:
        return str(fault)
