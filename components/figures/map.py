"""The map: one dot per text and system, coloured by system, role, cluster or a lens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from components.figures import NO_TRACES
from components.text import hover, plain
from components.theme import CLUSTER_COLOURS, NO_CLUSTER, ROLE_COLOURS, SCALE, Style

COLOUR_BY = ("system", "role", "cluster")
_GROUND = "rgba(128,128,128,0.055)"
# Plotly draws these smaller than a circle of the same size.
_EVEN = {"triangle-up": 1.25, "triangle-down": 1.25, "triangle-up-open": 1.25, "diamond": 1.1, "diamond-open": 1.1}
_MANY = 1500  # above this many dots the browser draws with WebGL


def map_figure(
    dots: pd.DataFrame,
    styles: Mapping[str, Style],
    *,
    roles: Mapping[str, str],
    texts: Mapping[str, str],
    colour_by: str = "system",
    values: Mapping[str, float] | None = None,
    value_title: str = "",
    clusters: Mapping[str, int] | None = None,
    selected: Sequence[str] = (),
    fresh: pd.DataFrame | None = None,
    faint: Sequence[str] = (),
    revision: str = "map",
    height: int = 385,
    legend: bool = False,
    extent: pd.DataFrame | None = None,
) -> dict[str, Any]:
    """A plotly figure as a dictionary.

    `dots` has the columns of `core.maps.dots`: x, y, system, count, response_id (the first of the copies).
    `texts` gives the response text by id; `values` a number by response id where `colour_by` names a lens;
    `fresh` holds dots that came after the map was made; systems in `faint` are drawn pale.
    `extent` holds the dots that the picture must have room for, so that hiding some does not move the others.
    `revision` keeps zoom and selection as long as it stays the same.
    """
    traces = []
    for system, group in dots.groupby("system", sort=False):
        style = styles[str(system)]
        trace = _trace(group, str(system), style, texts, len(dots))
        trace["marker"].update(_colours(group, colour_by, roles, style, values, clusters))
        if system in faint:
            trace["marker"]["opacity"] = 0.25
        traces.append(trace)
    if fresh is not None and len(fresh):
        traces.append(_fresh(fresh, texts))
    chosen = dots[dots["response_id"].isin(list(selected))]
    if len(chosen):
        traces.append(_ring(chosen))
    layout = {**_layout(dots if extent is None else extent, revision, height), "showlegend": legend}
    if value_title:
        layout["coloraxis"]["colorbar"]["title"] = {"text": plain(value_title), "side": "right"}
    if legend:
        layout["margin"] = {**layout["margin"], "t": 30}
    return {"data": traces or NO_TRACES, "layout": layout}


def _trace(group: pd.DataFrame, system: str, style: Style, texts: Mapping[str, str], total: int) -> dict[str, Any]:
    counts = group["count"].to_numpy()
    notes = ["" if n == 1 else f"<br>· {n} equal texts" for n in counts]
    return {
        "type": "scattergl" if total > _MANY else "scatter",
        "mode": "markers",
        "name": plain(system),
        "x": group["x"].round(4).tolist(),
        "y": group["y"].round(4).tolist(),
        "customdata": [[rid] for rid in group["response_id"]],
        "text": [hover(texts.get(rid, "")) for rid in group["response_id"]],
        "meta": plain(system),
        "hovertemplate": "%{text}%{hovertext}<extra>%{meta}</extra>",
        "hovertext": notes,
        "marker": {
            "symbol": style.shape,
            "size": (12 if total <= 400 else 6) * _EVEN.get(style.shape, 1.0) + np.round(5 * np.log2(counts), 1),
            # Of an open shape the line is all there is, and takes the colour of the marker.
            "line": {"width": 2.2 if "-open" in style.shape else 0.8, "color": "rgba(255,255,255,0.75)"},
            "opacity": 0.9,
        },
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 0.9}},
    }


def _colours(
    group: pd.DataFrame,
    colour_by: str,
    roles: Mapping[str, str],
    style: Style,
    values: Mapping[str, float] | None,
    clusters: Mapping[str, int] | None,
) -> dict[str, Any]:
    ids = list(group["response_id"])
    if colour_by == "role":
        return {"color": ROLE_COLOURS[roles[str(group["system"].iloc[0])]]}
    if colour_by == "cluster" and clusters is not None:
        labels = [clusters.get(rid, -1) for rid in ids]
        return {"color": [NO_CLUSTER if k < 0 else CLUSTER_COLOURS[k % len(CLUSTER_COLOURS)] for k in labels]}
    if values is not None and colour_by not in COLOUR_BY:
        scaled = [values.get(rid) for rid in ids]
        return {"color": scaled, "coloraxis": "coloraxis"}
    return {"color": style.colour}


def _fresh(fresh: pd.DataFrame, texts: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "new",
        "x": fresh["x"].round(4).tolist(),
        "y": fresh["y"].round(4).tolist(),
        "customdata": [[rid] for rid in fresh["response_id"]],
        "text": [hover(texts.get(rid, "")) for rid in fresh["response_id"]],
        "hovertemplate": "%{text}<extra>new</extra>",
        "marker": {
            "symbol": "star",
            "size": 17,
            "color": "#E3338B",
            "line": {"width": 1.2, "color": "rgba(255,255,255,0.9)"},
        },
    }


def _ring(chosen: pd.DataFrame) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": chosen["x"].tolist(),
        "y": chosen["y"].tolist(),
        "hoverinfo": "skip",
        "showlegend": False,
        "marker": {"symbol": "circle-open", "size": 22, "color": "#E3338B", "line": {"width": 2.5}},
    }


def _layout(dots: pd.DataFrame, revision: str, height: int) -> dict[str, Any]:
    axis = {"visible": False, "automargin": False}
    return {
        "height": height,
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "plot_bgcolor": _GROUND,
        "xaxis": {**axis, "range": _range(dots["x"])},
        "yaxis": {**axis, "range": _range(dots["y"])},
        "hovermode": "closest",
        "dragmode": "pan",
        "uirevision": revision,
        "selectionrevision": revision,
        "legend": {
            "orientation": "h",
            "y": 1.0,
            "yanchor": "bottom",
            "x": 0,
            "itemsizing": "constant",
            "bgcolor": "rgba(0,0,0,0)",
        },
        "hoverlabel": {"align": "left"},
        "coloraxis": {"colorscale": SCALE, "colorbar": {"thickness": 10, "len": 0.7}},
    }


def _range(values: pd.Series) -> list[float]:
    """A range with a margin, so that no dot is cut at the edge; one dot sits in the middle."""
    if not len(values):
        return [-1.0, 1.0]
    low, high = float(values.min()), float(values.max())
    margin = max((high - low) * 0.08, 0.15)
    return [low - margin, high + margin]
