//! Costs of a profile file, one or a few at a time: an address space, a program, caches, locks.

use model::{CpuTimes, MachineSpec, Nanos, Profile, SimTime, Summary};
use runslice_tests::collect::Collector;
use runslice_tests::random::RandomRun;
use runslice_tests::run::Run;
use runslice_tests::simulate;
use stats::{Conservation, Metrics};
use workload::RunSpec;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A profile in which nothing costs anything but what `tables` say.
fn profile(tables: &str) -> Profile {
    let text = format!("[profile]\nname = \"test\"\n{tables}");
    Profile::parse(&text, "test").unwrap_or_else(|error| panic!("{error}"))
}

fn simulated(spec: &RunSpec) -> (Collector, Summary) {
    let mut collector = Collector::default();
    let summary = sim::run(spec, &mut collector).unwrap_or_else(|error| panic!("{error}"));
    assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
    (collector, summary)
}

/// The run of a workload under `tables`, without a policy.
fn bare(tables: &str, machine: &MachineSpec, workload: &str) -> (Collector, Summary) {
    let mut spec = Run::new("fifo", workload).spec();
    spec.machine = MachineSpec {
        profile: profile(tables),
        hz: 100,
        ..machine.clone()
    };
    spec.attach_after = Nanos::from_secs(100);
    simulated(&spec)
}

fn cpus(cpus: u16) -> MachineSpec {
    MachineSpec {
        cpus,
        ..MachineSpec::default()
    }
}

fn total(summary: &Summary, of: fn(&CpuTimes) -> Nanos) -> u64 {
    summary.cpus.iter().map(|cpu| of(cpu).get()).sum()
}

fn spent(summary: &Summary, kind: &str) -> u64 {
    let found = summary.spent.iter().find(|(name, _)| *name == kind);
    found.expect("a kind of cost").1.get()
}

#[test]
fn another_address_space_costs_more_than_another_thread_and_a_kernel_thread_takes_what_is_there() {
    let switches = |kind: &str| {
        let workload = format!(
            "[task.t]\nkind = \"{kind}\"\ncount = 2\ndo = \"loop(10)[ run(1ms), yield ], run(1ms)\""
        );
        let (_, summary) = bare("[costs]\nmm_switch = \"1us\"", &cpus(1), &workload);
        (summary.cpus[0].switches, spent(&summary, "switches") / US)
    };
    assert_eq!(switches("thread").1, 1, "one address space is loaded once");
    assert_eq!(switches("kernel").1, 0);
    // Two processes that take turns: idle, A, B, A, B, ..., idle.
    let (all, paid) = switches("process");
    assert!(all > 10, "{all} switches");
    assert_eq!(paid, all - 1, "every switch but the last one, to idle");
}

#[test]
fn a_forked_thread_has_its_parents_address_space_and_a_forked_process_one_of_its_own() {
    let switches = |kind: &str| {
        let workload = format!(
            "[task.p]\ndo = \"fork(c), loop(10)[ run(1ms), yield ], run(1ms)\"\n\
             [task.c]\ncount = 0\nkind = \"{kind}\"\ndo = \"loop(10)[ run(1ms), yield ]\""
        );
        let (_, summary) = bare("[costs]\nmm_switch = \"1us\"", &cpus(1), &workload);
        (summary.cpus[0].switches, spent(&summary, "switches") / US)
    };
    assert_eq!(switches("thread").1, 1, "one address space is loaded once");
    let (all, paid) = switches("process");
    assert!(paid > 10 && paid < all, "{paid} of {all} switches");
}

#[test]
fn a_task_that_comes_back_from_idle_finds_its_address_space() {
    let workload = "[task.t]\nkind = \"process\"\ndo = \"loop(5)[ run(1ms), sleep(1ms) ]\"";
    let (_, summary) = bare("[costs]\nmm_switch = \"1us\"", &cpus(1), workload);
    assert!(summary.cpus[0].switches > 8);
    assert_eq!(spent(&summary, "switches"), US);
}

#[test]
fn another_program_costs_the_kernels_part_and_its_own() {
    let workload = "[task.A]\ndo = \"run(1ms), exec(2ms), exec(0ns), run(1ms)\"";
    let (collector, _) = bare("[costs]\nexec = \"300us\"", &cpus(1), workload);
    let end = SimTime::from_nanos(4 * MS + 2 * 300 * US);
    assert_eq!(collector.exit_of("A"), end);
}

