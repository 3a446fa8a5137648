"""What a value shows of itself in its `repr`, if it holds what no log may have."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def only(*names: str) -> Callable[[type[T]], type[T]]:
    """Make the values of a class show only these of their fields, to `rich` too.

    For a dataclass that hides few fields, `field(repr=False)` does the same.
    """

    def fields(value: T) -> list[tuple[str, object]]:
        return [(name, getattr(value, name)) for name in names]

    def text(value: T) -> str:
        return f"{type(value).__name__}({', '.join(f'{name}={field!r}' for name, field in fields(value))})"

    def showing(cls: type[T]) -> type[T]:
        cls.__repr__ = text  # type: ignore[method-assign]
        cls.__rich_repr__ = fields  # type: ignore[attr-defined]
        return cls

    return showing


nothing = only()
