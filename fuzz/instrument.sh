#!/bin/sh
# Runs rustc for cargo (RUSTC_WRAPPER) and counts the edges of our own crates for libFuzzer, with
# what a stable compiler has. The crates of others and what runs at build time stay as they are.
rustc=$1
shift
case " $* " in
*" --crate-name build_script"* | *" --crate-type proc-macro "* | *" --crate-name bpf_build "*) ;;
*" --crate-name model "* | *" --crate-name bpf "* | *" --crate-name sim "* | \
*" --crate-name stats "* | *" --crate-name workload "* | \
*" --crate-name runslice_tests "* | \
*" --crate-name door --edition=2024 targets/"* | \
*" --crate-name object --edition=2024 targets/"* | \
*" --crate-name program --edition=2024 targets/"* | \
*" --crate-name host --edition=2024 targets/"* | \
*" --crate-name text --edition=2024 targets/"* | \
*" --crate-name schedstat --edition=2024 targets/"*)
    set -- "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
        -Cllvm-args=-sanitizer-coverage-pc-table \
        -Cllvm-args=-sanitizer-coverage-trace-compares \
        -Ccodegen-units=1
    ;;
esac
exec "$rustc" "$@"