/// A task that works on CPU 0, then on CPU 1, then there again, and uses `footprint`.
fn moves(tables: &str, machine: &MachineSpec, footprint: &str) -> u64 {
    let workload = format!(
        "[task.A]\n{footprint}do = \"setaffinity(self, {{0}}), run(1ms), \
         setaffinity(self, {{1}}), run(1ms), sleep(1ms), run(1ms)\""
    );
    let (collector, summary) = bare(tables, machine, &workload);
    let end = collector.exit_of("A").as_nanos() - 4 * MS;
    assert_eq!(spent(&summary, "cache refills"), end);
    end
}

#[test]
fn who_moves_fills_the_cache_with_what_fits_into_it_and_who_stays_does_not() {
    let tables = "[caches]\ncore = \"1MiB\"\ncore_refill = \"1GB/s\"\nfootprint = \"100000B\"";
    assert_eq!(moves(tables, &cpus(2), ""), 100 * US, "the profile's");
    let own = "footprint = \"16KiB\"\n";
    assert_eq!(moves(tables, &cpus(2), own), 16_384, "the workload's");
    let most = "footprint = \"4MiB\"\n";
    assert_eq!(moves(tables, &cpus(2), most), 1 << 20, "all of the cache");
    let none = "footprint = 0\n";
    assert_eq!(moves(tables, &cpus(2), none), 0);
}

#[test]
fn threads_of_a_core_share_its_cache_and_cpus_of_another_last_level_fill_that_too() {
    let tables = "[caches]\ncore = \"1MiB\"\ncore_refill = \"1GB/s\"\n\
                  llc = \"2MiB\"\nllc_refill = \"500MB/s\"\nfootprint = \"100000B\"";
    let siblings = MachineSpec { smt: 2, ..cpus(2) };
    assert_eq!(moves(tables, &siblings, ""), 0);
    let apart = MachineSpec { llc: 1, ..cpus(2) };
    assert_eq!(moves(tables, &apart, ""), 100 * US + 200 * US);
}

#[test]
fn an_interrupt_whose_time_passed_while_its_cpu_was_busy_comes_then() {
    let workload = "[irq.i]\ncpu = 0\nevery = \"100us\"\ncost = \"1us\"\n\
                    [task.A]\ndo = \"sleep(450us), run(1ms)\"";
    let (collector, summary) = bare("[costs]\nswitch_idle = \"1ms\"", &cpus(1), workload);
    // Those of the switch's millisecond come at its end, all of them.
    let end = collector.exit_of("A").as_nanos();
    let steals = total(&summary, |cpu| cpu.stolen) / US;
    assert_eq!(
        steals,
        end / (100 * US) + 1,
        "{end}: also the one at time zero"
    );
}

/// Four CPUs, each with a task of its own that does nothing but ask for the scheduler, which takes
/// 10 us each time; 10 ms.
fn yields(locks: &str) -> Summary {
    let workload =
        "[task.t]\ncount = 4\ndo = \"setaffinity(self, me), loop(inf)[ run(1us), yield ]\"";
    let workload = workload.replace("setaffinity(self, me), ", "");
    let mut text = String::new();
    for cpu in 0..4 {
        let task = workload.replace("count = 4", &format!("cpus = \"{cpu}\""));
        text += &task.replace("task.t", &format!("task.t{cpu}"));
        text.push('\n');
    }
    let mut spec = Run::new("fifo", &text).spec();
    spec.machine = MachineSpec {
        profile: profile(&format!("[costs]\nkeep = \"10us\"\n{locks}")),
        hz: 100,
        ..cpus(4)
    };
    spec.attach_after = Nanos::from_secs(100);
    spec.duration = Some(Nanos::from_millis(10));
    simulated(&spec).1
}

#[test]
fn one_lock_for_all_run_queues_lets_one_cpu_schedule_at_a_time() {
    let end = 10 * MS;
    let scheduled = |summary: &Summary| spent(summary, "kernel");
    let free = yields("");
    assert_eq!(spent(&free, "lock waits"), 0);
    assert!(
        scheduled(&free) > 35 * MS,
        "four CPUs schedule all the time"
    );
    let own = yields("[locks]\nwait = true\nrun_queue = \"cpu\"");
    assert_eq!(scheduled(&own), scheduled(&free), "nobody wants another's");
    let one = yields("[locks]\nwait = true\nrun_queue = \"machine\"");
    let held = scheduled(&one);
    assert!(
        held <= end + 4 * 10 * US,
        "{held} ns in {end} ns of one lock"
    );
    assert!(held >= end * 9 / 10, "{held} ns: the lock is always wanted");
    let waits = spent(&one, "lock waits");
    assert!((25 * MS..=30 * MS).contains(&waits), "{waits} ns");
}

