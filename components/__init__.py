"""What pages are built of: figures (plotly, no Streamlit) and widgets (Streamlit)."""
