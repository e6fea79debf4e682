# After a restart of all but the kernel, and after a boot: the unit is enabled.
scx=/sys/kernel/sched_ext
until grep -qx enabled $scx/state; do sleep 0.1; done
until runslice status | grep -q '^since'; do sleep 0.1; done
echo "= enabled unit: $(systemctl is-active runslice@mlfq), $(cat $scx/root/ops)," \
    "restarts $(systemctl show -P NRestarts runslice@mlfq)"
echo "= system: $(systemctl is-system-running --wait)"
systemctl --failed --no-legend --plain
