"""The catalogue of models and how they are fetched."""
