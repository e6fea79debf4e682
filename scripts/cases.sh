#!/bin/sh
# Builds the versions of published schedulers that cases ask for, from cargo's registry, and runs
# the cases.
#
# usage: scripts/cases.sh [FOLDER [CASE...]]
#
# FOLDER (default: runslice-cases in the folder for temporary files) keeps the programs, each as
# SCHEDULER-VERSION, so that a version is built once. CASE is the name of a file of cases/; without
# one all that have a run are tried. A version that does not build, or lies between two releases
# (git-...), is left out, and its case cannot run. Nothing of the schedulers is kept in this
# repository.
#
# BUILD=only builds the programs and runs no case. FORMAT=markdown prints the table of
# docs/cases.md.
#
# Needs cargo, clang-19 (or BPF_CLANG), libclang (LIBCLANG_PATH), and the headers of libelf and
# zlib. RUNSLICE is the program; without it the built one in target/release.
#
# Exit status: that of `runslice cases`, or 0 with BUILD=only if all versions are there, else 1.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${TMPDIR:-/tmp}/runslice-cases}
[ $# -eq 0 ] || shift
runslice=${RUNSLICE:-$here/target/release/runslice}
mkdir -p "$folder/logs"
folder=$(cd "$folder" && pwd)

say() {
    printf '%s\n' "$*" >&2
}

missing=
command -v cargo >/dev/null 2>&1 || missing="$missing cargo"
command -v "${BPF_CLANG:-clang-19}" >/dev/null 2>&1 || missing="$missing clang-19"
[ -e /usr/include/libelf.h ] || missing="$missing libelf-dev"
[ -e /usr/include/zlib.h ] || missing="$missing zlib1g-dev"
[ -n "${LIBCLANG_PATH:-}" ] || LIBCLANG_PATH=$(dirname "$(find /usr/lib/llvm-19 \
    -name 'libclang*.so*' 2>/dev/null | head -n 1)" 2>/dev/null)
[ -d "$LIBCLANG_PATH" ] || missing="$missing libclang-19-dev"
[ -x "$runslice" ] || [ "${BUILD:-}" = only ] ||
    missing="$missing $runslice (cargo build --release --bin runslice)"
if [ -n "$missing" ]; then
    say "missing:$missing"
    exit 1
fi

# The words in quotes of a key that stands on one line of a file.
words() { # FILE KEY
    sed -n "s/^$2 = //p" "$1" | head -n 1 | tr ',' '\n' | sed -n 's/.*"\([^"]*\)".*/\1/p'
}

# The lock file of the version's author is used: with newer libraries old versions fail. One target
# folder for all, since they share most of what they depend on.
build() { # SCHEDULER VERSION
    program=$folder/$1-$2
    [ ! -x "$program" ] || return 0
    case $2 in
    git-*)
        say "$1 $2 lies between two releases: not built"
        return 1
        ;;
    esac
    say "building $1 $2"
    rm -rf "$folder/root"
    env LIBCLANG_PATH="$LIBCLANG_PATH" BPF_CLANG="${BPF_CLANG:-clang-19}" \
        CARGO_TARGET_DIR="$folder/target" CARGO_PROFILE_RELEASE_DEBUG=false \
        CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off \
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        nice -n 15 cargo install "$1" --version "=$2" --locked --no-track --root "$folder/root" \
        >"$folder/logs/$1-$2" 2>&1 || {
        say "$1 $2 did not build: see $folder/logs/$1-$2"
        return 1
    }
    # A program that is there is whole.
    mv "$folder/root/bin/$1" "$program"
}

cases=$*
if [ -z "$cases" ]; then
    cases=$(cd "$here/cases" && grep -l '^\[run\]' ./*.toml | sed 's/^\.\/\(.*\)\.toml$/\1/')
fi
all=0
for name in $cases; do
    file=$here/cases/$name.toml
    if [ ! -f "$file" ]; then
        say "there is no cases/$name.toml"
        exit 1
    fi
    scheduler=$(words "$file" scheduler)
    for version in $(words "$file" bad) $(words "$file" good); do
        build "$scheduler" "$version" || all=1
    done
done
[ "${BUILD:-}" != only ] || exit $all
# shellcheck disable=SC2086
exec "$runslice" cases $cases --programs "$folder" --format "${FORMAT:-human}"
