"""A figure as a page of its own, which any browser opens without a network."""

from __future__ import annotations

from typing import Any

from components.text import hover

_TOP = 140  # pixels for title, note and legend


def standalone(figure: dict[str, Any], title: str, note: str) -> bytes:
    """One HTML file with the figure, its legend, and everything that draws it (about 5 MB).

    `title` and `note` stand above the figure, literally. The figure itself is not changed.
    """
    import plotly.io

    layout = figure["layout"]
    heading = f"<b>{hover(title, width=85)}</b><br><sub>{hover(note, width=145, limit=280)}</sub>"
    page = {
        "data": figure["data"],
        "layout": {
            **{key: value for key, value in layout.items() if key != "height"},
            "annotations": [*layout.get("annotations", []), _heading(heading)],
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


def _heading(text: str) -> dict[str, Any]:
    """At the upper left corner of the page, aligned with the map, whatever the height of the window."""
    place = {"x": 0, "xref": "paper", "xanchor": "left", "y": 1, "yref": "paper", "yanchor": "top"}
    look = {"showarrow": False, "align": "left", "font": {"size": 16}}
    return {**place, **look, "yshift": _TOP - 6, "text": text}
