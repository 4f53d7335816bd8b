"""Small figures beside the map: one row per system, the value as a mark, each response as a dot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from components.figures import NO_TRACES
from components.text import plain
from components.theme import Style

_TITLE = 46  # pixels above the rows of figures that stand side by side
_GRID = "rgba(128,128,128,0.16)"


def strip(
    systems: Sequence[str],
    styles: Mapping[str, Style],
    values: Mapping[str, float],
    *,
    points: Mapping[str, Sequence[float]] | None = None,
    intervals: Mapping[str, tuple[float, float]] | None = None,
    form: str = ".0f",
    low: float | None = 0.0,
    high: float | None = None,
    height: int | None = None,
) -> dict[str, Any]:
    """One row per system: its value in its colour and shape, an interval, and faint dots for single responses.

    A value that is NaN is shown as a dash.
    """
    order = list(systems)
    traces: list[dict[str, Any]] = []
    for k, system in enumerate(order):
        style = styles[system]
        own = [p for p in (points or {}).get(system, ()) if p == p]
        if own:
            traces.append(_dots(own, k, style, form))
        value = values.get(system, float("nan"))
        if value == value:
            bar = (intervals or {}).get(system)
            traces.append(_mark(value, bar, k, style, plain(system), form))
    numbers = [v for v in values.values() if v == v] + [p for ps in (points or {}).values() for p in ps if p == p]
    numbers += [edge for pair in (intervals or {}).values() for edge in pair if edge == edge]
    labels = [_label(values.get(s, float("nan")), form) for s in order]
    return {"data": traces or NO_TRACES, "layout": _layout(order, labels, numbers, low, high, height)}


def _dots(own: Sequence[float], row: int, style: Style, form: str) -> dict[str, Any]:
    # A fixed, small scatter across the row keeps equal values apart; it carries no meaning.
    offsets = 0.22 * np.sin(np.arange(len(own)) * 2.4)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": list(own),
        "y": (row + offsets).tolist(),
        "marker": {"color": style.colour, "size": 5, "opacity": 0.35},
        "hovertemplate": f"%{{x:{form}}}<extra></extra>",
        "showlegend": False,
    }


def _mark(
    value: float, interval: tuple[float, float] | None, row: int, style: Style, name: str, form: str
) -> dict[str, Any]:
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": [value],
        "y": [row],
        "marker": {
            "color": style.colour,
            "symbol": style.shape,
            "size": 12,
            # An open shape is nothing but its line.
            "line": {"width": 2.5} if "-open" in style.shape else {"width": 1, "color": "white"},
        },
        "hovertemplate": f"{name}: %{{x:{form}}}<extra></extra>",
        "showlegend": False,
    }
    if interval is not None and interval[0] == interval[0]:
        trace["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": [interval[1] - value],
            "arrayminus": [value - interval[0]],
            "color": style.colour,
            "thickness": 2,
            "width": 4,
        }
        trace["hovertemplate"] = (
            f"{name}: %{{x:{form}}} (95 % interval {interval[0]:{form}} to {interval[1]:{form}})<extra></extra>"
        )
    return trace


def _label(value: float, form: str) -> str:
    return "–" if value != value else f"{value:{form}}"


def _layout(
    order: Sequence[str],
    labels: Sequence[str],
    numbers: Sequence[float],
    low: float | None,
    high: float | None,
    height: int | None,
) -> dict[str, Any]:
    least = min([*numbers, low] if low is not None else numbers, default=0.0)
    most = max([*numbers, high] if high is not None else numbers, default=1.0)
    margin = max((most - least) * 0.05, 1e-6)
    return {
        "height": height or 34 + 24 * max(len(order), 1),
        "margin": {"l": 4, "r": 4, "t": 4, "b": 22},
        "xaxis": {
            "range": [least - margin, most + margin],
            "gridcolor": _GRID,
            "zeroline": False,
            "nticks": 4,
            "title": {"text": ""},
        },
        "yaxis": {
            "range": [len(order) - 0.4, -0.6],
            "tickvals": list(range(len(order))),
            "ticktext": list(labels),
            "side": "right",
            "showgrid": False,
            "zeroline": False,
            "title": {"text": ""},
        },
        "showlegend": False,
        "dragmode": False,
    }


def beside(parts: Sequence[tuple[str, dict[str, Any]]], *, gap: float = 0.09) -> dict[str, Any]:
    """Several of these figures as one, side by side under their titles: a browser draws one sooner than many.

    `parts` are (title, figure) pairs; all have the same rows.
    """
    width = (1 - gap * (len(parts) - 1)) / len(parts)
    layout: dict[str, Any] = {"showlegend": False, "dragmode": False, "annotations": []}
    traces = []
    for k, (title, figure) in enumerate(parts):
        start, number = k * (width + gap), "" if k == 0 else str(k + 1)
        own = figure["layout"]
        domain = [round(start, 4), min(round(start + width, 4), 1.0)]
        layout[f"xaxis{number}"] = {**own["xaxis"], "domain": domain, "anchor": f"y{number}"}
        layout[f"yaxis{number}"] = {**own["yaxis"], "anchor": f"x{number}"}
        traces += [{**trace, "xaxis": f"x{number}", "yaxis": f"y{number}"} for trace in figure["data"]]
        layout["annotations"].append(_title(title, start))
    layout["height"] = max(figure["layout"]["height"] for _, figure in parts) + _TITLE
    layout["margin"] = {"l": 4, "r": 36, "t": _TITLE, "b": 22}
    return {"data": traces, "layout": layout}


def _title(text: str, start: float) -> dict[str, Any]:
    place = {"x": start, "xref": "paper", "xanchor": "left", "y": 1, "yref": "paper", "yanchor": "bottom"}
    return {**place, "yshift": 4, "text": text, "showarrow": False, "align": "left"}
