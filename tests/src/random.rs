//! Random runs for property tests: a policy, a machine and a workload from one seed.

use std::fmt::Write as _;
use std::sync::Arc;

use model::{MachineSpec, Nanos, PolicySpec, Rng};
use workload::{RunSpec, Workload};

use crate::policy;

/// A random run, and what is known of it beforehand.
#[derive(Clone, Debug)]
pub struct RandomRun {
    /// The run.
    pub spec: RunSpec,
    /// The workload as text, for the message of a failure.
    pub text: String,
    /// What each group of tasks may do, in the order of the file.
    pub groups: Vec<Known>,
}

/// What is known of the tasks of one group.
#[derive(Clone, Debug)]
pub struct Known {
    /// CPUs allowed at birth, one bit each; `None`: all.
    pub cpus: Option<u64>,
    /// CPU time that a task computes in its life, exactly.
    pub work: Nanos,
}

/// A knob and the values that it may have.
type Choice = (&'static str, &'static [&'static str]);

/// Policies and their knobs.
const POLICIES: &[(&str, &[Choice])] = &[
    ("fifo", &[]),
    ("mlfq", &[]),
    (
        "probe",
        &[
            ("select", &["0", "1"]),
            ("kick", &["0", "1", "2"]),
            ("slice_ns", SLICES),
        ],
    ),
    (
        "probe",
        &[
            ("select", &["1"]),
            ("yield_does", &["0", "1", "4"]),
            ("keep_ns", &["0", "3000000"]),
        ],
    ),
    (
        "probe",
        &[
            ("vtime", &["1"]),
            ("head_letter", &["0", "49"]),
            ("kick", &["1", "2"]),
        ],
    ),
    ("probe", &[("walk", &["2"]), ("kick", &["1"])]),
    (
        "probe",
        &[
            ("batch", &["1", "3", "17"]),
            ("kick", &["1", "2"]),
            ("reenqueue", &["0", "1"]),
        ],
    ),
    ("probe-last", &[("kick", &["1", "2"]), ("slice_ns", SLICES)]),
    ("probe-exiting", &[("kick", &["1", "2"])]),
    ("probe-pinned", &[("kick", &["1"]), ("reenqueue", &["1"])]),
    ("probe-plain", &[("select", &["0", "1"])]),
    ("probe-partial", &[("kick", &["1"])]),
];

const SLICES: &[&str] = &["1000000", "4000000", "20000000", "18446744073709551615"];

/// From this seed on runs have cgroups and deadline tasks, too.
const WITH_GROUPS: u64 = 600;

struct Maker {
    rng: Rng,
    /// Cgroups and deadline tasks.
    with_groups: bool,
    cpus: u16,
    /// CPUs go offline and come back.
    hotplug: bool,
    /// The policy hears of affinities, so that a check can follow them.
    affinities: bool,
    /// Tasks may be pinned; a batch of dispatches cannot respect that.
    pins: bool,
    groups: Vec<Known>,
    text: String,
}

impl RandomRun {
    /// The run number `seed`.
    ///
    /// # Panics
    /// If the generator makes a workload that is none.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0xc0de);
        let (name, knobs) = POLICIES[rng.below(POLICIES.len() as u64) as usize];
        let set = knobs.iter().map(|(knob, values)| {
            let value = values[rng.below(values.len() as u64) as usize];
            ((*knob).to_owned(), value.to_owned())
        });
        let set: Vec<(String, String)> = set.collect();
        let machine = machine(&mut rng);
        let batch = set.iter().any(|(knob, _)| knob == "batch");
        // Who is not in the policy's class, or not yet, changes its affinity unheard.
        let attach_after = Nanos::new(rng.below(3) * 7_000_000);
        let heard = name.starts_with("probe") && name != "probe-partial" && attach_after.is_zero();
        // Only these listen when a CPU goes; a task that is bound to it may run anywhere then.
        let hotplug = ["fifo", "mlfq"].contains(&name) && machine.cpus >= 4 && rng.below(2) == 0;
        let mut maker = Maker {
            cpus: machine.cpus,
            with_groups: seed >= WITH_GROUPS,
            hotplug,
            affinities: heard && !batch && machine.cpus <= 64,
            pins: !batch && !hotplug,
            groups: Vec::new(),
            text: format!("[workload]\nname = \"random\"\nseed = {seed}\n"),
            rng,
        };
        maker.make();
        let workload = Workload::parse(&maker.text, "random");
        let workload = workload.unwrap_or_else(|error| panic!("{error}\n{}", maker.text));
        let spec = RunSpec {
            policy: PolicySpec {
                name: name.to_owned(),
                object: policy::object(name).expect("a test policy"),
                table: None,
                set,
                setup: Vec::new(),
                program: None,
                subs: Vec::new(),
            },
            workload: Arc::new(workload),
            machine,
            seed,
            tie_seed: seed.is_multiple_of(3).then_some(seed),
            attach_after,
            duration: Some(Nanos::from_millis(50 + maker.rng.below(200))),
        };
        Self {
            spec,
            text: maker.text,
            groups: maker.groups,
        }
    }
}

fn machine(rng: &mut Rng) -> MachineSpec {
    let cpus = match rng.below(20) {
        0 => 130 + rng.below(70) as u16 * 2,
        1..4 => 1,
        _ => 2 * (1 + rng.below(6) as u16),
    };
    MachineSpec {
        cpus,
        smt: if cpus > 1 { 1 + rng.below(2) as u16 } else { 1 },
        llc: if cpus > 2 { 2 * rng.below(2) as u16 } else { 0 },
        node: if cpus > 4 { 4 * rng.below(2) as u16 } else { 0 },
        hz: [100, 250, 300, 1000][rng.below(4) as usize],
        tick_skew_ns: rng.below(2) * 1_234,
        ..MachineSpec::default()
    }
}

impl Maker {
    fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    fn make(&mut self) {
        self.text += "[chan.pipe]\nkind = \"pipe\"\n[chan.queue]\nkind = \"queue\"\n[lock.lock]\n\
             [lock.rw]\nkind = \"rw\"\n[lock.row]\nkind = \"keyed\"\nkeys = 5\n\
             [sem.sem]\nvalue = 2\n[chan.page]\nkind = \"queue\"\ncap = \"9msg\"\n\
             [disk.disk]\nbase = \"exp(100us)\"\nseek = \"1ms\"\nsize = \"64MiB\"\n\
             cache = \"lru\"\ndirty = \"128KiB\"\ncost = \"2us\"\n\
             [disk.swap]\nbase = \"exp(50us)\"\n[mem]\nram = \"4MiB\"\nswap = \"swap\"\n";
        self.outside();
        for source in 0..self.below(3) {
            let (cpu, every) = (self.below(self.cpus.into()), 100 + self.below(5_000));
            let cost = self.below(90);
            let _ = write!(
                self.text,
                "[irq.i{source}]\ncpu = {cpu}\nevery = \"{every}us\"\ncost = \"{cost}us\"\n"
            );
        }
        if self.with_groups {
            self.text += "[cgroup.a]\nweight = 200\n[cgroup.b]\npath = \"/a/b\"\nmax = \"3ms\"\n";
        }
        let groups = 1 + self.below(8);
        for group in 0..groups {
            self.group(group);
        }
        self.child(groups);
        if self.with_groups {
            self.deadline_tasks();
        }
    }

    /// Requests, and CPUs that come and go.
    fn outside(&mut self) {
        let (cpu, rate, users) = (
            self.below(self.cpus.into()),
            200 + self.below(5_000),
            1 + self.below(4),
        );
        let demand = match self.below(2) {
            0 => format!("kind = \"poisson\"\nrate = {rate}"),
            _ => format!("kind = \"closed\"\nusers = {users}\nthink = \"exp(1ms)\""),
        };
        let _ = write!(
            self.text,
            "[arrival.request]\n{demand}\ncpu = {cpu}\ncost = \"3us\"\nsend = \"page\"\n"
        );
        if !self.hotplug {
            return;
        }
        for number in 0..1 + self.below(3) {
            let cpu = 1 + self.below(u64::from(self.cpus) - 1);
            let gone = self.below(60_000);
            let back = gone + 1 + self.below(60_000);
            let _ = write!(
                self.text,
                "[hotplug.h{number}]\ncpu = {cpu}\noffline = \"{gone}us\"\nonline = \"{back}us\"\n"
            );
        }
    }

    fn group(&mut self, group: u64) {
        let real_time = self.below(6) == 0;
        let count = 1 + self.below(4);
        let mut work = 0;
        let mut ops = String::new();
        for _ in 0..1 + self.below(7) {
            let op = self.op(real_time, &mut work);
            ops += &op;
            ops += ", ";
        }
        let turns = 1 + self.below(6);
        let start = self.below(20_000);
        let policy = match (real_time, self.below(8)) {
            (true, 0..4) => format!("fifo:{}", 1 + self.below(99)),
            (true, _) => format!("rr:{}", 1 + self.below(99)),
            (false, 0) => "batch".to_owned(),
            (false, 1) => "idle".to_owned(),
            _ => "normal".to_owned(),
        };
        let nice = self.below(40) as i64 - 20;
        let cpus = (self.pins && self.below(3) == 0).then(|| self.cpu_set());
        let _ = write!(
            self.text,
            "[task.g{group}]\ncount = {count}\nstart = \"{start}us\"\npolicy = \"{policy}\"\n\
             nice = {nice}\ncpus = \"{}\"\ndo = \"loop({turns})[ {ops}sleep(1us) ]\"\n",
            cpus.as_ref().map_or("all", |(text, _)| text.as_str()),
        );
        let work = Nanos::new(work * 1_000 * turns);
        self.groups.push(Known {
            cpus: cpus.map(|(_, mask)| mask),
            work,
        });
    }

    /// Deadline tasks that need a fifth of a CPU together.
    fn deadline_tasks(&mut self) {
        let period = 1_000 + self.below(20_000);
        let (runtime, deadline) = (period / 10, period - self.below(period / 2));
        let (start, sleep, run) = (self.below(9_000), self.below(9_000), 1 + self.below(3_000));
        let turns = 1 + self.below(9);
        let leaves = ["yield", "setpolicy(self, normal)", "sleep(1us)"];
        let leaves = leaves[self.below(3) as usize];
        let policy = format!("deadline:{runtime}us/{deadline}us/{period}us");
        let _ = write!(
            self.text,
            "[task.dl]\ncount = 2\nstart = \"{start}us\"\npolicy = \"{policy}\"\n\
             do = \"loop({turns})[ run({run}us), sleep({sleep}us), run({run}us), {leaves}, \
             run(1us), setpolicy(self, {policy}), cgroup_move(self, b) ]\"\n"
        );
        let work = Nanos::new((2 * run + 1) * 1_000 * turns);
        self.groups.push(Known { cpus: None, work });
    }

    /// An operation on cgroups.
    fn cgroup_op(&mut self) -> String {
        let of = ["a", "b"][self.below(2) as usize];
        match self.below(6) {
            0 => format!("cgroup_weight({of}, {})", 1 + self.below(10_000)),
            1 => format!("cgroup_max({of}, {}us)", 1_000 + self.below(90_000)),
            2 => format!("cgroup_idle({of}, {})", self.below(2)),
            3 => format!("cgroup_move(g0[rand(2) * 0], {of})"),
            4 => "cgroup_move(self, root, process)".to_owned(),
            _ => format!("cgroup_move(self, {of})"),
        }
    }

    fn child(&mut self, group: u64) {
        let micros = self.below(9_000);
        let _ = write!(
            self.text,
            "[task.child]\nkind = \"process\"\ncount = 1\n\
             do = \"run({micros}us), yield, run(1us)\"\n"
        );
        let work = Nanos::new((micros + 1) * 1_000);
        debug_assert_eq!(self.groups.len() as u64, group);
        self.groups.push(Known { cpus: None, work });
    }

    /// One operation; adds to `work` the microseconds that it computes.
    fn op(&mut self, real_time: bool, work: &mut u64) -> String {
        let most = if real_time { 900 } else { 12_000 };
        let micros = 1 + self.below(most);
        match self.below(22) {
            0..5 => {
                *work += micros;
                format!("run({micros}us)")
            }
            5..7 => format!("sleep({}us)", self.below(9_000)),
            7 => "yield".to_owned(),
            8 => format!("setnice(self, {})", self.below(40) as i64 - 20),
            9 => "fork(child)".to_owned(),
            10 => {
                *work += micros;
                format!("lock(lock), run({micros}us), unlock(lock)")
            }
            11 => format!(
                "send({})",
                if self.below(2) == 0 { "pipe" } else { "queue" }
            ),
            12 => "if(len(queue))[ recv(queue) ], if(len(pipe))[ recv(pipe) ]".to_owned(),
            14 => {
                *work += micros;
                let how = ["lock", "lock_shared"][self.below(2) as usize];
                format!("{how}(rw), run({micros}us), unlock(rw)")
            }
            15 => {
                *work += micros;
                format!(
                    "lock(row[randkey(row)]), lock(row[randkey(row)]) else [ yield ], \
                     run({micros}us), unlock_all(row)"
                )
            }
            16 => format!("read(disk, {}, rand)", 1 + self.below(600_000)),
            17 => format!("write(disk, {}, seq)", 1 + self.below(300_000)),
            18 => "fsync(disk)".to_owned(),
            19 => format!("touch({})", self.below(3_000_000)),
            20 => format!("sem_wait(sem), sleep({}us), sem_post(sem)", self.below(900)),
            21 => "if(len(page))[ recv(page), done(request) ]".to_owned(),
            _ if self.with_groups && self.below(3) == 0 => self.cgroup_op(),
            13 if self.affinities && !real_time => {
                format!("setaffinity(self, {{{}}})", self.cpu_set().0)
            }
            _ => {
                *work += 10;
                "run(10us)".to_owned()
            }
        }
    }

    /// A set of CPUs as the workload writes it, and as bits.
    fn cpu_set(&mut self) -> (String, u64) {
        let cpus = u64::from(self.cpus.min(64));
        let first = self.below(cpus);
        let last = first + self.below(cpus - first);
        let mask = (first..=last).fold(0, |mask, cpu| mask | 1 << cpu);
        (format!("{first}-{last}"), mask)
    }
}
