#!/bin/sh
# Judges experiments once for each reading of what the documents leave open, and prints the verdicts
# side by side as a table in Markdown: a row for each statement, a column for each reading.
#
# usage: scripts/readings.sh [EXPERIMENT...]
#
# A reading is a knob of a policy, in every arm with that policy which does not set the knob itself.
# Without names, all experiments with such a policy are run: hours. An empty cell means that the
# experiment has no policy with that knob.
#
# RUNSLICE is the program; without it the built one in target/release. RESULTS (default:
# runslice-readings in the folder for temporary files) keeps the runs, so that a second call goes on
# where the first one stopped. JOBS is the number of threads (1).
#
# Exit status: 0 when every reading could be run.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
runslice=${RUNSLICE:-$here/target/release/runslice}
results=${RESULTS:-${TMPDIR:-/tmp}/runslice-readings}
jobs=${JOBS:-1}

# Policies, separated by commas, and what they are set to.
readings='staircase resume=7
staircase preempt_equal=0
staircase,o1,mlfq sync_wakeups=0
staircase5 sub_jiffy=0
staircase5 sub_jiffy=2
staircase5 rise_from_here=1
mlfq cumulative=1'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$results"

# Experiments that have arms with one of these policies, of those that were asked for.
having() {
    names=$(echo "$1" | tr ',' '|')
    for name in $wanted; do
        if grep -Eq "^policy = \"($names)[\":]" "$here/experiments/$name/experiment.toml"; then
            echo "$name"
        fi
    done
}

# Writes the verdicts of experiments, as they stand in a folder, as lines `A1<tab>reproduced`.
judge() {
    folder=$1
    shift
    "$runslice" reproduce "$@" --experiments "$folder" --folder "$results" --jobs "$jobs" \
        --format json --output "$work/report.json"
    # A statement's own verdict stands behind those of its parts.
    awk -F'"' '
        $2 == "id" { id = $4 }
        $2 == "verdict" { last[id] = $4 }
        END { for (id in last) print id "\t" last[id] }
    ' "$work/report.json"
}

if [ $# -gt 0 ]; then
    wanted=$*
else
    wanted=$(cd "$here/experiments" && ls -d [0-9]*)
fi
every=$(having "$(echo "$readings" | cut -d' ' -f1 | tr '\n' ',' | sed 's/,$//')")
[ -n "$every" ] || {
    echo "readings: none of these experiments has a policy with an open reading" >&2
    exit 2
}
# Names of experiments have no spaces.
# shellcheck disable=SC2086
judge "$here/experiments" $every > "$work/0"

column=0
echo "$readings" > "$work/readings"
while read -r policies knob; do
    column=$((column + 1))
    : > "$work/$column"
    some=$(having "$policies")
    [ -n "$some" ] || continue
    rm -rf "$work/experiments"
    cp -r "$here/experiments" "$work/experiments"
    key=${knob%%=*}
    for policy in $(echo "$policies" | tr ',' ' '); do
        for name in $some; do
            sed -i \
                -e "/^policy = \"$policy:[^\"]*\\b$key=/b" \
                -e "s/^policy = \"$policy\"/policy = \"$policy:$knob\"/" \
                -e "t" \
                -e "s/^policy = \"$policy:\\([^\"]*\\)\"/policy = \"$policy:\\1,$knob\"/" \
                "$work/experiments/$name/experiment.toml"
        done
    done
    # shellcheck disable=SC2086
    judge "$work/experiments" $some > "$work/$column" < /dev/null
done < "$work/readings"

awk -F'\t' -v readings="$readings" '
    BEGIN {
        columns = split(readings, names, "\n")
        head = "| | as it stands"
        rule = "| --- | ---"
        for (i = 1; i <= columns; i++) {
            split(names[i], words, " ")
            head = head " | " words[2]
            rule = rule " | ---"
        }
        print head " |"
        print rule " |"
    }
    FNR == 1 { file = FILENAME; sub(/.*\//, "", file) }
    { verdict[$1, file] = $2; ids[$1] = 1 }
    END {
        for (id in ids) {
            line = "| " id " | " verdict[id, 0]
            for (i = 1; i <= columns; i++) line = line " | " verdict[id, i]
            print line " |" | "sort -V"
        }
    }
' $(seq -f "$work/%.0f" 0 "$column")
