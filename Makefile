# SPDX-License-Identifier: Apache-2.0
# The same verbs for people and for CI. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-rust test-python test-r test-guest test-slow lint fmt bench clean
PY := .venv/bin/python
export NETJOULE_R_LIBRARY := $(CURDIR)/.r-library

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## install everything that demo needs (Debian packages, Python environment, Rust build, R package)
	@scripts/setup.sh run

demo: setup ## the whole job on this machine: flows, watts, E_A per transport and size, figure, report
	@.venv/bin/netjoule demo

test: ## all tests: Rust, Python (with network namespaces), R
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory test-rust test-python test-r

test-rust:
	cargo test --release --locked --workspace

test-python:
	$(PY) -m pytest

test-r:
	Rscript --vanilla analysis-r/tests/run.R

test-guest: ## tests in a QEMU guest with Debian's kernel: DCCP against the kernel's, reduced matrix
	@scripts/setup.sh guest-test
	$(PY) -m pytest -m "guest and not slow"

test-slow: ## the whole interoperability matrix in the guest (half an hour); writes docs/interoperability.md
	@scripts/setup.sh guest-test
	$(PY) -m pytest -m slow

lint: ## formats, lints and types of all languages
	@scripts/setup.sh test
	cargo fmt --check
	cargo clippy --quiet --release --locked --workspace --all-targets -- -D warnings
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports
	.venv/bin/yamllint --strict ansible
	cd ansible && PATH="$(CURDIR)/.venv/bin:$$PATH" ansible-lint --offline -q --profile production roles
	Rscript --vanilla scripts/lint.R
	shellcheck scripts/*.sh .ci/run testbed/guest/init testbed/guest/session

fmt: ## put Rust and Python into their format
	cargo fmt
	$(PY) -m ruff check --fix --exit-zero .
	$(PY) -m ruff format .

bench: setup ## ratios against iperf3, the link model, UDP and the kernel's DCCP, in one run on this machine
	@scripts/setup.sh guest
	@scripts/bench.sh

clean: ## remove what setup and builds made (results stay)
	rm -rf target .venv .r-library .setup
