"""The imitation gauge: where a run stands between the zero-shot base and the aligned system against itself."""

from __future__ import annotations

from typing import Any

from components.figures import NO_TRACES
from components.text import plain
from components.theme import ROLE_COLOURS
from core.statistics import Estimate

_GRID = "rgba(128,128,128,0.16)"


def gauge(floor: Estimate, now: Estimate | None, ceiling: Estimate, *, base: str, teacher: str) -> dict[str, Any]:
    """One line from 0 to 1 with three marks and their intervals; an undefined value is left out."""
    marks = [
        (floor, ROLE_COLOURS["base"], "circle", f"{plain(base)} (floor)"),
        (ceiling, ROLE_COLOURS["aligned"], "square", f"{plain(teacher)} against itself (ceiling)"),
    ]
    if now is not None:
        marks.append((now, "#E3338B", "star", "this run"))
    traces = [_mark(*mark) for mark in marks if mark[0].value == mark[0].value]
    top = max([e.high if e.high == e.high else e.value for e, *_ in marks if e.value == e.value], default=1.0)
    return {
        "data": traces or NO_TRACES,
        "layout": {
            "height": 84,
            "margin": {"l": 8, "r": 8, "t": 18, "b": 20},
            "xaxis": {"range": [0, min(1.0, top * 1.12)], "gridcolor": _GRID, "zeroline": False, "nticks": 6},
            "yaxis": {
                "range": [-1, 1],
                "showticklabels": False,
                "showgrid": True,
                "tickvals": [0],
                "zeroline": False,
            },
            "showlegend": False,
            "dragmode": False,
            "hovermode": "closest",
        },
    }


def _mark(estimate: Estimate, colour: str, symbol: str, name: str) -> dict[str, Any]:
    known = estimate.low == estimate.low
    interval = f", 95 % interval {estimate.low:.2f} to {estimate.high:.2f}" if known else ""
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [estimate.value],
        "y": [0],
        "text": [f"{estimate.value:.2f}"],
        "textposition": "bottom center" if symbol == "star" else "top center",
        "marker": {"color": colour, "symbol": symbol, "size": 15, "line": {"width": 1, "color": "white"}},
        "hovertemplate": f"{name}: {estimate.value:.3f}{interval}, n = {estimate.n}<extra></extra>",
        "cliponaxis": False,
    }
    if known:
        trace["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": [estimate.high - estimate.value],
            "arrayminus": [estimate.value - estimate.low],
            "color": colour,
            "thickness": 2,
            "width": 5,
        }
    return trace
