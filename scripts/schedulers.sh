#!/bin/sh
# Runs published schedulers' own programs, unchanged, on the simulated machine, and prints a table
# of how each did: desk, hackbench, web and chat on 4, 8 and 16 CPUs, the 16 in two nodes.
#
# usage: scripts/schedulers.sh [FOLDER [SCHEDULER...]]
#
# FOLDER (default: runslice-schedulers in the folder for temporary files) keeps sources, programs
# and results, so that a second call goes on where the first one stopped. SCHEDULER is a name as in
# the first column, scx_rusty for example; without one all are run. Nothing of them is kept in this
# repository.
#
# Where they come from:
#   * the Rust ones from cargo's registry, in the versions below;
#   * the C ones from Debian's package linux-source, the newest that apt knows or that the lists
#     which `runslice vm` keeps know, with the kernel's types from linux-bpf-dev beside it;
#   * those that are in neither from SCX=DIR, a checkout of sched-ext/scx from before February 2026,
#     the last that has its C schedulers.
#
# BUILD=only builds the programs and runs none of them: their folder is then one that tests take
# (docs/your-scheduler.md).
#
# Needs cargo, make, clang-19 (or BPF_CLANG), libclang (LIBCLANG_PATH), pkg-config, xz, and the
# headers of libelf, zlib, libseccomp (scx_rustland and scx_rlfifo) and libzstd (SCX): Debian's
# packages libelf-dev zlib1g-dev libseccomp-dev libzstd-dev. RUNSLICE is the program; without it the
# built one in target/release.
#
# Exit status: 0 when every scheduler ran all cells, or has a reason of its own.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${TMPDIR:-/tmp}/runslice-schedulers}
[ $# -eq 0 ] || shift
wanted=$*
runslice=${RUNSLICE:-$here/target/release/runslice}
clang=${BPF_CLANG:-clang-19}
mkdir -p "$folder/logs" "$folder/bin" "$folder/results" "$folder/sources"
folder=$(cd "$folder" && pwd)
cd "$folder"

say() {
    printf '%s\n' "$*" >&2
}

# ---- The schedulers: name, version ----

# Those whose program exists in cargo's registry.
rust="
scx_bpfland 1.1.4
scx_flash 1.1.4
scx_tickless 1.1.4
scx_cosmos 1.1.7
scx_beerland 1.1.4
scx_rusty 1.1.4
scx_layered 1.1.4
scx_lavd 1.1.4
scx_p2dq 1.1.4
scx_chaos 1.1.4
scx_rustland 1.1.4
scx_rlfifo 1.1.4
scx_flow 4.8.15
scx_forge 1.1.3
scx_cake 1.2.2
scx_pandemonium 5.23.1
"
# In the kernel's tools/sched_ext.
kernels="scx_simple scx_cpu0 scx_qmap scx_central scx_flatcg scx_userland scx_pair scx_sdt"
# In SCX alone; its scx_qmap is for kernels that the newest one in the kernel is not for.
scx_c="scx_nest scx_prev scx_qmap"
scx_rust="scx_mitosis scx_wd40"

# What a program must be told, since it does nothing without.
arguments() {
    case $1 in
    scx_layered) echo '--run-example' ;;
    esac
}

is_wanted() {
    case " $wanted " in
    '  ' | *" $1 "*) return 0 ;;
    esac
    return 1
}

# ---- What must be there ----

