#!/bin/sh
# Builds the page with the simulator inside: target/web/VERSION/ for a server, and as one file
# target/web/runslice.html. With `check` it asks the page's simulator and the program for the same
# runs, and visits the page in BROWSER.
set -eu
cd "$(dirname "$0")/.."

target=wasm32-unknown-unknown
rust=$(scripts/cargo --where)
if [ ! -e "$("$rust/rustc" --print target-libdir --target $target 2>/dev/null)" ]; then
    command -v rustup >/dev/null && rustup target add $target
fi
command -v node >/dev/null || {
    echo "the page is put together by node: install nodejs" >&2
    exit 1
}
into=${CARGO_TARGET_DIR:-target}
scripts/cargo rustc --quiet --profile web --target $target --package runslice-web \
    --no-default-features --crate-type cdylib
wasm=$into/$target/web/web.wasm
node web/build.mjs "$wasm" "$into/web"
if [ "${1:-}" = check ]; then
    scripts/cargo build --quiet --package runslice
    node web/check.mjs "$wasm" "$into/debug/runslice"
    if [ -z "${BROWSER:-}" ]; then
        echo "left out: the visit in a browser; BROWSER names none, such as /usr/bin/chromium" >&2
        exit 0
    fi
    npm install --silent --no-save --prefix "$into/web-tools" playwright-core
    cp web/visit.mjs "$into/web-tools/"
    page=file://$(realpath "$into/web/runslice.html")
    node "$into/web-tools/visit.mjs" "$page" "$BROWSER" "$into/web-pictures"
fi
