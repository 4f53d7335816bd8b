"""Compare: systems side by side for one prompt, and measured over all prompts."""

import streamlit as st

from components import compare, compare_all, compare_pair, compare_reading, picker, systems
from components.guard import guarded
from components.sentences import explain


@guarded
def page() -> None:
    """Choose, call, show."""
    view = st.session_state.get(compare.VIEW, compare.READ)
    loaded, prompt_id = picker.top(prompt=view == compare.READ)
    view = compare.view_switch()
    st.markdown(" ".join(explain(loaded.dataset, loaded.scores, prompt_id, systems.chosen(loaded))))
    if view == compare.DIFFER:
        compare_pair.two_systems(loaded)
        return
    shown = systems.chooser(loaded)
    if not shown:
        st.markdown("No system is chosen: choose at least one above.")
    elif prompt_id is not None:
        compare_reading.side_by_side(loaded, prompt_id, shown)
    elif view == compare.FIGURES:
        compare_all.figures(loaded, shown)
    else:
        compare_all.table(loaded, shown)


page()
