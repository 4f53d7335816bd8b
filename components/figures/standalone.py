"""A figure as a page of its own, which any browser opens without a network."""

from __future__ import annotations

from typing import Any

from components.text import hover

_TOP = 120  # pixels for title, note and legend


def standalone(figure: dict[str, Any], title: str, note: str) -> bytes:
    """One HTML file with the figure, its legend, and everything that draws it (about 5 MB).

    `title` and `note` stand above the figure, literally. The figure itself is not changed.
    """
    import plotly.io

    layout = figure["layout"]
    heading = f"<b>{hover(title, width=110)}</b><br><sub>{hover(note, width=150, limit=450)}</sub>"
    page = {
        "data": figure["data"],
        "layout": {
            **{key: value for key, value in layout.items() if key != "height"},
            "title": {
                "text": heading,
                "x": 0.01,
                "xanchor": "left",
                "y": 0.99,
                "yanchor": "top",
                "font": {"size": 17},
            },
            "showlegend": True,
            "legend": {**layout.get("legend", {}), "y": 1.0},
            "margin": {"l": 8, "r": 8, "t": _TOP, "b": 8},
            "font": {"family": "system-ui, sans-serif", "color": "#222222"},
            "paper_bgcolor": "#FFFFFF",
        },
    }
    options = {"displaylogo": False, "scrollZoom": True, "responsive": True}
    made = plotly.io.to_html(
        page, config=options, include_plotlyjs=True, default_height="96vh", validate=False, auto_play=False
    )
    return made.encode("utf-8", "replace")
