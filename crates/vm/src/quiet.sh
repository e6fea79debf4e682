# Waits until the guest has nothing to do of its own: nine tenths of a look's time idle, by
# /proc/stat, whose times are since boot: user, nice, system, idle, iowait, irq, softirq, steal.
# After 15 looks the command starts all the same.
idle_before= all_before= looks=0
while [ $looks -lt 15 ]; do
    read -r _ user nice system idle iowait irq softirq steal _ <"${PROC:-/proc}/stat"
    idle=$((idle + iowait))
    all=$((user + nice + system + idle + irq + softirq + steal))
    if [ -n "$all_before" ] && [ $all -gt $all_before ] &&
        [ $(((idle - idle_before) * 10)) -ge $(((all - all_before) * 9)) ]; then
        break
    fi
    idle_before=$idle all_before=$all looks=$((looks + 1))
    sleep 0.2
done
unset idle_before all_before looks user nice system idle iowait irq softirq steal all
