# SPDX-License-Identifier: Apache-2.0
# The same verbs for people and for CI. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup demo test build-test test-rust test-rust-rest test-rust-outage test-python test-r test-guest test-slow lint setup-lint lint-rust lint-python lint-ansible lint-r fmt bench bench-gate soak dist clean
PY := .venv/bin/python
export NETJOULE_R_LIBRARY := $(CURDIR)/.r-library
# Most tests of Rust wait for flows, and none asks how sharp the host is: more of them at once than there are cores.
export RUST_TEST_THREADS := 12
# Compiled sources are kept, wherever this runs: thousands of programs are started by the tests.
export PYTHONDONTWRITEBYTECODE :=

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## install everything that demo needs (Debian packages, Python environment, Rust build, R package)
	@scripts/setup.sh run

demo: setup ## the whole job on this machine: flows, watts, E_A per transport and size, figure, report
	@.venv/bin/netjoule demo

test: ## all tests: Rust, Python (with network namespaces), R; of one room with ROOM=orchestrator/store (or a crate, or analysis-r)
ifdef ROOM
	@scripts/test-room.sh "$(ROOM)"
else
	@$(MAKE) --no-print-directory build-test
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target test-rust
	@$(MAKE) --no-print-directory test-python test-r
endif

build-test:
	@scripts/setup.sh test

# One test waits 80 s for peers that are gone, with no work for a processor: others may run beside it.
OUTAGE := flows_whose_interface_stays_down_end_in_time_with_what_they_know
test-rust: test-rust-rest test-rust-outage

test-rust-rest:
	cargo test --release --locked --workspace -- --skip $(OUTAGE)

test-rust-outage:
	cargo test --release --locked --workspace --test robustness -- $(OUTAGE)

# Most tests wait for real flows, instruments and hosts: more of them at once than there are cores.
test-python:
	$(PY) -m pytest --numprocesses 5 --no-loadscope-reorder --durations 30

# They keep no time and give way to what does.
test-r:
	nice Rscript --vanilla analysis-r/tests/run.R

test-guest: ## tests in a QEMU guest with Debian's kernel: DCCP against the kernel's (reduced matrix); a lab of hwsim radios
	@scripts/setup.sh guest-test
	$(PY) -m pytest -m "guest and not slow" --numprocesses 2 --no-loadscope-reorder --durations 10

test-slow: ## the whole interoperability matrix, what the radio roles refuse and the golden campaign, in the guest (an hour); writes docs/interoperability.md
	@scripts/setup.sh guest-test
	$(PY) -m pytest -m slow -o faulthandler_timeout=0
	scripts/check_r.sh
	nice Rscript --vanilla analysis-r/tests/bench-gate.R 500

lint: ## formats, lints and types of all languages
	@scripts/setup.sh packages
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint-rust lint-python lint-ansible lint-r

setup-lint:
	@scripts/setup.sh lint

lint-rust:
	cargo fmt --check
	python3 scripts/rust_circles.py
	cargo clippy --quiet --release --locked --workspace --all-targets -- -D warnings
	cargo check --quiet --release --locked --no-default-features --manifest-path traffic/flow/fuzz/Cargo.toml --target-dir target

lint-python: setup-lint
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports
	$(PY) scripts/architecture.py --check
	@! grep -rnE --include='*.py' '^\s*(from|import) netjoule(\.| |$$)' ansible/plugins testbed/guest/interop || { echo "call netjoule as a program, do not import it"; exit 1; }
	$(PY) scripts/contract_types.py --check
	$(PY) scripts/load_names.py

lint-ansible: setup-lint
	.venv/bin/yamllint --strict ansible testbed/guest/lab testbed/topologies
	cd ansible && PATH="$(CURDIR)/.venv/bin:$$PATH" ansible-lint --offline -q --profile production .
	ANSIBLE_CONFIG=ansible/ansible.cfg .venv/bin/ansible-playbook --syntax-check -i testbed/topologies/modern.yaml \
		ansible/site.yml ansible/verify.yml ansible/teardown.yml
	shellcheck scripts/*.sh .ci/run testbed/guest/init testbed/guest/session testbed/guest/lab/up testbed/guest/lab/host testbed/guest/lab/python

lint-r: setup-lint
	Rscript --vanilla scripts/lint.R

fmt: ## put Rust and Python into their format, write the types of documents and the R package's help anew
	cargo fmt
	$(PY) scripts/contract_types.py
	$(PY) -m ruff check --fix --exit-zero .
	$(PY) -m ruff format .
	Rscript --vanilla -e 'roxygen2::roxygenise("analysis-r", roclets = c("namespace", "rd"), load_code = "source")'

dist: ## static netjoule-traffic, netjoule-transfer and netjoule-link for lab hosts of other machines, into dist/<machine>/
	@scripts/dist.sh

bench: ## ratios against iperf3, D-ITG, NetPerfMeter, quiche, curl, aria2, the link model, ns-2 and the kernel's DCCP, in one run on this machine; the analysis of 9,600 runs
	@scripts/setup.sh guest-test
	@scripts/bench.sh

bench-gate: ## how often a gate is right: its decision on simulated rigs whose truth is known, 100,000 trials a row
	@scripts/setup.sh r
	nice Rscript --vanilla analysis-r/tests/bench-gate.R

soak: ## 20 minutes at 10,000 messages a second: neither end of netjoule-traffic may grow; writes docs/soak.md
	cargo build --quiet --release --locked --package netjoule-traffic
	@PYTHONPATH=scripts/bench python3 -m netjoule_bench.soak --write

clean: ## remove what setup and builds made (results stay)
	rm -rf target .venv .labgrid .r-library .setup
