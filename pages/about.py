"""About: what the paper claims, what is measured, and where models and data come from."""

import streamlit as st

from components import about
from components.guard import guarded


@guarded
def page() -> None:
    """Show the texts in a readable measure, tables in full width."""
    with st.container(width=760):
        about.claim()
        about.words()
    about.lens_table()
    with st.container(width=760):
        about.maps()
    about.model_table()
    about.demonstration()
    about.colophon()


page()
