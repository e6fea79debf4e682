#!/bin/sh
# Makes the table of errors of ratios, by which `choose` widens its intervals.
#
# usage: scripts/errors.sh [plays|table]
#
# `plays` plays generated loads in counting VMs and takes hours. A second call goes on where the
# first one stopped. `table` simulates what was played, and writes the table anew; it has as many
# loads as were played. Without an argument: both.
#
#   RUNSLICE   the program; without it the built one in target/release
#   PLAYS      folder that keeps the plays (default: runslice-errors in the folder for temporary
#              files)
#   BATCHES    how many batches are played (default: all of them)
#   TABLE      the file that is written: crates/ask/src/choose/errors.json
#
# Exit status: 0 when everything was played and written.
#
# The protocol. It was fixed before anything was looked at; whoever changes it plays with another
# seed.
#
#   loads      15 batches of 4 loads of `fidelity --generate`; batch b has the seed 20270200 + b.
#              These seeds are used for nothing else.
#   machine    a counting VM with Linux 6.18 and 2 CPUs; each play lasts 2 s
#   policies   eevdf, which the others are held against; fifo, mlfq, staircase
#   plays      1 of each load and policy, with the batch's seed. What one play differs from the next
#              counts as the simulation's error.
#   void       A play is void if the policy was ejected or the machine gave no result. A policy is
#              left out of a load if its play is void, or if one of its simulated runs ends with an
#              error; a load is left out if that is so of eevdf.
#   simulated  10 runs of each load and policy, as `choose` makes them: each task begins by up to a
#              tick later, and each fixed stretch of CPU time is up to 1 % longer or shorter
#   figures    of each group of the load, relative to eevdf:
#                cpu     its share of the CPU time; less than 0.1 % counts as 0.1 %
#                wait    the mean wait for a CPU, of 100 waits or more
#                tail    the p90 of these waits, of 200 or more; the p99, of 2,000 or more
#                slice   the mean time on a CPU, of 100 turns or more
#              Spans below 10 us count as 10 us. Each play and each simulated run must have so many.
#   error      how far the logarithm of the played ratio lies outside of the simulated interval of
#              95 %; of a load the largest over groups, figures and policies
#   classes    forks: tasks begin while the load runs. Else full: under eevdf, simulated, all CPUs
#              are busy for 90 % of the time. Else idle. A class with fewer than 19 loads is not
#              looked at by itself.
#   profiles   each that is part of the program
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
runslice=${RUNSLICE:-$here/target/release/runslice}
plays=${PLAYS:-${TMPDIR:-/tmp}/runslice-errors}
table=${TABLE:-$here/crates/ask/src/choose/errors.json}

seed=20270200
batches=${BATCHES:-15}
policies=eevdf,fifo,mlfq,staircase

die() {
    echo "errors: $1" >&2
    exit "${2:-1}"
}

# Each load and policy once: `--events` would keep more, and cost more.
play() {
    batch=1
    while [ "$batch" -le "$batches" ]; do
        "$runslice" fidelity "$policies" --generate 4 --seed $((seed + batch)) --times 1 --for 2s \
            --kernel 6.18 --cpus 2 -d "$plays/$batch" -o "$plays/$batch.md" || {
            # What the machine did not bring is void, and the batch goes into the table as it is.
            status=$?
            [ "$status" -eq 6 ] || exit "$status"
        }
        batch=$((batch + 1))
    done
}

write() {
    new=$(mktemp)
    trap 'rm -f "$new"' EXIT
    echo '{ "measured_on": "in counting VMs with 2 CPUs and Linux 6.18", "loads": [] }' > "$new"
    batch=1
    while [ -e "$plays/$batch/fidelity.json" ]; do
        for profile in ideal default-v0; do
            "$runslice" fidelity --from "$plays/$batch" --profile "$profile" --errors "$new" || {
                status=$?
                [ "$status" -eq 6 ] || exit "$status"
            }
        done
        batch=$((batch + 1))
    done
    [ "$batch" -gt 1 ] || die "$plays: there are no plays"
    cat "$new" > "$table"
}

mkdir -p "$plays"
case "${1-}" in
    '') play && write ;;
    plays) play ;;
    table) write ;;
    *) die "no word \`$1\`: give \`plays\`, \`table\` or nothing" 2 ;;
esac
