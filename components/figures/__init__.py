"""Figures as plotly specifications (plain dictionaries); they know nothing of Streamlit."""
