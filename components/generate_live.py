"""A run on the Generate page: how far it is, its systems, the newest texts, and at the end its dataset."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import streamlit as st

from components import generate_runs as runs
from components.data_counts import sentence
from components.data_detail import counts_of
from components.data_list import choose
from components.generate_newest import latest_error, newest
from components.reading import ENDED, body
from components.text import excerpt, literal
from components.theme import Style, icon, styles
from core import bulk
from core.bulk.progress import duration
from core.errors import OvertonError

EVERY = 0.7  # seconds between two looks at a run that is going on
_SHOWN, _LONGEST = 3, 700  # newest texts, and characters of each
_GOING = "generate_going"
_WIDE = "progress" + "\u00a0" * 24 + "\u2060"  # a head that keeps its column as wide as a bar that can be read


def watch() -> None:
    """The run that is looked at, and in one line each the others that are going on."""
    run, drawn = runs.current(), _state()
    if run is not None and id(run) not in drawn[1]:
        _ended(run)
    if drawn[1]:
        st.fragment(_going, run_every=EVERY)(drawn)


def _state() -> tuple[str | None, tuple[int, ...]]:
    """What the rest of the page depends on."""
    run = runs.current()
    return (run.spec.name if run else None, tuple(id(one) for one in runs.going()))


def _going(drawn: tuple[str | None, tuple[int, ...]]) -> None:
    if _state() != drawn:
        st.rerun()
    shown, all_of_them = runs.current(), runs.going()
    for run in all_of_them:
        if run is not shown:
            _line(run)
    if shown in all_of_them:
        _live(shown)


def _line(run: bulk.BulkRun) -> None:
    """Another run, in one line."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Also going on here: {literal(run.spec.name, 80)} · {_counted(run)}", width="stretch")
        st.button("Look at it", key=f"look {run.spec.name}", type="tertiary", on_click=runs.look, args=(run,))


def _counted(run: bulk.BulkRun) -> str:
    progress = run.progress
    return f"{progress.done:,} of {progress.total:,} samples" if progress.started is not None else "being prepared"


def _live(run: bulk.BulkRun) -> None:
    st.markdown(f"##### {literal(run.spec.name, 100)}")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(_share(run), text=_saying(run))
        st.button(
            "Stop",
            icon=":material/stop:",
            key=f"stop {run.spec.name}",
            on_click=runs.stop,
            args=(run,),
            help="Every finished sample is kept, and the run can go on from there.",
        )
    if run.progress.started is not None:
        st.caption(_doing(run))
        st.markdown(_table(run))
        _errors(run)
        _texts(run)


def _share(run: bulk.BulkRun) -> float:
    done, total = run.progress.done, run.progress.total
    if run.progress.started is None:
        done, total = run.job.done, run.job.total
    return min(done / total, 1.0) if total else 0.0


def _saying(run: bulk.BulkRun) -> str:
    """How far, how fast and how long still."""
    progress = run.progress
    if run.job.cancel.is_set():
        return f"Stopping … {_counted(run)} are kept" if progress.started is not None else "Stopping …"
    if progress.started is None:
        fetched = f" · {run.job.done / 1e6:.0f} of {run.job.total / 1e6:.0f} MB" if run.job.total else ""
        return f"{literal(run.job.what or 'beginning', 120)} …{fetched} · {run.job.seconds:.0f} s"
    speed, left = progress.tokens_per_second, progress.remaining
    parts = [_counted(run)]
    parts += [f"{speed:,.0f} tokens/s"] if speed else []
    parts += [f"about {duration(left)} left"] if left else []
    return " · ".join(parts)


def _doing(run: bulk.BulkRun) -> str:
    """What is being done now: the place in the queue, the model that loads, or system and prompt."""
    what, progress = run.job.what, run.progress
    mark = ":material/hourglass_top:" if what.startswith(("waiting", "loading")) else ":material/edit_note:"
    growing = len(progress.growing)
    more = f" · {growing} growing" if growing and not what.startswith("waiting") else ""
    reused = f" · {progress.reused:,} were there from before" if progress.reused else ""
    return f"{mark} {literal(what, 160)}{more}{reused} · {duration(progress.seconds)} so far"


def run_styles(spec: bulk.Spec) -> dict[str, Style]:
    """The colour and shape of each system, as the dataset will have them."""
    return styles({system.name: system.role for system in spec.systems})


def _table(run: bulk.BulkRun) -> str:
    """One row a system: mark, name, a bar in its colour, and the counts."""
    looks = run_styles(run.spec)
    rows = [
        f"| {icon(looks[name])} {named(name)} | {bar(counts, looks[name].colour)} | "
        f"{counts['done']:,} of {counts['total']:,} | {counts['errors'] or '–'} |"
        for name, counts in run.progress.per_system.items()
    ]
    return "\n".join([f"| system | {_WIDE} | samples | errors |", "|:--|:--|--:|--:|", *rows])


