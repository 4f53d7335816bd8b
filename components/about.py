"""The texts of the About page: what comes from a registry is read from there."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pandas as pd
import streamlit as st

from components import compare_lenses as cl
from components.text import literal
from components.theme import icon, styles
from core import demo, lenses, models, prompting, vectors
from core.dataset import ROLES
from core.generation.base import Sampling
from core.lenses import distinct

PAPER = "https://arxiv.org/abs/2406.17692"
_SAID = {
    "base": "a pretrained model that only continues text",
    "aligned": "a model that was trained further to answer people",
    "in-context": "a base model that is shown examples, perhaps with a hint, and not trained further",
    "revised": "responses that were rewritten afterwards",
    "other": "anything else",
}


def claim() -> None:
    """What the paper claims, and what can and cannot be seen here."""
    st.markdown(
        f"""
##### What the paper claims
Ask a base model the same question many times and the answers scatter; ask an aligned one and they look alike. In
[From Distributional to Overton Pluralism]({PAPER}) (NAACL 2025) Thom Lake, Eunsol Choi and Greg Durrett ask what is
lost on the way, and find: less than it seems. Much of what disappears are off-topic, broken or unhelpful answers. The
rest comes together: one long aligned answer holds what several short base answers hold between them. A spread of
answers becomes a summary of the acceptable ones, which is called Overton pluralism, after the window of what can be
said.

The second finding is that little of this needs training. Give the base model a few example answers, and for the
question at hand a rough hint of what to say, and it answers much like the aligned model does.

##### What you see here, and what not
- The demonstration comes from two very small models. It shows how one looks at such data. It is **no replication**:
  the paper's models are 25 to 50 times as large, and what a small model loses or keeps may differ.
- The base and the aligned model of the demonstration are of different families, so a difference between them is not
  due to alignment alone.
- A number describes the samples that are in the dataset. Each comes with the number of prompts behind it and a 95 %
  interval: prompts are drawn again and again with replacement, and the middle 95 % of the results is shown. It says
  how much the choice of prompts matters, nothing about other models or sampling settings.
- Longer texts share more words by length alone. This is why measures of diversity stand beside the length and, where
  there is one, beside a twin that reads only the first {distinct.FIRST} words.
- No measure knows whether an answer is right. Read the texts.
"""
    )


def words() -> None:
    """The words that the app uses for what a system stands for, with their colours."""
    looks = styles({role: role for role in ROLES})
    st.markdown("##### Systems and roles")
    st.markdown(
        "A system is one way of getting responses: a model, what it is shown, and how it is sampled. Its role says "
        "what it stands for. Colours and shapes belong to systems and stay the same on all pages."
    )
    st.markdown("\n".join(f"- {icon(looks[role])} **{role}**: {_SAID[role]}" for role in ROLES))


def lens_table() -> None:
    """Every lens as the registry describes it, and the similarities to the aligned system."""
    st.markdown("##### Lenses")
    st.markdown(
        "A lens is a measure over responses. It is computed for each prompt and system, then averaged over prompts "
        "(for shares: over all responses). Where it is undefined, for instance for a single response that would have "
        "to be compared, a dash is shown, never a zero."
    )
    st.table(lens_rows(), border="horizontal", hide_index=True, alt="All lenses with meaning, range and reading")


def lens_rows() -> pd.DataFrame:
    """One row per lens and similarity: name, what it measures, range, reading (Markdown cells)."""
    rows = [
        (lens.name, lens.description, _range(*lens.range), lens.reading, lens.id) for lens in lenses.LENSES.values()
    ]
    for measure in cl.teacher_measures("the aligned system"):
        low = -1 if measure.needs_vectors else 0
        rows.append((measure.name, measure.description, _range(low, 1), measure.reading, measure.id))
    return pd.DataFrame(
        [
            {
                "Lens": f"**{literal(name)}**",
                "What it measures": literal(what, 600),
                "Range": span,
                "Reading": literal(reading),
                "Id": f"`{key}`",
            }
            for name, what, span, reading, key in rows
        ]
    )


def _range(low: float, high: float | None) -> str:
    start = str(low).replace("-", "−")
    return f"{start} to {high}" if high is not None else f"from {start}"


def maps() -> None:
    """How vectors, maps and clusters are made, and where their limits are."""
    encoder = models.entry(vectors.DEFAULT_ID)
    st.markdown(
        f"""
