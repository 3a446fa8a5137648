"""The lists of the service, as tests of the console ask for them, and as tests let the browser see them."""

import re
from collections.abc import Callable
from typing import Any, Final

import httpx
from playwright.sync_api import Route

LISTS: Final = re.compile(r"/relatorios(\?|$)")
LOOKS_AGAIN: Final = 21_000
"""Milliseconds after which an open list has looked for changes."""
CHOICES: Final = [
    *(f"status={status}" for status in ("PROCESSANDO", "EM ANALISE", "CONCLUIDO", "PRE-PROCESSANDO", "PENDENTE")),
    *("resultado=VALID", "resultado=INVALID", "tipo_pessoa=PESSOA", "tipo_pessoa=EMPRESA"),
    *("pendente_validacao_manual=true", "pendente_validacao_manual=false"),
]


def count(api: httpx.Client, **filters: str) -> int:
    return int(api.get("/relatorios", params=filters).raise_for_status().json()["result"]["paginacao"]["total"])


def first(api: httpx.Client, **filters: str) -> dict[str, Any]:
    item: dict[str, Any] = api.get("/relatorios", params=filters).raise_for_status().json()["result"]["itens"][0]
    return item


def people(api: httpx.Client, **filters: str) -> int:
    return int(api.get("/pessoas", params=filters).json()["result"]["paginacao"]["total"])


def repeated(api: httpx.Client) -> dict[str, str]:
    """Give a report of a person who has at least two more."""
    itens = api.get("/relatorios", params={"rows": 200, "tipo_pessoa": "PESSOA"}).json()["result"]["itens"]
    return next(item for item in itens if count(api, numero_documento=item["numero_documento"]) > 2)


def punctuated(document: str) -> str:
    if len(document) == 11:
        return f"{document[:3]}.{document[3:6]}.{document[6:9]}-{document[9:]}"
    return f"{document[:2]}.{document[2:5]}.{document[5:8]}/{document[8:12]}-{document[12:]}"


def answered(change: Callable[[Any], None]) -> Callable[[Route], None]:
    """Make a route handler that changes the result and never answers 304."""

    def answer(route: Route) -> None:
        headers = {name: value for name, value in route.request.headers.items() if name != "if-none-match"}
        response = route.fetch(headers=headers)
        body = response.json()
        change(body["result"])
        route.fulfill(response=response, json=body)

    return answer


def answers(status: int, message: str, **headers: str) -> Callable[[Route], None]:
    body = f'{{"error":"x","message":"{message}","status_code":{status}}}'
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda route: route.fulfill(status=status, headers=named, body=body)


def most_rows(api: httpx.Client, most: int) -> Callable[[Route], None]:
    """Answer with the contract of a service that gives at most so many rows of reports."""
    document = api.get("/openapi.json").json()
    [rows] = [each for each in document["paths"]["/relatorios"]["get"]["parameters"] if each["name"] == "rows"]
    rows["schema"]["maximum"] = most
    return lambda route: route.fulfill(json=document)
