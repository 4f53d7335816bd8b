"""How much two systems differ: a dot per prompt, the mean with its interval, and the line at zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from components.text import hover
from components.theme import Style
from core.statistics import Estimate

_GRID = "rgba(128,128,128,0.16)"
_LINE = "rgba(128,128,128,0.75)"


def differences(
    values: Sequence[float],
    prompts: Sequence[str],
    mean: Estimate,
    a: Style,
    b: Style,
    *,
    form: str = ".2f",
    height: int = 130,
) -> dict[str, Any]:
    """A dot per prompt at the value of `a` minus that of `b`, in the colour of the system that is higher there.

    `values` and `prompts` (texts, for hovering) are aligned; NaN is left out.
    """
    pairs = [(float(v), text) for v, text in zip(values, prompts, strict=True) if v == v]
    xs = [v for v, _ in pairs]
    traces: list[dict[str, Any]] = []
    if xs:
        traces.append(_dots(xs, [text for _, text in pairs], a, b, form))
    if mean.value == mean.value:
        traces.append(_mean(mean, form))
    edges = [abs(x) for x in xs] + [abs(e) for e in (mean.low, mean.high) if e == e]
    reach = max(edges, default=1.0) * 1.08 or 1.0
    return {"data": traces, "layout": _layout(reach, height)}


def _dots(xs: list[float], texts: list[str], a: Style, b: Style, form: str) -> dict[str, Any]:
    # A fixed scatter keeps equal differences apart; its height carries no meaning.
    heights = 0.75 + 0.5 * np.sin(np.arange(len(xs)) * 2.4)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": xs,
        "y": heights.round(3).tolist(),
        "text": [hover(text) for text in texts],
        "marker": {
            "color": [a.colour if x > 0 else b.colour if x < 0 else _LINE for x in xs],
            "symbol": [a.shape if x > 0 else b.shape if x < 0 else "line-ns-open" for x in xs],
            "size": 9,
            "opacity": 0.75,
        },
        "hovertemplate": f"%{{text}}<br>difference %{{x:{form}}}<extra></extra>",
        "showlegend": False,
    }


def _mean(mean: Estimate, form: str) -> dict[str, Any]:
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": [mean.value],
        "y": [-0.35],
        "marker": {"color": "#E3338B", "symbol": "diamond", "size": 12},
        "hovertemplate": f"mean difference %{{x:{form}}}, n = {mean.n}<extra></extra>",
        "showlegend": False,
    }
    if mean.low == mean.low:
        trace["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": [mean.high - mean.value],
            "arrayminus": [mean.value - mean.low],
            "color": "#E3338B",
            "thickness": 2.5,
            "width": 5,
        }
    return trace


def _layout(reach: float, height: int) -> dict[str, Any]:
    zero = {"type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1, "line": {"color": _LINE, "width": 1}}
    return {
        "height": height,
        "margin": {"l": 4, "r": 4, "t": 4, "b": 24},
        "xaxis": {
            "range": [-reach, reach],
            "gridcolor": _GRID,
            "zeroline": False,
            "nticks": 7,
            "title": {"text": ""},
        },
        "yaxis": {
            "range": [-0.8, 1.4],
            "showticklabels": False,
            "showgrid": False,
            "zeroline": False,
            "title": {"text": ""},
        },
        "shapes": [zero],
        "showlegend": False,
        "dragmode": False,
        "hovermode": "closest",
    }
