import json

import pytest

from shell import Shell, one_line


def test_created_items_are_reported_and_listed(laudo: Shell) -> None:
    first, second = "https://example.com/1", "https://example.com/2"
    organization = ("organization", "create", "Outra", "--webhook-url", first)
    assert laudo.prints(*organization) == "organization 2, with account 2 (principal)"
    account = ("account", "create", "Filial", "--organization", "2", "--webhook-url", second)
    assert laudo.prints(*account) == "account 3 of organization 2"
    user = ("user", "create", "--account", "3", "--email", "rui@example.com", "--name", "Rui")
    assert laudo.prints(*user) == "user 2 of account 3"
    assert [item["nome_organizacao"] for item in laudo.lists("organization", "list")] == ["Modelo", "Outra"]
    assert [(item["nome_conta"], item["webhook_url"]) for item in laudo.lists("account", "list")] == [
        ("principal", ""),
        ("principal", first),
        ("Filial", second),
    ]
    assert laudo.lists("user", "list")[1] == {
        "id_organizacao": 2,
        "id_conta": 3,
        "id_usuario": 2,
        "email": "rui@example.com",
        "nome_usuario": "Rui",
        "enabled": True,
    }


def test_create_can_print_json(laudo: Shell) -> None:
    made = json.loads(laudo.prints("organization", "create", "Outra", "--json"))
    assert made == {"id_organizacao": 2, "nome_organizacao": "Outra", "enabled": True, "id_conta": 2}


def test_lists_without_json_are_columns_with_a_header(laudo: Shell) -> None:
    header, line = laudo.prints("user", "list").splitlines()
    assert header.split() == ["id_organizacao", "id_conta", "id_usuario", "email", "nome_usuario", "enabled"]
    assert line.split() == ["1", "1", "1", "ana@example.com", "Ana", "yes"]


def test_columns_stay_straight_beside_characters_that_are_two_wide(laudo: Shell) -> None:
    laudo.prints("organization", "create", "東京")
    lines = laudo.prints("organization", "list").splitlines()
    assert lines[-2:] == ["1               Modelo            yes", "2               東京              yes"]


def test_bidi_control_characters_are_never_printed(laudo: Shell) -> None:
    name = "Outra \u202eavoN"
    made = laudo.prints("organization", "create", name, "--json")
    assert laudo.prints("organization", "list").splitlines()[-1].split() == ["2", "Outra", "\ufffdavoN", "yes"]
    listed = laudo.prints("organization", "list", "--json")
    assert (json.loads(made), json.loads(listed)[-1]) == (
        {"id_organizacao": 2, "nome_organizacao": name, "enabled": True, "id_conta": 2},
        {"id_organizacao": 2, "nome_organizacao": name, "enabled": True},
    )
    assert "\u202e" not in made + listed


def test_an_empty_list_prints_an_empty_array_or_a_note_on_stderr(fresh: Shell) -> None:
    fresh.prints("migrate")
    assert fresh.lists("organization", "list") == []
    result = fresh("organization", "list")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "none\n")


@pytest.mark.parametrize("noun", ["organization", "account", "user"])
def test_organizations_accounts_and_users_can_be_disabled_and_enabled(laudo: Shell, noun: str) -> None:
    assert laudo.prints(noun, "disable", "1") == f"{noun} 1 is disabled"
    assert [item["enabled"] for item in laudo.lists(noun, "list")] == [False]
    assert laudo.prints(noun, "enable", "1") == f"{noun} 1 is enabled"
    assert [item["enabled"] for item in laudo.lists(noun, "list")] == [True]


@pytest.mark.parametrize(
    ("words", "column", "text"),
    [
        (("organization", "update", "1", "--name", "Nova"), "nome_organizacao", "Nova"),
        (("account", "update", "1", "--name", " Matriz "), "nome_conta", "Matriz"),
        (("account", "update", "1", "--webhook-url", "https://example.com/2"), "webhook_url", "https://example.com/2"),
        (("account", "update", "1", "--webhook-url", ""), "webhook_url", ""),
        (("user", "update", "1", "--name", "Rui"), "nome_usuario", "Rui"),
        (("user", "update", "1", "--email", "rui@example.com"), "email", "rui@example.com"),
    ],
)
def test_update_changes_one_text_of_one_row(laudo: Shell, words: tuple[str, ...], column: str, text: str) -> None:
    noun = words[0]
    laudo.prints("organization", "create", "Outra", "--webhook-url", "https://example.com/1")
    laudo.prints("user", "create", "--account", "2", "--email", "bia@example.com", "--name", "Bia")
    laudo.prints("account", "update", "1", "--webhook-url", "https://example.com/1")
    first, second = laudo.lists(noun, "list")
    assert laudo.prints(*words) == f"{noun} 1 is updated"
    assert first[column] != text
    assert laudo.lists(noun, "list") == [first | {column: text}, second]


@pytest.mark.parametrize("words", [("--name", " "), ("--email", "rui"), ("--name", "Rui", "--email", "")])
def test_update_refuses_texts_that_create_refuses(laudo: Shell, words: tuple[str, ...]) -> None:
    before = laudo.lists("user", "list")
    result = laudo("user", "update", "1", *words)
    assert result.exit_code == 2
    assert one_line(result).startswith(("error: a name must have", "error: an e-mail address must look like"))
    assert laudo.lists("user", "list") == before


def test_update_without_a_change_names_the_options(laudo: Shell) -> None:
    result = laudo("account", "update", "1")
    assert result.exit_code == 2
    expected = "error: nothing to change without --name or --webhook-url; hint: laudo account update --help"
    assert one_line(result) == expected


def test_a_replaced_address_leaves_the_file_of_the_store(empty: Shell) -> None:
    empty.prints("migrate")
    empty.prints("organization", "create", "Modelo")
    empty.prints("user", "create", "--account", "1", "--email", "ana@example.com", "--name", "Ana")
    empty.prints("user", "update", "1", "--email", "gone@example.com", "--name", "-")
    kept = b"".join(file.read_bytes() for file in empty.folder.glob("laudo.db*"))
    assert b"gone@example.com" in kept
    assert b"ana@example.com" not in kept


def test_an_unknown_user_prints_one_line_and_exits_with_2(laudo: Shell) -> None:
    result = laudo("user", "disable", "9")
    assert result.exit_code == 2
    assert one_line(result) == "error: there is no user 9; hint: laudo user list"
