"""The reference as an HTML page, complete without a script; a script of the console adds "Experimentar"."""

from html import escape
from typing import Any

from laudo.core.reference import parts
from laudo.core.reference.parts import Answer, Route

Json = dict[str, Any]

_MARK = (
    '<svg class="mark" viewBox="0 0 20 20" aria-hidden="true"><path class="sheet" d="M4 1.5h8.5L17 6v12.5H4z"/>'
    '<path class="check" d="M7 11l2.5 2.5L14 8.5"/></svg>'
)


def page(document: Json, *, base: str) -> bytes:
    """Write the reference; styles and script are files below `base`."""
    info = document["info"]
    routes = list(parts.routes(document))
    links = "".join(
        f'<li><a href="#{_anchor(route)}"><span class="verb">GET</span> {escape(route.path)}</a></li>'
        for route in routes
    )
    return f"""<!doctype html>
<html lang="pt-BR" data-theme="auto">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no">
<title>Referência da API · {escape(info["title"])}</title>
<link rel="icon" href="{base}/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{base}/base.css">
<link rel="stylesheet" href="{base}/docs.css">
<script type="module" src="{base}/docs.js"></script>
</head>
<body>
<a class="skip" href="#conteudo">Ir para o conteúdo</a>
<header class="bar">
<a class="brand" href="./" aria-label="laudo, início">{_MARK}<span>laudo</span></a>
<nav class="tabs" aria-label="Seções"><a href="./">Console</a><a href="docs" aria-current="page">API</a></nav>
<p class="formats"><a href="docs.md">Markdown</a> <a href="openapi.json">OpenAPI {document["openapi"]}</a></p>
</header>
<div class="pages">
<nav class="routes" aria-label="Rotas"><ul>{links}</ul></nav>
<main id="conteudo" tabindex="-1">
<h1>Referência da API <small>{escape(info["version"])}</small></h1>
<p class="lead">{escape(info["summary"])}</p>
<p>{escape(info["description"])}</p>
<p>{escape(parts.AUTHENTICATION)}</p>
{"".join(_route(route) for route in routes)}
</main></div></body></html>
""".encode()


def _anchor(route: Route) -> str:
    return route.path.strip("/").replace(".", "-")


def _route(route: Route) -> str:
    anchor = _anchor(route)
    no_token = "" if route.needs_token else ' <span class="free">sem token</span>'
    return (
        f'<section class="route" data-path="{escape(route.path)}" aria-labelledby="{anchor}">'
        f'<h2 id="{anchor}"><span class="verb">GET</span> <code>{escape(route.path)}</code>{no_token}</h2>'
        f"<p>{escape(route.summary)}</p>"
        f"{_parameters(route)}{_fields(route)}{_examples(route)}<div data-try></div>"
        f"<h3>Respostas</h3>{''.join(_answer(answer, route.path) for answer in route.answers)}</section>"
    )


def _parameters(route: Route) -> str:
    if not route.parameters:
        return ""
    rows = "".join(_parameter(parameter) for parameter in route.parameters)
    return _table(f"Parâmetros de {route.path}", ("nome", "descrição", "exemplo"), rows)


def _parameter(parameter: Json) -> str:
    place = ' <span class="where">cabeçalho</span>' if parameter["in"] == "header" else ""
    value = parameter["schema"].get("default")
    default = f" Padrão: <code>{escape(str(value))}</code>." if value is not None else ""
    accepted = parts.accepted(parameter)
    example = f"<code>{escape(str(parameter['example']))}</code>" if "example" in parameter else ""
    # Each value gets a span, so that no line breaks between the - of a descending order and its field.
    spans = ", ".join(f"<span>{escape(choice)}</span>" for choice in accepted.split(", "))
    choices = f'<br><span class="accepted">{spans}</span>' if accepted != "texto" else ""
    return (
        f'<tr role="row"><th scope="row" role="rowheader"><code>{escape(parameter["name"])}</code>{place}</th>'
        f'<td role="cell" class="says">{escape(parameter["description"])}{default}{choices}</td>'
        f'<td role="cell">{example}</td></tr>'
    )


def _fields(route: Route) -> str:
    if not route.fields:
        return ""
    rows = "".join(
        f'<tr role="row"><th scope="row" role="rowheader"><code>{escape(field.name)}</code></th>'
        f'<td role="cell">{escape(field.kind)}</td><td role="cell" class="says">{escape(field.description)}</td></tr>'
        for field in route.fields
    )
    return _table(f"Campos de {route.path}", ("nome", "tipo", "descrição"), rows)


def _table(label: str, heads: tuple[str, ...], rows: str) -> str:
    title = label.partition(" ")[0]
    # The roles are explicit because a phone shows each row as a block, and browsers may then see no table.
    cells = "".join(f'<th scope="col" role="columnheader">{head}</th>' for head in heads)
    return (
        f'<h3>{title}</h3><div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table role="table"><thead role="rowgroup"><tr role="row">{cells}</tr></thead>'
        f'<tbody role="rowgroup">{rows}</tbody></table></div>'
    )


def _examples(route: Route) -> str:
    examples = _code("curl", parts.curl(route), of=route.path) + _code("Python", parts.python(route), of=route.path)
    return f'<div class="examples">{examples}</div>'


def _answer(answer: Answer, path: str) -> str:
    headers = "".join(
        f"<dt><code>{escape(name)}</code></dt><dd>{escape(description)}</dd>" for name, description in answer.headers
    )
    section = f"<h4>Cabeçalhos</h4><dl>{headers}</dl>" if headers else ""
    body = _code("Corpo", answer.example, of=f"{answer.status} {path}") if answer.example else ""
    return (
        f'<details class="answer" data-status="{answer.status[0]}"><summary><strong>{answer.status}</strong> '
        f"{escape(answer.description)}</summary>{body}{section}</details>"
    )


def _code(title: str, text: str, *, of: str) -> str:
    return (
        f'<figure class="code"><figcaption>{title}</figcaption>'
        f'<pre tabindex="0" role="region" aria-label="{title}: {escape(of)}"><code>{escape(text)}</code></pre></figure>'
    )
