#!/bin/sh
# Checks that the crates that a browser can have compile for one. Rust's standard library for it
# comes from rustup where the toolchain does; elsewhere a package may have it. Where it cannot be
# had, the script says so and leaves the check out.
set -eu
cd "$(dirname "$0")/.."

target=wasm32-unknown-unknown
rust=$(scripts/cargo --where)

has_std() {
    [ -e "$("$rust/rustc" --print target-libdir --target $target 2>/dev/null)" ]
}

if ! has_std && command -v rustup >/dev/null; then
    rustup target add $target || true
fi
if ! has_std; then
    echo "left out: the check for $target, whose standard library is missing;" \
        "Debian has it in libstd-rust-dev-wasm32" >&2
    exit 0
fi
# Native code is for processors: what runs there is interpreted.
scripts/cargo check --quiet --target $target --no-default-features --package runslice-traces \
    --package runslice-stats --package runslice-explain --package runslice-ask \
    --package runslice-show --package runslice-web
