"""Checking what stands in the editor: its mistakes, or what generating it would take."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from components import fetching, state
from components import generate_runs as runs
from components import generate_source as source
from components.data_counts import number
from components.generate_live import named, run_styles
from components.text import excerpt, literal, visible
from components.theme import icon
from core import bulk, jobs
from core.bulk.estimate import summary
from core.bulk.progress import duration
from core.bulk.reading import reader_or_guess

_PATIENCE = 1.0  # seconds; what is known by then is shown without a sign of waiting
_MOST_SENTENCES, _MOST_EXPANDERS = 12, 6


@dataclass
class Check:
    """One check in the background: of which text, and the job whose result is the plan."""

    text: str
    options: dict[str, bool]
    spec: bulk.Spec
    job: jobs.Job

    @property
    def current(self) -> bool:
        """Whether it is about what stands in the editor now."""
        return self.text == source.text() and self.options == runs.options()


def begin() -> None:
    """Check what stands in the editor; an earlier check, and a run that is over, are put away."""
    stop()
    st.session_state.pop(runs.CHECK, None)
    seen = runs.current()
    if seen is not None and seen.over:
        runs.look(None)
    try:
        spec = source.load(again=True)
    except bulk.SpecError:
        return  # its sentences stand below the editor
    space, options = state.workspace(), runs.options()

    def work(job: jobs.Job) -> bulk.Plan:
        job.what = "reading the contexts"
        return bulk.plan(spec, space, reader=reader_or_guess, cancelled=job.cancel.is_set, **options)

    job = jobs.start("Check", work, lane=f"check {uuid.uuid4().hex}")
    st.session_state[runs.CHECK] = Check(source.text(), options, spec, job)


def stop() -> None:
    """Stop a check that is going on."""
    check = checked()
    if check is not None:
        check.job.stop()


def checked() -> Check | None:
    """The latest check of this visitor."""
    return st.session_state.get(runs.CHECK)


def mistakes() -> bulk.Spec | None:
    """The specification in the editor; where it has mistakes they are said, and None is returned."""
    try:
        return source.load()
    except bulk.SpecError as error:
        found = source.sentences(error)
        more = len(found) - _MOST_SENTENCES
        lines = [f"- {literal(sentence, 400)}" for sentence in found[:_MOST_SENTENCES]]
        lines += [f"- and {more} more"] * (more > 0)
        st.error("\n".join(lines) if len(found) > 1 else literal(found[0], 600), icon=":material/error:")
        return None


def result() -> None:
    """What the check found, or how far it is."""
    check = checked()
    if check is None:
        return
    if not check.job.over:
        with st.spinner("Checking …"):
            if check.job.thread is not None:
                check.job.thread.join(_PATIENCE)
    if not check.job.over:
        st.fragment(_waiting, run_every=0.5)()
    elif check.job.cancel.is_set():
        st.caption("The check was stopped.")
    elif check.job.error:
        st.error(literal(check.job.error, 600), icon=":material/error:")
    elif check.job.result is not None:
        if not check.current:
            st.caption(":material/edit: The text or the options have changed since this check.")
        _found(check, check.job.result)


def _waiting() -> None:
    check = checked()
    if check is None or check.job.over:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.info(f"Checking: {literal(check.job.what or 'beginning')} · {check.job.seconds:.0f} s", icon="spinner")
        st.button("Stop", icon=":material/stop:", key="generate_check_stop", on_click=stop)


def _found(check: Check, plan: bulk.Plan) -> None:
    found = summary(plan)
    st.markdown(f"##### {literal(found['name'], 80)}: what it takes")
    st.markdown(counted(found))
    st.markdown(_table(check.spec, found))
    _notes(check, plan, found)
    wanted = fetching.missing(*dict.fromkeys(system.model for system in check.spec.systems))
    if wanted:
        fetching.offer(wanted, "These models are not on this machine yet; generating fetches them first:")
    _contexts(check.spec, found)


def counted(found: Mapping[str, Any]) -> str:
    """Prompts, systems, samples, tokens and time in two sentences, as Markdown."""
    whole = f"{number(found['prompts'], 'prompt')} × {number(len(found['systems']), 'system')}"
    done = f", {found['done']:,} of them done" if found["done"] else ""
    first = f"**{number(found['samples'], 'sample')}**, {whole}{done}. "
    if not found["missing"]:
        return first + "Nothing is missing: Generate makes the dataset at once."
    about = "" if found["exact"] else "about "
    time = "known once some are generated" if found["seconds"] is None else f"about {duration(found['seconds'])}"
    return (
        f"{first}**{found['missing']:,} to generate**: {about}{found['context_tokens']:,} context tokens are read, "
        f"at most {found['new_tokens']:,} new ones come. Time: {time}."
    )


def _table(spec: bulk.Spec, found: Mapping[str, Any]) -> str:
    """One row a system."""
    looks, roles = run_styles(spec), {system.name: system.role for system in spec.systems}
    timed = any(cost["seconds"] is not None and cost["missing"] for cost in found["systems"])
    head = ["system", "model, strategy", "samples", "done", "missing", "context tokens", "new tokens, at most"]
    head += ["time"] * timed
    lines = [f"| {' | '.join(f':small[{title}]' for title in head)} |", "|:--|:--|" + "--:|" * (len(head) - 2)]
    for cost in found["systems"]:
        name, about = cost["system"], "" if cost["exact"] else "≈ "
        time = "–" if cost["seconds"] is None or not cost["missing"] else duration(cost["seconds"])
        cells = [
            f"{icon(looks[name])} {named(name)} :gray[:small[{whole(roles[name])}]]",
            f"{named(cost['model'], 80)} :gray[:small[{literal(whole(cost['strategy']), 60)}]]",
            *(f"{cost[key]:,}" for key in ("samples", "done", "missing")),
            f"{about}{cost['context_tokens']:,}",
            f"{cost['new_tokens']:,}",
        ]
        lines.append(f"| {' | '.join([*cells, time] if timed else cells)} |")
    return "\n".join(lines)


def whole(word: str) -> str:
    """A word whose hyphens do not break a line."""
    return word.replace("-", "\u2011")


def _notes(check: Check, plan: bulk.Plan, found: Mapping[str, Any]) -> None:
    """What one should know before it begins."""
    for cost in found["systems"]:
        if cost["equal"]:
            st.caption(f"{literal(cost['system'], 60)}: at temperature 0 all samples of a prompt are equal.")
    if not found["exact"]:
        st.caption("≈ a model or server is not at hand: tokens are guessed from the length of the text.")
    if plan.too_long:
        st.warning(
            f"{number(len(plan.too_long), 'context')} will not fit and become errors: "
            f"{literal(plan.too_long[0].too_long or '', 300)}",
            icon=":material/warning:",
        )
    if found["left"]:
        rows = f"{found['left']:,} earlier {'sample' if found['left'] == 1 else 'samples'}"
        st.caption(f"{rows} of this name belong to another text of it, or failed: they stay in its journal.")
    free = state.workspace().free_name(check.spec.name)
    if free != check.spec.name:
        st.caption(
            f"There is a dataset named {literal(check.spec.name, 80)} already: unless it has the same content, the "
            f"new one will be {literal(free, 80)}."
        )


def _contexts(spec: bulk.Spec, found: Mapping[str, Any]) -> None:
    """The first exact text that each system would be sent."""
    looks = run_styles(spec)
    st.caption("The exact text that each system is sent for its first prompt:")
    costs = {cost["system"]: cost for cost in found["systems"]}
    if len(costs) > _MOST_EXPANDERS:
        name = st.selectbox("System", list(costs), format_func=lambda n: excerpt(n, 80), label_visibility="collapsed")
        _context(costs[name])
        return
    for name, cost in costs.items():
        with st.expander(f"{icon(looks[name])} {literal(name, 60)}"):
            _context(cost)


def _context(cost: Mapping[str, Any]) -> None:
    st.caption(f"prompt {literal(cost['first_prompt'], 60)}")
    st.code(visible(cost["first_context"]), language=None, wrap_lines=True)
