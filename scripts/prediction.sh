#!/bin/sh
# Does a recording tell which scheduler is best? Records loads under the kernel's default in a
# guest, lets the simulation predict each policy's figure, runs the policies in the guest, and
# prints the regret: by how many per cent the recommended one is worse than the best one.
#
# usage: scripts/prediction.sh [FOLDER [LOAD...]]
#
# FOLDER (default: runslice-prediction in the folder for temporary files) keeps recordings and
# results, so that a second call goes on where the first one stopped. LOAD is a name as in the first
# column of the table below; without one all are run.
#
#   RUNSLICE   the program; without it the built one in target/release
#   KERNEL     of the guest: 6.18 (default), 7.2 or the path of a vmlinuz
#   CPUS       of the guest: 2
#   SEEDS      of each policy's plays: 5
#   LENGTH     of each: 10s
#   PROFILE    of the simulation: default-v0
#   TIMEOUT    of a guest, on its clock: 60min
#   MIPS       makes guests counting ones of this speed: what else the computer does changes nothing
#   SCHEDULER  command of a scheduler's own program, which is then one more candidate
#
# A guest is booted for each workload: (4 + 1) x SEEDS plays, and SEEDS more with SCHEDULER. Needs
# what `runslice vm` needs, and awk.
# Exit status: 0 when every load gave a row.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${TMPDIR:-/tmp}/runslice-prediction}
[ $# -eq 0 ] || shift
wanted=$*
runslice=${RUNSLICE:-$here/target/release/runslice}
kernel=${KERNEL:-6.18}
cpus=${CPUS:-2}
seeds=${SEEDS:-5}
length=${LENGTH:-10s}
profile=${PROFILE:-default-v0}
timeout=${TIMEOUT:-60min}
policies="fifo mlfq o1 staircase"
# As `choose` calls a program: by the last part of its path.
program=${SCHEDULER:-}
program=${program%% *}
own_program=${program##*/}
# The default itself may be the best.
own=eevdf:delay_dequeue=1

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

# Name, workload, group of tasks, column of `play --table groups`, and the same as a goal of
# `choose`. Less is better in all of them.
loads() {
    cat <<'END'
pointer desk pointer wakeup_ns_p99 p99 wait of pointer
audio desk audio wakeup_ns_mean mean wait of audio
window desk window delay_ns_p99 p99 delay of window
shell desk shell wakeup_ns_p99 p99 wait of shell
job desk job delay_ns_mean mean delay of job
busy-short busy short wakeup_ns_p99 p99 wait of short
busy-mean busy short wakeup_ns_mean mean wait of short
busy-long busy long delay_ns_mean mean delay of long
pairs-ask pairs ask wakeup_ns_mean mean wait of ask
pairs-batch pairs batch delay_ns_p99 p99 delay of batch
END
}

# The loads that runslice does not have.
cat >"$folder/busy.toml" <<'END'
[workload]
name = "busy"

[task.short]
count = 3
kind = "process"
do = "loop(inf)[ sleep(exp(5ms)), run(exp(200us)) ]"

[task.long]
count = 2
kind = "process"
do = "loop(inf)[ sleep(exp(20ms)), run(exp(8ms)) ]"

[task.hog]
count = 2
kind = "process"
do = "run(inf)"
END
cat >"$folder/pairs.toml" <<'END'
[workload]
name = "pairs"

[chan.question]
kind = "pipe"

[chan.answer]
kind = "pipe"

[task.ask]
kind = "process"
do = "loop(inf)[ run(100us), send(question), recv(answer), sleep(exp(2ms)) ]"

[task.tell]
kind = "process"
do = "loop(inf)[ recv(question), run(exp(300us)), send(answer) ]"

[task.batch]
count = 3
kind = "process"
do = "loop(inf)[ run(exp(15ms)), sleep(exp(5ms)) ]"
END

say() {
    printf '%s\n' "$*" >&2
}

is_wanted() {
    case " $wanted " in
    '  ' | *" $1 "*) return 0 ;;
    esac
    return 1
}

# The argument of `play` for a workload: one of ours, or a built-in one.
workload() {
    if [ -e "$folder/$1.toml" ]; then echo "$1.toml"; else echo "$1"; fi
}

# Records and plays one workload in a guest. What is there stays.
play_all() {
    share=$folder/$1
    mkdir -p "$share"
    [ ! -e "$share/done" ] || return 0
    [ ! -e "$folder/$1.toml" ] || cp "$folder/$1.toml" "$share/"
    {
        echo "set -e"
        record="--for $length --seed 1 --events own.jsonl"
        echo "runslice play $(workload "$1") $record >/dev/null"
        for seed in $(seq "$seeds"); do
            play="runslice play $(workload "$1") --for $length --seed $seed --table groups"
            echo "$play -o kernel.$seed.csv"
            for policy in $policies; do
                echo "$play --policy $policy -o $policy.$seed.csv"
            done
            [ -z "$program" ] || printf "runslice run --scheduler '%s' -- %s\n" "$SCHEDULER" \
                "$play -o $own_program.$seed.csv"
        done
        echo "touch done"
    } >"$share/run.sh"
    say "$1: a guest plays $(grep -c 'runslice play' "$share/run.sh") runs"
    # shellcheck disable=SC2086 # one word each
    "$runslice" vm --kernel "$kernel" --cpus "$cpus" --timeout "$timeout" --share "$share" \
        ${MIPS:+--det --mips $MIPS} ${program:+--with "$program"} -- sh run.sh >&2
}

# The value of a column in the row of a group.
value() {
    awk -F, -v group="$2" -v column="$3" '
        NR == 1 {
            for (at = 1; at <= NF; at++) {
                if ($at == column) wanted = at
                if ($at == "group") name = at
            }
        }
        NR > 1 && $name == group { print $wanted; found = 1; exit }
        END { exit !found }
    ' "$1"
}

# Policy and predicted value, one a line, from the comparisons of `choose`.
predict() {
    # A recording of our own events has no parts, so that nothing is decided: status 6.
    # shellcheck disable=SC2086 # one word each
    "$runslice" choose --from "$folder/$1/own.jsonl" --goal "$2" --baseline "$own" \
        --profile "$profile" --runs 5 --format csv ${program:+--scheduler "$SCHEDULER"} $policies \
        2>"$folder/$1/choose.err" >"$folder/$1/choose.csv" || [ $? -eq 6 ]
    awk -F, '
        NR == 1 { for (at = 1; at <= NF; at++) column[$at] = at; next }
        {
            if (!seen++) print "kernel", $column["baseline_median"]
            print $column["against"], $column["against_median"]
        }
    ' "$folder/$1/choose.csv"
}

# Of the load in $name and so on: what is recommended, what is best, the regret, its interval.
judge() {
    recommended=$(predict "$workload" "$goal" | sort -k 2,2g | head -n 1 | cut -d ' ' -f 1)
    for policy in kernel $policies $own_program; do
        for seed in $(seq "$seeds"); do
            echo "$policy $seed $(value "$folder/$workload/$policy.$seed.csv" "$group" "$column")"
        done
    done | awk -v name="$name" -v recommended="$recommended" '
        { values[$1, $2] = $3; policies[$1] = 1; if ($2 > seeds) seeds = $2 }
        # The regret over drawn seeds; also which policy is the best of them.
        function regret(drawn,   policy, seed, sum, least) {
            least = -1
            for (policy in policies) {
                sum = 0
                for (seed = 1; seed <= seeds; seed++) sum += values[policy, drawn[seed]]
                if (least < 0 || sum < least) { least = sum; best = policy }
                if (policy == recommended) own = sum
            }
            return least > 0 ? 100 * (own / least - 1) : 0
        }
        END {
            srand(1)
            for (seed = 1; seed <= seeds; seed++) all[seed] = seed
            value = regret(all)
            winner = best
            draws = 1000
            for (at = 0; at < draws; at++) {
                for (seed = 1; seed <= seeds; seed++) some[seed] = 1 + int(rand() * seeds)
                drawn[at] = regret(some)
            }
            for (at = 1; at < draws; at++) {
                it = drawn[at]
                for (to = at; to > 0 && drawn[to - 1] > it; to--) drawn[to] = drawn[to - 1]
                drawn[to] = it
            }
            printf "%-12s %-12s %-12s %8.1f %% %8.1f %8.1f\n", name, recommended, winner, value,
                drawn[int(draws * 0.025)], drawn[int(draws * 0.975)]
        }
    '
}

printf '%-12s %-12s %-12s %10s %8s %8s\n' load recommended best regret from to
failed=0
loads | {
    while read -r name workload group column goal; do
        is_wanted "$name" || continue
        row() {
            play_all "$workload" && judge
        }
        if ! row </dev/null; then
            say "$name: no row"
            failed=1
        fi
    done
    exit $failed
}
