# Two commands are enough: `make bench` and `make test`. The rest is in `make help`.
VENV   ?= .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet
STAMPS := $(VENV)/.stamps

.PHONY: help bench test test-all lint demo clean

help:
	@echo "make bench      install the tool and time this machine"
	@echo "make test       install what the tests need and run the fast ones"
	@echo "make test-all   the slow ones too"
	@echo "make lint       ruff, mypy, vermin, hadolint"
	@echo "make demo       a small real model through the whole chain on this machine, in minutes"
	@echo "make clean      remove the virtual environments"

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "argus-edge needs Python 3.10 or newer; PYTHON=python3.11 make … chooses another one" >&2; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv module is missing: sudo apt install python3-venv" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/base: $(STAMPS)/venv pyproject.toml setup.py
	$(PIP) --editable .
	@touch $@

$(STAMPS)/test: $(STAMPS)/venv pyproject.toml setup.py constraints.txt
	$(PIP) --constraint constraints.txt --editable '.[test]'
	@touch $@

$(STAMPS)/lint: $(STAMPS)/venv pyproject.toml setup.py constraints.txt
	$(PIP) --constraint constraints.txt --editable '.[lint]'
	@touch $@

# Type checkers see the mapped packages (agents, exporters, profiles) only on an installed copy.
$(VENV)-types/.stamps/types: pyproject.toml setup.py constraints.txt
	@test -d $(VENV)-types || $(PYTHON) -m venv $(VENV)-types
	$(VENV)-types/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt '.[lint]'
	@mkdir -p $(dir $@) && touch $@

bench: $(STAMPS)/base
	$(BIN)/argus-edge bench --device local

test: $(STAMPS)/test
	$(BIN)/python -m pytest -m "not slow and not board" --numprocesses auto

test-all: $(STAMPS)/test
	$(BIN)/python -m pytest --numprocesses auto

lint: $(STAMPS)/lint $(VENV)-types/.stamps/types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/hadolint Dockerfile.jetson
	$(BIN)/vermin --no-tips --violations --target=3.6- agents
	$(VENV)-types/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --force-reinstall .
	cd $(VENV)-types && bin/mypy --config-file ../pyproject.toml

$(STAMPS)/demo: $(STAMPS)/venv pyproject.toml setup.py constraints.txt
	$(PIP) --constraint constraints.txt --editable '.[demo]'
	@touch $@

# The class is looked for in the folder that the command runs in. 8: the gate cannot tell, since the machine was busy.
demo: $(STAMPS)/demo
	cd examples/dual_encoder && $(abspath $(BIN))/python halves.py runs/photographs && { $(abspath $(BIN))/argus-edge run plan.yaml || test $$? -eq 8; }
	@echo "the report: examples/dual_encoder/runs/demo/report.html"

clean:
	rm -rf $(VENV) $(VENV)-types build ./*.egg-info
