#!/bin/sh
# Records the callbacks of a policy on a real kernel, as tests/golden/traces has them.
#
# usage: scripts/traces.sh KERNEL a|b >tests/golden/traces/NAME.txt
#
# KERNEL is one of `runslice vm`, such as 7.3, or the path of an image. `a` is the policy that kicks
# the CPU of each task that it queues, `b` the one that asks for an idle CPU (see
# tests/policies/probe.h).
# The guest counts instructions, so that the same kernel gives the same recording again.
#
# Needs what `scripts/setup.sh vm` installs, and a C compiler that links statically. RUNSLICE is the
# program; without it the built one in target/release.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
runslice=${RUNSLICE:-$here/target/release/runslice}
[ $# -eq 2 ] || { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
kernel=$1
case $2 in
a)
    knob=kick=1
    does="select_cpu returns the previous CPU; enqueue inserts into queue 0 and kicks the task's"
    does="$does CPU IDLE."
    ;;
b)
    knob=select=1
    does="select_cpu is the built-in choice; an idle CPU gets the task directly, else enqueue"
    does="$does inserts into queue 0."
    ;;
*) echo "traces: the policy is a or b" >&2; exit 2 ;;
esac
# Since 7.1 the policy is told when its custody of a task ends.
late=0
case ${kernel##*vmlinuz-} in
7.[1-9]* | [89].*) late=1 ;;
esac

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cc -static -O2 -o "$folder/scenarios" "$here/tests/recorder/scenarios.c"
"$runslice" build "$here/tests/policies/probe-records.bpf.c" -o "$folder/probe-records.bpf.o" >&2
"$runslice" vm --kernel "$kernel" --cpus 2 --det --timeout 60s \
    --file "$folder/scenarios" --file "$folder/probe-records.bpf.o" -- sh -c "
uname -r | sed 's/^\([0-9.]*\).*/RELEASE \1/'
echo 16384 >/sys/kernel/tracing/buffer_size_kb
echo mono >/sys/kernel/tracing/trace_clock
runslice run --untested $folder/probe-records.bpf.o:late_dispatch=$late,$knob -- $folder/scenarios
cat /sys/kernel/tracing/trace" >"$folder/raw"

release=$(sed -n 's/^RELEASE //p' "$folder/raw")
cat <<END
# Callbacks of Linux $release under a policy that prints each of them; 2 CPUs, HZ=250, slice 20 ms.
# Policy: $does
# Recorded in a counting virtual machine by scripts/traces.sh: times are instructions.
# A line: microseconds since the section began, executing CPU, current task there, callback, its
# task, its words as in \`model::Op\` (slices are what the kernel had left). See README.md.

END
awk -f "$here/tests/recorder/convert.awk" "$folder/raw" "$folder/raw"
