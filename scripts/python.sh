#!/bin/sh
# The Python package. `test` runs its tests on the library that `make test` builds, `long` also
# those that take minutes or an engine, `wheel` makes target/wheels/runslice-*.whl, optimised, and
# `try` makes it, too, and installs it into a fresh environment for each Python from 3.10 on that is
# there. It ends with the versions that were tried and those that are not there.
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

# The interpreter of version $1 that is on the PATH, or that pyenv or uv have installed; empty when
# there is none.
interpreter() {
    for name in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python3 \
        "${XDG_DATA_HOME:-$HOME/.local/share}"/uv/python/cpython-"$1".*/bin/python3; do
        if "$name" -c "import sys, venv, ensurepip
sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
            echo "$name"
            return
        fi
    done
}

# What must be so in any environment: the first example of the documents runs, and the package is
# the command line.
first_result() {
    awk '/^```python$/ { on = 1; next } /^```$/ { if (on) exit } on' docs/python.md \
        >"$own/fresh/first.py"
    (
        cd "$own/fresh"
        bin/python first.py >first.txt
        grep -q mlfq first.txt
        bin/runslice sim fifo -w desk --duration 100ms >/dev/null
        bin/python -m runslice --version
    )
}

# A sweep on Ray takes the extra and says so; with it the results are those without an engine.
on_ray() {
    (
        cd "$own/fresh"
        printf 'policy = ["fifo", "mlfq"]\nworkload = ["desk"]\nseeds = 3\nduration = "100ms"\n' \
            >plan.toml
        status=0
        bin/runslice sweep plan.toml --on ray >/dev/null 2>said.txt || status=$?
        [ "$status" = 4 ]
        grep -qF "pip install 'runslice[ray]'" said.txt
        bin/pip install --quiet --disable-pip-version-check "$wheel[ray]"
        bin/runslice sweep plan.toml -d here >/dev/null
        bin/runslice sweep plan.toml -d there --on ray --workers 2 >/dev/null
        cmp here/results.json there/results.json
    )
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
    # With the tests' features nothing is built twice. `schedulers` is there for the program: cargo
    # builds it for each test of its crate.
    scripts/cargo test --quiet --workspace --no-run --test module --test schedulers
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
        PATH="$own/wheel/bin:$PATH" CARGO="$PWD/scripts/cargo" \
            "$own/wheel/bin/maturin" build --quiet --release \
            --manifest-path crates/python/Cargo.toml --out "$target/wheels"
        ls -l "$target"/wheels/runslice-*.whl
        [ "$what" = try ] || exit 0
        wheel=$(realpath "$target"/wheels/runslice-*.whl)
        tried= missing=
        for version in 3.10 3.11 3.12 3.13; do
            found=$(interpreter $version)
            [ -n "$found" ] || { missing="$missing $version"; continue; }
            rm -rf "$own/fresh"
            "$found" -m venv "$own/fresh"
            "$own/fresh/bin/pip" install --quiet --disable-pip-version-check "$wheel"
            first_result
            [ -n "$tried" ] || on_ray
            tried="$tried $("$own/fresh/bin/python" -c 'import platform
print(platform.python_version())')"
        done
        echo "python: tried with$tried; not here, so not tried:${missing:- none}"
        [ -n "$tried" ]
        ;;
    *)
        echo "usage: scripts/python.sh test|long|wheel|try" >&2
        exit 2
        ;;
esac
