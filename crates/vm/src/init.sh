#!/bin/busybox sh
# The guest's first process: runs /runslice/job with a time limit, sends what came of it to the
# device that /runslice/settings names, and turns the machine off.
/bin/busybox mount -t proc proc /proc
/bin/busybox --install -s /bin
. /runslice/settings
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts /tmp /run /out
mount -t tmpfs shm /dev/shm
mount -t devpts pts /dev/pts
mount -t bpf bpf /sys/fs/bpf
mount -t debugfs debug /sys/kernel/debug
mount -t tracefs trace /sys/kernel/tracing
mount -t cgroup2 cgroup /sys/fs/cgroup
# Where loaders of objects look for it.
if [ -f /runslice/config ]; then
    mkdir -p /boot
    ln -s /runslice/config "/boot/config-$(uname -r)"
fi
ip link set lo up
chmod 1777 /tmp /dev/shm
mkdir -p "$FOLDER"
cd "$FOLDER"

: >/out/stdout
: >/out/stderr
# What is printed goes out twice: as it comes, for whoever looks, and as a part of the result.
if [ -n "$FOLLOW" ]; then
    tail -c +1 -f /out/stdout >/dev/vport0p2 &
    tail -c +1 -f /out/stderr >/dev/vport0p3 &
fi
# A session of its own, so that the limit ends all that the command has started. The wait before it
# is a part of the command's time.
setsid sh -c '. /runslice/quiet; exec sh /runslice/job' </dev/null >/out/stdout 2>/out/stderr &
job=$!
{
    sleep "$TIMEOUT"
    : >/out/timed_out
    kill -TERM -$job
    sleep 5
    kill -KILL -$job
} 2>/dev/null &
wait $job
status=$?
dmesg >/out/kernel_log
# Last: who finds a status finds all.
echo $status >/out/status

cd /
[ -c "$RESULT" ] || echo "runslice: no device $RESULT" >/dev/console
case $RESULT in /dev/ttyS*) stty -F "$RESULT" raw ;; esac
# Everything in the archive is from 1970; the command's own files are not.
{
    find out -type f
    [ -d share ] && find share -type f -newer /runslice/settings
} | cpio -o -H newc >"$RESULT" 2>/dev/null
poweroff -f
