"""The real clients, installed from npm into a directory of their own, against this very code. `make e2e`."""
