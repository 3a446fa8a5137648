"""Asks any service of this contract: `Laudo` blocks, `AsyncLaudo` is awaited; imports nothing of the server."""

from laudo.client.awaited import AsyncLaudo, AsyncPage
from laudo.client.blocking import Laudo, Page
from laudo.client.errors import (
    AnswerError,
    BadRequestError,
    DeadlineError,
    LaudoError,
    NotReadyError,
    ParameterError,
    RateLimitError,
    ServerError,
    StatusError,
    TransportError,
    UnauthorizedError,
)
from laudo.client.frames import to_dicts, to_pandas, to_polars
from laudo.client.items import (
    Item,
    Moment,
    Pessoa,
    PessoaFilters,
    Relatorio,
    RelatorioFilters,
    Resultado,
    Status,
    TipoPessoa,
    Usuario,
)
from laudo.client.retries import Limits, Timing
from laudo.client.transports import Network
from laudo.client.walk import Batch, Place

__all__ = [
    "AnswerError",
    "AsyncLaudo",
    "AsyncPage",
    "BadRequestError",
    "Batch",
    "DeadlineError",
    "Item",
    "Laudo",
    "LaudoError",
    "Limits",
    "Moment",
    "Network",
    "NotReadyError",
    "Page",
    "ParameterError",
    "Pessoa",
    "PessoaFilters",
    "Place",
    "RateLimitError",
    "Relatorio",
    "RelatorioFilters",
    "Resultado",
    "ServerError",
    "Status",
    "StatusError",
    "Timing",
    "TipoPessoa",
    "TransportError",
    "UnauthorizedError",
    "Usuario",
    "to_dicts",
    "to_pandas",
    "to_polars",
]
