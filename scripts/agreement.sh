#!/bin/sh
# Do perf, trace-cmd, Perfetto and `runslice record` say the same of the same moments, and are the
# loads alike that become of their files? Runs four loads in a guest of each kernel, records each
# with all programs at once, and prints by how much the files differ.
#
# usage: scripts/agreement.sh FOLDER [KERNEL...]
#
# FOLDER keeps the guests' root and the recordings: what is there is not made again. KERNEL is a
# version that `runslice vm` knows, or the path of a vmlinuz; the default is 6.18.
#
# The guests do not count instructions: kernels such as 6.1 do not get past the start of their
# second CPU in guests that do. So a second run has other numbers. Results leave a guest through a
# virtual console. Where that is a module, put it, and those that it needs, into a folder `modules`
# beside the vmlinuz, with names in the order in which they are to be loaded.
#
#   RUNSLICE   the program; without it the built one in target/release
#   AGREEMENT  the example of crates/traces; without it the built one in target/release/examples
#   SUITE      Debian's release whose programs the guests have: bookworm
#   MIRROR     where it comes from; without it the system's
#   LOADS      "hackbench build ab sysbench"
#   TASKS      1 also prints, on standard error, each task that two files have differently
#
# Perfetto's recorder takes part where the root has it: its package is in Debian's sid only. Put
# `perfetto`, `traced` and `traced_probes` into FOLDER/SUITE/usr and remove FOLDER/SUITE.tar.
#
# Needs what `runslice vm` needs, mmdebstrap, root, and 1 GB for each SUITE.
# Exit status: 0 when every load was recorded by all programs.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
folder=$1
shift
[ $# -gt 0 ] || set -- 6.18
runslice=${RUNSLICE:-$here/target/release/runslice}
agreement=${AGREEMENT:-$here/target/release/examples/agreement}
suite=${SUITE:-bookworm}
loads=${LOADS:-hackbench build ab sysbench}

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

say() {
    printf '%s\n' "$*" >&2
}

# The programs that record and those that are recorded, without what nobody reads in a guest.
make_root() {
    root=$folder/$suite
    [ ! -e "$root.tar" ] || return 0
    if [ ! -d "$root" ]; then
        say "agreement: making a root of $suite"
        programs=apache2,apache2-utils,sysbench,rt-tests,gcc,libc6-dev,make,linux-perf,trace-cmd
        mmdebstrap --quiet --variant=minbase --include="$programs,kmod" \
            --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
            --dpkgopt='path-exclude=/usr/share/locale/*' "$suite" "$root" ${MIRROR:+"$MIRROR"}
        (cd "$root" && rm -rf usr/share/perl* usr/share/zoneinfo usr/lib/locale var/cache \
            var/lib/apt var/lib/dpkg usr/bin/*lto-dump* usr/lib*/gcc/*/*/lto1 \
            usr/libexec/gcc/*/*/lto1 usr/lib/*/perl* usr/lib/*/gconv usr/lib/*/libicu*)
        echo 'ServerName localhost' >>"$root/etc/apache2/apache2.conf"
    fi
    tar cf "$root.tar" -C "$root" .
}

# What a guest does: $share/job.sh LOAD... It records in the root, as a system would.
guest_job() {
    cat <<'JOB'
set -u
# What carries the results out is a module on some kernels.
for module in modules/*.ko; do [ ! -e $module ] || insmod $module; done
root=/root.d
mkdir -p $root
tar xf root.tar -C $root
rm root.tar
for from in proc dev sys; do mount -o rbind /$from $root/$from; done
mkdir -p $root/run $root/tmp $root/recorded
chmod 1777 $root/tmp
environment='PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
    PERFETTO_PRODUCER_SOCK_NAME=/run/producer PERFETTO_CONSUMER_SOCK_NAME=/run/consumer'
inside() { chroot $root /usr/bin/env $environment "$@"; }
# With `&`: $! is the program itself then.
start() { exec chroot $root /usr/bin/env $environment "$@"; }
for mark in markbegin markend; do cp $root/bin/true $root/bin/$mark; done

events='sched/sched_switch sched/sched_waking sched/sched_wakeup sched/sched_wakeup_new
    sched/sched_migrate_task sched/sched_process_fork sched/sched_process_exec
    sched/sched_process_exit irq/irq_handler_entry irq/irq_handler_exit irq/softirq_entry
    irq/softirq_exit irq/softirq_raise timer/hrtimer_expire_entry timer/hrtimer_expire_exit'
perfetto_config() { # COMPACT
    echo 'buffers { size_kb: 65536 fill_policy: DISCARD } write_into_file: true'
    echo 'data_sources { config { name: "linux.ftrace" ftrace_config { instance_name: "perfetto"'
    echo "buffer_size_kb: 8192 drain_period_ms: 250 compact_sched { enabled: $1 }"
    for event in $events task/task_newtask task/task_rename; do
        echo "ftrace_events: \"$event\""
    done
    echo '} } } data_sources { config { name: "linux.system_info" } }'
}

prepare() {
    case $1 in
    ab) inside apache2ctl start && sleep 2 ;;
    build)
        mkdir -p $root/build
        {
            echo '#include <stdio.h>'
            echo '#include <stdlib.h>'
            echo '#include <string.h>'
            echo 'int NAME(int a) { for (int k = 0; k < a; k++) printf("%d", k); return a; }'
        } >$root/build/all.c
        {
            printf 'O = 1.o 2.o 3.o 4.o 5.o 6.o\nall: $(O)\n\tld -r -o $@ $(O)\n'
            printf '%%.o: all.c\n\tgcc -O1 -DNAME=f$* -c -o $@ $<\n'
        } >$root/build/Makefile
        ;;
    esac
}
run() {
    case $1 in
    hackbench) inside hackbench -g 1 -l 40 ;;
    build) inside make -s -C /build -j2 ;;
    ab) inside ab -q -n 150 -c 4 http://127.0.0.1/ ;;
    sysbench)
        inside sysbench threads --threads=4 --thread-locks=2 --thread-yields=50 --events=600 \
            --time=0 run
        ;;
    esac
}

if [ -x $root/usr/sbin/traced ]; then
    # trace-cmd has the trace buffer itself.
    mkdir /sys/kernel/tracing/instances/perfetto
    start traced >traced.txt 2>&1 &
    sleep 1
    start traced_probes >probes.txt 2>&1 &
    sleep 1
fi
for load; do
    prepare $load
    perfetto=
    if [ -x $root/usr/sbin/traced ]; then
        # Both of its forms.
        case $load in hackbench | ab) compact=true ;; *) compact=false ;; esac
        perfetto_config $compact >$root/config
        start perfetto --txt -c /config -o /recorded/$load.pftrace >$load.pftrace.txt 2>&1 &
        perfetto=$!
    fi
    # These two commands are those of docs/import.md.
    start perf record -a -c 1 -k mono -o /recorded/$load.perf \
        -e 'sched:sched_switch,sched:sched_waking,sched:sched_wakeup,sched:sched_wakeup_new' \
        -e 'sched:sched_migrate_task,sched:sched_process_fork,sched:sched_process_exec' \
        -e sched:sched_process_exit \
        -e 'irq:*,timer:hrtimer_expire_entry,timer:hrtimer_expire_exit' >$load.perf.txt 2>&1 &
    perf=$!
    sleep 1
    start trace-cmd record -C mono -o /recorded/$load.trace-cmd -e sched_switch -e sched_waking \
        -e sched_wakeup -e sched_wakeup_new -e sched_migrate_task -e sched_process_fork \
        -e sched_process_exec -e sched_process_exit -e irq -e hrtimer_expire_entry \
        -e hrtimer_expire_exit >$load.trace-cmd.txt 2>&1 &
    trace_cmd=$!
    runslice record -o $root/recorded/$load.record >$load.record.txt 2>&1 &
    record=$!
    until [ "$(cat /sys/kernel/tracing/events/timer/hrtimer_expire_exit/enable)" = 1 ]; do
        sleep 0.2
    done
    sleep 3
    inside markbegin
    run $load >$load.txt 2>&1
    echo "$load: status $?"
    inside markend
    sleep 0.5
    kill -INT $record && wait $record
    kill -INT $trace_cmd && wait $trace_cmd
    kill -INT $perf && wait $perf
    [ -z "$perfetto" ] || { kill -TERM $perfetto && wait $perfetto; }
    # A guest that counts sends its results byte by byte.
    for program in record trace-cmd perf pftrace; do
        file=$root/recorded/$load.$program
        [ ! -e $file ] || gzip -1 <$file >$load.$program.gz
    done
    [ $load != ab ] || inside apache2ctl stop
done
JOB
}

name_of() {
    name=${1##*/}
    echo "${name#vmlinuz-}"
}

# Boots a kernel and records all loads there. What is there stays.
record_all() { # KERNEL
    share=$folder/$(name_of "$1")
    [ ! -e "$share/done" ] || return 0
    rm -rf "$share"
    mkdir -p "$share"
    ln "$folder/$suite.tar" "$share/root.tar"
    [ ! -d "${1%/*}/modules" ] || cp -r "${1%/*}/modules" "$share/"
    guest_job >"$share/job.sh"
    say "agreement: a guest of $(name_of "$1") records $loads"
    # shellcheck disable=SC2086 # one word each
    "$runslice" vm --kernel "$1" --cpus 2 --memory 2048 --timeout 10min --share "$share" -- \
        sh job.sh $loads >"$share/said" 2>&1 || {
        say "agreement: status $?: $share/said"
        return 1
    }
    rm "$share/root.tar"
    gunzip -f "$share"/*.gz
    touch "$share/done"
}

# What a simulation of what is between the marks of a file has, all tasks together.
simulated() { # KERNEL LOAD FILE
    window=$("$agreement" - "$3" 2>&1 | sed -n 's/.*--window \([^:]*\): .*/\1/p')
    "$runslice" sim eevdf:delay_dequeue=1 --from "$3" --window "$window" --kernel 6.18 \
        --profile default-v0 --format csv 2>"$3.sim.txt" |
        awk -F, -v kernel="$1" -v load="$2" -v file="${3##*.}" '
            NR == 1 { for (at = 1; at <= NF; at++) column[$at] = at }
            NR > 1 && $column["group"] == "all" {
                printf "| %s | %s | %s | %d | %.1f | %d | %d | %.0f | %.0f |\n", kernel, load,
                    file, $column["tasks"], $column["run_ns"] / 1e6, $column["runs"],
                    $column["wakeups"], $column["wakeup_ns_mean"] / 1e3,
                    $column["delay_ns_mean"] / 1e3
                found = 1
            }
            END { exit !found }'
}

failed=0
make_root
for kernel; do
    record_all "$kernel" || failed=1
done

# A head, and the line below it. $1: columns of text; the others have numbers.
head() { # TEXTS COLUMN...
    texts=$1
    shift
    printf '|'
    printf ' %s |' "$@"
    printf '\n|'
    for _; do
        if [ "$texts" -gt 0 ]; then printf ' --- |'; else printf ' --: |'; fi
        texts=$((texts - 1))
    done
    printf '\n'
}

# Each number's neighbour says by how much the tasks differ in it, one by one, as a part of all.
head 3 kernel load 'beside `record`' 'tasks in both' 'in one' 'CPU ms' 'each task' 'family' \
    runs 'each task' 'same waker' sleeps 'other reason'
for kernel; do
    share=$folder/$(name_of "$kernel")
    for load in $loads; do
        for program in trace-cmd perf pftrace; do
            file=$share/$load.$program
            [ -e "$file" ] || continue
            "$agreement" "$(name_of "$kernel") | $load | $program" "$share/$load.record" "$file" \
                ${TASKS:+--tasks} 2>"$file.agreement.txt" || failed=1
            [ -z "${TASKS:-}" ] || cat "$file.agreement.txt" >&2
        done
    done
done

echo
head 3 kernel load 'simulated file' tasks 'CPU ms' runs wakeups 'mean wait, us' 'mean delay, us'
for kernel; do
    share=$folder/$(name_of "$kernel")
    for load in $loads; do
        for program in record trace-cmd perf pftrace; do
            file=$share/$load.$program
            [ ! -e "$file" ] || simulated "$(name_of "$kernel")" "$load" "$file" || failed=1
        done
    done
done
exit $failed
