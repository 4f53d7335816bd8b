"""The bulk runs of this server, which all visitors see; beginning, stopping, and going on with earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import streamlit as st

from components import generate_source as source
from components import state
from components.data_open import paths_allowed
from components.text import literal
from core import bulk
from core.bulk.planning import prompts_of_spec
from core.errors import OvertonError

RUN, CHECK, SAID = "generate_run", "generate_check", "generate_said"
KEEP_ERRORS, SKIP_TOO_LONG = "generate_keep_errors", "generate_skip_too_long"
_MOST = 20  # runs that are over and can still be looked at


@st.cache_resource
def _runs() -> dict[str, bulk.BulkRun]:
    """The latest run of each name that this server has begun, the latest one last."""
    return {}


def going() -> list[bulk.BulkRun]:
    """The runs that are not over, the latest first."""
    return [run for run in reversed(list(_runs().values())) if not run.over]


def current() -> bulk.BulkRun | None:
    """The run that this visitor looks at: the one that was begun or chosen, else the latest that is going on."""
    name = st.session_state.get(RUN)
    found = _runs().get(name) if name else None
    if found is None and (running := going()):
        found = running[0]
        look(found)
    return found


def current_of(name: str) -> bulk.BulkRun | None:
    """The latest run of a name that this server has begun."""
    return _runs().get(name)


def look(run: bulk.BulkRun | None) -> None:
    """Look at a run, or (None) at none."""
    st.session_state[RUN] = run.spec.name if run is not None else None


def options() -> dict[str, bool]:
    """What is done with samples that failed, and with contexts that do not fit."""
    return {
        "keep_errors": bool(st.session_state.get(KEEP_ERRORS)),
        "skip_too_long": bool(st.session_state.get(SKIP_TOO_LONG)),
    }


def begin(spec: bulk.Spec) -> None:
    """Begin a run, or go on with it, and look at it; a refusal is said on the page."""
    try:
        run = _start(spec)
    except OvertonError as error:
        say(str(error))
        return
    known = _runs()
    known.pop(spec.name, None)
    known[spec.name] = run
    for name in [name for name, old in known.items() if old.over][:-_MOST]:
        known.pop(name, None)
    st.session_state.pop(CHECK, None)
    look(run)


def _start(spec: bulk.Spec) -> bulk.BulkRun:
    chosen = options()
    return bulk.start(
        spec,
        state.workspace(),
        keep_errors=chosen["keep_errors"],
        skip_too_long=chosen["skip_too_long"],
        owner=state.visitor(),
    )


def begin_editor() -> None:
    """Begin the run of what stands in the editor; its mistakes are said where it stands."""
    try:
        begin(source.load(again=True))
    except bulk.SpecError:
        return


def stop(run: bulk.BulkRun) -> None:
    """Ask a run to stop and give it a moment, so that the page can say what is kept."""
    run.stop()
    if run.job.thread is not None:
        run.job.thread.join(0.8)


def say(sentence: str) -> None:
    """Keep a sentence for the next drawing of the page."""
    st.session_state[SAID] = sentence


def said() -> None:
    """Show the sentence that was kept."""
    sentence = st.session_state.pop(SAID, None)
    if sentence:
        st.error(literal(sentence, 600), icon=":material/error:")


# -- earlier runs -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Earlier:
    """A run that the workspace keeps, and how many samples it asks for (None where it has mistakes)."""

    past: bulk.Past
    wanted: int | None

    @property
    def far(self) -> str:
        """How far it is, in words."""
        kept = f"{self.past.samples:,} sample{'' if self.past.samples == 1 else 's'} kept"
        return kept if self.wanted is None else f"{kept}, {self.wanted:,} asked for"

    @property
    def complete(self) -> bool:
        """Whether there is nothing to go on with: it became a dataset, which is still there."""
        return self.past.dataset is not None and self.past.dataset in state.workspace().names()

    @property
    def ago(self) -> str:
        """How long ago it was written to."""
        seconds = (datetime.now(UTC) - self.past.changed).total_seconds()
        for length, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
            if seconds >= length:
                n = int(seconds // length)
                return f"{n} {unit}{'' if n == 1 else 's'} ago"
        return "just now"


def earlier() -> list[Earlier]:
    """The runs of the workspace that are not going on here and not looked at, the latest first."""
    shown = current()
    busy = {run.spec.name for run in [*going(), *([shown] if shown else [])]}
    folder = state.workspace().root / "runs"
    stamps = []
    for path in sorted(folder.glob("bulk-*.journal")):
        try:
            found = path.stat()
        except OSError:
            continue
        running = any(run.journal.path == path for run in going())  # it changes all the time and is not listed
        stamps.append((path.name, 0 if running else found.st_mtime_ns, 0 if running else found.st_size))
    return [one for one in _earlier(tuple(stamps)) if one.past.name not in busy and _for_visitors(one.past)]


@st.cache_resource(max_entries=2, show_spinner="Reading earlier runs …")
def _earlier(stamps: tuple[tuple[str, int, int], ...]) -> list[Earlier]:
    return [Earlier(past, _wanted(past)) for past in bulk.past_runs(state.workspace())]


def _for_visitors(past: bulk.Past) -> bool:
    """Whether visitors may go on with a run: where they may name no paths, not with what the operator began."""
    return paths_allowed() or past.folder in (None, source.EXAMPLES)


def _wanted(past: bulk.Past) -> int | None:
    try:
        spec = bulk.load_spec(past.text, folder=past.folder)
        return len(prompts_of_spec(spec, state.workspace())) * sum(system.samples for system in spec.systems)
    except OvertonError:
        return None


def show(past: bulk.Past) -> None:
    """Put the specification of an earlier run into the editor."""
    source.put(source.Source(f"the earlier run {past.name!r}", past.text, past.folder))


def go_on(past: bulk.Past) -> None:
    """Put the specification of an earlier run into the editor, and go on with it."""
    show(past)
    try:
        begin(source.load(again=True))
    except bulk.SpecError as error:
        say(" ".join(source.sentences(error)))
