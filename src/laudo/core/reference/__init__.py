"""OpenAPI document → the reference in Portuguese, as a page and as Markdown."""

from laudo.core.reference.markdown import markdown
from laudo.core.reference.page import page

__all__ = ["markdown", "page"]
