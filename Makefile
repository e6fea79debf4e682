# The one place for commands. `make` alone lists them.

CARGO ?= scripts/cargo

.PHONY: help setup demo test test-long test-vm bench lint

help: ## lists the targets
	@sed -nE 's/^([a-z-]+):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## installs what is missing (Debian and Ubuntu), says what is missing elsewhere
	@scripts/setup.sh

demo: setup ## simulates a desktop under load, once under each shipped policy
	@$(CARGO) build --release --bin runslice
	@$(CARGO) run --release --quiet --bin runslice -- sim fifo mlfq -w desk

test: setup ## every test that a change must pass
	$(CARGO) test --workspace

test-long: setup ## the tests above and those that take minutes, optimised
	$(CARGO) test --workspace --release -- --include-ignored

test-vm: ## tests on a real kernel in a virtual machine
	@echo 'make test-vm: no live tests exist: this version has the simulated machine only' >&2
	@exit 1

bench: setup ## how fast the simulator is, in CPU time of this machine
	$(CARGO) bench --package runslice --bench simulate
	$(CARGO) bench --package runslice-tests --bench callbacks

lint: setup ## formatting, clippy, documentation, tidy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --quiet
	$(CARGO) test --quiet --package runslice --test tidy
