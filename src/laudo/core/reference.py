"""OpenAPI document → the reference as one HTML page that needs nothing else, and the page at `/`."""

from html import escape
from typing import Any

import msgspec

Json = dict[str, Any]

_STYLE = """
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code,pre{font:14px/1.5 ui-monospace,monospace}pre{overflow:auto;padding:1rem;border:1px solid #8884;border-radius:.5rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.4rem .6rem}
tr{border-bottom:1px solid #8884}h2{margin-top:3rem}
"""


def home() -> bytes:
    """Write the page at `/`: what this address is, and where to read on."""
    return _document(
        "laudo",
        "<h1>laudo</h1><p>Consulta de relatórios de validação, pessoas e perfil.</p>"
        '<ul><li><a href="/docs">Referência da API</a></li>'
        '<li><a href="/openapi.json">OpenAPI 3.1</a></li></ul>',
    )


def page(document: Json) -> bytes:
    """Write the reference: every route with its parameters, answers and errors."""
    info = document["info"]
    routes = "".join(_route(document, path, methods["get"]) for path, methods in document["paths"].items())
    return _document(
        f"{info['title']}: referência", f"<h1>{escape(info['title'])}</h1><p>{escape(info['description'])}</p>{routes}"
    )


def _document(title: str, body: str) -> bytes:
    return (
        f'<!doctype html><html lang="pt-BR"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style><main>{body}</main></html>'
    ).encode()


def _route(document: Json, path: str, get: Json) -> str:
    parameters = "".join(_parameter(parameter) for parameter in get.get("parameters", ()))
    table = f"<h3>Parâmetros</h3><table>{parameters}</table>" if parameters else ""
    answers = "".join(_answer(document, status, answer) for status, answer in get["responses"].items())
    return f"<h2><code>GET {escape(path)}</code></h2><p>{escape(get['summary'])}</p>{table}<h3>Respostas</h3>{answers}"


def _parameter(parameter: Json) -> str:
    choices = ", ".join(parameter["schema"].get("enum", ()))
    listed = f"<br><small>{escape(choices)}</small>" if choices else ""
    return (
        f"<tr><th><code>{escape(parameter['name'])}</code></th><td>{escape(parameter['description'])}{listed}</td>"
        f"<td><code>{escape(str(parameter['example']))}</code></td></tr>"
    )


def _answer(document: Json, status: str, answer: Json) -> str:
    if "$ref" in answer:
        answer = document["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    example = answer.get("content", {}).get("application/json", {}).get("example")
    shown = f"<pre>{escape(_pretty(example))}</pre>" if example else ""
    return f"<p><strong>{status}</strong> {escape(answer['description'])}</p>{shown}"


def _pretty(example: Json) -> str:
    return msgspec.json.format(msgspec.json.encode(example), indent=2).decode()
