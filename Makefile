# `make` alone lists what can be made. Everything is installed into .venv and nowhere else;
# a second call installs nothing unless a requirements file has changed.
# Another Python:  make play PYTHON=python3.12     More arguments:  make play ARGS="mybot.py --port 9000"

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip install --quiet --disable-pip-version-check
MINIMUM := 3, 11

# The venv is made anew when its Python is gone, or when PYTHON= asks for another version than it has.
version = $(shell $(1) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
HAVE   := $(if $(wildcard $(VENV)),$(or $(call version,$(PY)),none))
WANT   := $(if $(filter-out file,$(origin PYTHON)),$(call version,$(PYTHON)),$(HAVE))
STALE  := $(if $(HAVE),$(if $(and $(filter-out none,$(HAVE)),$(filter $(WANT),$(HAVE))),,stale))

.PHONY: help play test check bench crash clean stale

help: ## list these targets
	@awk -F ':[^#]*## ' '/^[a-z]+:.*## / {printf "  make %-6s %s\n", $$1, $$2}' Makefile

play: $(VENV)/ready ## start the playground with the bot in it: no account, no internet (over HTTP: MODE=rest)
	$(PY) bot.py playground $(if $(MODE),--mode $(MODE) )$(ARGS)

# Exit code 5: no test was chosen. With ARGS="-k poll", say, one of the two runs may have none.
test: $(VENV)/ready-dev ## run every test except the long ones
	$(PY) -m pytest -m "not long" -n auto --dist worksteal --reruns 2 $(ARGS); on_workers=$$?; \
	$(PY) -m pytest -m "not long" --reruns 2 $(ARGS) --alone -n 0; \
	case $$on_workers-$$? in 0-0|0-5|5-0) ;; *) exit 1 ;; esac

check: $(VENV)/ready-dev ## lint, check the types and validate the bot without connecting
	$(PY) -m ruff check bot.py playground tests $(wildcard extras)
	$(PY) -m ruff format --check bot.py playground tests $(wildcard extras)
	$(PY) -m pyright
	$(PY) bot.py check

bench: $(VENV)/ready-dev ## measure what the README claims, peers in the same run
	@set -e; for script in $(sort $(wildcard benchmarks/[a-z]*.py)); do echo "== $$script"; $(PY) "$$script"; done
	@test -n "$(wildcard benchmarks/[a-z]*.py)" || echo "There is no benchmark in benchmarks/ yet."

crash: $(VENV)/ready-dev ## run the long tests: storms with hundreds of kills, thousands of hostile inputs
	$(PY) -m pytest -m long -n auto --dist worksteal -v $(ARGS)

clean: ## remove .venv and what the tools left; never your config.env or database
	rm -rf $(VENV) .hypothesis .pytest_cache .ruff_cache test-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/made: $(STALE)
	@$(PYTHON) -V >/dev/null 2>&1 || { \
		echo "There is no $(PYTHON) here that starts. Install Python 3.11 or newer, or name yours: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < ($(MINIMUM)))' || { \
		echo "$(PYTHON) is $$($(PYTHON) -V 2>&1), and Everclick needs 3.11 or newer. Name a newer one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make a virtual environment. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/ready: $(VENV)/made requirements.txt
	$(PIP) -r requirements.txt
	@touch $@

$(VENV)/ready-dev: $(VENV)/ready requirements-dev.txt
	$(PIP) -r requirements-dev.txt
	@touch $@
