#!/bin/sh
# Makes the site, target/site: README.md with its picture, all pages that it leads to, and the
# playground. A link that leads nowhere is an error.
set -eu
cd "$(dirname "$0")/.."

into=${CARGO_TARGET_DIR:-target}
scripts/web.sh
scripts/cargo build --quiet --profile demo --package runslice --bin runslice --no-default-features
rm -rf "$into/site"
mkdir -p "$into/site/play"
# Beside the page lies what cargo makes for its profile of that name.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
cp -r "$into/web/$version" "$into/web/index.html" "$into/web/runslice.html" "$into/site/play/"
"$into/demo/runslice" sim fifo mlfq -w desk -o "$into/site/desk.html" >/dev/null
npm install --silent --no-save --prefix "$into/web-tools" marked@18
node web/site.mjs "$into/web-tools" "$into/site"