#[test]
fn a_lock_that_another_cpu_had_is_fetched_from_there() {
    let workload = "[chan.c]\nkind = \"queue\"\n\
                    [task.B]\ncpus = \"1\"\ndo = \"recv(c), run(1ms)\"\n\
                    [task.A]\ncpus = \"0\"\ndo = \"run(1ms), send(c)\"";
    let tables = "[costs]\nlock_transfer = \"5us\"\n[locks]\nwait = true";
    let (collector, _) = bare(tables, &cpus(2), workload);
    // A takes the lock of B's run queue, which B's CPU had.
    assert_eq!(collector.exit_of("A"), SimTime::from_nanos(MS + 5 * US));
    // B's CPU takes it back: 5 us before it runs, and 5 us that the interrupt waited for A's CPU.
    assert_eq!(
        collector.exit_of("B"),
        SimTime::from_nanos(2 * MS + 10 * US)
    );
}

/// Hogs that yield, on 8 CPUs, all through the one queue of `fifo`, whose insert takes 10 us.
fn shared_queue(locks: &str) -> Summary {
    let workload = "[task.t]\ncount = 32\ndo = \"loop(inf)[ run(5us), yield ]\"";
    let mut spec = Run::new("fifo", workload).spec();
    spec.machine = MachineSpec {
        profile: profile(&format!("[costs]\ncall_insert = \"10us\"\n{locks}")),
        ..cpus(8)
    };
    spec.duration = Some(Nanos::from_millis(100));
    simulated(&spec).1
}

#[test]
fn a_queue_that_all_cpus_use_is_used_by_one_at_a_time() {
    let free = shared_queue("");
    let held = shared_queue("[locks]\nwait = true");
    let calls = |summary: &Summary| spent(summary, "callbacks");
    assert!(calls(&free) > 150 * MS, "{} ns", calls(&free));
    // All that callbacks cost here is inserts, and one insert is made at a time.
    assert!(
        calls(&held) <= 100 * MS + 8 * 20 * US,
        "{} ns",
        calls(&held)
    );
    assert!(spent(&held, "lock waits") > 200 * MS, "{held:?}");
}

