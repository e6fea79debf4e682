# The one place for commands. `make` alone lists them.

CARGO ?= scripts/cargo

# Tests of files that the project has not and nobody need have. A variable names their folder.
LEFT_OUT = $(if $(RUNSLICE_SCX_SOURCES),,the_tools_sources_compile_unchanged_and_run) \
	$(if $(RUNSLICE_ISA_DIR),,public_suite) $(if $(LOADER),,published::)

# A test of a program for another processor, where this machine cannot make or run one.
LEFT_OUT_HERE = $(if $(shell scripts/aarch64.sh can && echo yes),,another_processor)

# What users get.
PROGRAMS = runslice runslice-reproduce runslice-mcp
OPTIONAL = runslice/parquet,runslice/png

# Where cargo puts what it builds for users.
BUILT = $(or $(CARGO_TARGET_DIR),target)
RELEASE = $(BUILT)/release

.PHONY: help setup release web web-check site dist install demo test test-long test-vm fuzz \
	kernels bench lint check wheel test-python soak

help: ## lists the targets
	@sed -nE 's/^([a-z-]+):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## installs what is missing (Debian and Ubuntu), says what is missing elsewhere
	@scripts/setup.sh

# Cargo keeps a copy of its own, with debug information, and the next build puts that here again.
release: setup ## the programs as they are shipped, stripped; debug information lies beside them
	@$(CARGO) build --release $(PROGRAMS:%=--bin %) --features $(OPTIONAL)
	@cd $(RELEASE) && for program in $(PROGRAMS); do \
		rm -f $$program.debug && \
		objcopy --only-keep-debug $$program $$program.debug && \
		chmod a-x $$program.debug && \
		objcopy --strip-all --add-gnu-debuglink=$$program.debug \
			$$program $$program.stripped && \
		mv $$program.stripped $$program || exit; done

dist: setup ## programs without shared libraries, .deb, .rpm and an archive, in target/dist
	@scripts/setup.sh dist
	@CARGO=$(CARGO) scripts/dist.sh

PREFIX ?= /usr/local

install: release ## programs, manuals, completions, unit, below DESTDIR and PREFIX
	@scripts/stage.sh $(RELEASE)/runslice "$(DESTDIR)" "$(PREFIX)"

# A program of its own, in a sixth of the CPU time: see [profile.demo] in Cargo.toml.
demo: ## simulates a desktop under each shipped policy, and draws it: demo.html
	@scripts/setup.sh demo
	@$(CARGO) build --profile demo --package runslice --package runslice-reproduce --bins \
		--no-default-features
	@$(BUILT)/demo/runslice sim -w desk -o demo.html \
		fifo goodness elsc o1 staircase staircase5 mlfq cfs eevdf

test: setup ## every test that a change must pass, two minutes of it in virtual machines
	@scripts/setup.sh test
	@[ -n "$$RUNSLICE_NO_VM" ] || scripts/setup.sh vm
	$(CARGO) test --workspace --no-fail-fast

test-long: dist ## the tests above and those that take minutes or a kernel, optimised
	@scripts/setup.sh test
	@scripts/setup.sh vm
	@scripts/setup.sh long
	@scripts/setup.sh python
	@for test in $(LEFT_OUT); do echo "left out: $$test, whose variable is not set"; done
	@if scripts/aarch64.sh can; then scripts/aarch64.sh; \
		else echo 'left out: another_processor_makes_the_same_events'; fi
	$(CARGO) test --workspace --no-fail-fast --release -- \
		--include-ignored $(addprefix --skip ,$(LEFT_OUT) $(LEFT_OUT_HERE))
	@scripts/python.sh long
	@scripts/python.sh try

test-vm: ## every shipped policy under load on real kernels 6.18 and 7.2; an hour
	@if [ -n "$$RUNSLICE_NO_VM" ]; then \
		echo 'make test-vm: RUNSLICE_NO_VM is set, so none of these ran:' >&2; \
		$(CARGO) test --quiet --package runslice --test vm -- --list >&2; \
	else \
		scripts/setup.sh vm && scripts/setup.sh root && \
			$(CARGO) test --package runslice --no-fail-fast --test vm -- \
			--include-ignored --test-threads=1; \
	fi

test-python: setup ## the tests of the Python package, but for those that take minutes or an engine
	@scripts/setup.sh python
	@scripts/python.sh test

wheel: setup ## the Python package, in target/wheels
	@scripts/setup.sh python
	@scripts/python.sh wheel

web: setup ## the page with the simulator inside, in target/web
	@scripts/web.sh

web-check: setup ## that its events are those of the program; in BROWSER, that it can be used
	@scripts/web.sh check

site: setup ## README, guide, documents and that page, in target/site; dist/github publishes it
	@scripts/site.sh

fuzz: setup ## SECONDS=60 on each target, or on TARGET=object|program|host|text|schedstat|door
	@scripts/fuzz.sh "$(TARGET)" "$(SECONDS)"

HOURS ?= 8
PART ?= 1/1

soak: setup ## HOURS=8 of random trials on all CPUs, or a part of them: PART=1/2
	@scripts/cargo run --quiet --release --package runslice-tests --example soak -- \
		$(HOURS) $(PART) soak.txt

kernels: release ## which policy runs on which kernel, real and simulated: docs/live.md
	@scripts/setup.sh vm
	@scripts/kernels.sh

bench: setup ## how fast the simulator is, in CPU time of this machine
	$(CARGO) bench --package runslice --bench simulate
	$(CARGO) bench --package runslice-stats --bench schedstat
	$(CARGO) bench --package runslice-traces --bench long
	$(CARGO) bench --package runslice-tests --bench switches
	$(CARGO) bench --package runslice-tests --bench callbacks

lint: setup ## formatting, clippy, documentation, tidy, wasm32, licences and advisories
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --quiet
	$(CARGO) test --quiet --workspace --test house
	@scripts/wasm.sh
	@scripts/deny.sh

check: setup ## soon after a small change: lint without documentation, unit tests of changed crates
	@CARGO=$(CARGO) scripts/check.sh
