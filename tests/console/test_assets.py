"""How the files of the console are served; these tests need no browser."""

import re

import pytest

from wsgi import NewClient

IMMUTABLE = "public, max-age=31536000, immutable"
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
APART = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
}
"""Headers that isolate the page from other origins and send them no addresses."""


def linked(client: NewClient, page: str) -> list[str]:
    """Give the console's files that a page links to."""
    return [f"/{path}" for path in re.findall(r'(?:src|href)="(console/[^"]+)"', client(None).get(page).body.decode())]


@pytest.mark.parametrize("page", ["/", "/docs"])
def test_a_page_has_a_strict_policy_no_inline_code_and_is_revalidated(client: NewClient, page: str) -> None:
    answer = client(None).get(page)
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy == POLICY
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers.items() >= APART.items()
    assert not re.search(rb"<style|style=|\son\w+=|<script(?![^>]*\ssrc=)", answer.body)
    again = client(None).ask("GET", page, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("page", ["/", "/docs", "/docs.md"])
def test_a_page_with_a_matching_etag_is_not_sent_again(client: NewClient, page: str) -> None:
    etag = client(None).get(page).headers["etag"]
    for known in (etag, f"W/{etag}", "*", f'"x", {etag}'):
        answer = client(None).ask("GET", page, headers={"If-None-Match": known})
        assert (answer.status, answer.body) == (304, b""), known
    for other in ('"x"', "", etag[1:-1], f'"{etag}x"'):
        assert client(None).ask("GET", page, headers={"If-None-Match": other}).status == 200, other


@pytest.mark.parametrize("page", ["/", "/docs"])
def test_a_page_links_one_icon(client: NewClient, page: str) -> None:
    assert len(re.findall(r'<link rel="icon" href="console/[^"]+/icon.svg"', client(None).get(page).body.decode())) == 1


@pytest.mark.parametrize("page", ["/", "/docs"])
def test_every_file_has_its_media_type_and_is_cached_forever(client: NewClient, page: str) -> None:
    types = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    assert linked(client, page)
    for path in linked(client, page):
        answer = client(None).get(path)
        assert answer.headers["content-type"] == f"{types[path.rpartition('.')[2]]}; charset=utf-8"
        assert answer.headers["cache-control"] == IMMUTABLE
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers.items() >= APART.items()
        assert client(None).ask("GET", path, headers={"If-None-Match": answer.headers["etag"]}).status == 304
        assert client(None).head(path).body == b""


def test_every_imported_module_is_served(client: NewClient) -> None:
    seen, waiting = (
        set[str](),
        [path for page in ("/", "/docs") for path in linked(client, page) if path.endswith(".js")],
    )
    while waiting:
        path = waiting.pop()
        if path in seen or "/vendor/" in path:
            continue
        seen.add(path)
        folder = path.rpartition("/")[0]
        text = client(None).get(path).body.decode()
        for name in re.findall(r"""(?:from|import\() ?["'](\.[^"']+)["']""", text):
            target = resolved(folder, name)
            assert client(None).get(target).status == 200, target
            waiting.append(target)
    assert len(seen) > 20


def resolved(folder: str, name: str) -> str:
    if name.startswith("../"):
        return f"{folder.rpartition('/')[0]}/{name[3:]}"
    return f"{folder}/{name.removeprefix('./')}"


@pytest.mark.parametrize(
    "path", ["none.js", "index.html", "../app.py", "vendor/README.md", "vendor/LICENSE.htm", "%2e%2e/app.py", ""]
)
def test_paths_outside_the_console_are_not_found(client: NewClient, path: str) -> None:
    base = linked(client, "/")[0].rsplit("/", 1)[0]
    assert client(None).get(f"{base}/{path}").status == 404


def test_a_file_of_another_version_is_not_found(client: NewClient) -> None:
    assert client(None).get("/console/0123456789abcdef/main.js").status == 404


def test_the_api_reference_is_also_served_as_markdown(client: NewClient) -> None:
    answer = client(None).get("/docs.md")
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    text = answer.body.decode()
    document = client(None).get("/openapi.json").json
    for path, methods in document["paths"].items():
        chapter = text.partition(f"## GET {path}\n")[2].partition("\n## ")[0]
        for parameter in methods["get"].get("parameters", ()):
            assert f"| `{parameter['name']}` |" in chapter
        for status in methods["get"]["responses"]:
            assert f"**{status}**" in chapter
        assert "```sh\ncurl" in chapter
        assert "```python\n" in chapter
