"""What can be opened: each format with a tiny example, for a page that has nothing to show yet and for later."""

from __future__ import annotations

import streamlit as st

FLAT = """{"prompt": "How do I keep basil alive?", "system": "base", "response": "Mine stands by the window."}
{"prompt": "How do I keep basil alive?", "system": "tuned", "response": "1. Water it.\\n2. Give it light."}"""
SERVER = """{"messages": [{"role": "user", "content": "How do I keep basil alive?"}],
 "choices": [{"message": {"content": "Water it from below."}, "finish_reason": "stop"},
             {"message": {"content": "Light, and not too"}, "finish_reason": "length"}]}"""
CLONE = """<the clone>/data/<dataset>/instances/data.jsonl            prompts
<the clone>/data/<dataset>/outputs/<run>/samples.jsonl    responses; each run is a system"""


def formats(*, expanded: bool) -> None:
    """The formats in four small parts, folded away where there is something else to see."""
    with st.expander("What can be opened", icon=":material/help:", expanded=expanded):
        flat, server, release, own = st.tabs(
            ["One response a row", "Answers of a server", "The authors' release", "Own exports"]
        )
        with flat:
            st.markdown(
                "JSONL, a JSON array, CSV or Parquet, with a column for the text of the response. Columns for the "
                "prompt, the system, the sample and so on are guessed and can be changed before anything is saved. A "
                "column may also hold a list of responses; without a column for the system, each file is a system."
            )
            st.code(FLAT, language="json", wrap_lines=True)
        with server:
            st.markdown(
                "JSONL with one answer of an OpenAI-style server a line, or of Text Generation Inference "
                "(`generated_text`). Errors among the answers are counted, and never read as text. Several files, or "
                "a folder of them: each is a system. On one line in the file:"
            )
            st.code(SERVER, language="json", wrap_lines=True)
        with release:
            st.markdown(
                "The Llama-2, Mistral and GPT-3.5 generations released with "
                "[arXiv 2406.17692](https://arxiv.org/abs/2406.17692): clone the authors' repository, which the "
                "paper names, then give the path of its `data` folder, or of one dataset in it. You choose which of "
                "them to save; roles are guessed from the names of the runs."
            )
            st.code(CLONE, language=None, wrap_lines=True)
        with own:
            st.markdown(
                "A Parquet, CSV or JSONL file that was exported on this page, and a folder of a dataset in another "
                "workspace, come back exactly as they were: roles, seeds, parameters and the texts that were sent."
            )
