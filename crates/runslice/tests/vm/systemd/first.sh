# In a guest whose first process is systemd: all that may happen to runslice@.service. Each line
# that begins with `= ` is a result that the test compares.

scx=/sys/kernel/sched_ext

becomes() {
    until grep -qx "$1" $scx/state; do sleep 0.1; done
}
# A session is there a moment after the policy.
runs() {
    becomes enabled
    until runslice status | grep -q '^since'; do sleep 0.1; done
}
is() {
    until [ "$(systemctl is-active "$1")" = "$2" ]; do sleep 0.2; done
}
of() {
    systemctl show -P "$2" "$1"
}
# What runslice printed as unit $1.
said() {
    journalctl --quiet --no-pager --output cat --identifier runslice --unit "$1"
}
# The seconds from each failure of unit $1 to the next start, as systemd logs them.
pauses() {
    journalctl --quiet --no-pager --output short-monotonic --unit "$1" | sed 's/^\[ *//' | awk '
        /Failed with result/ { failed = $1 }
        /Scheduled restart job/ { printf "%d ", $1 - failed }'
}
left() {
    ls /sys/fs/bpf /sys/kernel/tracing/instances /run/runslice 2>/dev/null |
        grep -v -e '^lock$' -e ':$' -e '^$' | tr '\n' ' '
}
# How unit $2 is after step $1.
result() {
    echo "= $1: $(systemctl is-active "$2"), $(of "$2" Result), status $(of "$2" ExecMainStatus)," \
        "restarts $(of "$2" NRestarts), $(cat $scx/state)"
}

unit=runslice@mlfq
echo "= pid 1: $(cat /proc/1/comm)"
# Silent, unless systemd finds something wrong with the unit.
systemd-analyze verify --man=no $unit.service 2>&1 | grep runslice@

systemctl start $unit
runs
result start $unit
pid=$(of $unit MainPID)
policy=$(chrt -p "$pid" | sed 's/.*: //' | tr '\n' ' ')
locked=$(sed -n 's/^VmLck:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status")
[ "$locked" -gt 1000 ] && locked=locked
echo "= process: $policy$(cat "/proc/$pid/oom_score_adj") $locked"

systemctl kill --signal KILL $unit
becomes disabled
echo "= killed: $(systemctl is-active $unit), $(cat $scx/state)"
runs
is $unit active
result 'killed and back' $unit

systemctl stop $unit
result stop $unit
echo "= left: $(left)"

systemctl start $unit
runs
runslice stop
is $unit inactive
sleep 70
result 'runslice stop' $unit

echo 'RUNSLICE_KNOBS=:guard_ms=nought' >/etc/runslice/mlfq.conf
systemctl start $unit
is $unit failed
sleep 70
result 'bad knob' $unit
echo 'RUNSLICE_KNOBS=:guard_ms=5000' >/etc/runslice/mlfq.conf
systemctl reset-failed $unit
systemctl start $unit
runs
echo "= knob: $(runslice status | awk '$1 == "guard_ms" { print $2 }')"
systemctl stop $unit
rm /etc/runslice/mlfq.conf

echo '== two units'
systemctl start runslice@fifo
runs
systemctl start $unit
is $unit failed
sleep 70
result 'second unit' $unit
result 'first unit' runslice@fifo
said $unit | tail -2
systemctl stop runslice@fifo

echo '== another scheduler'
cp /usr/bin/runslice /usr/bin/scx_other
cat >/etc/systemd/system/scx.service <<'END'
[Service]
ExecStart=/usr/bin/scx_other run fifo
SuccessExitStatus=130
END
systemctl daemon-reload
systemctl start scx
runs
# Nothing says that this is a runslice under another name.
rm -r /run/runslice
systemctl start $unit
is $unit failed
result 'beside scx' $unit
result 'scx' scx
said $unit | tail -2
runslice run --replace mlfq -- cat $scx/root/ops
result 'scx again' scx
systemctl stop scx
becomes disabled

echo '== ejected'
bad=runslice@loser.bpf.o
systemctl start $bad
becomes enabled
is $bad failed
result ejected $bad
echo "= dumps: $(ls /var/log/runslice | tr '\n' ' ')"
echo "= ejections: $(said $bad | grep -c 'was ejected'), after pauses of $(pauses $bad)s"
systemctl start $bad && echo '= at once: started' || echo '= at once: refused'
sleep 600
systemctl start $bad && echo '= later: started' || echo '= later: refused'
until [ "$(of $bad ExecMainStatus)" = 3 ] && [ "$(cat $scx/state)" = disabled ]; do sleep 1; done
systemctl stop $bad
result 'stopped in between' $bad

echo '== upgrade'
systemctl reset-failed
systemctl start $unit
runs
pid=$(of $unit MainPID)
dpkg --install --force-depends /new.deb >/dev/null
echo "= package: $(dpkg-query --show --showformat '${Version}' runslice)"
echo "= old: $(readlink "/proc/$pid/exe")"
runslice set mlfq guard_ms=6000
echo "= knob: $(runslice status | awk '$1 == "guard_ms" { print $2 }')"
sleep 10
result 'old goes on' $unit
systemctl restart $unit
runs
result 'new' $unit
echo "= new: $(readlink "/proc/$(of $unit MainPID)/exe")"
dpkg --install --force-depends --force-downgrade /old.deb >/dev/null
runslice stop
is $unit inactive
result 'replaced and stopped' $unit
echo "= left: $(left)"

systemctl enable $unit
systemctl start $unit
runs
