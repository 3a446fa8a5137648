"""The `Link` header: the first, previous and last page by number, the next by cursor.

Targets are relative to the list itself, so that they hold below any path that a proxy takes off.
"""

from urllib.parse import quote_plus

from laudo.core.query import Condition, Query
from laudo.core.values import render


def header(query: Query, *, page: int, total: int, following: str | None) -> str:
    """Write the links of page `page`; `following` is the next one's cursor, None when nothing follows."""
    last = max(1, -(-total // query.rows))
    places = {"first": "page=1"}
    if page > 1:
        places["prev"] = f"page={min(page - 1, last)}"
    if following is not None:
        places["next"] = f"cursor={following}"
    places["last"] = f"page={last}"
    name, question = query.resource.name, _question(query)
    return ", ".join([f'<{name}?{place}{question}>; rel="{relation}"' for relation, place in places.items()])


def _question(query: Query) -> str:
    """Write what is asked besides the page, as it goes with every link."""
    sort = f"{'-' if query.order.descending else ''}{query.order.field.name}"
    asked = "".join([f"&{each.filter.name}={_quoted(each)}" for each in query.conditions])
    return f"&rows={query.rows}&sort={sort}{asked}"


def _quoted(condition: Condition) -> str:
    return quote_plus(render(condition.filter.kind, condition.value))
