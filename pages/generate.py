"""Generate: a dataset in bulk from a specification, with live progress; stopped runs go on where they were."""

import streamlit as st

from components import generate_check, generate_live, generate_runs, generate_source
from components.generate_editor import editor, openers
from components.generate_list import earlier_runs
from components.guard import guarded


@guarded
def page() -> None:
    """Choose, call, show."""
    generate_source.settle()
    st.markdown(
        "Make a dataset: every system of the specification answers every prompt, so many times each. Each finished "
        "sample is kept at once, so that a run can be stopped and goes on where it was."
    )
    left, right = st.columns([1, 1.35], gap="large")
    with left:
        openers()
        editor()
    with right:
        generate_runs.said()
        generate_live.watch()
        generate_check.result()
        if generate_runs.current() is None and generate_check.checked() is None:
            st.markdown("##### Nothing is being generated")
            st.markdown(
                "The specification on the left is an example: change it, or open another one. **Check** shows what "
                "it would be, with counts, tokens and the exact texts that are sent; **Generate** begins."
            )
        earlier_runs()


page()
