"""Generate and Stop, the live view of a run, and keeping it: the history and saving into a derived dataset."""

from __future__ import annotations

import streamlit as st

from components import fetching, lab_run, preparing, state
from components.text import excerpt, literal
from core import jobs, lab, models, vectors
from core.errors import OvertonError
from core.generation import pool

_SEEN, _REFUSED = "lab_run_seen_over", "lab_save_refused"


def controls(loaded: state.Loaded, spec: lab.Spec) -> None:
    """The button that starts a run, and what can be done with runs; what it takes to get a model that is absent."""
    wanted = [] if pool.is_built(spec.model) else fetching.missing(spec.model)
    if wanted:
        fetching.offer(wanted, "To generate here, the base model is needed. It will be fetched once:")
        return
    warm_up(spec.model)
    # A model that was loaded and has left the memory since is loaded again by the next run.
    if spec.model in _warming() and not pool.is_built(spec.model) and _warming()[spec.model].state != "done":
        st.fragment(_until_loaded, run_every=1.0)(spec.model)
    run = lab_run.current_run()
    with st.container(horizontal=True):
        st.button(
            f"Generate {len(spec.seeds)}",
            icon=":material/play_arrow:",
            type="primary",
            disabled=run is not None and not _over(run),
            on_click=lab_run.begin,
            args=(spec,),
            help="Sends the text on the left to the base model, in the background.",
        )
        _keep(loaded)


@st.cache_resource
def _warming() -> dict[str, jobs.Job]:
    return {}


def warm_up(model: str) -> None:
    """Load a model of the catalogue in the background as soon as the Lab is open, so that Generate is quick."""
    if model in models.catalogue() and not pool.is_built(model) and model not in _warming():
        _warming()[model] = jobs.start(f"Loading {model}", lambda job: pool.generator(model), lane=f"load {model}")
    if vectors.DEFAULT_ID not in _warming() and not fetching.missing(vectors.DEFAULT_ID):
        # In the lane of encoding, so that the first vector waits for it.
        _warming()[vectors.DEFAULT_ID] = jobs.start(
            "Loading the encoder", lambda job: preparing.encoder().dimension, lane="encoder"
        )


def _until_loaded(model: str) -> None:
    """Say that the model is being loaded; the page is drawn anew, with the count of tokens, when it is there."""
    job = _warming()[model]
    if pool.is_built(model) or job.state == "done":
        st.rerun()
    elif job.error:
        st.error(literal(job.error, 600), icon=":material/error:")
    else:
        st.caption(f":material/hourglass_top: Loading {literal(model)} … {job.seconds:.0f} s")


def watch(loaded: state.Loaded, prompt_id: str) -> None:
    """Progress, map, numbers and texts of the run.

    While it grows only the progress and the growing texts are drawn again and again; the figures follow when a
    sample is finished or gets its vector, since drawing them takes time from the model.
    """
    run = lab_run.current_run()
    mine = run if run is not None and _about(run, loaded, prompt_id) else None
    st.session_state[_SEEN] = _seen(run)
    every = 0.6 if run is not None and (not _over(run) or _waits_for_vectors(run)) else None
    if run is not None:
        st.fragment(_progress, run_every=every)(run, {"again": False})
    lab_run.lab_map(loaded, prompt_id, mine)
    lab_run.numbers(loaded, prompt_id, mine)
    lab_run.both_sides(loaded, prompt_id)
    if mine is None:
        st.caption("Press Generate: the samples appear here as they finish, as text and as stars on the map.")
    else:
        st.fragment(lab_run.samples_view, run_every=every)(mine)


def _about(run: lab.Run, loaded: state.Loaded, prompt_id: str) -> bool:
    """Whether a run is about the prompt that is looked at, whichever dataset it was begun from."""
    own = prompt_id == run.spec.prompt_id == lab.own_prompt_id(run.spec.prompt)
    return own or lab.answers(run, loaded.dataset, prompt_id)


def _seen(run: lab.Run | None) -> tuple[object, ...]:
    """What the figures depend on."""
    if run is None:
        return ()
    return (run.run_id, len(run.samples), len(run.vectors), _over(run), run.encoding_failed)


def _progress(run: lab.Run, drawn: dict[str, bool]) -> None:
    lab_run.progress_line(run)
    if drawn["again"] and st.session_state.get(_SEEN) != _seen(run):
        st.rerun()
    drawn["again"] = True


def _over(run: lab.Run) -> bool:
    return run.job is None or run.job.over


def _waits_for_vectors(run: lab.Run) -> bool:
    """Whether samples are still being encoded (at most for half a minute after the run)."""
    if not run.encodes or run.job is None or run.job.ended is None:
        return False
    lacking = [s for s in run.finished() if s.text.strip() and s.index not in run.vectors]
    return bool(lacking) and not run.encoding_failed


def _keep(loaded: state.Loaded) -> None:
    """Save the run as a system of a derived dataset, and look at earlier runs."""
    run = lab_run.current_run()
    if run is not None and _over(run) and run.samples:
        with st.popover("Save this run", icon=":material/save:"):
            _save_form(loaded, run)
    with st.popover("Earlier runs", icon=":material/history:", type="tertiary", on_change="rerun") as box:
        if box.open:
            _earlier()


def _save_form(loaded: state.Loaded, run: lab.Run) -> None:
    st.caption("Datasets do not change: a new one is made that also holds this run as a system.")
    with st.form("save run", border=False):
        st.text_input("Name of the system", f"lab: {run.spec.strategy}", key="save_system")
        free = state.workspace().free_name(f"{loaded.dataset.name} + lab")
        st.text_input("Name of the new dataset", free, key="save_dataset")
        st.form_submit_button("Save", type="primary", on_click=_save, args=(loaded, run))
    if st.session_state.get(_REFUSED):
        st.error(literal(st.session_state.pop(_REFUSED), 600))


def _save(loaded: state.Loaded, run: lab.Run) -> None:
    names = [str(st.session_state.get(key) or "").strip() for key in ("save_system", "save_dataset")]
    try:
        saved = lab.save_run(state.workspace(), run, loaded.dataset, system=names[0], name=names[1])
    except OvertonError as error:
        st.session_state[_REFUSED] = str(error)
    else:
        st.session_state[state.DATASET] = saved.name
        st.toast(f"Saved as {literal(saved.name)}.", icon=":material/check:")


def _earlier() -> None:
    runs = lab.load_runs(state.workspace(), limit=12)
    if not runs:
        st.caption("Every run is kept here, with its context and its seeds.")
    for run in runs:
        label = (
            f"{run.created[:16].replace('T', ' ')} · {run.spec.strategy} · {len(run.samples)} samples · "
            f"{excerpt(run.spec.prompt, 60)}"
        )
        st.button(literal(label, 200), key=f"show {run.run_id}", type="tertiary", on_click=_show, args=(run,))


def _show(run: lab.Run) -> None:
    lab.recall_vectors(state.workspace(), run, vectors.DEFAULT_KEY)
    st.session_state[lab_run.RUN] = run
