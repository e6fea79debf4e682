# The one place for commands. `make` alone lists them.

CARGO ?= scripts/cargo

.PHONY: help setup demo test test-long test-vm bench lint

help: ## lists the targets
	@sed -nE 's/^([a-z-]+):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## installs what is missing (Debian and Ubuntu), says what is missing elsewhere
	@scripts/setup.sh

demo: setup ## simulates a desktop under load, once under each shipped policy
	@$(CARGO) build --release --bin runslice
	@$(CARGO) run --release --quiet --bin runslice -- sim \
		fifo goodness elsc o1 staircase staircase5 mlfq -w desk

test: setup ## every test that a change must pass
	$(CARGO) test --workspace

test-long: setup ## the tests above and those that take minutes or a kernel, optimised
	@scripts/setup.sh vm
	$(CARGO) test --workspace --release -- --include-ignored

test-vm: ## every shipped policy on real kernels 6.18 and 7.2, in virtual machines; minutes
	@if [ -n "$$RUNSLICE_NO_VM" ]; then \
		echo 'make test-vm: RUNSLICE_NO_VM is set: no test ran on a real kernel' >&2; \
	else \
		scripts/setup.sh vm && $(CARGO) test --package runslice \
			--test vm --test vm_two_machines --test vm_trace -- \
			--include-ignored --test-threads=1; \
	fi

bench: setup ## how fast the simulator is, in CPU time of this machine
	$(CARGO) bench --package runslice --bench simulate
	$(CARGO) bench --package runslice-tests --bench callbacks

lint: setup ## formatting, clippy, documentation, tidy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --quiet
	$(CARGO) test --quiet --package runslice --test tidy
