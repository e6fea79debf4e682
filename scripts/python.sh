#!/bin/sh
# The Python package. `test` runs its tests on the library that `make test` builds, `long` also
# those that take minutes or an engine, `wheel` makes target/wheels/runslice-*.whl, optimised, and
# `try` installs that into a fresh environment for each Python from 3.10 on that is there.
set -eu
cd "$(dirname "$0")/.."

what=${1:?usage: scripts/python.sh test|long|wheel|try}
target=${CARGO_TARGET_DIR:-target}
own=$PWD/$target/python

# The first interpreter that is new enough and can make environments.
python=
for name in "${RUNSLICE_PYTHON:-python3}" python3.13 python3.12 python3.11 python3.10; do
    if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
    then
        python=$name
        break
    fi
done
[ -n "$python" ] || {
    echo "python: no Python 3.10 or newer with venv; on Debian: apt install python3-venv" >&2
    exit 1
}

# An environment called $1 with the packages of the file $2; made anew when the file changes.
environment() {
    stamp=$own/$1/.made
    if ! cmp -s "$2" "$stamp"; then
        rm -rf "${own:?}/$1"
        "$python" -m venv "$own/$1"
        "$own/$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
        cp "$2" "$stamp"
    fi
}

# The package as it would be installed, from the sources and the library of the tests.
package() {
    # With the tests' features nothing is built twice.
    scripts/cargo test --quiet --workspace --no-run --test module --test house
    rm -rf "$own/package"
    mkdir -p "$own/package"
    cp -r crates/python/python/runslice "$own/package/"
    cp "$target/debug/deps/lib_runslice.so" "$own/package/runslice/_runslice.abi3.so"
    export PYTHONPATH="$own/package" RUNSLICE_PROGRAM="$PWD/$target/debug/runslice"
    export PYTHONDONTWRITEBYTECODE=1
}

case $what in
    test)
        environment test crates/python/tests/requirements.txt
        package
        "$own/test/bin/python" -m mypy --config-file crates/python/pyproject.toml \
            "$own/package/runslice"
        "$own/test/bin/python" -m pytest crates/python/tests -m 'not long'
        ;;
    long)
        environment long crates/python/tests/requirements-long.txt
        package
        "$own/long/bin/python" -m pytest crates/python/tests
        ;;
    wheel | try)
        environment wheel crates/python/requirements-wheel.txt
        rm -f "$target"/wheels/runslice-*.whl
        # shellcheck disable=SC2086
        PATH="$own/wheel/bin:$PATH" CARGO="$PWD/scripts/cargo" \
            "$own/wheel/bin/maturin" build --quiet --release \
            --manifest-path crates/python/Cargo.toml --out "$target/wheels"
        ls -l "$target"/wheels/runslice-*.whl
        [ "$what" = try ] || exit 0
        for version in 3.10 3.11 3.12 3.13; do
            "python$version" -c 'import venv, ensurepip' 2>/dev/null || {
                echo "python: no Python $version here, so it was not tried"
                continue
            }
            rm -rf "$own/fresh"
            "python$version" -m venv "$own/fresh"
            "$own/fresh/bin/pip" install --quiet --disable-pip-version-check \
                "$target"/wheels/runslice-*.whl
            (cd "$own/fresh" && bin/python -c '
import runslice, sys
run = runslice.simulate(["fifo", "mlfq"], "desk", duration="1s")
assert len(run.groups) > 2 and len(run.ends) == 2
print("python", sys.version.split()[0], "runslice", runslice.__version__, repr(run))' &&
                bin/runslice sim fifo -w desk --duration 100ms >/dev/null &&
                bin/python -m runslice --version)
        done
        ;;
    *)
        echo "usage: scripts/python.sh test|long|wheel|try" >&2
        exit 2
        ;;
esac
