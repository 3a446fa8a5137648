"""Serves the console's files: read once, with a strict policy, at an address that changes with their content."""

from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import falcon

from laudo.core import reference
from laudo.server.endpoint import Constant

FOLDER: Final = Path(__file__).parent.parent / "console"

_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_COMMON_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
PAGE_HEADERS: Final = _COMMON_HEADERS | {"Cache-Control": "no-cache"}
"""Headers of a page, whose address stays the same when its content changes."""
_ASSET: Final = _COMMON_HEADERS | {"Cache-Control": "public, max-age=31536000, immutable"}


class Assets:
    """Scripts, styles and images below one address, which holds a hash of them all."""

    def __init__(self) -> None:
        """Read every file that a browser may have."""
        self._files = {
            file.relative_to(FOLDER).as_posix(): file.read_bytes()
            for file in sorted(FOLDER.rglob("*"))
            if file.suffix in _TYPES
        }
        digest = blake2b(digest_size=8)
        for path, body in self._files.items():
            digest.update(b"%s %d %s" % (path.encode(), len(body), body))
        self._digest = digest.hexdigest()
        self._shell = (FOLDER / "index.html").read_text("utf-8")

    @property
    def routes(self) -> list[tuple[str, Constant]]:
        """A route for each file; there is none for the files of other versions."""
        return [
            (f"/{self.base}/{path}", Constant("console", body, content_type=_TYPES[Path(path).suffix], headers=_ASSET))
            for path, body in self._files.items()
        ]

    @property
    def base(self) -> str:
        """The files' common address, relative to the pages, which themselves may be served below a path."""
        return f"console/{self._digest}"

    def home(self) -> Constant:
        """The page at `/`; it preloads the modules that it will need."""
        modules = [path for path in self._files if path.endswith(".js") and path not in _NOT_PRELOADED]
        links = "\n".join(f'<link rel="modulepreload" href="{self.base}/{path}">' for path in modules)
        body = self._shell.replace("{modules}", links).replace("{base}", self.base)
        return Constant("home", body.encode(), content_type=falcon.MEDIA_HTML, headers=PAGE_HEADERS)

    def docs(self, document: dict[str, Any]) -> Constant:
        body = reference.page(document, base=self.base)
        return Constant("docs", body, content_type=falcon.MEDIA_HTML, headers=PAGE_HEADERS)


_NOT_PRELOADED: Final = frozenset({"docs.js"})
"""Modules that the first view does not need."""


def markdown(document: dict[str, Any]) -> Constant:
    body = reference.markdown(document)
    return Constant("docs", body, content_type="text/markdown; charset=utf-8", headers={"Cache-Control": "no-cache"})
