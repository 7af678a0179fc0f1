"""Recall by meaning, measured with real models: `make meaning`."""
