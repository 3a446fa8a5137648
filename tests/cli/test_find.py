import json

import pytest

from shell import Shell, one_line, reports

PERSON = "52998224725"
REPORT = {
    "numero": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "status": "CONCLUIDO",
    "tipo_pessoa": "Pessoa",
    "nome": "consultaPessoaDefault",
    "atualizado_em": "2026-01-31T12:00:00.000Z",
    "resultado": "VALID",
    "mensagem": "Válido.",
    "pendente_validacao_manual": False,
    "numero_documento": PERSON,
    "nome_pessoa": 'Maria "Mia" da Silva',
}


def test_all_reports_of_a_person_are_printed_account_by_account(laudo: Shell) -> None:
    laudo.prints("account", "create", "Filial", "--organization", "1")
    laudo.prints("organization", "create", "Vizinha")
    for account in (1, 2, 3):
        laudo.prints("import", "-", "--account", str(account), stdin=json.dumps(REPORT))
    result = laudo("find", "--organization", "1", "-", stdin=f"{PERSON}\n11144477735\n{PERSON}\n")
    assert (result.exit_code, result.stderr) == (0, "2 reports\n")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert found == [{"id_conta": 1, **REPORT}, {"id_conta": 2, **REPORT}]
    assert list(found[0]) == ["id_conta", *REPORT]


def test_bidi_control_characters_are_escaped(laudo: Shell) -> None:
    turned = REPORT | {"mensagem": "\u2066a\u2069", "nome_pessoa": "Maria \u202eavliS"}
    laudo.prints("import", "-", "--account", "1", stdin=json.dumps(turned))
    shown = laudo("find", "--organization", "1", "-", stdin=PERSON).stdout
    assert shown.rstrip("\n").isprintable()
    assert json.loads(shown) == {"id_conta": 1, **turned}


def test_a_person_without_reports_prints_no_line(laudo: Shell) -> None:
    result = laudo("find", "--organization", "1", "-", stdin=PERSON)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "0 reports\n")


def test_invalid_documents_are_reported_by_line_without_their_text(laudo: Shell) -> None:
    laudo.prints("import", "-", "--account", "1", stdin=json.dumps(REPORT))
    result = laudo("find", "--organization", "1", "-", stdin=f"529.98224725\n{PERSON}")
    assert (result.exit_code, result.stderr) == (1, "line 1: not a CPF or CNPJ\n1 report\n")
    assert len(result.stdout.splitlines()) == 1
    none = laudo("find", "--organization", "1", "-", stdin="529.98224725")
    assert (none.exit_code, none.stderr.splitlines()[-1]) == (2, "error: no line is a CPF or CNPJ")


@pytest.mark.parametrize(
    ("document", "masked"),
    [("52998224725", "529.982.247-25"), ("12ABC34501DE35", "12.abc.345/01DE-35")],
    ids=["CPF", "CNPJ"],
)
def test_a_document_is_found_with_its_mask(laudo: Shell, document: str, masked: str) -> None:
    reports(laudo, 1, document)
    result = laudo("find", "--organization", "1", "-", stdin=f"{masked}\n{document}")
    assert (result.exit_code, result.stderr) == (0, "1 report\n")
    assert json.loads(result.stdout)["numero_documento"] == document


def test_document_arguments_and_unknown_organizations_are_refused(laudo: Shell) -> None:
    given = laudo("find", "--organization", "1", PERSON)
    assert given.exit_code == 2
    assert PERSON not in one_line(given)
    assert "documents are read from stdin" in given.stderr
    foreign = laudo("find", "--organization", "9", "-", stdin=PERSON)
    assert (foreign.exit_code, one_line(foreign)) == (
        2,
        "error: there is no organization 9; hint: laudo organization list",
    )
