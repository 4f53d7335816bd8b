"""Vectors and maps that a dataset lacks: computed in the background while its texts can be read already."""

from __future__ import annotations

import streamlit as st

from components import fetching, state
from core import jobs, maps, vectors


@st.cache_resource
def _jobs() -> dict[str, jobs.Job]:
    return {}


@st.cache_resource
def encoder() -> vectors.Encoder:
    """The encoder of this server; its weights load at first use."""
    return vectors.SentenceTransformerEncoder()


def offer_vectors(loaded: state.Loaded, prompt_id: str | None) -> None:
    """Where vectors lack: fetch the encoder if need be, encode with progress, then draw the page anew.

    `loaded` is what would be drawn. One prompt is encoded at once (seconds); a whole dataset when it is asked for.
    """
    wanted = fetching.missing(vectors.DEFAULT_ID)
    st.markdown("##### The map of these responses")
    if wanted:
        fetching.offer(wanted, "A map needs a vector of each response, and the encoder that makes them:")
        return
    job = _jobs().get(loaded.key)
    if job is not None and job.over and job.error:
        st.error(job.error, icon=":material/error:")
    if prompt_id is not None and job is None:
        _begin(loaded, whole=False)
    elif job is None or job.over:
        have, need = vectors.coverage(loaded.dataset, state.workspace())
        st.markdown(
            f"{have} of {need} responses have a vector. Encoding the others takes about "
            f"{_estimate(loaded, need - have)} on two cores; it can be stopped and goes on from there, and all else "
            "can be read meanwhile."
        )
        st.button(
            "Make the map",
            icon=":material/scatter_plot:",
            type="primary",
            on_click=_begin,
            args=(loaded,),
            kwargs={"whole": prompt_id is None},
        )
        return
    _progress(loaded.key)


def _estimate(loaded: state.Loaded, lacking: int) -> str:
    """How long encoding takes, from the mean length: a processor core reads about six parts of 190 words a second."""
    words = loaded.dataset.usable_responses["text"].str.count(r"\S+").mean()
    seconds = lacking * max(1.0, words / 190) / 12
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{max(seconds, 1):.0f} s"


def _begin(loaded: state.Loaded, *, whole: bool) -> None:
    space = state.workspace()

    def work(job: jobs.Job) -> None:
        vectors.vectors_for(
            loaded.dataset,
            space,
            encoder(),
            progress=lambda done, total: job.progress("encoding", done, total),
            cancel=job.cancel,
        )
        if whole:
            state.refresh(loaded.dataset.name)

    _jobs()[loaded.key] = jobs.start("Encoding responses", work, lane="encoder")


@st.fragment(run_every=0.7)
def _progress(name: str) -> None:
    job = _jobs()[name]
    if job.over:
        st.rerun()
    fetching.show_job(job, unit="texts")


def umap_note(loaded: state.Loaded, prompt_id: str | None, method: str) -> None:
    """Below a quick layout: offer the UMAP one, which takes a while the first time."""
    if method != "pca":
        return
    key = f"umap {loaded.key} {prompt_id}"
    job = _jobs().get(key)
    if job is None or job.over:
        st.button(
            "Draw it with UMAP",
            icon=":material/auto_awesome:",
            help="This picture is a quick layout. UMAP keeps neighbours together better; the first one takes "
            "about half a minute.",
            on_click=_begin_map,
            args=(key, loaded, prompt_id),
        )
    else:
        _progress(key)


def _begin_map(key: str, loaded: state.Loaded, prompt_id: str | None) -> None:
    space = state.workspace()
    assert loaded.vectors is not None

    def work(job: jobs.Job) -> maps.Map:
        job.progress("UMAP is arranging the dots (the first time takes half a minute)", 0, 0)
        return maps.cached(loaded.dataset, space, loaded.vectors, prompt_id=prompt_id, method="umap")

    _jobs()[key] = jobs.start("Map", work, lane="map")
