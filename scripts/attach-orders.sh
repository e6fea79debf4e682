#!/bin/sh
# Asks whether it matters that a task is in a cgroup before a scheduler is attached there or comes
# later: five pairs of a root and a scheduler below it, in both orders, simulated as kernel 7.3, and
# beside them what a kernel 7.3.4 gave the task.
#
# usage: scripts/attach-orders.sh [FOLDER]
#
# FOLDER (default: runslice-attach-orders in the folder for temporary files) gets a bundle of each
# run, which `runslice sim` repeats and `runslice explain` explains anywhere. The kernel's figures
# are from one guest each; its clock gave up to 330 hundredths of a second for 300. There the task
# was pinned to CPU 3 of four, and only the kernel's own tasks came by. Here a task of the root's
# comes by once a second, first 50 ms after the begin, or nobody.
#
# RUNSLICE is the program; without it the built one in target/release. Exit status: 0 when each pair
# starves or runs as on the kernel.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${TMPDIR:-/tmp}/runslice-attach-orders}
runslice=${RUNSLICE:-$here/target/release/runslice}
mkdir -p "$folder"
cd "$folder"
"$runslice" build "$here/tests/policies/sub.bpf.c" -o sub.bpf.o 2>build.notes >&2 || {
    cat build.notes >&2
    exit 1
}

# The load: who comes by, then the task itself.
load() { # FILE VISITED|ALONE BEFORE|LATER
    {
        printf '[workload]\nname = "%s"\nstop = "duration:4s"\n' "${1%.toml}"
        printf '[machine]\ncpus = 4\nhz = 250\nkernel = "7.3"\n[cgroup.a]\n'
        printf '[task.other]\ncpus = "2"\ndo = "run(inf)"\n'
        [ "$2" = alone ] || printf '[task.visitor]\ncpus = "3"\ndo = "%s"\n' \
            'sleep(1050ms), loop(inf)[ run(200us), sleep(1s) ]'
        printf '[task.spinner]\ncpus = "3"\ndo = "run(inf)"\n'
        if [ "$3" = before ]; then
            printf 'cgroup = "/a"\n'
        else
            printf '[task.mover]\ncpus = "0"\ndo = "%s"\n' \
                'sleep(1s), cgroup_move(spinner, a), suspend'
        fi
    } >"$1"
}

for guests in visited alone; do
    load "$guests-before.toml" "$guests" before
    load "$guests-later.toml" "$guests" later
done

# CPU time of the task under the one below, in hundredths of a second.
ran() { # RUN
    # Status 3: it starves.
    "$runslice" sim "$1.bundle" --format json -o "$1.json" 2>"$1.notes" || [ $? -eq 3 ]
    awk -F '[:,]' '/"subs"/ { on = 1 }
        on && /"run_ns"/ { printf "%d", $2 / 10000000 + 0.5; exit }' "$1.json"
}

failed=0
printf '%-34s %-7s %8s %6s %10s\n' 'pair (of kernel 7.3)' order visited alone 'on 7.3.4'
row() { # NAME ABOVE BELOW KERNEL_BEFORE KERNEL_LATER
    kernel=$4
    for order in before later; do
        at=1s
        [ "$order" = before ] || at=100ms
        for guests in visited alone; do
            # shellcheck disable=SC2086
            "$runslice" bundle sub.bpf.o -w "$guests-$order.toml" $2 \
                --sub "a@$at=sub.bpf.o:$3" -o "$1-$guests-$order.bundle"
        done
        visited=$(ran "$1-visited-$order")
        printf '%-34s %-7s %8s %6s %10s\n' "$1" "$order" "$visited" \
            "$(ran "$1-alone-$order")" "$kernel"
        # Starved within 100 ms, or had all but 1 %.
        if [ "$kernel" -le 10 ]; then
            [ "$visited" -le 10 ] || failed=1
        else
            [ "$visited" -ge 297 ] || failed=1
        fi
        kernel=$5
    done
}

immed=insert_flags=SCX_ENQ_IMMED
row all-rights '--set caps=15' to_local=0 330 320
row immed-and-perf '--set caps=9' $immed 313 312
row not-handed-down '--set caps=9 --set hands_down=0' $immed 0 0
row global-queue '--set caps=9' sub_ops.enqueue=0 7 0
row global-queue-not-handed-down '--set caps=9 --set hands_down=0' sub_ops.enqueue=0 0 5
exit $failed
