#!/bin/sh
# Simulates published schedulers, unchanged, on 8 CPUs under the loaded desktop.
#
# usage: scripts/published.sh [FOLDER]
#
# Fetches the crates listed below from cargo's registry into FOLDER (default: runslice-published in
# the folder for temporary files), lets their own build scripts compile their BPF objects, makes a
# bundle of each with what its loader would set on such a machine, and runs it for 10 simulated
# seconds, interpreted and as native code, with all accounts checked. Nothing of them is kept in
# this repository.
#
# Needs cargo, clang-19, libclang, libelf's headers and RUNSLICE, the program, or a built one in
# target/release. Exit status: 0 when every scheduler ran as it should.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${TMPDIR:-/tmp}/runslice-published}
runslice=${RUNSLICE:-$here/target/release/runslice}
mkdir -p "$folder/objects" "$folder/bundles" "$folder/sources"
cd "$folder"

# name, version
crates="
bpfland 1.1.4
flash 1.1.4
tickless 1.1.4
cosmos 1.1.7
beerland 1.1.4
rusty 1.1.4
forge 1.1.3
cake 1.2.2
pandemonium 5.23.1
p2dq 1.1.4
chaos 1.1.4
lavd 1.1.4
layered 1.1.4
"

say() {
    printf '%s\n' "$*" >&2
}

# ---- Sources: a package that depends on the crates makes cargo fetch them. ----

mkdir -p fetch/src
: >fetch/src/lib.rs
{
    printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n'
    printf '[dependencies]\n'
    echo "$crates" | while read -r name version; do
        [ -z "$name" ] || echo "scx_$name = \"=$version\""
    done
} >fetch/Cargo.toml
say "fetching the crates"
cargo fetch --quiet --manifest-path fetch/Cargo.toml 2>fetch/log || {
    cat fetch/log >&2
    exit 1
}
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src

# ---- Objects: only the build script of each runs. Its program, and what that needs, is not built.

members=
for name in $(echo "$crates" | cut -d' ' -f1); do
    version=$(echo "$crates" | sed -n "s/^$name //p")
    source=$(find "$registry" -mindepth 2 -maxdepth 2 -name "scx_$name-$version" | head -n 1)
    if [ -z "$source" ]; then
        say "scx_$name $version is not in $registry"
        exit 1
    fi
    rm -rf "sources/$name"
    cp -R "$source" "sources/$name"
    rm -f "sources/$name/Cargo.lock"
    main=$(sed -n '/^\[\[bin\]\]/,/^\[/s/^path = "\(.*\)"/\1/p' "$source/Cargo.toml" | head -n 1)
    awk '/^\[/ { cut = ($0 ~ /^\[+(dependencies|dev-dep|features|lib|target|test|bench)/) } !cut' \
        "$source/Cargo.toml" >"sources/$name/Cargo.toml"
    echo 'fn main() {}' >"sources/$name/$main"
    members="$members\"$name\", "
done
printf '[workspace]\nresolver = "2"\nmembers = [%s]\n' "$members" >sources/Cargo.toml
say "compiling their objects"
libclang=$(dirname "$(find /usr/lib/llvm-19 -name 'libclang*.so*' | head -n 1)")
LIBCLANG_PATH=${LIBCLANG_PATH:-$libclang} BPF_CLANG=${BPF_CLANG:-clang-19} \
    CARGO_TARGET_DIR=$folder/target CARGO_PROFILE_DEV_DEBUG=0 \
    cargo check --quiet --workspace --manifest-path sources/Cargo.toml 2>sources/log || {
    cat sources/log >&2
    exit 1
}
for name in $(echo "$crates" | cut -d' ' -f1); do
    # The newest, should an earlier version have been built here. Named bpf or main in its crate.
    for file in bpf.bpf.o main.bpf.o; do
        object=$(find target/debug/build -path "*/scx_$name-*" -name $file -exec ls -t {} + |
            head -n 1)
        [ -z "$object" ] || break
    done
    cp "$object" "objects/$name.bpf.o"
done

# ---- What the loaders set: 8 CPUs of one speed, one core each, one cache, one node. ----

both='SCX_OPS_ENQ_LAST|SCX_OPS_ENQ_MIGRATION_DISABLED|SCX_OPS_ALLOW_QUEUED_WAKEUP'
flags="SCX_OPS_ENQ_EXITING|$both"