missing=
need() {
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need cargo rust
need make make
need "$clang" clang-19
need pkg-config pkg-config
need xz xz-utils
need dpkg-deb dpkg
[ -e /usr/include/libelf.h ] || missing="$missing libelf-dev"
[ -e /usr/include/zlib.h ] || missing="$missing zlib1g-dev"
[ -e /usr/include/seccomp.h ] || missing="$missing libseccomp-dev"
[ -z "${SCX:-}" ] || [ -e /usr/include/zstd.h ] || missing="$missing libzstd-dev"
[ -n "${LIBCLANG_PATH:-}" ] ||
    LIBCLANG_PATH=$(find /usr/lib/llvm-19 -name 'libclang*.so*' 2>/dev/null | head -n 1)
[ -n "$LIBCLANG_PATH" ] || missing="$missing libclang-19-dev"
[ -x "$runslice" ] || [ "${BUILD:-}" = only ] ||
    missing="$missing $runslice (cargo build --release --bin runslice)"
if [ -n "$missing" ]; then
    say "missing:$missing"
    exit 1
fi
[ -d "$LIBCLANG_PATH" ] || LIBCLANG_PATH=$(dirname "$LIBCLANG_PATH")

# ---- Programs in Rust ----

# Little optimised, without debugging information: half of the time that a release takes. The
# target folder is one, so that they share what they depend on.
build_rust() { # MANIFEST_FOLDER NAME TARGET
    [ -x "bin/$2" ] && return
    say "building $2"
    env LIBCLANG_PATH="$LIBCLANG_PATH" BPF_CLANG="$clang" CARGO_TARGET_DIR="$folder/$3" \
        CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
        CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo build --release --quiet --manifest-path "$1/Cargo.toml" --bin "$2" \
        >"logs/$2.build" 2>&1 || return 0
    cp "$3/release/$2" "bin/$2"
}

# A package that depends on them makes cargo fetch them.
fetch_rust() {
    mkdir -p fetch/src
    : >fetch/src/lib.rs
    {
        printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n'
        printf '[dependencies]\n'
        echo "$rust" | sed -n 's/^\(scx_.*\) \(.*\)$/\1 = "=\2"/p'
    } >fetch/Cargo.toml
    cargo fetch --quiet --manifest-path fetch/Cargo.toml 2>logs/fetch || {
        cat logs/fetch >&2
        exit 1
    }
    registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
    members=
    for name in $(echo "$rust" | cut -d' ' -f1); do
        version=$(echo "$rust" | sed -n "s/^$name //p")
        source=$(find "$registry" -mindepth 2 -maxdepth 2 -name "$name-$version" | head -n 1)
        members="$members\"$name\", "
        [ -d "sources/$name" ] && continue
        cp -R "$source" "sources/$name"
        # One lock for all is the workspace's.
        rm -f "sources/$name/Cargo.lock"
    done
    printf '[workspace]\nresolver = "2"\nmembers = [%s]\n' "$members" >sources/Cargo.toml
    [ -f sources/Cargo.lock ] || cp fetch/Cargo.lock sources/Cargo.lock
}

# ---- Programs in C ----

# Runs apt-get with each set of lists until one does it.
with_apt() {
    for settings in "${XDG_CACHE_HOME:-$HOME/.cache}"/runslice/apt/*/etc/settings /dev/null; do
        [ -e "$settings" ] || continue
        APT_CONFIG=$settings "$@" 2>/dev/null && return
    done
    return 1
}

# The newest linux-source of any list.
newest_source() {
    for settings in "${XDG_CACHE_HOME:-$HOME/.cache}"/runslice/apt/*/etc/settings /dev/null; do
        [ -e "$settings" ] || continue
        APT_CONFIG=$settings apt-cache pkgnames linux-source- 2>/dev/null || true
    done | sed -n 's/^linux-source-\([0-9]*\.[0-9]*\)$/\1/p' | sort -V | tail -n 1
}

fetch_kernel() {
    [ -f kernel/version ] && return
    rm -rf kernel
    mkdir kernel
    version=$(newest_source)
    package=linux-source-$version
    [ -n "$version" ] || { say "apt knows no linux-source"; return 1; }
    say "fetching $package"
    (
        cd kernel
        # Of one list, so that both are of one version.
        with_apt apt-get --quiet=2 download "$package" linux-bpf-dev
    ) || { say "apt has no $package with linux-bpf-dev"; return 1; }
    deb=$(find kernel -name "${package}_*.deb")
    types=$(find kernel -name 'linux-bpf-dev_*.deb')
    dpkg-deb --fsys-tarfile "$types" | tar -xO --wildcards '*/linux/bpf/vmlinux.h' >kernel/vmlinux.h
    dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/$package.tar.xz" | xz -dc |
        tar -x -C kernel --strip-components=1 --wildcards "$package/scripts" \
            "$package/tools/build" "$package/tools/scripts" "$package/tools/include" \
            "$package/tools/arch" "$package/tools/lib" "$package/tools/bpf" \
            "$package/tools/sched_ext" "$package/include/uapi" "$package/kernel/bpf"
    dpkg-deb -f "$deb" Version >kernel/version
    rm -f "$deb" "$types"
}

# The kernel's own Makefile; it makes libbpf and bpftool too.
build_kernels() {
    fetch_kernel || return 0
    [ -x kernel/out/build/sbin/bpftool ] || say "building tools/sched_ext, $(cat kernel/version)"
    mkdir -p kernel/out
    # A kernel refuses what older compilers than clang 22 make of the one in cid form.
    make_kernels "$(command -v clang-22 || echo "$clang")" scx_qmap >logs/kernel.build 2>&1 || true
    make_kernels "$clang" >>logs/kernel.build 2>&1 || true
}

# The types are given: the file that it wants besides is only asked for its time.
make_kernels() { # CLANG [TARGET]
    make -k -C kernel/tools/sched_ext CLANG="$1" VMLINUX_BTF="$folder/kernel/vmlinux.h" \
        VMLINUX_H="$folder/kernel/vmlinux.h" O="$folder/kernel/out" ${2:+"$2"}
}

# SCX's own Makefile, with the libbpf and the bpftool of above.
build_scx_c() {
    if [ ! -f "$SCX/scheds/c/Makefile" ] || [ ! -x kernel/out/build/sbin/bpftool ]; then
        return 0
    fi
    mkdir -p pkgconfig
    printf 'Name: libbpf\nDescription: libbpf\nVersion: 1\nCflags: -I%s\nLibs: %s\n' \
        "$folder/kernel/out/build/include" "$folder/kernel/out/build/obj/libbpf/libbpf.a" \
        >pkgconfig/libbpf.pc
    PKG_CONFIG_PATH="$folder/pkgconfig" BPF_CLANG="$clang" \
        BPFTOOL="$folder/kernel/out/build/sbin/bpftool" \
        make -k -C "$SCX" O="$folder/scx-c" >logs/scx-c.build 2>&1 || true
}

# ---- Runs ----

# What a run said of a failure, one line.
reason() {
    sed -n -e '/was ejected/p' -e '/STARVED/p' -e '/ended with status/{N;N;p;}' \
        -e '/did not end within/p' -e '/^runslice: /{N;N;p;}' "$1" | tr '\n|' '  ' | cut -c 1-240
}

cell() { # PROGRAM ARGUMENTS RESULT LOAD CPUS LENGTH
    [ -f "$3.status" ] && [ "$3.status" -nt "$1" ] && return
    set -- "$1" "$2" "$3" "$4" "$5" "$6" "$([ "$5" -lt 16 ] || echo '--node 8')"
    status=0
    # shellcheck disable=SC2086
    (
        "$runslice" sim --scheduler "$1 $2" -w "$4" --cpus "$5" $7 $kernel --duration "$6" \
            --loader-output "$3.loader" >"$3.out" 2>&1
        status=$?
        times >"$3.times"
        exit $status
    ) || status=$?
    # A program that failed on the way is told of by a note.
    ! grep -qE 'ended with status|did not end within' "$3.out" || status=1
    echo "$status" >"$3.status"
}

# CPU seconds of a run, the loader's too: the second line is of the children.
spent() {
    sed -n '2s/\([0-9]*\)m\([0-9.]*\)s \([0-9]*\)m\([0-9.]*\)s.*/\1 \2 \3 \4/p' "$1" |
        awk '{ printf "%.3f", 60 * $1 + $2 + 60 * $3 + $4 }'
}

failed=0
row() { # NAME VERSION SOURCE PROGRAM
    if [ ! -x "$4" ]; then
        echo "| $1 | $2 | $3 | 0 | | | | not built: see $folder/logs |"
        failed=1
        return
    fi
    [ "$4" -ef "bin/$1" ] || ln -sf "$4" "bin/$1"
    [ "${BUILD:-}" != only ] || return 0
    # In cid form, which older kernels lack.
    kernel=
    [ "$1 $3" != 'scx_qmap linux-source' ] || kernel='--kernel 7.3'
    results="results/$1-$(echo "$3" | tr -c 'a-z0-9\n' _)"
    mkdir -p "$results"
    say "running $1 ($3)"
    good=0 why='' told=$(arguments "$1")
    for load in desk hackbench web chat; do
        for cpus in 4 8 16; do
            at=$results/$load-$cpus
            length=5s
            [ "$load-$cpus" = desk-8 ] && length=10s
            cell "$4" "$told" "$at" "$load" "$cpus" "$length"
            if [ "$(cat "$at.status")" -eq 0 ]; then
                good=$((good + 1))
            elif [ -z "$why" ]; then
                why="$load on $cpus: $(reason "$at.out")"
            fi
        done
    done
    if [ ! -f "$results/audit" ] || [ "$4" -nt "$results/audit" ]; then
        # shellcheck disable=SC2086
        "$runslice" sim --scheduler "$4 $told" -w desk --cpus 8 $kernel --duration 10s --audit \
            >"$results/audit" 2>&1 || true
    fi
    hash=$(sed -n 's/.* hash \([0-9a-f]*\) interpreted and native.*/`\1`/p' "$results/audit")
    speed=
    [ "$(cat "$results/desk-8.status")" -ne 0 ] ||
        speed=$(spent "$results/desk-8.times" | awk '{ if ($1 > 0) printf "%.2f", 10 / $1 }')
    # What its program asked: each system call is intercepted.
    calls=$(sed -n 's/.* system calls in the run, \([0-9]*\) a simulated second/\1/p' \
        "$results/desk-8.out")
    [ "$good" -eq 12 ] || failed=1
    echo "| $1${told:+ $told} | $2 | $3 | $good | $hash | $speed | $calls | $why |"
}

if [ "${BUILD:-}" != only ]; then
    echo '| scheduler | version | source | cells of 12 | events of desk on 8 CPUs, 10 s' \
        '| simulated s a CPU s | system calls a simulated s | what failed |'
    echo '| --- | --- | --- | --- | --- | --- | --- | --- |'
fi

needs_rust=
for name in $(echo "$rust" | cut -d' ' -f1); do
    ! is_wanted "$name" || needs_rust=yes
done
[ -z "$needs_rust" ] || fetch_rust
for name in $(echo "$rust" | cut -d' ' -f1); do
    is_wanted "$name" || continue
    build_rust "sources/$name" "$name" target
    row "$name" "$(echo "$rust" | sed -n "s/^$name //p")" "cargo's registry" "$folder/bin/$name"
done

needs_c=
for name in $kernels $scx_c; do
    ! is_wanted "$name" || needs_c=yes
done
[ -z "$needs_c" ] || build_kernels
for name in $kernels; do
    is_wanted "$name" || continue
    row "$name" "$(cat kernel/version 2>/dev/null || true)" linux-source \
        "$folder/kernel/out/build/bin/$name"
done

for name in $scx_c $scx_rust; do
    is_wanted "$name" || continue
    if [ -z "${SCX:-}" ]; then
        echo "| $name | | SCX | | | | | not tried: set SCX |"
        continue
    fi
    SCX=$(cd "$SCX" && pwd)
    of=$(git -C "$SCX" rev-parse --short=9 HEAD 2>/dev/null ||
        sed -n "s/.*version: '\(.*\)'.*/\1/p" "$SCX/meson.build" | head -n 1)
    version=
    case " $scx_c " in
    *" $name "*)
        [ -x "scx-c/scheds/c/$name" ] || build_scx_c
        program=$folder/scx-c/scheds/c/$name
        ;;
    *)
        build_rust "$SCX/scheds/rust/$name" "$name" target
        version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$SCX/scheds/rust/$name/Cargo.toml" |
            head -n 1)
        program=$folder/bin/$name
        ;;
    esac
    row "$name" "${version:-$of}" SCX "$program"
done
exit $failed
