#!/bin/sh
# Runs the BPF parts of the kernel's own sched_ext self tests, simulated and on a guest kernel, and
# prints a table of how each ended. Then audits the schedulers of tools/sched_ext, simulated.
#
# usage: scripts/selftests.sh [FOLDER]
#
# FOLDER is that of scripts/published.sh, which must have run there: the headers of the kernel's
# types and of libbpf are taken from its builds. The sources come from Debian's package
# linux-source through the lists of packages that `runslice vm --kernel` keeps. The user space parts
# of the tests do not run; what they would set is 0, but for the exit points.
#
# KERNEL=7.3 asks that kernel, and its tests that 7.2 (the default) has not; its types come from the
# package linux-bpf-dev. BPF_CLANG is the compiler (clang-19; a kernel takes cid form of clang-22).
#
# Exit status: 0 when the simulated and the real kernel ended every policy in the same way, and
# every scheduler ran as it should.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${TMPDIR:-/tmp}/runslice-published}
runslice=${RUNSLICE:-$here/target/release/runslice}
kernel=${KERNEL:-7.2}
package=linux-source-$kernel
types=$([ "$kernel" = 7.2 ] || echo linux-bpf-dev)
cd "$folder"
mkdir -p selftests/share

# ---- Sources ----

if [ ! -d "selftests/$package" ]; then
    cd selftests
    for settings in "${XDG_CACHE_HOME:-$HOME/.cache}"/runslice/apt/*/etc/settings; do
        [ -f "$settings" ] || continue
        # Of one list, so that both are of one version.
        # shellcheck disable=SC2086
        APT_CONFIG=$settings apt-get --quiet=2 download $package $types 2>/dev/null && break
    done
    deb=$(find . -name "${package}_*.deb" | head -n 1)
    if [ -z "$deb" ]; then
        echo "no package $package;" \
            "let \`runslice vm --kernel $kernel -- true\` fetch lists first" >&2
        exit 1
    fi
    if [ -n "$types" ]; then
        mkdir -p "$package/types"
        dpkg-deb --fsys-tarfile "$types"_*.deb |
            tar -xO --wildcards '*/linux/bpf/vmlinux.h' >"$package/types/vmlinux.h"
        rm -f "$types"_*.deb
    fi
    dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/$package.tar.xz" | xz -dc |
        tar -x "$package/tools/testing/selftests/sched_ext" "$package/tools/sched_ext"
    rm -f "$deb"
    cd ..
fi

# ---- Objects ----

tools=selftests/$package/tools
if [ -n "$types" ]; then
    types=selftests/$package/types
else
    types=$(find target/debug/build -path '*/scx_utils-bpf_h/arch/x86' | head -n 1)
fi
libbpf=$(find target/debug/build -path '*/out/include/bpf/bpf_helpers.h' | head -n 1)
if [ -z "$types" ] || [ -z "$libbpf" ]; then
    echo "no headers in $folder; run scripts/published.sh $folder first" >&2
    exit 1
fi
# compile SOURCE FOLDER
compile() {
    "${BPF_CLANG:-clang-19}" -target bpf -mcpu=v3 -O2 -g -D__TARGET_ARCH_x86 -fms-extensions -w \
        -Wno-incompatible-function-pointer-types -Wno-microsoft-anon-tag \
        -I"$types" -I"${libbpf%/bpf/bpf_helpers.h}" -I"$tools/sched_ext/include" \
        -I"$tools/sched_ext/include/bpf-compat" -c "$1" -o "$2/$(basename "$1" .c).o"
}

