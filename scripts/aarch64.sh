#!/bin/sh
# Builds the simulator, without what needs a kernel, for aarch64, into
# target/aarch64-unknown-linux-gnu/release, and checks that it compiles for macOS where that
# standard library is there. With the argument `can` it only says with its status whether this
# machine has what that takes, and names what is missing.
set -eu
cd "$(dirname "$0")/.."

rust=$(scripts/cargo --where)
linux=aarch64-unknown-linux-gnu
mac=aarch64-apple-darwin

has_std() {
    [ -e "$("$rust/rustc" --print target-libdir --target "$1" 2>/dev/null)" ]
}

missing=
has_std $linux || missing="$missing Rust's standard library for $linux;"
for program in aarch64-linux-gnu-gcc qemu-aarch64-static; do
    command -v $program >/dev/null || missing="$missing $program;"
done
if [ -n "$missing" ]; then
    echo "aarch64: missing:$missing" >&2
    exit 1
fi
[ "${1:-}" != can ] || exit 0

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
what='--package runslice --bin runslice --no-default-features --features jit'
# shellcheck disable=SC2086
scripts/cargo build --release $what --target $linux
if has_std $mac; then
    # shellcheck disable=SC2086
    scripts/cargo check $what --target $mac
else
    echo "aarch64: not checked for macOS: Rust's standard library for $mac is missing" >&2
fi
