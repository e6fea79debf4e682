//! Small loads for `check --orders`, each of which lets one kind of callback meet the others. They
//! are found by name as the files of workloads/, and stand in no list: they are no measure of a
//! policy.

/// Names and texts. Two to three CPUs and a few tasks more, which meet within a millisecond: where
/// a CPU is always idle, nobody waits in a queue.
pub(crate) const ORDER_LOADS: &[(&str, &str)] = &[
    (
        "orders-fork",
        r#"# Three tasks fork all the time, and wait for their children.
[workload]
name = "orders-fork"
stop = "duration:2s"
[machine]
cpus = 2
[task.parent]
count = 3
do = "loop(inf)[ fork(child), run(20us), waitpid(any), sleep(50us) ]"
[task.child]
count = 0
do = "run(30us)"
"#,
    ),
    (
        "orders-affinity",
        r#"# The affinity of a task changes while it waits, is dispatched and runs.
[workload]
name = "orders-affinity"
stop = "duration:2s"
[machine]
cpus = 2
[task.other]
count = 2
do = "loop(inf)[ run(35us), sleep(15us) ]"
[task.bound]
do = "loop(inf)[ run(30us), sleep(20us) ]"
[task.binder]
do = "loop(inf)[ setaffinity(bound, {0}), run(15us), setaffinity(bound, all), sleep(25us) ]"
"#,
    ),
    (
        "orders-exit",
        r#"# Tasks are woken, wake others and exit.
[workload]
name = "orders-exit"
stop = "duration:2s"
[machine]
cpus = 2
[chan.begin]
kind = "pipe"
[chan.end]
kind = "pipe"
[task.parent]
count = 3
do = "loop(inf)[ fork(child), send(begin), run(20us), waitpid(any) ]"
[task.child]
count = 0
kind = "process"
do = "recv(begin), run(20us), send(end)"
[task.reader]
do = "loop(inf)[ recv(end), run(20us) ]"
"#,
    ),
    (
        "orders-hotplug",
        r#"# A CPU goes offline and comes back under tasks that sleep and wake.
[workload]
name = "orders-hotplug"
stop = "duration:2s"
[machine]
cpus = 3
[hotplug.last]
cpu = 2
offline = "300us"
online = "600us"
[task.worker]
count = 4
do = "loop(inf)[ run(40us), sleep(30us) ]"
"#,
    ),
    (
        "orders-enable",
        r#"# A task leaves the policy for the real-time class and comes back.
[workload]
name = "orders-enable"
stop = "duration:2s"
[machine]
cpus = 2
[task.other]
count = 2
do = "loop(inf)[ run(35us), sleep(15us) ]"
[task.changed]
do = "loop(inf)[ run(30us), sleep(20us) ]"
[task.changer]
do = "loop(inf)[ setpolicy(changed, fifo:50), run(9us), setpolicy(changed, normal), sleep(30us) ]"
"#,
    ),
    (
        "orders-wakeups",
        r#"# Four tasks wake another one, two of them at about the same time.
[workload]
name = "orders-wakeups"
stop = "duration:2s"
[machine]
cpus = 2
[chan.work]
kind = "pipe"
[task.waker]
count = 4
do = "loop(inf)[ run(20us), send(work), sleep(10us) ]"
[task.woken]
do = "loop(inf)[ recv(work), run(10us) ]"
"#,
    ),
];
