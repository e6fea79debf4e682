#!/bin/sh
# What finds most mistakes of a small change soon: formatting, the rules of the house, clippy on
# what changed and all that depends on it, and the unit tests of each crate that differs from HEAD.
# It says what it tested. A change is ready when `make lint` and `make test` pass.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-scripts/cargo}

# Files that differ from HEAD, also those that git does not track yet.
changed() {
    git -c core.quotePath=off diff --name-only --no-renames HEAD
    git -c core.quotePath=off ls-files --others --exclude-standard
}

# The folder of the crate that has the file $1; nothing for a file outside of all crates.
crate_of() {
    folder=$(dirname "$1")
    while [ "$folder" != . ]; do
        if [ -e "$folder/Cargo.toml" ]; then
            echo "$folder"
            return
        fi
        folder=$(dirname "$folder")
    done
}

# Whether the crate in the folder $1 is of this workspace and has a library with unit tests.
has_unit_tests() {
    [ "$1" != fuzz ] && [ -e "$1/src/lib.rs" ] &&
        ! sed -n '/^\[lib\]/,/^$/p' "$1/Cargo.toml" | grep -q '^test = false'
}

files=$(changed)
crates=$(echo "$files" | while read -r file; do crate_of "$file"; done | sort -u)

"$cargo" fmt --all --check
"$cargo" fmt --manifest-path fuzz/Cargo.toml --check
"$cargo" test --quiet --workspace --test house

# Cargo knows what changed since it last looked, and what depends on that. The flags are those of
# `make lint`, so that each finds what the other has done.
"$cargo" clippy --workspace --all-targets -- -D warnings

# Each crate by itself: with several at once the features of their dependencies would depend on
# which they are, and would be built again for each set.
tested=
for crate in $crates; do
    if has_unit_tests "$crate"; then
        name=$(sed -n '/^name = /{s/^name = "\(.*\)"/\1/p;q;}' "$crate/Cargo.toml")
        "$cargo" test --quiet --package "$name" --lib
        tested="$tested $crate"
    fi
done
echo "check: unit tests ran in:${tested:- no crate, because none differs from HEAD}"
