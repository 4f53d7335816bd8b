"""The reading panel: full texts, literal, with what stands near them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from components import state
from components.text import excerpt, literal, visible
from components.theme import Style, icon
from core.dataset import Dataset
from core.neighbours import nearest
from core.similarity import cosines

ENDED = {
    "stop": "ended by itself",
    "length": "cut by the token limit",
    "cancelled": "stopped by a visitor",
    "no_answer": "holds no answer",
}


def heading(system: str, style: Style, *notes: str) -> None:
    """The mark and name of a system, and small notes behind it."""
    tail = " · ".join(literal(note) for note in notes if note)
    st.markdown(f"{icon(style)} **{literal(system)}**" + (f" :gray[· {tail}]" if tail else ""))


def body(text: str) -> None:
    """A response as it is: no Markdown, no HTML; spaces and line breaks kept."""
    if text.strip():
        st.text(visible(text))
    else:
        st.caption("(The text is empty.)")


def copies(dataset: Dataset, response: pd.Series) -> pd.DataFrame:
    """The responses of the same system and prompt with exactly this text, this one included."""
    rows = dataset.usable_responses
    return rows[
        (rows["system"] == response["system"])
        & (rows["prompt_id"] == response["prompt_id"])
        & (rows["text"].str.strip() == str(response["text"]).strip())
    ]


def typical(loaded: state.Loaded, prompt_id: str, system: str) -> str | None:
    """The id of the response that is most like the others of its system and prompt; the first without vectors."""
    rows = loaded.dataset.responses
    here = ((rows["prompt_id"] == prompt_id) & (rows["system"] == system) & loaded.dataset.usable).to_numpy()
    ids = rows.loc[here, "response_id"].to_numpy()
    if not len(ids):
        return None
    if loaded.vectors is None:
        return str(ids[0])
    nearness = np.nansum(cosines(loaded.vectors[here], loaded.vectors[here]), axis=1)
    return str(ids[int(np.argmax(nearness))])


def _invitation(loaded: state.Loaded, prompt_id: str | None, systems: list[str]) -> None:
    st.markdown("##### Reading")
    st.caption(
        "Click a dot to read the response here. The lasso (top right of the map) draws around several to list them."
    )
    if prompt_id is None:
        return
    for system in systems[:4]:
        rid = typical(loaded, prompt_id, system)
        if rid is not None:
            heading(system, loaded.styles[system], "a typical response")
            st.text(excerpt(loaded.texts[rid], 260))


def reading_panel(
    loaded: state.Loaded, selected: list[str], *, prompt_id: str | None = None, systems: list[str] | None = None
) -> None:
    """The first of the selected responses in full, its nearest ones in other systems, and how many more there are.

    With nothing selected: the beginning of a typical response of each of the `systems`.
    """
    rows = loaded.dataset.responses.set_index("response_id")
    known = [rid for rid in selected if rid in rows.index]
    if not known:
        _invitation(loaded, prompt_id, systems or [])
        return
    place = min(st.session_state.get("reading_place", 0), len(known) - 1)
    if len(known) > 1:
        _pager(place, len(known))
    one_response(loaded, rows.loc[known[place]].rename(known[place]))


def _pager(place: int, total: int) -> None:
    def go(to: int) -> None:
        st.session_state["reading_place"] = to

    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("", icon=":material/chevron_left:", key="read_back", on_click=go, args=((place - 1) % total,))
        st.caption(f"{place + 1} of {total} selected", width="content")
        st.button("", icon=":material/chevron_right:", key="read_on", on_click=go, args=((place + 1) % total,))


def one_response(loaded: state.Loaded, response: pd.Series) -> None:
    """One response: system, sample, length, how it ended, the text, its copies, its neighbours."""
    dataset, system = loaded.dataset, str(response["system"])
    words = len(str(response["text"]).split())
    ended = ENDED.get(str(response["finish_reason"]), "")
    heading(system, loaded.styles[system], f"sample {response['sample']}", f"{words} words", ended)
    same = copies(dataset, response)
    if len(same) > 1:
        others = ", ".join(str(k) for k in same["sample"] if k != response["sample"])
        st.caption(f"The same text was sampled {len(same)} times (also samples {others}).")
    body(str(response["text"]))
    if loaded.vectors is not None:
        _neighbours(loaded, str(response.name), system)


def _neighbours(loaded: state.Loaded, response_id: str, system: str) -> None:
    others = [name for name in loaded.dataset.roles() if name != system]
    rows = loaded.dataset.responses.set_index("response_id")
    prompt_id = rows.at[response_id, "prompt_id"]
    found = [
        hit
        for name in others
        for hit in nearest(
            loaded.vectors, loaded.dataset, response_id, systems=[name], k=1, prompt_id=prompt_id
        ).itertuples()
    ]
    if not found:
        return
    st.markdown("###### Nearest response of each other system")
    for hit in sorted(found, key=lambda h: -h.similarity)[:6]:
        heading(hit.system, loaded.styles[hit.system], f"similarity {hit.similarity:.2f}")
        with st.expander(literal(loaded.texts[hit.response_id], 90) or "(empty)"):
            body(loaded.texts[hit.response_id])