def named(text: str, limit: int = 60) -> str:
    """A name for a cell of a table, where also a long word breaks."""
    return literal(re.sub(r"(\S{14})(?=\S{4})", "\\1\u200b", excerpt(text, limit)), 2 * limit)


def bar(counts: Mapping[str, int], colour: str, width: int = 220) -> str:
    """A bar as a Markdown image, filled as far as `done` of `total`."""
    share = min(counts["done"] / counts["total"], 1.0) if counts["total"] else 0.0
    svg = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} 10' width='{width}' height='10'>"
        f"<rect width='{width}' height='10' rx='5' fill='#808080' fill-opacity='.22'/>"
        f"<rect width='{share * width:.1f}' height='10' rx='5' fill='{colour}'/></svg>"
    )
    return f"![{share:.0%}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"


def _errors(run: bulk.BulkRun) -> None:
    n = run.progress.errors
    if n:
        latest = latest_error(run.journal.path)
        told = f" The latest: {literal(latest, 300)}" if latest else ""
        st.warning(f"{n:,} {'sample has' if n == 1 else 'samples have'} failed.{told}", icon=":material/warning:")


def _texts(run: bulk.BulkRun) -> None:
    """The newest finished texts, as they are."""
    looks = run_styles(run.spec)
    rows = [row for row in newest(run.journal.path, _SHOWN) if row.get("system") in looks]
    if not rows and not run.over:
        st.caption("The newest texts appear here as they are finished.")
    for row in rows:
        with st.container(border=True, gap="xsmall"):
            system = str(row["system"])
            st.markdown(f"{icon(looks[system])} **{literal(system, 60)}** :gray[:small[· {_about(run, row)}]]")
            text = row["text"]
            body(text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …")


def _about(run: bulk.BulkRun, row: Mapping[str, Any]) -> str:
    """The prompt and how the sample ended."""
    reason, prompt = str(row.get("finish_reason")), str(row.get("prompt_id"))
    ended = literal(str(row.get("error") or ENDED.get(reason, reason)), 200)
    with suppress(KeyError):
        prompt = run.plan.cell(str(row["system"]), prompt).prompt.text if run.plan is not None else prompt
    return f"{literal(prompt, 60)} · sample {row['sample']} · {row.get('token_count')} tokens · {ended}"


# -- at the end -------------------------------------------------------------------------------------------------


def _ended(run: bulk.BulkRun) -> None:
    """The dataset, or what is kept and how to go on."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"##### {literal(run.spec.name, 100)}", width="stretch")
        st.button(
            "",
            icon=":material/close:",
            key="generate_close",
            help="Put it away",
            type="tertiary",
            on_click=runs.look,
            args=(None,),
        )
    if run.dataset is not None:
        _dataset(run, run.dataset)
        return
    progress = run.progress
    kept = f"{_counted(run)} are kept." if progress.started is not None else "Nothing was generated yet."
    if run.job.error and not run.job.cancel.is_set():
        st.error(f"{literal(run.job.error, 600)}", icon=":material/error:")
        st.caption(kept)
    else:
        st.info(f"Stopped. {kept}", icon=":material/pause_circle:")
    with st.container(horizontal=True):
        _go_on(run, "Go on", primary=True)
    if progress.started is not None:
        st.markdown(_table(run))
        _errors(run)
        _texts(run)


def _go_on(run: bulk.BulkRun, label: str, *, primary: bool = False) -> None:
    st.button(
        label,
        icon=":material/play_arrow:",
        type="primary" if primary else "secondary",
        key="generate_go_on",
        on_click=runs.begin,
        args=(run.spec,),
        help="Generates exactly the samples that are missing.",
    )


def _dataset(run: bulk.BulkRun, name: str) -> None:
    progress = run.progress
    made = f"{progress.made:,} samples generated now" + (f" in {duration(progress.seconds)}" if progress.made else "")
    made += f", {progress.reused:,} kept from before" if progress.reused else ""
    where = "was there already with the same content" if run.was_there else "is saved"
    st.success(f"The dataset **{literal(name, 100)}** {where}: {made}.", icon=":material/check:")
    try:
        st.markdown(sentence(counts_of(name)))
    except OvertonError as error:  # it was deleted meanwhile
        st.caption(literal(str(error), 300))
        return
    _errors(run)
    with st.container(horizontal=True):
        for label, page, mark in (
            ("Open in Explore", "pages/explore.py", ":material/scatter_plot:"),
            ("Compare its systems", "pages/compare.py", ":material/view_column:"),
        ):
            st.button(
                label,
                icon=mark,
                key=f"generate_open {page}",
                on_click=_open,
                args=(name, page),
                type="primary" if "explore" in page else "secondary",
            )
        if progress.errors:
            _go_on(run, "Try the errors again")
    target = st.session_state.pop(_GOING, None)
    if target:
        st.switch_page(target)
    st.markdown(_table(run))


def _open(name: str, page: str) -> None:
    choose(name)
    st.session_state[_GOING] = page
