"""The right side of the Lab: a run as it grows, its texts, its dots, its distance to the aligned system."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from components import compare_reading, fetching, preparing, state, systems
from components.figures import STILL
from components.figures.gauge import gauge
from components.figures.map import map_figure
from components.reading import body
from components.text import literal
from core import lab, maps, similarity, vectors
from core.generation.base import Sample
from core.prompting import opened_code_block
from core.scores import representative

RUN = "lab_run"


def current_run() -> lab.Run | None:
    """The run that this visitor is looking at."""
    return st.session_state.get(RUN)


def begin(spec: lab.Spec) -> None:
    """Start a run and look at it."""
    encoder = None if fetching.missing(vectors.DEFAULT_ID) else preparing.encoder()
    st.session_state[RUN] = lab.start_run(state.workspace(), spec, encoder=encoder, owner=state.visitor())


def progress_line(run: lab.Run) -> None:
    """What is being done, how far it is, how fast, how long it may still take, and a button to stop it."""
    job = run.job
    total = len(run.spec.seeds)
    if job is None or job.over:
        _ended(run, total)
        return
    budget = run.spec.sampling.max_new_tokens * total
    rate = run.tokens / job.seconds if job.seconds else 0.0
    left = f" · at most {(budget - run.tokens) / rate:.0f} s left" if rate and run.tokens else ""
    speed = f" · {rate:.0f} tokens/s" if run.tokens else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(
            min(run.tokens / budget, 1.0),
            text=f"{literal(job.what or job.state)} · {len(run.samples)} of {total} finished{speed}{left}",
        )
        st.button("Stop", icon=":material/stop:", key=f"stop {run.run_id}", on_click=job.stop)


def _ended(run: lab.Run, total: int) -> None:
    finished = run.finished()
    cancelled = sum(s.finish_reason == "cancelled" for s in finished)
    errors = [s.error or "the reason is not known" for s in finished if s.finish_reason == "error"]
    if errors:
        st.warning(f"{len(errors)} of {total} samples failed: {literal(errors[0], 300)}", icon=":material/warning:")
    if run.job is not None and run.job.error:
        st.error(literal(run.job.error, 600), icon=":material/error:")
    elif cancelled:
        st.info(
            f"Stopped. {total - cancelled} of {total} samples were finished; the others are kept as far as they came."
        )
    else:
        took = f" in {run.job.seconds:.1f} s" if run.job is not None else ""
        if len(finished) > len(errors):
            st.success(f"{len(finished) - len(errors)} samples, {run.tokens} tokens{took}.", icon=":material/check:")


def samples_view(run: lab.Run) -> None:
    """The samples as text: finished ones, and those that are still growing."""
    for index in range(len(run.spec.seeds)):
        sample = run.samples.get(index)
        grown = run.growing.get(index)  # asked once: the run goes on meanwhile
        if sample is None and grown is None:
            continue
        with st.container(border=True, gap="xsmall"):
            if sample is not None:
                st.caption(_sample_line(sample))
                body(sample.text)
            elif grown is not None:
                text, tokens = grown
                st.caption(f"sample {index} · {tokens} tokens · growing …")
                body(text or " ")


def _sample_line(sample: Sample) -> str:
    ended = {
        "stop": "ended by itself",
        "length": "cut by the token limit",
        "cancelled": "stopped",
        "error": literal(sample.error or "failed", 200),
    }
    note = (
        " · seems to have opened a code block"
        if sample.finish_reason == "stop" and opened_code_block(sample.text)
        else ""
    )
    return (
        f"sample {sample.index} · {len(sample.text.split())} words · "
        f"{ended.get(sample.finish_reason, sample.finish_reason)}{note} · seed {sample.seed}"
    )


def lab_map(loaded: state.Loaded, prompt_id: str, run: lab.Run | None) -> None:
    """The base and the aligned distribution, and the new samples on the same map."""
    own = prompt_id not in set(loaded.dataset.prompts["prompt_id"])
    if own and (loaded.vectors is None or not len(loaded.vectors)):
        st.caption("A prompt of your own is drawn on the map of the whole dataset, once that has one (see Explore).")
        return
    if loaded.vectors is None:
        preparing.offer_vectors(loaded, prompt_id)
        return
    if own:
        st.caption("The whole dataset, since nobody else was asked this: stars land among responses that are alike.")
    drawn = state.map_of(loaded, None if own else prompt_id)
    dots = maps.dots(drawn, loaded.dataset)
    shown = systems.default(loaded.dataset)
    fresh, texts = _fresh(loaded, drawn, run)
    figure = map_figure(
        dots[dots["system"].isin(shown)],
        loaded.styles,
        roles=loaded.dataset.roles(),
        texts={**loaded.texts, **texts},
        fresh=fresh,
        faint=shown if fresh is not None and len(fresh) else (),
        revision=f"lab {prompt_id}",
        height=380,
        legend=True,
    )
    count = 0 if fresh is None else len(fresh)
    st.plotly_chart(
        figure,
        key="lab_map",
        config=STILL,
        alt=f"Map of the responses to this prompt; {count} new samples are marked with stars.",
    )
    if run is not None and run.samples and not run.vectors and fetching.missing(vectors.DEFAULT_ID):
        fetching.offer([vectors.DEFAULT_ID], "To place new samples on the map, their encoder is needed:")


def _fresh(loaded: state.Loaded, drawn: maps.Map, run: lab.Run | None) -> tuple[pd.DataFrame | None, dict[str, str]]:
    if run is None or not run.vectors:
        return None, {}
    assert loaded.vectors is not None
    indices = sorted(run.vectors)
    old = loaded.vectors[maps.rows(drawn, loaded.dataset)]
    xy = maps.place(drawn, old, np.stack([run.vectors[i] for i in indices]))
    ids = [f"new {i}" for i in indices]
    frame = pd.DataFrame({"x": xy[:, 0], "y": xy[:, 1], "response_id": ids}).dropna()
    return frame, {f"new {i}": run.samples[i].text for i in indices}


def numbers(loaded: state.Loaded, prompt_id: str, run: lab.Run | None) -> None:
    """Similarity to the aligned system between its floor and its ceiling; words and similarity within."""
    dataset = loaded.dataset
    base, teacher = representative(dataset, "base"), representative(dataset, "aligned")
    if base is None or teacher is None or prompt_id not in set(dataset.prompts["prompt_id"]):
        _own_numbers(run)
        return
    texts = {s: _texts(loaded, prompt_id, s) for s in (base, teacher)}
    floor = similarity.to_teacher(texts[base][0], texts[teacher][0], texts[base][1], texts[teacher][1])
    ceiling = similarity.within(*texts[teacher])
    mine = _of_run(run)
    now = similarity.to_teacher(mine[0], texts[teacher][0], mine[1], texts[teacher][1]) if mine[0] else None
    rows = [("in meaning", "vector"), ("in words", "lexical")]
    for label, field in rows:
        value = getattr(now, field) if now is not None else None
        figure = gauge(getattr(floor, field), value, getattr(ceiling, field), base=base, teacher=teacher)
        st.markdown(f"###### Similarity to {literal(teacher)}, {label}")
        said = "no samples yet" if value is None or np.isnan(value.value) else f"{value.value:.2f}, n = {value.n}"
        st.plotly_chart(figure, key=f"gauge {field}", config=STILL, alt=f"Similarity {label}: {said}")
    _own_numbers(run, base=texts[base][0], teacher=texts[teacher][0], names=(base, teacher))


def both_sides(loaded: state.Loaded, prompt_id: str) -> None:
    """The base and the aligned responses to the prompt, side by side, when they are asked for."""
    pair = [representative(loaded.dataset, role) for role in ("base", "aligned")]
    if None in pair or prompt_id not in set(loaded.dataset.prompts["prompt_id"]):
        return
    box = st.expander("Read the base and the aligned responses", icon=":material/menu_book:", on_change="rerun")
    if box.open:
        with box:
            compare_reading.side_by_side(loaded, prompt_id, [str(s) for s in pair])


def _own_numbers(
    run: lab.Run | None,
    *,
    base: list[str] | None = None,
    teacher: list[str] | None = None,
    names: tuple[str, str] = ("", ""),
) -> None:
    columns = st.columns(2)
    mine, _ = _of_run(run)
    groups = {"this run": mine} if base is None else {names[0]: base, "this run": mine, names[1]: teacher or []}
    words = {k: f"{np.mean([len(t.split()) for t in v]):.0f}" if v else "–" for k, v in groups.items()}
    inside = {k: similarity.within(v).lexical.value if len(v) > 1 else float("nan") for k, v in groups.items()}
    columns[0].metric("Words", words["this run"], help="Mean number of words of the finished samples of this run.")
    columns[1].metric(
        "Similarity within",
        "–" if np.isnan(inside["this run"]) else f"{inside['this run']:.2f}",
        help="Share of words that two samples of this run have in common, mean over pairs.",
    )
    if base is not None:
        columns[0].caption(f"{literal(names[0])} {words[names[0]]} · {literal(names[1])} {words[names[1]]}")
        columns[1].caption(f"{literal(names[0])} {inside[names[0]]:.2f} · {literal(names[1])} {inside[names[1]]:.2f}")


def _texts(loaded: state.Loaded, prompt_id: str, system: str) -> tuple[list[str], np.ndarray | None]:
    rows = loaded.dataset.responses
    here = ((rows["prompt_id"] == prompt_id) & (rows["system"] == system) & loaded.dataset.usable).to_numpy()
    return rows.loc[here, "text"].tolist(), None if loaded.vectors is None else loaded.vectors[here]


def _of_run(run: lab.Run | None) -> tuple[list[str], np.ndarray | None]:
    """Texts of the finished samples and their vectors (NaN rows for those not encoded yet)."""
    if run is None:
        return [], None
    done = [s for s in run.finished() if s.finish_reason in ("stop", "length")]
    if not run.vectors:
        return [s.text for s in done], None
    width = len(next(iter(run.vectors.values())))
    empty = np.full(width, np.nan, dtype=np.float32)
    return [s.text for s in done], np.stack([run.vectors.get(s.index, empty) for s in done]) if done else None
