"""Overton Lens: navigation and theme; no logic."""

import streamlit as st

from components.opening import opening
from components.pages import PAGES

st.set_page_config(page_title="Overton Lens", page_icon="data/icon.svg", layout="wide")
st.logo("data/logo.svg", size="large")
page = st.navigation(
    [st.Page(p.file, title=p.title, icon=p.icon, help=p.help, default=p.default) for p in PAGES], position="top"
)
with opening():
    page.run()
