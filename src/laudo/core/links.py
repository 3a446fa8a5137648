"""The `Link` header: the first, previous and last page by number, the next by cursor.

Targets are relative to the list itself, so they hold below any path that a proxy removes.
"""

from laudo.core.query import Query


def header(query: Query, *, page: int, total: int, following: str | None) -> str:
    """Write the links of page `page`; `following` is the next one's cursor, None when nothing follows."""
    last = max(1, -(-total // query.rows))
    name, rest = query.resource.name, f"&rows={query.rows}&{query.written}>; rel="
    links = [f'<{name}?page=1{rest}"first"']
    if page > 1:
        links.append(f'<{name}?page={min(page - 1, last)}{rest}"prev"')
    if following is not None:
        links.append(f'<{name}?cursor={following}{rest}"next"')
    links.append(f'<{name}?page={last}{rest}"last"')
    return ", ".join(links)
