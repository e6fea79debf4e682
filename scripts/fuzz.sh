#!/bin/sh
# Fuzzes: `fuzz.sh [TARGET [SECONDS]]`, without a target all of them, one after the other. What was
# learned stays in fuzz/corpus, what was found in fuzz/artifacts; status 1 if something was found.
# The stable compiler suffices; the engine needs a C++ compiler.
set -eu
cd "$(dirname "$0")/.."

targets=${1:-"object program host text schedstat door"}
seconds=${2:-60}
root=$PWD
build=${CARGO_TARGET_DIR:-$root/target}/fuzz

if ! command -v c++ >/dev/null 2>&1; then
    echo "fuzz: missing: a C++ compiler (Debian and Ubuntu: g++)" >&2
    exit 1
fi

# How large an input may be, bytes: an object, a program's decisions, a script, a file.
longest() {
    case $1 in
    object) echo 131072 ;;
    program) echo 1200 ;;
    host) echo 1156 ;;
    door) echo 8192 ;;
    text | schedstat) echo 16384 ;;
    *)
        echo "fuzz: no target is called \`$1\`; there are object, program, host, text," \
            "schedstat and door" >&2
        exit 2
        ;;
    esac
}

for target in $targets; do
    longest "$target" >/dev/null
    scripts/cargo run --quiet --package runslice-tests --example seeds -- "$target" \
        "fuzz/seeds/$target"
    RUSTC_WRAPPER=$root/fuzz/instrument.sh CARGO_TARGET_DIR=$build \
        scripts/cargo build --release --manifest-path fuzz/Cargo.toml --bin "$target"
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
    echo "fuzz: $target for $seconds s" >&2
    # An input that takes 30 s or 2 GiB is found as one that crashes is.
    if ! "$build/release/$target" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=2048 \
        -max_len="$(longest "$target")" -print_final_stats=1 \
        -artifact_prefix="fuzz/artifacts/$target/" "fuzz/corpus/$target" "fuzz/seeds/$target"
    then
        echo "fuzz: found something; the input is the newest in fuzz/artifacts/$target," \
            "and this shows it again: $build/release/$target FILE" >&2
        exit 1
    fi
done
