#!/bin/sh
# Checks the crates that we are built with by deny.toml: licences, bans, sources and, where their
# database can be had, advisories. Without cargo-deny the script says so and leaves the check out:
# building it takes longer than all else that `make lint` does.
set -eu
cd "$(dirname "$0")/.."

if ! command -v cargo-deny >/dev/null; then
    echo "left out: the check of licences, bans, sources and advisories, for want of cargo-deny;" \
        "\`cargo install --locked cargo-deny\` builds it" >&2
    exit 0
fi
PATH="$(scripts/cargo --where):$PATH"
export PATH
cargo-deny --log-level error check licenses bans sources

# Only a database that cannot be fetched leaves the check out, not what it says.
if problem=$(cargo-deny --log-level error fetch db 2>&1); then
    cargo-deny --log-level error check --disable-fetch advisories
else
    echo "left out: advisories, whose database cannot be had here: $problem" | head -n 3 >&2
fi
