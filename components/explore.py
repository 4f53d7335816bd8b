"""The parts of the Explore page: chips, map, small figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from components import preparing, selection, state, systems
from components.below_map import below
from components.figures import STILL
from components.figures.map import COLOUR_BY, map_figure
from components.figures.strips import beside, strip
from components.sentences import count_of, counted, value_of
from components.text import literal
from components.theme import CLUSTER_COLOURS, Style, icon
from core import clusters, lenses, maps

_CONFIG = {
    "displaylogo": False,
    "displayModeBar": True,
    "scrollZoom": True,
    "modeBarButtonsToRemove": ["autoScale2d"],
    "toImageButtonOptions": {"format": "png", "filename": "overton-lens-map", "scale": 2},
}
_LISTED = 6  # clusters that are listed below the map
PROMPT_ONLY, WHOLE = "this prompt", "whole dataset"
_FIGURES = (
    ("words", "Length", "words in a response", ".0f", None),
    ("pairwise_jaccard_simple", "Similarity within", "words that two responses share", ".2f", 0.3),
    ("list_share", "Lists", "responses that are lists", ".0%", 1.0),
)


def controls(loaded: state.Loaded) -> tuple[list[str], str]:
    """The row above the map: the systems that are shown, and what the dots are coloured by; both are returned."""
    left, middle, right = st.columns([3, 0.8, 1], vertical_alignment="bottom")
    with left:
        chosen = systems.chooser(loaded)
    colour_by = middle.selectbox(
        "Colour by",
        colour_choices(loaded),
        format_func=lambda c: lenses.LENSES[c].name if c in lenses.LENSES else c,
        key="colour_by",
        persist_state="session",
    )
    right.segmented_control(
        "Show",
        [PROMPT_ONLY, WHOLE],
        default=PROMPT_ONLY,
        required=True,
        key="scope",
        persist_state="session",
        wrap=False,
    )
    return chosen, colour_by


def colour_choices(loaded: state.Loaded) -> list[str]:
    """What the map can be coloured by: system, role, cluster, and each lens that has a value per response."""
    own = [i for i, lens in lenses.LENSES.items() if lens.per_response and i in loaded.measured]
    return [*COLOUR_BY, *own]


def map_or_offer(
    loaded: state.Loaded, prompt_id: str | None, shown: list[str], colour_by: str
) -> pd.DataFrame | None:
    """The map, or where the dataset has no vectors yet, what it takes to make it; returns the dots."""
    if loaded.vectors is None:
        preparing.offer_vectors(loaded, prompt_id)
        return None
    return draw_map(loaded, prompt_id, shown, colour_by)


def draw_map(loaded: state.Loaded, prompt_id: str | None, shown: list[str], colour_by: str) -> pd.DataFrame:
    """The map with its note; returns the dots, so that a selection can be unfolded."""
    name = loaded.dataset.name
    made = state.map_of(loaded, prompt_id)
    everything = maps.dots(made, loaded.dataset)
    dots = everything[everything["system"].isin(shown)]
    values = labels = None
    if colour_by == "cluster":
        found = state.clusters_of(loaded, prompt_id)
        labels = dict(zip(found.response_ids, found.labels, strict=True))
    elif colour_by not in COLOUR_BY:
        series = lenses.response_values(loaded.dataset, colour_by)
        values = dict(zip(loaded.dataset.responses["response_id"], series, strict=True))
    figure = map_figure(
        dots,
        loaded.styles,
        roles=loaded.dataset.roles(),
        texts=loaded.texts,
        colour_by=colour_by,
        values=values,
        value_title=lenses.LENSES[colour_by].name if values is not None else "",
        clusters=labels,
        selected=st.session_state.get(state.SELECTED, []),
        revision=f"{name} {prompt_id}",
        extent=everything,
    )
    key = "map"
    st.plotly_chart(
        figure,
        key=key,
        on_select=lambda: selection.keep(key),
        selection_mode=("points", "lasso", "box"),
        config=_CONFIG,
        alt=_alt(dots, shown),
    )
    below(loaded, made, prompt_id, shown, figure)
    preparing.umap_note(loaded, prompt_id, made.method)
    return dots


def cluster_list(loaded: state.Loaded, prompt_id: str | None) -> None:
    """The clusters with their words, sizes and medoid; a click reads the medoid."""
    found = state.clusters_of(loaded, prompt_id)
    st.markdown(literal(found.sentence, 400))
    with st.container(gap=None):
        for cluster in found.clusters[:_LISTED]:
            _cluster_button(cluster)
    if len(found.clusters) > _LISTED:
        st.caption(f"and {len(found.clusters) - _LISTED} smaller ones")
    if found.note:
        st.caption(literal(found.note, 300))


def _cluster_button(cluster: clusters.Cluster) -> None:
    mark = icon(Style(CLUSTER_COLOURS[cluster.label % len(CLUSTER_COLOURS)], "circle", "●"))
    who = ", ".join(f"{system} {n}" for system, n in cluster.systems.items())
    st.button(
        f"{mark} **{literal(cluster.name, 60)}** · {cluster.size} responses ({literal(who, 90)})",
        key=f"cluster {cluster.label}",
        type="tertiary",
        help="Read the response in its middle",
        on_click=selection.select,
        args=([cluster.medoid],),
    )


def _alt(dots: pd.DataFrame, shown: list[str]) -> str:
    counts = ", ".join(f"{system}: {int(dots.loc[dots['system'] == system, 'count'].sum())}" for system in shown)
    return f"Map of response vectors; near dots are responses of similar meaning. Responses per system: {counts}."


def small_figures(loaded: state.Loaded, prompt_id: str | None, shown: list[str]) -> None:
    """Length, similarity within each system, and the share of lists, side by side, and what they come from."""
    parts, said, barred = [], [], False
    for lens, title, subtitle, form, top in _FIGURES:
        values = {s: value_of(loaded.scores, prompt_id, s, lens) for s in shown}
        points = _points(loaded, prompt_id, shown, lens)
        bars = intervals(loaded, shown, lens) if prompt_id is None else {}
        barred = barred or bool(bars)
        figure = strip(shown, loaded.styles, values, points=points, intervals=bars, form=form, high=top)
        parts.append((f"<b>{title}</b><br>{subtitle}", figure))
        said += [f"{title}, {subtitle}: "] + [f"{s} {values[s]:{form}}; " for s in shown if not np.isnan(values[s])]
    numbers = numbers_line(loaded, prompt_id, shown)
    with st.container(gap=None):
        st.plotly_chart(beside(parts), key="small_figures", config=STILL, alt="".join(said))
        if numbers:
            st.caption(numbers + (" · bars: 95 % interval over prompts" if barred else ""))


def intervals(loaded: state.Loaded, shown: Sequence[str], lens: str) -> dict[str, tuple[float, float]]:
    """The 95 % interval over prompts of a lens, by system; those that are undefined are left out."""
    rows = state.summary_of(loaded)
    rows = rows[(rows["lens"] == lens) & rows["system"].isin(list(shown)) & rows["low"].notna()]
    return dict(zip(rows["system"], zip(rows["low"], rows["high"], strict=True), strict=True))


def numbers_line(loaded: state.Loaded, prompt_id: str | None, shown: Sequence[str]) -> str:
    """What the small figures were computed from: responses for one prompt, prompts for the whole dataset."""
    found = {s: [n for lens, *_ in _FIGURES if (n := count_of(loaded.scores, prompt_id, s, lens))] for s in shown}
    numbers = {s: counted(n) for s, n in found.items() if n}
    if not numbers:
        return ""
    what = "prompts" if prompt_id is None else "responses"
    if len(set(numbers.values())) == 1:
        return f"n = {next(iter(numbers.values()))} {what} per system"
    return f"n ({what}): " + ", ".join(f"{literal(s, 40)} {n}" for s, n in numbers.items())


def _points(
    loaded: state.Loaded, prompt_id: str | None, shown: list[str], lens: str
) -> dict[str, list[float]] | None:
    """Single responses where the lens has a value for each, for one prompt; single prompts otherwise."""
    if prompt_id is None:
        rows = loaded.scores[(loaded.scores["lens"] == lens)]
        return {s: rows.loc[rows["system"] == s, "value"].tolist() for s in shown}
    if lens != "words":
        return None
    rows = loaded.dataset.usable_responses
    rows = rows[rows["prompt_id"] == prompt_id]
    return {s: rows.loc[rows["system"] == s, "text"].str.split().str.len().tolist() for s in shown}
