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
#   TABLE      the file that is written: crates/ask/src/choose/errors.json
#
# Exit status: 0 when everything was played and written.
#
# The protocol. It was fixed before anything was looked at; whoever changes it plays with another
# seed.
#
#   loads      steady: 24 loads of `fidelity --generate` with the seed 20270300, the first ones of
#              this class. forks: those of this class among 12 loads with the seeds 20270201 to
#              20270203. Eight of these 12 were looked at before the classes were fixed, so their
#              steady ones are left out. These seeds are used for nothing else.
#   machine    a counting VM with Linux 6.18 and 2 CPUs; each play lasts 2 s
#   policies   eevdf, which the others are held against; fifo, mlfq, staircase
#   plays      1 of each load and policy, with the seed of the load. What one play differs from the
#              next counts as the simulation's error.
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
#   classes    forks: under eevdf, simulated, more than 10 tasks begin in each second of CPU time. A
#              fork costs a guest about a millisecond, which no profile has. Else steady. Of fewer
#              than 19 loads nothing is shown, and their largest error counts; of fewer than 10 that
#              of all loads and policies.
#   profiles   each that is part of the program
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
runslice=${RUNSLICE:-$here/target/release/runslice}
plays=${PLAYS:-${TMPDIR:-/tmp}/runslice-errors}
table=${TABLE:-$here/crates/ask/src/choose/errors.json}

policies=eevdf,fifo,mlfq,staircase
looked_at="20270201 20270202 20270203"

die() {
    echo "errors: $1" >&2
    exit "${2:-1}"
}

# Status 6: the machine did not bring a play, or nothing could be compared. Such a play is void.
fidelity() {
    "$runslice" fidelity "$@" || {
        status=$?
        [ "$status" -eq 6 ] || exit "$status"
    }
}

play() {
    set -- "$policies" --times 1 --for 2s --kernel 6.18 --cpus 2 -o /dev/null
    for seed in $looked_at; do
        fidelity "$@" --generate 4 --seed "$seed" -d "$plays/$seed"
    done
    fidelity "$@" --generate 24 --class steady --seed 20270300 -d "$plays/steady"
}

# Puts the errors of the plays in a folder into the new table, those of one class.
add() {
    for profile in ideal default-v0; do
        fidelity --from "$plays/$1" --class "$2" --profile "$profile" --errors "$new"
    done
}

write() {
    new=$(mktemp)
    trap 'rm -f "$new"' EXIT
    echo '{ "measured_on": "in counting VMs with 2 CPUs and Linux 6.18", "loads": [] }' > "$new"
    for seed in $looked_at; do
        add "$seed" forks
    done
    add steady steady
    cat "$new" > "$table"
}

mkdir -p "$plays"
case "${1-}" in
    '') play && write ;;
    plays) play ;;
    table) write ;;
    *) die "no word \`$1\`: give \`plays\`, \`table\` or nothing" 2 ;;
esac
