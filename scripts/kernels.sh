#!/bin/sh
# Prints which policy runs on which kernel, real and simulated: a table in Markdown (docs/live.md).
#
# usage: scripts/kernels.sh [real|simulated]
#
# Each real kernel is booted once, in a counting virtual machine (runslice vm --det). Each policy is
# attached there, must schedule a small load of forks, pipes and loops, and must be detached again.
# Each simulated kernel runs hackbench under each policy.
#
# KERNELS and POLICIES name fewer than all. RUNSLICE is the program; without it the built one in
# target/release. RUNSLICE_SCHEDULERS=FOLDER adds the published schedulers whose programs lie there
# (scripts/schedulers.sh builds them). FOLDER of TMPDIR keeps what each run said, for the reasons:
# runslice-kernels.
#
# A cell: `runs`; or `lacks FUNCTION`, or `misdescribes FUNCTION`, of the first function that the
# policy requires and the kernel does not have, or describes with other parameters; or `no` with the
# exit status, and the file to look at on standard error.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
runslice=${RUNSLICE:-$here/target/release/runslice}
which=${1:-both}
logs=${TMPDIR:-/tmp}/runslice-kernels
mkdir -p "$logs"

# Debian builds 6.12 without sched_ext.
real=${KERNELS:-6.16 6.17 6.18 6.19 7.0 7.1 7.2 7.3}
simulated=${KERNELS:-6.12 6.16 6.17 6.18 6.19 7.0 7.1 7.2 7.3}
policies=${POLICIES:-fifo goodness elsc o1 staircase staircase5 mlfq cfs eevdf}
programs=
if [ -n "${RUNSLICE_SCHEDULERS:-}" ]; then
    programs=$(cd "$RUNSLICE_SCHEDULERS" && find . -maxdepth 1 -name 'scx_*' -type f -perm -1 |
        sed 's,^\./,,' | sort)
fi

[ -x "$runslice" ] || {
    echo "kernels: no $runslice; build it with \`make release\`" >&2
    exit 1
}

# What a scheduler must be told, since it does nothing without.
arguments() {
    case $1 in
    scx_layered) echo ' --run-example' ;;
    esac
}

# What a run's words and its status say, in few words.
cell() { # STATUS LOG
    if [ "$1" = 0 ]; then
        echo runs
        return
    fi
    wrong=$(sed -n 's/.* describes \([a-z_0-9]*\) with .*/\1/p' "$2" | head -n 1)
    if [ -n "$wrong" ]; then
        echo "misdescribes \`$wrong\`"
        return
    fi
    missing=$(sed -n 's/.*\(scx_bpf_[a-z_0-9]*\|bpf_iter_scx[a-z_]*\).*/\1/p' "$2" | head -n 1)
    case $missing in
    '') echo "no ($1)" && echo "kernels: status $1: $2" >&2 ;;
    *) echo "lacks \`$missing\`" ;;
    esac
}

# ---- Real kernels ----

# One boot: every policy in turn. Its words go into a file of their own, its status to the end.
guest_script() {
    cat <<'END'
load() {
    for i in 1 2 3 4; do
        (n=0; while [ $n -lt 2000 ]; do n=$((n + 1)); done) &
    done
    dd if=/dev/zero bs=1k count=500 2>/dev/null | cat >/dev/null
    for i in 1 2 3 4 5 6 7 8; do true | cat; done
    wait
}
if [ "${1:-}" = load ]; then load; exit; fi
END
    for policy in $policies; do
        cat <<END
runslice run --untested $policy -- sh ./guest.sh load >$policy.log 2>&1
echo "\$?" >$policy.status
END
    done
    for program in $programs; do
        cat <<END
runslice run --untested --scheduler '$program$(arguments "$program")' -- sh ./guest.sh load \
    >$program.log 2>&1
echo "\$?" >$program.status
END
    done
}

boot() { # KERNEL
    folder=$logs/real-$1
    rm -rf "$folder"
    mkdir -p "$folder"
    guest_script >"$folder/guest.sh"
    set -- "$1" "$folder"
    for program in $programs; do
        set -- "$@" --with "$RUNSLICE_SCHEDULERS/$program"
    done
    kernel=$1
    shift 2
    "$runslice" vm --kernel "$kernel" --cpus 2 --memory 1024 --det --timeout 600s \
        --share "$folder" "$@" -- sh ./guest.sh >"$folder/boot" 2>&1 ||
        echo "kernels: $kernel: status $?: $folder/boot" >&2
}

real_cell() { # KERNEL POLICY
    log=$logs/real-$1/$2.log
    [ -f "${log%.log}.status" ] || { echo '-' && return; }
    cell "$(cat "${log%.log}.status")" "$log"
}

# ---- Simulated ones ----

simulated_cell() { # KERNEL POLICY
    log=$logs/simulated-$1-$2.log
    status=0
    case $2 in
    scx_*)
        "$runslice" sim --scheduler "$RUNSLICE_SCHEDULERS/$2$(arguments "$2")" -w hackbench \
            --kernel "$1" --duration 1s >"$log" 2>&1 || status=$?
        ;;
    *) "$runslice" sim "$2" -w hackbench --kernel "$1" --duration 1s >"$log" 2>&1 || status=$? ;;
    esac
    cell "$status" "$log"
}

# ---- The table ----

table() { # KIND KERNELS
    kind=$1
    shift
    printf '| %s |' "$kind"
    printf ' %s |' "$@"
    printf '\n| --- |'
    for kernel; do printf ' --- |'; done
    printf '\n'
    for policy in $policies $programs; do
        printf '| %s |' "$policy"
        for kernel; do
            printf ' %s |' "$("${kind}_cell" "$kernel" "$policy")"
        done
        printf '\n'
    done
}

# shellcheck disable=SC2086
if [ "$which" != simulated ]; then
    for kernel in $real; do boot "$kernel"; done
    table real $real
    echo
fi
# shellcheck disable=SC2086
[ "$which" = real ] || table simulated $simulated
