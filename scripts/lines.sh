#!/bin/sh
# Counts the lines of Rust of each crate: product code, and the unit tests beside it. A test is a
# file `tests.rs`, a file below a folder `tests`, or what stands from `#[cfg(test)]` before a module
# with a body to the end of its file.
set -eu
cd "$(dirname "$0")/.."

git ls-files 'crates/*/src/*.rs' 'policies/src/*.rs' | LC_ALL=C sort | xargs awk '
    FNR == 1 {
        split(FILENAME, part, "/")
        crate = part[1] == "crates" ? part[2] : part[1]
        is_test = FILENAME ~ /(^|\/)tests(\.rs|\/)/ || FILENAME ~ /_tests\.rs$/
        is_marked = 0
    }
    is_marked && /^(pub )?(\(.*\) )?mod [a-z_]+ \{/ { is_test = 1 }
    { is_marked = /^#\[cfg\((all\()?test/ }
    { if (is_test) tests[crate]++; else product[crate]++ }
    END {
        for (crate in product) {
            printf "%-14s %8d %8d\n", crate, product[crate], tests[crate] | "LC_ALL=C sort"
            p += product[crate]; t += tests[crate]
        }
        close("LC_ALL=C sort")
        printf "%-14s %8d %8d\n", "all", p, t
    }
' | sed '1i crate           product    tests'
