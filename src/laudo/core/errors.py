"""The table of errors: the only place where a status, its name and its text meet."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the table: what a client reads when something is refused.

    `message` is Portuguese, says what to do and never repeats a value of the request.
    """

    status: int
    error: str
    message: str


INVALID: Final = Kind(400, "Bad Request", "Requisição inválida. Verifique os parâmetros enviados.")
UNAUTHORIZED: Final = Kind(
    401,
    "Unauthorized",
    "Falha na autenticação. Verifique o token utilizado e se o acesso foi liberado.",
)
NOT_FOUND: Final = Kind(404, "Not Found", "Endereço não encontrado. Verifique o caminho da URL.")
NOT_ALLOWED: Final = Kind(405, "Method Not Allowed", "Método não permitido neste endereço. Utilize GET.")
TOO_MANY: Final = Kind(
    429,
    "Too Many Requests",
    "Limite de requisições excedido. Aguarde o tempo indicado em Retry-After e tente novamente.",
)
INTERNAL: Final = Kind(
    500,
    "Internal Server Error",
    "Erro interno. Tente novamente e, se o erro persistir, informe o X-Request-Id ao suporte.",
)
UNAVAILABLE: Final = Kind(
    503,
    "Service Unavailable",
    "Serviço temporariamente indisponível. Aguarde o tempo indicado em Retry-After e tente novamente.",
)

TABLE: Final = (INVALID, UNAUTHORIZED, NOT_FOUND, NOT_ALLOWED, TOO_MANY, INTERNAL, UNAVAILABLE)


RETRY_AFTER: Final = 1
"""Seconds after which a client may try again, if the cause may pass: the store may answer then."""


class ApiError(Exception):
    """A request that is refused: a row of the table, and for a 400 what was wrong and in which parameters."""

    def __init__(
        self, kind: Kind, *, message: str = "", keys: tuple[str, ...] = (), retry_after: int = RETRY_AFTER
    ) -> None:
        """`message` replaces the row's own; `keys` are the parameters at fault; `retry_after` is in seconds."""
        super().__init__(kind.error)
        self.kind = kind
        self.message = message or kind.message
        self.keys = keys
        self.retry_after = retry_after
