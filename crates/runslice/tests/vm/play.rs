//! Workloads played with real processes, in virtual machines.
//!
//! `make test-vm` installs what they need and runs them, one guest at a time.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use model::{Event, EventKind, Header};
use runslice_tests::guest::{Guest, KERNELS};
use runslice_tests::{folder, guest};
use serde_json::Value;
use stats::Conservation;
use traces::EventReader;

/// Everything that can be played, with counts that do not depend on any scheduler.
const EVERYTHING: &str = r#"
[workload]
name = "everything"
stop = "all-exit"

[chan.pipe]
kind = "pipe"

[chan.socket]
kind = "unix"
count = 2

[chan.net]
kind = "tcp"

[chan.queue]
kind = "queue"
cap = "2msg"

[chan.tick]
kind = "queue"

[lock.ticket]
handoff = "fifo"

[lock.mutex]
handoff = "barge"

[barrier.gate]
parties = 4

[irq.timer]
cpu = 0
every = "2ms"
cost = "20us"
send = "tick"

[deadline.frame]
period = "5ms"
miss = "missed frame"

[deadline.answer]
slack = "1s"

[task.source]
kind = "process"
do = """
    loop(50)[ run(50us), send(pipe), send(socket[0]), send(net), send(queue) ],
    count(sent, 200)
"""

[task.drain]
kind = "process"
do = "loop(50)[ recv(pipe), recv(socket[0]), recv(net), recv(queue), run(20us), count(got, 4) ]"

[task.worker]
count = 4
do = """
    phase(before), barrier(gate), phase(after),
    loop(40)[
        lock(ticket), run(10us), unlock(ticket),
        lock(mutex), run(10us), unlock(mutex), yield, count(turns)
    ]
"""

[task.frames]
kind = "process"
do = "loop(10)[ release(frame), span_begin(draw), run(200us), span_end(draw), complete(frame) ]"

[task.listener]
kind = "process"
do = "loop(10)[ recv(tick), release(answer), run(20us), complete(answer), count(ticks) ]"

[task.make]
kind = "process"
do = "pool(cc, 3, 12), fork(ld), waitpid(all), count(made)"

[task.cc]
kind = "process"
do = "exec(100us), run(300us), count(compiled)"

[task.ld]
kind = "process"
nice = 5
do = "run(500us), fork(thread), waitpid(any), count(linked)"

[task.thread]
do = "sleep(1ms), run(100us), count(joined)"

[sem.permit]
value = 2

[sem.ready]

[cond.news]

[lock.guard]

[lock.book]
kind = "rw"

[listen.door]
backlog = 3

[cgroup.shop]
weight = 50

[cgroup.back]
path = "/shop/back"

[task.reader]
kind = "process"
count = 3
do = """
    loop(10)[
        sem_wait(permit), run(10us), sem_post(permit),
        lock_shared(book), run(10us), unlock(book), count(read)
    ]
"""

[task.author]
kind = "process"
do = "loop(10)[ lock(book), run(10us), unlock(book), count(written) ]"

[task.client]
kind = "process"
count = 2
do = "loop(10)[ connect(door), count(connected) ]"

[task.server]
kind = "process"
do = "loop(20)[ accept(door), run(10us), count(accepted) ]"

[task.listening]
kind = "process"
count = 2
do = "lock(guard), sem_post(ready), wait(news, guard), unlock(guard), count(heard)"

[task.crier]
kind = "process"
do = "sem_wait(ready), sem_wait(ready), lock(guard), broadcast(news), unlock(guard)"

[task.mover]
kind = "process"
cgroup = "/shop"
do = """
    run(100us), cgroup_move(self, back), run(100us), cgroup_move(self, root, process),
    cgroup_weight(shop, 200), cgroup_max(back, 50ms/100ms), cgroup_idle(back, 1), count(moved)
"""

[task.sharp]
kind = "process"
policy = "deadline:1ms/20ms"
do = "loop(3)[ run(500us), yield ], count(budgets, 3)"

[task.sleeper]
do = "suspend, run(1ms), count(woken)"

