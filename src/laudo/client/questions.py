"""From the arguments of a client's methods to calls: what the blocking and the async client have in common."""

from collections.abc import Mapping

from laudo.client import parameters
from laudo.client.calls import I, ListCall, Listed
from laudo.client.items import Pessoa, Relatorio
from laudo.client.retries import check_count
from laudo.client.walk import Place, Walk
from laudo.core.query import STEP
from laudo.core.resources import PESSOAS, RELATORIOS, Resource


def relatorios(filters: Mapping[str, object], *, sort: str | None = None) -> ListCall[Relatorio]:
    """Ask for reports; raises ParameterError."""
    return ListCall(RELATORIOS, Relatorio, _parameters(RELATORIOS, filters, sort))


def pessoas(filters: Mapping[str, object], *, sort: str | None = None) -> ListCall[Pessoa]:
    """Ask for persons; raises ParameterError."""
    return ListCall(PESSOAS, Pessoa, _parameters(PESSOAS, filters, sort))


def page(call: ListCall[I], *, page: int, rows: int | None) -> ListCall[I]:
    """Ask for one page; raises ParameterError."""
    size = STEP if rows is None else rows
    return call.at(page=parameters.number("page", page), rows=parameters.number("rows", size, step=STEP))


def counted(call: ListCall[I]) -> ListCall[I]:
    """Ask for the total: every page has it, so the smallest one will do."""
    return page(call, page=1, rows=STEP)


def walk(call: ListCall[I], *, rows: int | None, workers: int, start: Place | None) -> Walk[I]:
    """Ask for all items; raises ParameterError."""
    check_count("workers", workers, least=1)
    if rows is not None:
        parameters.number("rows", rows, step=STEP)
    return Walk(call, rows=rows, workers=workers, start=start)


def holds_all(listed: Listed[I]) -> bool:
    """Tell whether a page is all there is."""
    return listed.pagina == 1 and len(listed.itens) >= listed.total


def _parameters(resource: Resource, filters: Mapping[str, object], sort: str | None) -> parameters.Parameters:
    return (*parameters.from_sort(resource, sort), *parameters.from_filters(resource, filters))