##### Maps and clusters
- **Vectors.** {literal(encoder.title)} turns each response into a vector. It reads about 190 words at once; a longer
  response is encoded in parts, and the parts are averaged. An empty response has no vector.
- **Map.** UMAP lays the vectors out in two dimensions (cosine distance, fixed seed); a few responses are laid out
  along their two main directions. Near means similar in meaning. Distances across the picture mean little, and so
  do its axes, its gaps and how large a patch is. Equal texts are one dot with a count. A response that comes later is
  placed on the old map without moving it.
- **Clusters.** HDBSCAN groups the vectors themselves, not the picture, and leaves out what lies between groups. The
  words that name a cluster are those that set it apart. With few responses there is often no cluster, and then none
  is shown.
"""
    )


def model_table() -> None:
    """The models of the catalogue with source and licence."""
    st.markdown("##### Models and licences")
    st.markdown(
        "Models are fetched only when you ask for it, from the Python package registry, checked against a checksum "
        "and kept. What you read or write here is not sent anywhere."
    )
    rows = [
        {
            "Model": f"**{literal(e.title)}**",
            "Used as": literal(e.role),
            "Made by": f"[{literal(e.hub_id)}](https://huggingface.co/{e.hub_id})",
            "Licence": f"[{literal(e.licence)}]({e.licence_url})",
            "Form": literal(e.precision),
            "Fetched from": literal(", ".join(f"{p.name} {p.version}" for p in e.packages), 400),
            "Size": f"{e.size / 1e6:.0f} MB",
        }
        for e in models.catalogue().values()
    ]
    st.table(pd.DataFrame(rows), border="horizontal", hide_index=True, alt="Models with source, licence and size")


def demonstration() -> None:
    """How the demonstration was generated, from the code that generates it."""
    prompts = demo.prompts()
    kinds = ", ".join(f"{n} {kind}" for kind, n in prompts["kind"].value_counts().items())
    examples = prompting.example_sets()[demo.EXAMPLES]
    st.markdown(
        f"""
##### The demonstration
{len(prompts)} prompts of our own ({kinds}), {len(demo.SYSTEMS)} systems, {demo.SAMPLES} samples each. Every sample
has a recorded seed, and `python -m core demo` generates them again. They are shown as the models wrote them, right or
wrong. The {len(examples.examples)} examples in the context ("{literal(examples.title)}") are ours. A hint summarises
sample 0 of the aligned system; as that favours sample 0, similarity to the samples after the first is given as well.
"""
    )
    rows = [
        {
            "System": f"{icon(look)} **{literal(s.name)}**",
            "Model": literal(models.entry(s.model).title),
            "Strategy": literal(s.strategy),
            "Sampling": _sampling(s.sampling),
        }
        for s, look in zip(demo.SYSTEMS, styles({s.name: s.role for s in demo.SYSTEMS}).values(), strict=True)
    ]
    st.table(pd.DataFrame(rows), border="horizontal", hide_index=True, alt="Systems of the demonstration")


def _sampling(sampling: Sampling) -> str:
    return f"temperature {sampling.temperature:g}, at most {sampling.max_new_tokens} tokens"


def version() -> str:
    """The version of the app, as its project file has it."""
    file = Path(__file__).resolve().parent.parent / "pyproject.toml"
    return str(tomllib.loads(file.read_text(encoding="utf-8"))["project"]["version"])


def colophon() -> None:
    """Version and licence."""
    st.caption(f"Overton Lens {version()} · Apache-2.0 · not affiliated with the authors of the paper")
