# make run        set up and serve
# make test-fast  set up and run the tests without an agent process or a browser
# make test       set up and run all tests but the long ones
# make check      format, lint, types, import contracts
# make nodes      two servers on one PostgreSQL behind a proxy, to try out
# make wheel      build the wheel and try it in a clean environment
# make page       write the page's modules as one script (needs Node); after each change below gateway/web
# make bench      measure most figures of bench/README.md
# make soak       the long tests
# Everything sets itself up; a second run starts in seconds.

VENV := .venv
BIN := $(VENV)/bin
LOCK := constraints.txt
STAMP := $(VENV)/.installed-$(shell cksum < $(LOCK) | cut -d' ' -f1)
TESTS ?= tests
FAST := not soak and not e2e and not browser and not fault

# Each start would compile 400 files anew, and a run of the tests starts hundreds of programs.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run demo nodes page setup test-fast test check format bench soak wheel lock clean

run: setup
	@$(BIN)/python app.py

demo: setup
	@$(BIN)/python app.py demo

nodes: setup
	@$(BIN)/python scripts/nodes.py

setup: $(STAMP)

$(STAMP): $(LOCK) scripts/find-python
	@python="$$(sh scripts/find-python)" && \
	echo "Setting up $(VENV) with $$python (some 600 MB, most of it the agent program; it takes some minutes, once)..." && \
	"$$python" -m venv --clear $(VENV) && \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	@touch $@

test-fast: setup
	@$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "$(FAST)" tests/unit tests/conformance tests/service

test: setup
	@sh scripts/find-browser > $(VENV)/browser
	@sh scripts/find-npm-clients $(CURDIR)/$(VENV) > $(VENV)/npm-clients
	@sh scripts/find-sandbox
	@sh scripts/find-compiler
	@CANDOR_TEST_BROWSER="$$(cat $(VENV)/browser)" CANDOR_TEST_NPM="$$(cat $(VENV)/npm-clients)" $(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder $(TESTS)

soak: setup
	@sh scripts/find-compiler
	@$(BIN)/python -m pytest -m "soak or hypothesis" --hypothesis-profile soak tests

wheel: setup
	@sh scripts/check-wheel $(BIN)/python

check: setup
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/codespell
	@$(BIN)/mypy
	@$(BIN)/lint-imports

page:
	@node scripts/build-page.mjs

format: setup
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: setup
	@$(BIN)/python -m bench

# Resolves the newest versions that fit pyproject.toml; needs uv.
lock:
	uv pip compile pyproject.toml --group test --group lint --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --output-file $(LOCK)

clean:
	rm -rf $(VENV)
