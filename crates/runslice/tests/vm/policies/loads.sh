# What the guests of the tests run, for busybox's shell. Policies run as users run them, with the
# knobs' values for kernels.

# One line that the test reads, and a mark in the kernel's log.
result() {
    echo "result $*"
    echo "result $*" >/dev/kmsg
}

# Runs load $1 under policy $2 and says how many of the guest's seconds that took.
timed() {
    read -r begun _ </proc/uptime
    "$@"
    read -r ended _ </proc/uptime
    echo "took $2 $1 $((${ended%.*} - ${begun%.*}))"
}

# $1 hogs that wait for begin; their numbers are in $TASKS.
hogs() {
    rm -f /tmp/go && mkfifo /tmp/go
    TASKS= left=$1
    while [ "$left" -gt 0 ]; do
        (read -r _ </tmp/go; while :; do :; done) &
        TASKS="$TASKS $!" left=$((left - 1))
    done
}

# $1 shells that start three short programs at a time, for ever, when begin has come.
streams() {
    left=$1
    while [ "$left" -gt 0 ]; do
        (read -r _ </tmp/go; while :; do (:) & (:) & (:) & wait; done) &
        TASKS="$TASKS $!" left=$((left - 1))
    done
}

# The turns that each of $TASKS has had so far, one a line: the third number of schedstat.
turns() {
    files=
    for task in $TASKS; do files="$files /proc/$task/schedstat"; done
    cat $files | cut -d' ' -f3
}

end_tasks() {
    kill -KILL $TASKS
    wait
} 2>/dev/null

# Under policy $1 the tasks of $TASKS compute for $2 seconds, and stop. $idle_tasks of them have
# not run at all.
compete() {
    turns >/tmp/before
    runslice run "$1" -- sh -c ": >/tmp/go; sleep $2; kill -STOP $TASKS"
    competed=$?
    turns >/tmp/after
    idle_tasks=$(paste /tmp/before /tmp/after | awk '$2 <= $1' | wc -l)
    return $competed
}

# Two hogs, three that are bound to CPU 1 ($bound), a task that forks, and one that moves it from
# CPU to CPU. They wait for begin, so that the verifier does not compete with them.
mixed_load() {
    rm -f /tmp/go && mkfifo /tmp/go
    TASKS=
    for mask in 3 3 2 2 2; do
        taskset $mask sh -c 'read -r _ </tmp/go; while :; do :; done' &
        TASKS="$TASKS $!"
    done
    bound="${TASKS#* * * }"
    (read -r _ </tmp/go; while :; do (true); done) &
    mover=$!
    (read -r _ </tmp/go; while :; do taskset -p 1 $mover; taskset -p 2 $mover; done >/dev/null) &
    TASKS="$TASKS $mover $!"
}

# $1 hogs that wait for begin and may use the CPUs of mask $2 only; their numbers join $TASKS.
bound_hogs() {
    left=$1
    while [ "$left" -gt 0 ]; do
        taskset "$2" sh -c 'read -r _ </tmp/go; while :; do :; done' &
        TASKS="$TASKS $!" left=$((left - 1))
    done
}

# ---- Loads: each prints `result POLICY LOAD ...` ----

accept() {
    runslice run "$1" -- sh -c 'cat /sys/kernel/sched_ext/root/ops
        for i in 1 2 3 4 5 6 7 8; do (i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done) & done
        wait'
    result "$1" accept $? "$(cat /sys/kernel/sched_ext/state)"
}

stress() {
    runslice run "$1" -- stress-ng --temp-path /tmp --cpu 2 --affinity 2 --fork 2 \
        --vm 1 --vm-bytes 64M --switch 2 --timeout 31s
    result "$1" stress $? "$(cat /sys/kernel/sched_ext/state)"
}

# Ten groups of twenty senders and twenty receivers.
hackbench400() {
    runslice run "$1" -- timeout 300 hackbench -g 10 -l 20
    result "$1" hackbench400 $? "$(cat /sys/kernel/sched_ext/state)"
}