/// Eight CPUs, each with two tasks of its own that do nothing but yield, under a policy that works
/// under one spin lock for each yield; 20 ms.
fn spinning(locks: &str) -> Summary {
    let task = |cpu| {
        let body = "count = 2\ndo = \"loop(inf)[ run(1us), yield ]\"";
        format!("[task.t{cpu}]\ncpus = \"{cpu}\"\n{body}\n")
    };
    let workload: String = (0..8).map(task).collect();
    let mut spec = Run::new("spinner", &workload).spec();
    spec.machine = MachineSpec {
        profile: profile(&format!("[costs]\ninstruction = \"4ns\"\n{locks}")),
        ..cpus(8)
    };
    spec.duration = Some(Nanos::from_millis(20));
    let summary = simulate::on_both(&spec, &mut Metrics::new());
    summary.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_programs_spin_lock_is_held_for_as_long_as_its_instructions_take() {
    let end = 20 * MS;
    let calls = |summary: &Summary| spent(summary, "callbacks");
    let free = spinning("");
    assert!(calls(&free) > 7 * end, "{} ns", calls(&free));
    let held = spinning("[locks]\nwait = true");
    // Nearly all of a callback is under the lock, which one CPU has at a time.
    let most = end + end / 20;
    assert!(calls(&held) <= most, "{} ns in {end}", calls(&held));
    assert!(calls(&held) >= end * 9 / 10, "{} ns", calls(&held));
    assert!(spent(&held, "lock waits") > 6 * end);
}

#[test]
fn attaching_a_policy_costs_nobody_anything() {
    let run = Run::new("fifo", "[task.t]\ncount = 50\ndo = \"sleep(20s)\"");
    let mut spec = run.spec();
    spec.attach_after = Nanos::from_secs(1);
    spec.machine.profile = profile("[costs]\ncallback = \"1us\"");
    let (_, summary) = simulated(&spec);
    assert!(summary.callbacks >= 50, "{}", summary.callbacks);
    // The one CPU is told to look again and asks once; nothing else happens.
    assert!(
        spent(&summary, "callbacks") <= 3 * US,
        "{:?}",
        summary.spent
    );
}

#[test]
fn time_is_conserved_in_random_runs_with_every_lock_and_cache() {
    let tables = |seed: u64| {
        let kind = if seed.is_multiple_of(2) {
            "machine"
        } else {
            "cpu"
        };
        profile(&format!(
            "base = \"default-v0\"\nscale = 3.5\n[locks]\nwait = true\nrun_queue = \"{kind}\"\n\
             [caches]\ncore_refill = \"300MB/s\"\nllc_refill = \"100MB/s\""
        ))
    };
    let (mut waits, mut refills) = (0, 0);
    for seed in 0..200 {
        let mut spec = RandomRun::new(seed).spec;
        spec.machine.profile = tables(seed);
        let mut conservation = Conservation::new();
        let summary = sim::run(&spec, &mut conservation).unwrap_or_else(|error| panic!("{error}"));
        if let Err(violation) = conservation.check(&summary) {
            panic!("seed {seed}: {violation}");
        }
        waits += spent(&summary, "lock waits");
        refills += spent(&summary, "cache refills");
        let elsewhere = total(&summary, |cpu| cpu.overhead) + total(&summary, |cpu| cpu.stolen);
        assert!(elsewhere > 0 || summary.callbacks == 0, "seed {seed}");
    }
    assert!(waits > MS && refills > MS, "{waits} and {refills} ns");
}

#[test]
fn threads_in_the_background_keep_to_their_cpus_and_end_with_the_load() {
    let tables = "[background.worker]\non = \"each\"\ngap = \"2ms\"\nrun = [\"10us\", \"30us\"]\n\
                  [background.reclaim]\non = \"any\"\ngap = \"5ms\"\nrun = \"100us\"\n\
                  real_time = 1\n";
    let mut spec = Run::new("fifo", "[task.hog]\ncount = 2\ndo = \"run(1s)\"").spec();
    spec.machine.cpus = 2;
    let ideal = simulated(&spec).1;
    spec.machine.profile = profile(tables);
    let (events, summary) = simulated(&spec);
    // Both hogs have the time that they ask for, and their end is the end.
    let end = summary.end.as_nanos();
    assert!(end > 1_000 * MS && end < 1_200 * MS, "{end}");
    assert!(ideal.end < summary.end);
    let mut turns = [0; 2];
    for cpu in 0..2 {
        for (name, from, to) in events.turns(cpu, summary.end) {
            let length = to.since(from).get();
            if let Some(own) = name.strip_prefix("kernel/worker.") {
                assert_eq!(own, cpu.to_string(), "it never leaves its CPU");
                assert!(length == 10 * US || length == 30 * US || length < 30 * US);
                turns[0] += 1;
            } else if name == "kernel/reclaim" {
                // No task of a policy preempts it.
                assert_eq!(length, 100 * US, "{name} on CPU {cpu} from {from} to {to}");
                turns[1] += 1;
            }
        }
    }
    // About 2 x 500 and 200 wakeups in a second; under fifo a worker may wait for slices of hogs.
    assert!(turns[0] > 50, "{turns:?}");
    assert!((150..=250).contains(&turns[1]), "{turns:?}");
    // The same seed gives the same moments.
    assert_eq!(simulated(&spec).1.end, summary.end);
}

#[test]
fn a_load_that_waits_for_ever_beside_background_threads_ends() {
    let mut spec = Run::new(
        "fifo",
        "[chan.c]\nkind = \"pipe\"\n[task.a]\ndo = \"recv(c)\"",
    )
    .spec();
    spec.duration = None;
    spec.machine.profile =
        profile("[background.worker]\non = \"any\"\ngap = \"1000ms\"\nrun = \"1us\"\n");
    let (_, summary) = simulated(&spec);
    assert_eq!(summary.end.as_nanos(), 3_600_000 * MS);
    let noted = summary.notes.iter().any(|note| note.contains("`worker`"));
    assert!(noted, "{:?}", summary.notes);
}