mkdir -p selftests/tools
for source in "$tools"/testing/selftests/sched_ext/*.bpf.c; do
    compile "$source" selftests/share
done

# ---- Runs ----

# What can run by itself. Left out: hotplug takes CPUs away, numa wants its flags, prog_run and the
# maybe_null_fail ones are for the verifier, non_scx_kfunc_deny is no scheduler, and the others that
# are not here (allowed_cpus, cyclic_kick_wait, dsp_local_on, nohz_tick, rt_stall) wait for what
# their user space does. enable_cmask and two of dequeue are new in 7.3.
plain="create_dsq ddsp_bogus_dsq_fail ddsp_vtimelocal_fail dequeue enq_last_no_enq_fails
enq_select_cpu init_enable_count maximal maybe_null minimal peek_dsq select_cpu_dfl
select_cpu_dfl_nodispatch select_cpu_dispatch select_cpu_dispatch_bad_dsq
select_cpu_dispatch_dbl_dsp select_cpu_vtime"
[ "$kernel" = 7.2 ] || plain="$plain dequeue_iter dequeue_remote enable_cmask"
# Points 0 to 5 of exit: select_cpu, enqueue, dispatch, enable, init_task, init.
points="0 1 2 3 4 5"
policies=$(for name in $plain; do printf '%s ' "$name.bpf.o"; done
    for point in $points; do printf '%s ' "exit.bpf.o:exit_point=$point"; done)

# How it ended: the words behind "was ejected", with every task called TASK.
ending() {
    sed -n '/No policy came to a result/!s/.*was ejected[^:]*: //p' | head -n 1 |
        sed 's/ (kind [0-9]*)//; s/[^ ]*\[[0-9]*\]/TASK/g; s/[^ ]*bpf\.c:[0-9]*: //; s/^$/-/'
}

: >selftests/simulated
for policy in $policies; do
    end=$("$runslice" sim "selftests/share/$policy" --workload desk --cpus 2 --kernel "$kernel" \
        --duration 1s 2>&1 | ending)
    printf '%s\t%s\n' "$policy" "${end:-ran}" >>selftests/simulated
done

# The guest has a shell of few words; it writes what was said, and this side reads it.
{
    for policy in $policies; do
        echo "echo '@ $policy' >>said"
        echo "${runslice##*/} run ./$policy --for 1s -- sh -c 'n=0; while [ \$n -lt 8 ]; do (:) &" \
            "(sleep 0.01) & n=\$((n + 1)); done; wait' >>said 2>&1"
    done
} >selftests/share/all.sh
rm -f selftests/share/said
touch selftests/share/said
"$runslice" vm --kernel "$kernel" --cpus 2 --share selftests/share --timeout 300s --with sleep \
    --with "$runslice" -- sh all.sh || true
: >selftests/real
for policy in $policies; do
    said=$(awk -v wanted="@ $policy" '/^@ / { on = ($0 == wanted) } on' selftests/share/said)
    case $said in
    *"own scheduler is back"*)
        end=$(echo "$said" | ending)
        end=${end:-ran}
        ;;
    *) end='no result' ;;
    esac
    printf '%s\t%s\n' "$policy" "$end" >>selftests/real
done

# ---- Table ----

status=0
printf '%-36s %-52s %s\n' policy simulated "Linux $kernel"
for policy in $policies; do
    one=$(awk -F '\t' -v policy="$policy" '$1 == policy { print $2 }' selftests/simulated)
    other=$(awk -F '\t' -v policy="$policy" '$1 == policy { print $2 }' selftests/real)
    if [ "$one" = "$other" ]; then
        other=same
    else
        status=1
    fi
    printf '%-36s %-52s %s\n' "$policy" "$one" "$other"
done

# ---- The schedulers of the kernel's tools, with what their loaders set on 8 CPUs ----

# Not here: qmap needs a kernel newer than these headers, userland's decisions are user space's,
# pair needs a machine that has been up for longer than one of its batches.
settings() {
    case $1 in
    central)
        echo --set central_cpu=0 --set nr_cpu_ids=8 --set slice_ns=20000000 \
            --set 'cpu_gimme_task[]=8' --set 'cpu_started_at[]=8'
        ;;
    flatcg) echo --set nr_cpus=8 --set cgrp_slice_ns=20000000 ;;
    esac
}

# Three quarters for web and one for batch, and a task that goes from one to the other.
cat >selftests/groups.toml <<'EOT'
[workload]
name = "groups"
stop = "duration:10s"

[cgroup.web]
weight = 300

[cgroup.front]
path = "/web/front"

[cgroup.batch]

[task.front]
cgroup = "/web/front"
count = 8
do = "run(inf)"

[task.batch]
cgroup = "/batch"
count = 16
do = "run(inf)"

[task.roamer]
do = """
    loop(inf)[
        cgroup_move(self, front), run(5ms), cgroup_move(self, batch), run(5ms), sleep(2ms),
        cgroup_move(self, root), run(1ms)
    ]
"""
EOT

for name in simple cpu0 sdt central flatcg; do
    compile "$tools/sched_ext/scx_$name.bpf.c" selftests/tools
    for load in desk selftests/groups.toml; do
        # Arguments without spaces inside, so that words are arguments.
        set -f
        # shellcheck disable=SC2046
        "$runslice" sim "selftests/tools/scx_$name.bpf.o" $(settings $name) --workload "$load" \
            --cpus 8 --kernel 7.2 --duration 10s --audit || status=1
        set +f
    done
done
exit $status
