#!/bin/sh
# hour.sh PROGRAM [POLICY [PARTS [SECONDS]]]: an hour of a policy in a guest, in six parts of ten
# minutes, under a load that never stays the same (tests/loads/churn.toml) and with a CPU that goes
# and comes between the parts. Prints what the load saw in each part, and after each what memory and
# objects the kernel and runslice have. The guest counts instructions: the same again each time, and
# nothing else on this computer matters. An hour takes five minutes of one processor.
set -eu
program=$(realpath "$1")
policy=${2:-mlfq} parts=${3:-6} seconds=${4:-600}
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
strip -o "$folder/runslice" "$program"

cat >"$folder/inside.sh" <<'END'
look() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
    # What RCU has still to free.
    sleep 3
    echo "at $1: kib $(grep -E '^(MemAvailable|SUnreclaim|KernelStack|PageTables|Percpu)' \
        /proc/meminfo | sed 's/ kB$//' | tr -s ' \n' ' ')"
    echo "at $1: tasks $(sed 's,.*/\([0-9]*\) .*,\1,' /proc/loadavg), runslice $(grep -E \
        '^(VmRSS|VmLck|Threads)' /proc/$runslice/status | tr -s ' \t\n' ' ')files $(ls \
        /proc/$runslice/fd | wc -l) maps $(wc -l </proc/$runslice/maps) pins $(ls \
        /sys/fs/bpf/runslice | wc -l)"
    echo "at $1: objects $(awk '$1 ~ /^(task_struct|cred|pid|vm_area_struct|filp)$/ ||
        $1 ~ /^kmalloc-(64|96|128|192|256|512|1k|2k|4k|8k)$/ { printf "%s %s ", $1, $2 }' \
        /proc/slabinfo)"
    echo "at $1: uptime $(cut -d' ' -f1 /proc/uptime), $(grep '^cpu ' /proc/stat)"
}
runslice run "$1" &
runslice=$!
until grep -qx enabled /sys/kernel/sched_ext/state; do sleep 0.1; done
until runslice status | grep -q ^since; do sleep 0.1; done
# What the first play makes once is no leak.
runslice play "$4" --for 10s >/dev/null
look 0
for part in $(seq "$2"); do
    if [ "$part" != 1 ]; then
        echo 0 >/sys/devices/system/cpu/cpu1/online
        sleep 1
        echo 1 >/sys/devices/system/cpu/cpu1/online
    fi
    runslice play "$4" --for "$3s" --seed "$part"
    look "$part"
done
runslice stop
wait $runslice
echo "ended with $?, $(cat /sys/kernel/sched_ext/state)"
END
# The limit holds on this computer's clock, too, and a busy one needs several times as long.
"$folder/runslice" vm --det --mips 62 --cpus 2 --memory 768 --kernel-log \
    --timeout "$((4 * (300 + parts * (seconds + 30))))s" -- \
    sh -c "$(cat "$folder/inside.sh")" sh "$policy" "$parts" "$seconds" tests/loads/churn.toml