hogs300() {
    hogs 300
    compete "$1" 60
    result "$1" hogs300 $? "$(cat /sys/kernel/sched_ext/state)" "$idle_tasks"
    end_tasks
}

forks() {
    hogs 20
    streams 3
    compete "$1" 60
    result "$1" forks $? "$(cat /sys/kernel/sched_ext/state)" "$idle_tasks"
    end_tasks
}

runnable1000() {
    hogs 1000
    compete "$1" 20
    result "$1" runnable1000 $? "$(cat /sys/kernel/sched_ext/state)" "$idle_tasks"
    end_tasks
}

hotplug() {
    mixed_load
    runslice run "$1" -- sh -c '
        cpu1=/sys/devices/system/cpu/cpu1/online
        : >/tmp/go
        for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
            echo 0 >$cpu1 && sleep 1 && echo 1 >$cpu1 || exit 1
            for task in '"$bound"'; do taskset -p 2 $task; done
            sleep 1
        done >/dev/null'
    result "$1" hotplug $? "$(cat /sys/kernel/sched_ext/state)"
    end_tasks
}

# SIGKILL for runslice: the kernel takes the policy away, and the load goes on. The policy goes with
# the end of the process, which needs CPU time itself and competes for it with the load: under mlfq
# it has sunk to the last queue, and took 9 to 22 s in three guests.
killed() {
    mixed_load
    runslice run "$1" &
    while ! grep -q enabled /sys/kernel/sched_ext/state; do sleep 0.1; done
    : >/tmp/go
    sleep 3
    kill -KILL $!
    for i in $(seq 60); do
        grep -q disabled /sys/kernel/sched_ext/state && break
        sleep 1
    done
    kill -0 $TASKS
    result "$1" killed $? "$(cat /sys/kernel/sched_ext/state)"
    end_tasks
}

# For two nodes of two CPUs each. CPU 0 has eight hogs that node 1 may take, CPU 1 has two, CPUs 2
# and 3 have five: as many a node. Then CPUs 2 and 3 keep one. Says how many nodes there are, and
# how many of the eight were on node 1 before and after.
nodes() {
    rm -f /tmp/go && mkfifo /tmp/go
    TASKS= && bound_hogs 8 1 && wide=$TASKS
    TASKS= && bound_hogs 4 4 && bound_hogs 4 8 && leaving=$TASKS
    TASKS= && bound_hogs 2 2 && bound_hogs 1 4 && bound_hogs 1 8
    TASKS="$TASKS $wide $leaving"
    far="cut -d' ' -f39 $(for task in $wide; do echo "/proc/$task/stat"; done | xargs)"
    runslice run "$1" -- sh -c "
        : >/tmp/go; sleep 2
        for task in $wide; do taskset -p d \$task; done >/dev/null
        sleep 3; $far | grep -c '[23]' >/tmp/before
        kill -KILL $leaving
        sleep 3; $far | grep -c '[23]' >/tmp/after"
    result "$1" nodes $? "$(cat /sys/kernel/sched_ext/state)" \
        "$(cat /sys/devices/system/node/online /tmp/before /tmp/after | xargs)"
    end_tasks
}

# For four CPUs. Four hogs, and for a while 80 tasks that talk to each other; then says what part of
# the CPUs idles while the hogs have the machine for themselves, per cent.
threads() {
    hogs 4
    runslice run "$1" -- sh -c '
        : >/tmp/go; sleep 1
        timeout 100 hackbench -g 2 -l 20 >/dev/null || exit 1
        grep "^cpu " /proc/stat >/tmp/idle; sleep 3; grep "^cpu " /proc/stat >>/tmp/idle'
    result "$1" threads $? "$(cat /sys/kernel/sched_ext/state)" "$(awk '
        { all = 0; for (i = 2; i <= NF; i++) all += $i; idle = $5 - idle; total = all - total }
        END { printf "%d", 100 * idle / total }' /tmp/idle)"
    end_tasks
}
