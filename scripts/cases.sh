#!/bin/sh
# Builds the versions of published schedulers that cases ask for, from cargo's registry or from a
# checkout, and runs the cases.
#
# usage: scripts/cases.sh [FOLDER [CASE...]]
#
# FOLDER (default: runslice-cases in the folder for temporary files) keeps the programs, each as
# SCHEDULER-VERSION, so that a version is built once. Behind the name of one whose object is run
# alone, as cases with `set` ask, stands .bpf.o. CASE is the name of a file of cases/; without one
# all that have a run are tried. A version that does not build is left out, and its case cannot run.
# Nothing of the schedulers is kept in this repository.
#
# SCX=DIR names a checkout of sched-ext/scx with its history. Versions that lie between two releases
# (git-HASH) are built from there; without it they are left out.
#
# BUILD=only builds the programs and runs no case. FORMAT=markdown prints the table of
# docs/cases.md.
#
# Needs cargo, clang-19 or what a case names (or BPF_CLANG), libclang (LIBCLANG_PATH), and the
# headers of libelf and zlib. RUNSLICE is the program; without it the built one in target/release.
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

# The arguments of `cargo install` for a version; one of a checkout is unpacked.
from() { # SCHEDULER VERSION
    case $2 in
    git-*)
        if [ -z "${SCX:-}" ]; then
            say "$1 $2 lies between two releases: name a checkout of sched-ext/scx (SCX=DIR)"
            return 1
        fi
        rm -rf "$folder/source"
        mkdir "$folder/source"
        git -C "$SCX" archive --output "$folder/source.tar" "${2#git-}" || return 1
        # Files get the time of now. With that of its commit cargo takes each for built already, and
        # a later commit's program would be that of the earlier one.
        tar -x -m -f "$folder/source.tar" -C "$folder/source"
        echo "--path $folder/source/scheds/rust/$1"
        ;;
    *) echo "--version =$2 $1" ;;
    esac
}

# The lock file of the version's author is used: with newer libraries old versions fail. One target
# folder for all, since they share most of what they depend on.
build() { # SCHEDULER VERSION CLANG ENDING
    program=$folder/$1-$2$4
    [ ! -x "$program" ] || return 0
    what=$(from "$1" "$2") || return 1
    say "building $1 $2"
    rm -rf "$folder/root"
    # shellcheck disable=SC2086
    env LIBCLANG_PATH="$LIBCLANG_PATH" BPF_CLANG="$3" \
        CARGO_TARGET_DIR="$folder/target" CARGO_PROFILE_RELEASE_DEBUG=false \
        CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off \
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        nice -n 15 cargo install $what --locked --no-track --root "$folder/root" \
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
    clang=${BPF_CLANG:-$(words "$file" clang)}
    ending=
    if grep -q '^set = ' "$file"; then
        ending=.bpf.o
    fi
    for version in $(words "$file" bad) $(words "$file" good); do
        build "$scheduler" "$version" "${clang:-clang-19}" "$ending" || all=1
    done
done
[ "${BUILD:-}" != only ] || exit $all
# shellcheck disable=SC2086
exec "$runslice" cases $cases --programs "$folder" --format "${FORMAT:-human}"
