"""A stand-in for another service of this contract. It has no cursor, ETag or Link, and its answers can be scripted."""

import asyncio
import json
from collections.abc import Callable
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl

import httpx

TOKEN = "token-of-another-service"
Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response] | None
"""One scripted answer; None stands for the normal one."""


def relatorio(number: int, **changes: object) -> dict[str, Any]:
    """One item of /relatorios; with a larger number it was updated later."""
    minutes, seconds = divmod(number, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return {
        "numero": f"{number:08x}-0000-4000-8000-000000000000",
        "status": "CONCLUIDO",
        "tipo_pessoa": "Pessoa",
        "nome": "consultaPessoaDefault",
        "atualizado_em": f"2026-01-{days + 1:02}T{hours:02}:{minutes:02}:{seconds:02}.000Z",
        "resultado": "VALID",
        "mensagem": "Válido.",
        "pendente_validacao_manual": False,
        "numero_documento": "52998224725",
    } | changes


def pessoa(number: int, **changes: object) -> dict[str, Any]:
    return {"cpf": f"{number:011}", "nome": f"Pessoa {number}", "atualizado_em": "2026-01-31T12:00:00.000Z"} | changes


class Service:
    """Holds items in the order of its lists, and knows only page numbers, no cursors."""

    def __init__(self, relatorios: list[dict[str, Any]] | None = None, *, most_rows: int = 1000) -> None:
        self.relatorios = relatorios or []
        self.pessoas: list[dict[str, Any]] = []
        self.most_rows = most_rows
        self.script: list[Answer] = []
        self.requests: list[httpx.Request] = []
        self._counting = Lock()
        self.after: Callable[[int], None] = lambda _: None
        """Called after each answer with the number of requests so far, for example to change the list during a walk."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        with self._counting:
            self.requests.append(request)
            asked = len(self.requests)
        scripted = self.script.pop(0) if self.script else None
        if isinstance(scripted, Exception):
            raise scripted
        answer = self.answer(request) if scripted is None else scripted(request) if callable(scripted) else scripted
        self.after(asked)
        return answer

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.headers.get("Authorization") != TOKEN:
            return refused(401, "Falha na autenticação.")
        asked = dict(parse_qsl(request.url.query.decode()))
        if request.url.path == "/usuario":
            return httpx.Response(200, json={"result": PROFILE, "status_code": 200})
        rows = int(asked.pop("rows", "25"))
        page = int(asked.pop("page", "1"))
        if rows > self.most_rows or set(asked) - KNOWN:
            return refused(400, "Parâmetro inválido.")
        return self.list(request.url.path, asked, page=page, rows=rows)

    def list(self, path: str, filters: dict[str, str], *, page: int, rows: int) -> httpx.Response:
        items = self.relatorios if path == "/relatorios" else self.pessoas
        found = [
            item for item in items if all(str(item[name]) == text for name, text in filters.items() if name != "sort")
        ]
        total: object = len(found) if path == "/relatorios" else str(len(found))
        shown = found[(page - 1) * rows : page * rows]
        return listed(shown, total=total, page=page, rows=rows)


PROFILE = {
    "api_token": TOKEN,
    "email": "ana@example.com",
    "nome_usuario": "Ana",
    "webhook_url": "",
    "nome_organizacao": "Modelo",
    "id_organizacao": "1",
}
KNOWN = {"numero", "status", "cpf", "nome", "numero_documento", "sort"}


def listed(
    itens: list[dict[str, Any]], *, total: object, page: int = 1, rows: int = 25, headers: dict[str, str] | None = None
) -> httpx.Response:
    paging = {"atual": page, "linhas": rows, "total": total}
    return httpx.Response(
        200, json={"result": {"itens": itens, "paginacao": paging}, "status_code": 200}, headers=headers
    )


def refused(status: int, message: str = "Não.", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): text for name, text in headers.items()} | {"X-Request-Id": "abc-1"}
    body = {"error": "Refused", "message": message, "status_code": status}
    return httpx.Response(status, content=json.dumps(body), headers=named)


class Clock:
    """A clock that only `sleep` advances; it records the pauses."""

    def __init__(self) -> None:
        self.time = 0.0
        self.pauses: list[float] = []
        self.chances: list[float] = []
        """The next results of `chance`; after them it gives 1."""

    def chance(self) -> float:
        return self.chances.pop(0) if self.chances else 1.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)
        await asyncio.sleep(0)