[task.waker]
kind = "process"
do = """
    sleep(5ms), setnice(sleeper, 10), setaffinity(sleeper, {0}), resume(sleeper),
    let x = 0, while(x < 3)[ x = x + 1, choose(1: run(10us), 1: sleep(100us)) ],
    if(x == 3)[ count(right) ] else [ count(wrong) ]
"""
"#;

/// What the counters of [`EVERYTHING`] must come to.
const COUNTS: [(&str, u64); 17] = [
    ("sent", 200),
    ("got", 200),
    ("turns", 160),
    ("ticks", 10),
    ("made", 1),
    ("compiled", 12),
    ("linked", 1),
    ("joined", 1),
    ("woken", 1),
    ("right", 1),
    ("read", 30),
    ("written", 10),
    ("connected", 20),
    ("accepted", 20),
    ("heard", 2),
    ("moved", 1),
    ("budgets", 3),
];

const PING_PONG: &str = r#"
[workload]
name = "ping-pong"

[chan.ball]
kind = "pipe"
count = 2

[task.ping]
kind = "process"
do = ["loop(300)[ run(2ms), send(ball[0]), recv(ball[1]), count(round) ]"]

[task.pong]
kind = "process"
do = ["loop(300)[ recv(ball[0]), run(2ms), send(ball[1]) ]"]
"#;

/// A folder that a guest shares, with a workload in it.
fn share(name: &str, workload: &str) -> PathBuf {
    let folder = folder!(&format!("vm-play-{name}"));
    std::fs::write(folder.join("load.toml"), workload).expect("writable");
    folder
}

/// A guest with that folder.
fn guest_of(folder: &Path) -> Guest {
    guest!().share(folder)
}

fn document(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{error}"));
    serde_json::from_str(&text).expect("JSON")
}

fn count(report: &Value, name: &str) -> u64 {
    let counters = report["counters"].as_array().expect("a list");
    let named = counters.iter().filter(|counter| counter["counter"] == name);
    named
        .map(|counter| counter["total"].as_u64().unwrap())
        .sum()
}

/// Every rule of docs/events.md holds for the recording at `path`.
fn keeps_the_rules(path: &Path) {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{error}"));
    let mut rules = Conservation::new();
    traces::replay(BufReader::new(file), &mut rules).unwrap();
    assert_eq!(rules.violation(), None, "{}", path.display());
}

fn events_in(path: &Path) -> (Header, Vec<Event>) {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{error}"));
    let events = EventReader::new(BufReader::new(file)).unwrap();
    let header = events.header().clone();
    (header, events.map(|event| event.unwrap()).collect())
}

