#!/bin/sh
# Writes the table of scores in docs/fidelity.md: how far the simulated machine is from a kernel.
#
# usage: scripts/scores.sh [ROW...]
#
# ROW is a name in the first column of the table; without one all rows are made, which takes an hour
# or more. `kept` needs no kernel: its plays are part of the project. The others play generated
# loads in counting VMs and need what `runslice vm` needs. Rows that were not asked for stay as they
# are, so that a table can be renewed row by row.
#
#   RUNSLICE   the program; without it the built one in target/release
#   PLAYS      folder (default: runslice-scores in the folder for temporary files) that keeps plays
#              and the guest's profile, so that a second call goes on where the first one stopped
#   DOCUMENT   the file with the table: docs/fidelity.md
#
# Exit status: 0 when every row was made and written.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
runslice=${RUNSLICE:-$here/target/release/runslice}
plays=${PLAYS:-${TMPDIR:-/tmp}/runslice-scores}
document=${DOCUMENT:-$here/docs/fidelity.md}
begin='<!-- scores: written by `scripts/scores.sh` -->'
end='<!-- end of scores -->'

three=fifo,mlfq,o1
four=$three,staircase
eight=fifo,goodness,elsc,o1,staircase,staircase5,mlfq,eevdf

# Name, kernel, CPUs, number of generated loads, their seed, policies. A seed is used for no other
# purpose: nobody may have looked at these loads when the simulator was changed.
rows="kept 6.18 2 2 1 fifo,mlfq
one 6.18 1 10 20261228 $three
two 6.18 2 10 20261224 $eight
four 6.18 4 10 20261227 $three
7.0 7.0 2 4 20261225 $four
7.2 7.2 2 4 20261226 $four"

die() {
    echo "scores: $*" >&2
    exit "$status"
}

status=2
wanted=${*:-$(echo "$rows" | cut -d' ' -f1)}
for row in $wanted; do
    echo "$rows" | cut -d' ' -f1 | grep -Fqx -- "$row" ||
        die "no row \`$row\`; there are $(echo "$rows" | cut -d' ' -f1 | tr '\n' ' ')"
done
status=1
grep -Fqx -- "$begin" "$document" && grep -Fqx -- "$end" "$document" ||
    die "$document: the lines \`$begin\` and \`$end\` are not both there"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Measures the guest: its own threads, and how long a call from one CPU to another is under way.
profile() {
    [ ! -e "$plays/guest.toml" ] || return 0
    mkdir -p "$plays/calls"
    cat > "$plays/calls/calls.toml" <<'END'
[workload]
name = "calls"

[chan.go]
kind = "pipe"

[task.waker]
cpus = "0"
do = "loop(inf)[ run(300us), send(go), run(200us), sleep(3ms) ]"

[task.woken]
cpus = "1"
do = "loop(inf)[ recv(go), run(400us) ]"
END
    "$runslice" vm --det --cpus 2 --share "$plays/calls" -- \
        runslice play calls.toml --for 3s --events calls.jsonl >&2
    "$runslice" fidelity fifo,mlfq --generate 1 --seed 4711 --for 3s --events \
        -d "$plays/profile" -o "$work/profile.md"
    set -- "$plays"/profile/events/*mlfq*4711*.jsonl
    [ -e "$1" ] || die "$plays/profile/events: no recording to measure the guest's threads by"
    "$runslice" calibrate "$1" --base default-v0 --group kernel --group system=1 \
        --costs "$plays/calls/calls.jsonl" -o "$plays/guest.toml"
}

# Reads the first table of `fidelity`, in Markdown, and prints one line of ours. Columns: 2 the
# machine, 3 and 5 order and clear, 7 to 12 the factors.
line() {
    awk -F' *[|] *' -v name="$1" -v what="$2" '
        /^[0-9]+ plays / { plays = $1; sub(/ .*/, "", plays) }
        $2 == "compared" { tables++; for (at = 7; at <= 12; at++) title[at] = $at }
        tables == 1 && NF > 12 {
            order[$2] = $3
            clear[$2] = $5
            for (at = 7; at <= 12; at++) factor[$2, at] = $at
            if ($2 ~ /guest/) guest = $2
        }
        END {
            best = guest ? guest : "default-v0"
            for (at = 7; at <= 12; at++) {
                if (factor["ceiling", at] + 0 == 0) continue
                ratio = factor[best, at] / factor["ceiling", at]
                if (ratio > most) { most = ratio; which = title[at] }
            }
            if (!plays || !most) exit 1
            printf "| %s | %s | %d | %s | %s | %s | %s | %s | %s %.2f |\n", name, what, plays, \
                order["ideal"], order["default-v0"], guest ? order[guest] : "-", \
                order["ceiling"], clear[best], which, most
        }
    ' "$3"
}

: > "$work/lines"
while read -r name kernel cpus loads seed policies; do
    case " $(echo "$wanted" | tr '\n' ' ') " in
        *" $name "*) ;;
        *) continue ;;
    esac
    number=$(echo "$policies" | tr ',' '\n' | grep -c .)
    if [ "$name" = kept ]; then
        what="$kernel | $cpus | $loads of 1 s | $number"
        "$runslice" fidelity --from "$here/crates/runslice/tests/fidelity" \
            --profile default-v0 -o "$work/$name.md" < /dev/null
    else
        what="$kernel | $cpus | $loads, seed $seed | $number"
        profile < /dev/null
        "$runslice" fidelity "$policies" --generate "$loads" --seed "$seed" --for 5s \
            --kernel "$kernel" --cpus "$cpus" -d "$plays/$name" \
            --profile default-v0 --profile "$plays/guest.toml" -o "$work/$name.md" < /dev/null
    fi
    line "$name" "$what" "$work/$name.md" >> "$work/lines" ||
        die "$name: the table of \`fidelity\` has another form"
done <<END
$rows
END

# Puts the new lines in the place of the old ones.
awk -F' *[|] *' -v begin="$begin" -v end="$end" -v lines="$work/lines" '
    BEGIN {
        while ((getline text < lines) > 0) { split(text, cell); new[cell[2]] = text }
    }
    $0 == begin { inside = 1 }
    $0 == end {
        for (name in new) print new[name]
        inside = 0
    }
    inside && ($2 in new) { print new[$2]; delete new[$2]; next }
    { print }
' "$document" > "$work/document"
cat "$work/document" > "$document"
