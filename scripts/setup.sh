#!/bin/sh
# Installs what building runslice needs and is not there yet: a C compiler to link with, git,
# clang for BPF objects, the libraries of the kernel loader, Rust; with the argument `vm` also what
# virtual machines need, with `root` what makes a system for them, with `test` what other tests
# need, with `long` what those of `make test-long` need, with `python` Python 3.10 or newer, with
# `dist` what packages are made with. With `demo` it installs the two compilers and Rust alone. Does
# nothing, quickly, when all is there. Debian and Ubuntu are served through apt-get; elsewhere it
# prints what to install and exits with status 1.
set -eu
cd "$(dirname "$0")/.."

least_rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
# The oldest clang whose BPF back end has all that the policies use.
least_clang=16

has() {
    command -v "$1" >/dev/null 2>&1
}

has_clang() {
    has "${RUNSLICE_CLANG:-}" && return
    for version in 19 22 21 20 18 17 16; do
        has "clang-$version" && return
    done
    has clang || return 1
    version=$(clang --version | sed -n '1s/.*version \([0-9]*\)\..*/\1/p')
    [ "${version:-0}" -ge $least_clang ]
}

has_rust() {
    scripts/cargo --version >/dev/null 2>&1
}

# The version of package $1 that apt would install; empty when it knows none.
candidate() {
    apt-cache policy "$1" 2>/dev/null |
        sed -n 's/^  Candidate: \([0-9].*:\)\{0,1\}\([0-9.]*\).*/\2/p'
}

missing=
has cc && [ -e /usr/include/stdlib.h ] || missing="$missing gcc libc6-dev"
if [ "${1:-}" != demo ]; then
    has git || missing="$missing git"
    has objcopy && has strip || missing="$missing binutils"
    has pkg-config || missing="$missing pkg-config"
    [ -e /usr/include/libelf.h ] || missing="$missing libelf-dev"
    [ -e /usr/include/zlib.h ] || missing="$missing zlib1g-dev"
fi
has_clang || missing="$missing clang"
has_rust || missing="$missing rust"
if [ "${1:-}" = vm ]; then
    has qemu-system-x86_64 || missing="$missing qemu-system-x86"
    # The guest starts before it has shared libraries, so the other busybox does not do.
    busybox=$(command -v busybox || true)
    [ -n "$busybox" ] && ! ldd "$busybox" >/dev/null 2>&1 || missing="$missing busybox-static"
    has stress-ng || missing="$missing stress-ng"
    has hackbench || missing="$missing rt-tests"
    has tcc || missing="$missing tcc"
fi
if [ "${1:-}" = python ]; then
    has "${RUNSLICE_PYTHON:-}" || {
        has python3 && python3 -c 'import sys, venv, ensurepip
sys.exit(sys.version_info < (3, 10))'
    } 2>/dev/null || missing="$missing python3 python3-venv"
fi
if [ "${1:-}" = dist ]; then
    has rpmbuild || missing="$missing rpm"
    # Newer libelf is linked with it; see scripts/dist.sh.
    [ -e /usr/include/zstd.h ] || missing="$missing libzstd-dev"
    # Without it the program is slower, so nobody has to have it.
    llvm=llvm-$(scripts/train.sh wanted 2>/dev/null) && ! scripts/train.sh tool >/dev/null &&
        [ -n "$(candidate "$llvm")" ] && missing="$missing $llvm"
fi
if [ "${1:-}" = test ]; then
    # A terminal for `stat top`.
    has tmux || missing="$missing tmux"
    # A step of the workflow for GitHub.
    has jq || missing="$missing jq"
fi
if [ "${1:-}" = root ] || [ "${1:-}" = long ]; then
    has mmdebstrap || missing="$missing mmdebstrap"
fi
if [ "${1:-}" = long ]; then
    has valgrind || missing="$missing valgrind"
    has chromium || has chromium-browser || has google-chrome || missing="$missing chromium"
fi
[ -n "$missing" ] || exit 0

if ! has apt-get; then
    echo "setup: missing:$missing" >&2
    echo "setup: please install a C compiler with its headers, git, clang >= $least_clang" \
        "(with the BPF target) and Rust >= $least_rust with cargo, clippy and rustfmt" >&2
    exit 1
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
    has sudo || { echo "setup: missing:$missing; run \`make setup\` as root" >&2; exit 1; }
    as_root=sudo
fi

apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends "$@" </dev/null
}

# Whether apt offers package $1 in version $2 or newer.
offers() {
    offered=$(candidate "$1")
    [ -n "$offered" ] && dpkg --compare-versions "$offered" ge "$2"
}

# Packages of a clang that is new enough. 19 is what the project is developed with.
clang_packages() {
    for version in 19 22 21 20 18 17 16; do
        offers "clang-$version" $least_clang && echo "clang-$version" && return
    done
    return 1
}

# Packages of a Rust that is new enough: Debian's for its browsers first, because stable releases
# keep that one current; then the plain one; then Ubuntu's versioned ones.
rust_packages() {
    if offers rustc-web "$least_rust"; then
        echo rustc-web cargo-web rust-web-clippy rustfmt-web && return
    fi
    if offers rustc "$least_rust"; then
        echo rustc cargo rust-clippy rustfmt && return
    fi
    for version in $(apt-cache pkgnames rustc-1. | sed -n 's/^rustc-\(1\.[0-9]*\)$/\1/p' | sort -rV)
    do
        offers "rustc-$version" "$least_rust" || continue
        echo "rustc-$version cargo-$version rust-$version-clippy rustfmt-$version" && return
    done
    return 1
}

# Turns what is missing into packages; fails when apt does not know one of them.
packages() {
    for thing in $missing; do
        case $thing in
            clang) clang_packages || return 1 ;;
            rust) rust_packages || return 1 ;;
            *) [ -n "$(candidate "$thing")" ] && echo "$thing" || return 1 ;;
        esac
    done
}

echo "setup: missing:$missing" >&2
if ! wanted=$(packages); then
    apt update
    if ! wanted=$(packages); then
        echo "setup: this release packages no clang >= $least_clang or no Rust >= $least_rust;" \
            "please install them by other means" >&2
        exit 1
    fi
fi
# Package lists may be older than the archive; one refresh mends that.
# shellcheck disable=SC2086
apt install $wanted || { apt update && apt install $wanted; }
has_clang && has_rust || { echo "setup: installed $wanted, but it does not run" >&2; exit 1; }
