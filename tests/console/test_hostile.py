"""Strings that would run a script in a careless page, shown in every place where the console shows text."""

import json
from itertools import islice, product

import pytest

from console.driver import Console
from live.server import Place, serving

CALLS = ("pwned=1", "window.pwned=1", "self['pwned']=1", "Function('pwned=1')()", "eval('pwned=1')")
SHAPES = (
    "<script>{}</script>",
    "<img src=x onerror={}>",
    "<svg onload={}>",
    '"><script>{}</script>',
    "'><img src=x onerror={}>",
    "</td><script>{}</script>",
    "</title><script>{}</script>",
    "</textarea><svg/onload={}>",
    "javascript:{}",
    "data:text/html,<script>{}</script>",
    '" onmouseover="{}',
    "' onfocus='{}' autofocus='",
    "`${{{}}}`",
    "${{{}}}",
    "{{{{{}}}}}",
    "{{{{constructor.constructor('{}')()}}}}",
    "<iframe srcdoc='<script>parent.{}</script>'>",
    "<a href=javascript:{}>x</a>",
    "<details open ontoggle={}>",
    "<math><mi xlink:href='javascript:{}'>",
    "<base href='javascript:{}//'>",
    "<style>*{{background:url(javascript:{})}}</style>",
    "<template><script>{}</script></template>",
    "<object data='javascript:{}'>",
    "<meta http-equiv=refresh content='0;url=javascript:{}'>",
    "\u202e<script>{}</script>\u2066",
    "&lt;script&gt;{}&lt;/script&gt;",
    "%3Cscript%3E{}%3C/script%3E",
    "\\u003cscript\\u003e{}\\u003c/script\\u003e",
    "<!--<script>{}</script>-->",
    "]]><script>{}</script>",
    "__proto__[{}]",
    "<form action=javascript:{}><button>x",
    "<video><source onerror={}>",
    "<body onpageshow={}>",
    "<input autofocus onfocus={}>",
    "<marquee onstart={}>",
    "<link rel=import href='data:text/html,<script>{}</script>'>",
    "<xss style=animation-name:shimmer onanimationstart={}>",
    "=HYPERLINK('javascript:{}')",
)
STRINGS = [shape.format(call) for shape, call in islice(product(SHAPES, CALLS), 200)]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """An account in which every text is hostile: names, messages, matrices, user, organization and webhook."""
    place = Place(tmp_path_factory.mktemp("hostile"))
    file = place.folder / "hostile.ndjson"
    file.write_text("".join(f"{json.dumps(line(number))}\n" for number in range(len(STRINGS))), "utf-8")
    for command in (
        ("migrate",),
        ("organization", "create", STRINGS[0], "--webhook-url", f"https://x/{STRINGS[40]}"),
        ("user", "create", "--account", "1", "--email", "a@example.com", "--name", STRINGS[1]),
        ("import", str(file), "--account", "1"),
    ):
        done = place.run(*command)
        assert done.returncode == 0, done.stderr
    return Place(place.folder, token=place.run("token", "create", "--user", "1").stdout.strip())


def line(number: int) -> dict[str, object]:
    return {
        "numero": f"6f0c7b52-93a6-4d0e-8a55-{number:012x}",
        "status": "CONCLUIDO",
        "tipo_pessoa": "PESSOA",
        "nome": STRINGS[number],
        "nome_pessoa": STRINGS[number],
        "mensagem": STRINGS[number],
        "numero_documento": cpf(number),
        "atualizado_em": "2026-11-01T12:00:00.000Z",
    }


def cpf(number: int) -> str:
    from laudo.core.documents import cpf_digits

    base = f"{number + 1:09}"
    return base + cpf_digits(base)


def test_no_stored_or_entered_text_runs_as_a_script(wide: Console, hostile: Place) -> None:
    wide.refusals_expected = True
    wide.lasting.on("dialog", lambda dialog: wide.faults.append(f"dialog: {dialog.message}"))
    with serving(hostile, "--workers", "1") as server:
        wide.base, wide.token = server.url, hostile.token
        wide.enter("#/relatorios?rows=200&sort=numero")
        shown = wide.page.locator("td.c-mensagem").all_text_contents()
        assert shown == STRINGS
        assert wide.page.locator("td.c-nome").all_text_contents() == STRINGS
        for address in ("#/pessoas?rows=200", "#/perfil", "#/painel"):
            wide.enter(address)
        for number in range(0, 200, 10):
            wide.enter(f"#/relatorios?aberto={line(number)['numero']}")
            wide.page.locator(".detalhe dl").wait_for()
        for text in STRINGS:
            wide.page.evaluate(
                "(text) => { location.hash = `#/relatorios?status=${encodeURIComponent(text)}`;"
                " location.hash = `#/${text}?nome=${text}&sort=${text}&aberto=${text}` }",
                text,
            )
        wide.settle()
        for text in STRINGS[::10]:
            wide.find(text)
        wide.page.get_by_role("button", name="Copiar como…").click()
        assert wide.page.evaluate("typeof pwned") == "undefined"
        assert (
            wide.page.evaluate("document.querySelectorAll('main script, main iframe, main object, base').length") == 0
        )


def test_the_content_security_policy_blocks_injected_scripts(wide: Console) -> None:
    wide.enter()
    for attempt in (
        "document.body.innerHTML = '<img src=x>'",
        "document.createElement('script').text = 'pwned=1'",
        "new Function('pwned=1')()",
        "setTimeout('pwned=1')",
    ):
        refused = wide.page.evaluate(
            f"new Promise((done) => setTimeout(() => {{ try {{ {attempt}; done(false) }} catch {{ done(true) }} }}))"
        )
        assert refused, attempt
    wide.page.wait_for_timeout(300)
    assert wide.faults
    wide.faults.clear()


@pytest.mark.parametrize("value", ["constructor", "__proto__"])
def test_a_value_named_like_an_object_property_is_refused_normally(wide: Console, value: str) -> None:
    wide.refusals_expected = True
    wide.enter(f"#/relatorios?status={value}")
    assert "não aceitou esta consulta" in wide.page.locator(".trouble[data-kind=invalid]").inner_text()
    assert wide.page.locator(".chips .value").inner_text() == value