# The CPUs in the order in which they are preferred.
preferred() {
    for cpu in 0 1 2 3 4 5 6 7; do
        printf ' --set preferred_cpus[%d]=%d' $cpu $cpu
    done
}

settings() {
    case $1 in
    bpfland)
        echo --set bpfland_ops.flags="$flags" --set numa_enabled=0 --set smt_enabled=0 \
            --set primary_all=1 --set local_pcpu=0 --set sticky_tasks=0 --set local_kthreads=0 \
            --set cpufreq_perf_lvl=1024 --set slice_max=1000000 --set slice_min=0 \
            --set slice_lag=40000000 --set throttle_ns=0 --set 'cpu_capacity[0-7]=1024' \
            "$(preferred)" --run enable_primary_cpu:-1 "$(each enable_primary_cpu)"
        ;;
    flash)
        echo --set flash_ops.flags="$flags" --set numa_disabled=1 --set smt_enabled=0 \
            --set primary_all=1 --set slice_max=700000 --set slice_lag=20000000 \
            --set throttle_ns=0 --run enable_primary_cpu:-1 "$(each enable_primary_cpu)"
        ;;
    tickless)
        # The loader's default: CPU 0 alone takes ticks, and its timer is started from there.
        echo --set tickless_ops.flags="$both" --set smt_enabled=0 --set nr_cpu_ids=8 \
            --set slice_ns=20000000 --set tick_freq=0 "$(preferred)" \
            --run enable_primary_cpu:-1 --run enable_primary_cpu:0 --run-attached start_timer:0
        ;;
    cosmos)
        echo --set cosmos_ops.flags="$flags" --set numa_enabled=0 --set smt_enabled=0 \
            --set primary_all=1 --set nr_node_ids=1 --set slice_ns=1000000 \
            --set slice_lag=20000000 --set all_cpus_same_capacity=1 \
            --set 'cpu_capacity[0-7]=1024' "$(preferred)"
        ;;
    beerland)
        echo --set beerland_ops.flags="$flags" --set numa_enabled=0 --set smt_enabled=0 \
            --set primary_all=1 --set slice_ns=1000000 --set slice_lag=20000000 \
            --set busy_threshold=0 --set 'cpu_capacity[0-7]=1024'
        ;;
    rusty)
        echo --set nr_nodes=1 --set nr_doms=1 --set nr_cpu_ids=8 --set 'cpu_dom_id_map[0-7]=0' \
            --set 'numa_cpumasks[0][0]=0xff' --set 'dom_cpumasks[0][0]=0xff' \
            --set slice_ns=20000000 --set load_half_life=1000000000 --set greedy_threshold=1 \
            --set greedy_threshold_x_numa=0
        ;;
    forge)
        # topo_dsq 3: one queue for all, the loader's default.
        echo --set forge_ops.flags="$flags|SCX_OPS_BUILTIN_IDLE_PER_NODE" --set topo_dsq=3 \
            --set smt_enabled=0 --set primary_all=1 --set all_cpus_same_capacity=1 \
            --set slice_ns=1000000
        ;;
    cake)
        echo --set nr_cpu_span=8 --set cake_one_word=1 --set cake_tick_ns=4000000
        ;;
    esac
}

# A program for each CPU.
each() {
    for cpu in 0 1 2 3 4 5 6 7; do
        printf ' --run %s:%d' "$1" $cpu
    done
}

# ---- The runs ----

status=0
for name in bpfland flash tickless cosmos beerland rusty forge pandemonium cake; do
    # Arguments without spaces inside, so that words are arguments.
    set -f
    # shellcheck disable=SC2046
    "$runslice" bundle "objects/$name.bpf.o" --cpus 8 $(settings $name) \
        -o "bundles/$name.bundle" || status=1
    set +f
    "$runslice" sim "bundles/$name.bundle" --workload desk --duration 10s --audit || status=1
done

# Those whose loaders do more than options can say (docs/your-scheduler.md says what): how each ends
# without it.
for name in p2dq chaos lavd layered; do
    "$runslice" sim "objects/$name.bpf.o" --workload desk --cpus 8 --duration 1s 2>&1 |
        grep -E 'was ejected|^runslice:' || echo "$name: runs"
done
exit $status
