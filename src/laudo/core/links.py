"""The `Link` header: the first, previous and last page by number, the next by cursor."""

from urllib.parse import quote_plus

from laudo.core.query import Condition, Query
from laudo.core.values import render


def header(query: Query, *, page: int, total: int, following: str | None) -> str:
    """Write the links of page `page`; `following` is the next one's cursor, None when nothing follows."""
    last = max(1, -(-total // query.rows))
    links = [_link(query, "first", "page=1")]
    if page > 1:
        links.append(_link(query, "prev", f"page={min(page - 1, last)}"))
    if following is not None:
        links.append(_link(query, "next", f"cursor={following}"))
    links.append(_link(query, "last", f"page={last}"))
    return ", ".join(links)


def _link(query: Query, relation: str, place: str) -> str:
    """Write one link, relative to the server; the whole question goes with it."""
    sort = f"{'-' if query.order.descending else ''}{query.order.field.name}"
    asked = "".join(f"&{each.filter.name}={_quoted(each)}" for each in query.conditions)
    return f'</{query.resource.name}?{place}&rows={query.rows}&sort={sort}{asked}>; rel="{relation}"'


def _quoted(condition: Condition) -> str:
    return quote_plus(render(condition.filter.kind, condition.value))