/// Whether each report is of a task whose run begins on its CPU in the same moment, or that has the
/// CPU. How many are of the first kind.
fn reports_stand_before_their_runs(events: &[Event]) -> usize {
    let mut count = 0;
    let mut running = BTreeMap::new();
    for (at, event) in events.iter().enumerate() {
        match event.kind {
            EventKind::Switch => drop(running.insert(event.cpu, event.task)),
            EventKind::Report if running.get(&event.cpu) != Some(&event.task) => {
                let next = events[at..].iter();
                let mut next =
                    next.filter(|it| it.kind == EventKind::Switch && it.cpu == event.cpu);
                let switch = next.next().expect("a run follows");
                assert_eq!(
                    (switch.task, switch.time),
                    (event.task, event.time),
                    "{event:?}"
                );
                count += 1;
            }
            _ => {}
        }
    }
    count
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn every_operation_is_played_under_the_kernels_scheduler_and_under_policies() {
    let folder = share("everything", EVERYTHING);
    let text = guest_of(&folder)
        .good(
            "runslice play load.toml --format json -o plain.json || exit 1
         runslice play load.toml --events plain.jsonl --format json -o events.json || exit 1
         for policy in fifo o1; do
             runslice play load.toml --policy $policy --events $policy.jsonl \\
                 --format json -o $policy.json || exit 1
         done
         cat /sys/kernel/sched_ext/state",
            &[],
        )
        .text();
    assert!(text.lines().any(|line| line == "disabled"), "{text}");
    assert!(!text.contains("were lost"), "{text}");
    assert!(!text.contains("had to be inferred"), "{text}");
    for name in ["plain", "events", "fifo", "o1"] {
        let report = document(&folder.join(format!("{name}.json")));
        let report = &report["runs"][0]["report"];
        for (counter, want) in COUNTS {
            assert_eq!(count(report, counter), want, "{name}: {counter}");
        }
        assert_eq!(count(report, "wrong"), 0, "{name}");
        let of = |list: &str, key: &str, name: &str| -> Value {
            let list = report[list].as_array().expect("a list").iter();
            let mut found = list.filter(|it| it[key] == name).cloned();
            found
                .next()
                .unwrap_or_else(|| panic!("no {name} in {report}"))
        };
        let met = |name: &str| {
            let deadline = of("deadlines", "deadline", name);
            let number = |field: &str| deadline[field].as_u64().unwrap();
            number("met") + number("late") + number("skipped")
        };
        assert!(
            (met("frame"), met("answer")) >= (10, 10),
            "{name}: {report}"
        );
        assert_eq!(of("spans", "span", "draw")["count"], 10, "{name}");
        let worker = of("groups", "group", "worker");
        assert_eq!(worker["tasks"], 4, "{name}");
        // 4 workers, each 40 times 20 us: what they ran is work and never less.
        assert!(
            worker["run_ns"].as_u64().unwrap() >= 3_000_000,
            "{name}: {worker}"
        );
    }
    for name in ["plain", "fifo", "o1"] {
        keeps_the_rules(&folder.join(format!("{name}.jsonl")));
    }
    let (header, events) = events_in(&folder.join("o1.jsonl"));
    assert_eq!(header.machine.kernel, model::Kernel::V6_18);
    let reports = reports_stand_before_their_runs(&events);
    assert!(reports > 0, "o1 reports its tasks' priorities");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_killed_player_leaves_no_task_and_no_policy() {
    let hogs = "[workload]\nname = \"hogs\"\n[task.hog]\ncount = 3\nkind = \"process\"\n\
                do = \"run(inf)\"\n[task.child]\ndo = \"run(inf)\"\n\
                [task.parent]\nkind = \"process\"\ndo = \"fork(hog), fork(child), waitpid(any)\"\n";
    // Children of both kinds at once are refused, so the parent does not wait.
    let hogs = hogs.replace(", waitpid(any)", ", run(inf)");
    let folder = share("killed", &hogs);
    for signal in ["KILL", "INT"] {
        let text = guest_of(&folder)
            .good(
                &format!(
                    "runslice play load.toml --policy fifo & player=$!
                 there() {{ cat /proc/[0-9]*/comm 2>/dev/null | grep -c -E '^(hog|child|parent)'; }}
                 until [ $(there) -ge 5 ]; do sleep 0.2; done
                 kill -{signal} $player; wait $player; echo status $?
                 for i in 1 2 3 4 5 6 7 8 9; do
                     [ $(there) = 0 ] && grep -q disabled /sys/kernel/sched_ext/state && break
                     sleep 0.5
                 done
                 echo \"left $(there), $(cat /sys/kernel/sched_ext/state)\""
                ),
                &[],
            )
            .text();
        assert!(text.contains("left 0, disabled"), "{signal}: {text}");
        let status = if signal == "INT" {
            "status 130"
        } else {
            "status 137"
        };
        assert!(text.contains(status), "{signal}: {text}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn ping_pong_recorded_on_a_kernel_takes_half_the_time_at_half_the_cost() {
    let folder = share("pong", PING_PONG);
    // Counted time: how fast this computer emulates does not matter.
    let text = guest_of(&folder)
        .counted()
        .good(
            "runslice play load.toml --events e.jsonl || exit 1
         runslice sim fifo --from e.jsonl --format json -o whole.json || exit 1
         runslice sim fifo --from e.jsonl --cost-scale 0.5 --format json -o half.json",
            &[],
        )
        .text();
    assert!(!text.contains("were lost"), "{text}");
    keeps_the_rules(&folder.join("e.jsonl"));
    let run = |name: &str| {
        let report = document(&folder.join(name));
        let report = &report["runs"][0]["report"];
        assert_eq!(count(report, "round"), 300, "{name}");
        let groups = report["groups"].as_array().expect("a list");
        let own = |it: &&Value| it["group"] == "ping" || it["group"] == "pong";
        let own = groups.iter().filter(own);
        own.map(|group| group["run_ns"].as_u64().unwrap())
            .sum::<u64>()
    };
    let (whole, half) = (run("whole.json"), run("half.json"));
    // Each burst is rounded down to whole nanoseconds.
    assert!(
        half * 2 <= whole && half * 2 + 10_000 >= whole,
        "{whole} {half}"
    );
    // The two wake each other: at most the beginning is left to timers.
    let line = text
        .lines()
        .find(|line| line.starts_with("from: "))
        .expect("a share");
    let number = |from: &str, to: &str| -> u64 {
        let (_, rest) = line.split_once(from).expect(line);
        rest.split_once(to)
            .expect(line)
            .0
            .trim()
            .parse()
            .expect(line)
    };
    assert!(number("wakeups: ", " wait") >= 590, "{line}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn recording_takes_a_small_part_of_all_instructions() {
    let folder = share("overhead", PING_PONG);
    for cpus in ["1", "2"] {
        let text = guest_of(&folder)
            .counted()
            .cpus(cpus)
            .good(
                "runslice play chat --scale rooms=1 --scale msgs=5 --overhead",
                &[],
            )
            .text();
        println!("{cpus} CPUs\n{text}");
        let share = |name: &str| -> f64 {
            let line = text
                .lines()
                .find(|line| line.starts_with(name))
                .expect(name);
            let (before, _) = line.split_once(" %").expect("a share");
            let last = before.split_whitespace().next_back();
            last.and_then(|last| last.parse().ok()).expect("a number")
        };
        assert!(share("counters") <= 2.0, "{cpus}: {text}");
        assert!(share("histograms") <= 5.0, "{cpus}: {text}");
        assert!(share("events") > 0.0, "{cpus}: {text}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Twelve for two CPUs: whoever ends them competes with them.
const CROWD: &str = r#"
[workload]
name = "crowd"
stop = "duration:500ms"

[task.hog]
count = 12
kind = "process"
do = "loop(inf)[ run(1ms), count(done) ]"
"#;

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_play_is_over_when_its_time_is() {
    let folder = share("crowd", CROWD);
    // Counted time: a millisecond is a million instructions.
    let text = guest_of(&folder)
        .counted()
        .good(
            "for policy in fifo staircase; do
             runslice play load.toml --policy $policy --format json -o $policy.json || exit 1
             runslice play load.toml --policy $policy --events $policy.jsonl \\
                 --format json -o $policy-events.json || exit 1
         done",
            &[],
        )
        .text();
    assert!(!text.contains("were lost"), "{text}");
    for name in ["fifo", "fifo-events", "staircase", "staircase-events"] {
        let report = document(&folder.join(format!("{name}.json")));
        let report = &report["runs"][0]["report"];
        let elapsed = report["machine"]["elapsed_ns"].as_u64().expect("a time");
        assert!(
            (500_000_000..510_000_000).contains(&elapsed),
            "{name}: {elapsed}"
        );
        // Nobody can count more milliseconds than the CPUs had.
        let done = count(report, "done");
        assert!(
            done * 1_000_000 <= 2 * elapsed,
            "{name}: {done} of {elapsed}"
        );
        assert!(done >= 200, "{name}: {done}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Four that sleep at first, on two CPUs.
const SLEEPERS: &str = r#"
[workload]
name = "sleepers"
stop = "duration:60ms"

[task.a]
count = 4
do = "loop(inf)[ sleep(20ms), run(1ms) ]"
"#;

/// Tasks wait for the begin on CPUs in turn, as simulated ones do, and the first turn of a process
/// is not the one in which its memory is mapped: in a counting VM that took 40 us.
#[test]
#[ignore = "boots a kernel: make test-vm"]
fn played_tasks_begin_where_they_waited_and_compute_only_what_they_are_told_to() {
    let folder = share("sleepers", SLEEPERS);
    // Under goodness a task stays on its CPU while that one has nothing more important to do.
    let script = "runslice play load.toml --policy goodness --events events.jsonl -o /dev/null";
    let _ = guest_of(&folder).counted().good(script, &[]);
    let (_, events) = events_in(&folder.join("events.jsonl"));
    for (task, cpu) in (0..4).zip([0, 1, 0, 1]) {
        let task = model::TaskId(task);
        let woken = |event: &&Event| event.kind == EventKind::Wakeup && event.task == task;
        let woken = events.iter().find(woken).unwrap();
        assert_eq!(woken.cpu, model::CpuId(cpu), "{task:?}");
        let mut switches = events.iter().filter(|event| {
            let is_its = event.task == task || event.words().a == u64::from(task.0);
            event.kind == EventKind::Switch && is_its && event.time >= woken.time
        });
        let (on, off) = (switches.next().unwrap(), switches.next().unwrap());
        assert!(on.task == task && off.task != task, "{on:?} {off:?}");
        let took = off.time.as_nanos() - on.time.as_nanos();
        assert!(took < 20_000, "{task:?} computes for {took} ns");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// So many deadline tasks of 30 % each are admitted on two CPUs, and not one more.
const ADMITTED: usize = 6;

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn the_kernel_admits_as_many_deadline_tasks_as_the_simulated_one() {
    let tasks = |count: usize| {
        format!(
            "[workload]\nname = \"w\"\n[machine]\ncpus = 2\n[task.d]\nkind = \"process\"\n\
             count = {count}\npolicy = \"deadline:3ms/10ms\"\ndo = \"run(100us), count(done)\"\n"
        )
    };
    for kernel in KERNELS {
        let folder = share(&format!("admitted-{kernel}"), &tasks(ADMITTED));
        std::fs::write(folder.join("more.toml"), tasks(ADMITTED + 1)).expect("writable");
        let script = "
            runslice play load.toml -o /dev/null || exit 1
            runslice play more.toml -o /dev/null && exit 2
            runslice sim fifo --workload load.toml -o /dev/null || exit 3
            runslice sim fifo --workload more.toml -o /dev/null && exit 4
            exit 0";
        let guest = guest_of(&folder).kernel(kernel).counted();
        let text = guest.good(script, &[]).text();
        let refused = text.matches("Device or resource busy").count();
        assert_eq!(refused, 1, "{kernel}: {text}");
        assert!(
            text.contains("the kernel answers EBUSY"),
            "{kernel}: {text}"
        );
    }
}

/// A budget of 8 ms in each 40 ms beside four tasks that compute, on one CPU for 800 ms.
const BUDGET: &str = "[workload]\nname = \"w\"\nstop = \"duration:800ms\"\n[machine]\ncpus = 1\n\
    [task.D]\npolicy = \"deadline:8ms/40ms\"\ndo = \"run(10s)\"\n\
    [task.A]\ncount = 4\ndo = \"run(10s)\"\n";

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_deadline_task_gets_its_budget_and_no_more() {
    for kernel in KERNELS {
        let folder = share(&format!("budget-{kernel}"), BUDGET);
        let script = "runslice play load.toml --policy fifo --events d.jsonl -o /dev/null";
        let guest = guest_of(&folder).kernel(kernel).cpus("1").counted();
        let _ = guest.good(script, &[]);
        let log = std::fs::read_to_string(folder.join("d.jsonl")).expect("a recording");
        let (mut turns, mut since) = (Vec::new(), None);
        for line in log.lines().filter(|line| line.contains("\"switch\"")) {
            let event: Value = serde_json::from_str(line).expect("an event");
            let now = event["time_ns"].as_u64().expect("a time");
            match since {
                Some(since) if event["prev"] == 0 => turns.push((now - since) / 1_000),
                _ => {}
            }
            since = (event["task"] == 0).then_some(now);
        }
        // 20 periods. 6.18 finds the end of a budget by a tick of 4 ms and takes what is too much
        // off the next; 7.2 has a timer for it (`HRTICK_DL` is on).
        let tick = if kernel == "6.18" { 4_100 } else { 100 };
        let all: u64 = turns.iter().sum();
        assert!((18..=22).contains(&turns.len()), "{kernel}: {turns:?}");
        assert!(
            turns.iter().all(|turn| *turn <= 8_000 + tick),
            "{kernel}: {turns:?}"
        );
        assert!(
            all.abs_diff(160_000) <= 8_000 + tick,
            "{kernel}: {all} us in {turns:?}"
        );
    }
}
