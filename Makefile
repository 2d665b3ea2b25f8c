# Everything runs in .venv against the built wheel; `make setup` is implied by all that start Spark.
# The first that runs and is new enough; a version manager's shim may be there and not run.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV   := .venv
BIN    := $(CURDIR)/$(VENV)/bin
# The directories, too: they are newer than the wheel when a module is gone.
SOURCES := pyproject.toml README.md LICENSE $(shell find filesink formats compaction \
  -name __pycache__ -prune -o \( -type d -o -name '*.py' -o -name py.typed \) -print)
RUN    := build/run
PYTEST_ARGS ?=
# Many tests wait for servers and for clocks, so more run at once than there are cores. 0: one after the other.
TEST_JOBS ?= 4
# The fast ones wait for nothing, and each process has to collect all.
CHECK_JOBS ?= 2

# Spark's workers run the Python that has the packages, not whatever python3 is on PATH.
export PYSPARK_PYTHON := $(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help setup java demo demo-s3 demo-hive demo-tables demo-cluster demo-job check test test-versions nightly lint bench bench-full site release-dry clean

help: ## what there is to make
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: java $(VENV)/.wheel ## make .venv with everything that tests and demo need

java:
	@found=$$( { "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 || true; } | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -1); \
	if [ "$${found:-0}" -lt 17 ]; then \
	  echo "Spark needs Java 17 or newer and found $${found:+Java }$${found:-none}." \
	    "Install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; Fedora: dnf install java-21-openjdk-headless;" \
	    "macOS: brew install openjdk@17) and put it on PATH, or let JAVA_HOME point to it." >&2; exit 1; fi

$(VENV)/bin/python:
	@[ -n "$(PYTHON)" ] || { \
	  echo "filesink needs Python 3.11 or newer; install one, or name it: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "Python cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }

# The dependencies, once for each change of pyproject.toml.
$(VENV)/.setup: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[dev,demo]'
	@touch $@

$(VENV)/.wheel: $(VENV)/.setup $(SOURCES)
	@rm -rf build/wheel
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir build/wheel .
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall build/wheel/*.whl
	@touch $@

$(VENV)/.bench: $(VENV)/.wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(echo build/wheel/*.whl)[bench]"
	@touch $@

demo: setup ## stream 336,776 flights into buckets by day and read them back
	$(BIN)/python examples/flights_demo.py

demo-s3: setup ## the same onto S3, with a server of its own
	$(BIN)/python examples/flights_s3_demo.py

demo-hive: setup ## publish the flights as a Hive table, with a real metastore, and query it in SQL
	$(BIN)/python examples/hive_demo.py

demo-tables: setup ## the flights once more, then the same query by five engines, each by its own kind of table
	$(BIN)/python examples/tables_demo.py

demo-cluster: setup ## kill workers and a driver of a standalone cluster while it writes the flights
	$(BIN)/python examples/cluster_demo.py

demo-job: setup ## run a job file into partitioned Parquet, and make a page about it
	$(BIN)/filesink run examples/trips.conf -i output=demo-output --jobs demo-output/jobs
	$(BIN)/filesink report demo-output/trips --html demo-output/trips.html

# Against the sources: no wheel is built, and no JVM started.
check: $(VENV)/.setup ## what to run after each change: the linters and the fast tests, without Spark
	$(LINT)
	$(BIN)/python -m pytest -q -n $(CHECK_JOBS) --no-loadscope-reorder -m "not spark and not slow" $(PYTEST_ARGS)

# The tests are copied away from the sources, so that only the installed wheel can be imported.
test: setup ## run all tests against the installed wheel; PYTEST_ARGS="-m 'not spark'" for a part
	@rm -rf $(RUN) && mkdir -p $(RUN)
	@cp -R $(wildcard Makefile pyproject.toml conftest.py README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE mkdocs.yml .ci .github docs benchmarks tests property_tests examples) $(RUN)/
	cd $(RUN) && $(BIN)/python -m pytest -n $(TEST_JOBS) --no-loadscope-reorder $(PYTEST_ARGS)

test-versions: java $(VENV)/.setup ## a tenth of the tests on each PySpark and Python; VERSIONS="--spark 4.1 --python 3.13"
	$(BIN)/python .ci/versions.py $(VERSIONS)

# What -m names is no longer left out; see conftest.py.
nightly: ## every test at its full size, then mutants and a soak of MINUTES=60; takes a night
	$(MAKE) test PYTEST_ARGS="-m 'nightly or not nightly' --timeout 14400"
	$(MAKE) mutants
	$(MAKE) soak FIRST=$(or $(FIRST),$(shell date +%s)000)

define LINT
$(BIN)/ruff check .
$(BIN)/ruff format --check .
$(BIN)/mypy
$(BIN)/lint-imports
endef

lint: $(VENV)/.wheel ## ruff, mypy --strict, import contracts
	$(LINT)

bench: java $(VENV)/.bench ## measure what the README claims; takes a quarter of an hour
	$(BIN)/python benchmarks/lineitem.py --rounds 3
	$(BIN)/python benchmarks/micro_batch.py --batches 80 --rounds 3
	$(BIN)/python benchmarks/file_formats.py --rounds 2
	$(BIN)/python benchmarks/overhead.py --rounds 3
	$(BIN)/python benchmarks/many_buckets.py --rounds 2
	$(BIN)/python benchmarks/report.py

bench-full: bench ## measure everything else, too, with all peers; takes less than two hours
	$(BIN)/python benchmarks/micro_batch.py --rows 10 --rounds 3
	$(BIN)/python benchmarks/micro_batch.py --rows 1000000 --batches 10 --rounds 3
	$(BIN)/python benchmarks/floors.py
	$(BIN)/python benchmarks/shapes.py
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/lakes.py
	$(BIN)/python benchmarks/flink.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/compacting.py
	$(BIN)/python benchmarks/s3.py
	$(BIN)/python benchmarks/partitions.py
	$(BIN)/python benchmarks/epochs.py
	$(BIN)/python benchmarks/report.py

# Strict: a link, an anchor or a page that is missing fails the build; the test looks into what was built.
site: $(VENV)/.setup ## build the pages with a search and a reference, to read offline: build/site/index.html
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	$(BIN)/python -m pytest -q tests/documentation/test_site.py

release-dry: java $(VENV)/.setup ## all of a release but its publication: build, check, install, use, list what it brings
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[release]'
	$(BIN)/python .ci/release_dry.py

clean: ## remove what was built, written by the demo, or cached; keeps .venv
	rm -rf build dist demo-output benchmarks/results metastore_db derby.log spark-warehouse
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

.PHONY: mutants soak
MINUTES ?= 60
JOBS ?= 2

mutants: $(VENV)/.wheel ## show that the simulation finds every seeded defect; takes about ten minutes
	$(BIN)/python -m property_tests.mutants --jobs $(JOBS)

soak: $(VENV)/.wheel ## simulate for MINUTES=60 with JOBS=2; prints histories, faults by point, kills, violations
	$(BIN)/python -m property_tests.simulate --minutes $(MINUTES) --jobs $(JOBS) --first $(or $(FIRST),0)
