#!/bin/sh
# Makes the site, target/site: README.md with its picture, all pages that it leads to, and the
# playground. A link that leads nowhere is an error.
set -eu
cd "$(dirname "$0")/.."

into=${CARGO_TARGET_DIR:-target}
scripts/web.sh
scripts/cargo build --quiet --profile demo --package runslice --bin runslice --no-default-features
rm -rf "$into/site"
mkdir -p "$into/site"
cp -r "$into/web" "$into/site/play"
"$into/demo/runslice" sim fifo mlfq -w desk -o "$into/site/desk.html" >/dev/null
npm install --silent --no-save --prefix "$into/web-tools" marked@18
node web/site.mjs "$into/web-tools" "$into/site"
