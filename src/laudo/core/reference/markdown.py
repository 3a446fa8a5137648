"""The reference as Markdown."""

from typing import Any

from laudo.core.reference import parts
from laudo.core.reference.parts import Answer, Route

Json = dict[str, Any]


def markdown(document: Json) -> bytes:
    """Write the reference: every route with its parameters, answers, errors and examples."""
    info = document["info"]
    head = [f"# {info['title']} {info['version']}", info["summary"], info["description"], parts.AUTHENTICATION]
    return ("\n\n".join([*head, *(_route(route) for route in parts.routes(document))]) + "\n").encode()


def _route(route: Route) -> str:
    blocks = [f"## GET {route.path}", route.summary if route.needs_token else f"{route.summary} Sem token."]
    if route.parameters:
        rows = [
            f"| `{parameter['name']}` | {_cell(_description(parameter))} | {_cell(parts.accepted(parameter))} "
            f"| {_example(parameter)} |"
            for parameter in route.parameters
        ]
        blocks += ["### Parâmetros", "\n".join(["| nome | descrição | aceita | exemplo |", "|---|---|---|---|", *rows])]
    if route.fields:
        fields = [f"| `{field.name}` | {field.kind} | {_cell(field.description)} |" for field in route.fields]
        blocks += ["### Campos", "\n".join(["| nome | tipo | descrição |", "|---|---|---|", *fields])]
    blocks += ["### Exemplos", _code("sh", parts.curl(route)), _code("python", parts.python(route))]
    return "\n\n".join([*blocks, "### Respostas", *(_answer(answer) for answer in route.answers)])


def _answer(answer: Answer) -> str:
    headers = ", ".join(f"`{name}`" for name, _ in answer.headers)
    text = f"**{answer.status}** {answer.description}" + (f" Cabeçalhos: {headers}." if headers else "")
    return f"{text}\n\n{_code('json', answer.example)}" if answer.example else text


def _description(parameter: Json) -> str:
    place = "Cabeçalho. " if parameter["in"] == "header" else ""
    default = parameter["schema"].get("default")
    return f"{place}{parameter['description']}" + (f" Padrão: `{default}`." if default is not None else "")


def _example(parameter: Json) -> str:
    return f"`{_cell(str(parameter['example']))}`" if "example" in parameter else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"
