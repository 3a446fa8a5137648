"""Draws what bench/flat.py measured: the first and the last page as an account grows, beside the plain way."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from matplotlib import pyplot as plt

_ROWS: Final = ("no filter", "status=CONCLUIDO", "sort=nome", "people")
_COLOURS: Final = ("#0b6e4f", "#c84c09", "#3d5a98", "#7b2d8b")


class Times(NamedTuple):
    """Milliseconds that one page takes."""

    p50: float
    p99: float
    plain: float


def draw(figures: Mapping[int, Mapping[str, Sequence[tuple[float, float, float]]]], file: Path) -> None:
    """Draw two panels: the first page and the last."""
    plt.rcParams["svg.hashsalt"] = "laudo"
    canvas, panels = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
    sizes = sorted(figures)
    for panel, place, title in zip(panels, (0, 2), ("first page", "last page"), strict=True):
        for name, colour in zip(_ROWS, _COLOURS, strict=True):
            times = [Times(*figures[size][name][place]) for size in sizes]
            panel.plot(sizes, [each.p50 for each in times], color=colour, marker="o", label=f"laudo: {name}")
            panel.plot(
                sizes,
                [each.plain for each in times],
                color=colour,
                linestyle=":",
                marker=".",
                label=f"COUNT and OFFSET: {name}",
            )
        panel.set(xscale="log", yscale="log", title=title, xlabel="reports of the account")
        panel.grid(visible=True, which="major", color="#8884")
    panels[0].set_ylabel("milliseconds, total and items")
    canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7)
    canvas.savefig(file, metadata={"Date": None})
    plt.close(canvas)
