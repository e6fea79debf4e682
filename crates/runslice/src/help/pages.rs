//! What help shows first: groups, examples, and which options are rare.

/// The commands to begin with, each with what it shows.
pub const START: &[(&str, &str)] = &[
    (
        "runslice sim fifo mlfq -w desk",
        "a desktop under two schedulers",
    ),
    (
        "runslice explain fifo -w desk --worst 1",
        "why a task waited, and the line",
    ),
    ("runslice list", "the schedulers that are built in"),
];

/// Groups of verbs, in the order of a user's way.
pub const GROUPS: &[(&str, &[&str])] = &[
    (
        "Simulate",
        &[
            "sim", "sweep", "list", "build", "check", "bundle", "convert",
        ],
    ),
    (
        "Explain",
        &["explain", "hunt", "cases", "diff", "trace", "gate"],
    ),
    (
        "Compare and choose",
        &[
            "compare",
            "choose",
            "score",
            "tune",
            "evaluate",
            "fidelity",
            "calibrate",
            "report",
        ],
    ),
    ("Your load", &["record", "stat"]),
    (
        "The real machine",
        &[
            "run", "set", "status", "stop", "play", "bench", "load", "vm", "doctor",
        ],
    ),
    ("Teach", &["lab", "reproduce"]),
    ("More", &["completions", "man"]),
];

/// Options of a scheduler's own program.
pub const PROGRAM: &[&str] = &[
    "loader_cpu",
    "loader_net",
    "loader_dir",
    "loader_output",
    "scheduler_stats",
    "scheduler_stats_every",
];

/// Headings, and the options below them.
pub const HEADINGS: &[(&str, &[&str])] = &[
    (
        "Machine",
        &[
            "machine",
            "cpus",
            "smt",
            "smt_share",
            "llc",
            "node",
            "hz",
            "kernel",
            "profile",
            "hardware",
            "governor",
        ],
    ),
    ("Recording", &["cost_scale", "window"]),
    (
        "Policy",
        &["set", "run", "run_attached", "ops", "budget", "memory"],
    ),
    ("Scheduler's own program", PROGRAM),
    (
        "Output",
        &[
            "output",
            "format",
            "table",
            "events",
            "decisions",
            "trace",
            "open",
            "timeline",
            "wide",
            "verbose",
            "color",
            "json",
        ],
    ),
];

/// Options that few need, beside those of [`PROGRAM`]: `--help` has them, `-h` does not.
pub const RARE: &[&str] = &[
    "cost_scale",
    "window",
    "run",
    "run_attached",
    "ops",
    "budget",
    "memory",
    "smt",
    "smt_share",
    "interleave",
    "open",
    "hardware",
    "hardware_spread",
    "machine",
    "sub",
    "governor",
    "llc",
    "node",
    "jobs",
    "as_played",
    "audit",
    "start_jitter",
    "color",
    "verbose",
    "resample_seed",
    "untested",
    "right",
    "table",
    "decisions",
    "schedstat",
    "schedstat_version",
    "schedstat_rules",
    "schedstat_every",
    "ignore_cgroups",
];

/// Each page's examples: commands that run in this order in an empty folder, and a note to each.
/// A note that begins with "as root", "needs", "downloads" or "takes" says why a test cannot run
/// it everywhere.
pub const PAGES: &[(&str, &[(&str, &str)])] = &[
    (
        "sim",
        &[
            (
                "runslice sim fifo mlfq -w desk",
                "two schedulers, side by side",
            ),
            (
                "runslice sim fifo mlfq -w desk -o desk.html",
                "with pictures",
            ),
            (
                "runslice sim mlfq -w desk --timeline 100ms",
                "who had which CPU",
            ),
        ],
    ),
    (
        "sweep",
        &[
            (
                r#"printf 'policy = ["fifo", "o1"]\nworkload = ["desk"]\ncpus = [2, 4]' > a.toml"#,
                "",
            ),
            ("runslice sweep a.toml --dry-run", "how many runs that is"),
            ("runslice sweep a.toml", ""),
        ],
    ),
    (
        "list",
        &[
            ("runslice list", "the schedulers"),
            ("runslice list --workloads", ""),
            ("runslice list mlfq", "all about one of them"),
        ],
    ),
    (
        "build",
        &[
            (
                "runslice list --copy fifo -o mine.bpf.c",
                "a policy to change",
            ),
            ("runslice build mine.bpf.c", "writes mine.bpf.o"),
        ],
    ),
    (
        "check",
        &[
            ("runslice check mlfq", "what it needs from a kernel"),
            (
                "runslice check mlfq --costs",
                "how its callbacks grow with the tasks",
            ),
            (
                "runslice check fifo --orders --for 30s",
                "takes 30 s; what stalls of a CPU break",
            ),
            (
                "runslice check mlfq --vm",
                "downloads kernels; asks their verifiers",
            ),
        ],
    ),
    (
        "bundle",
        &[
            ("runslice bundle mlfq:queues=4 --cpus 8 -o mine.bundle", ""),
            (
                "runslice sim mine.bundle -w desk",
                "the policy, its knobs and its machine",
            ),
        ],
    ),
    (
        "convert",
        &[
            (
                "runslice convert desk --to toml -o desk.toml",
                "a load to change",
            ),
            ("runslice sim fifo -w desk.toml --duration 2s", ""),
        ],
    ),
    (
        "explain",
        &[
            (
                "runslice explain fifo -w desk --worst 1",
                "the longest wait",
            ),
            (
                "runslice explain mlfq -w desk --task audio",
                "the longest wait of a task",
            ),
        ],
    ),
    (
        "hunt",
        &[
            (
                "runslice hunt fcfs --trials 20",
                "look for a load that breaks it",
            ),
            ("runslice hunt mlfq --trials 20 --property 'wait < 5s'", ""),
        ],
    ),
    (
        "cases",
        &[
            ("runslice cases", "the bugs, and what is known of each here"),
            (
                "runslice cases lavd-reenq --programs built",
                "needs what scripts/cases.sh builds",
            ),
        ],
    ),
    (
        "gate",
        &[
            (
                "runslice gate fifo:slice_ns=5000000 --against fifo -w desk --trials 20",
                "may it replace the old one?",
            ),
            (
                "runslice gate mine.bpf.o --bisect v1 v2 -- make",
                "needs a git repository",
            ),
        ],
    ),
    (
        "diff",
        &[
            (
                "runslice diff fifo mlfq -w desk",
                "where they first decide differently",
            ),
            ("runslice diff mlfq mlfq:queues=4 -w desk", ""),
        ],
    ),
    (
        "trace",
        &[
            ("runslice trace status pointer --sim mlfq -w desk", ""),
            ("runslice trace queue audio --sim fifo -w desk", ""),
        ],
    ),
    (
        "compare",
        &[
            (
                "runslice sim o1 mlfq -w screen --runs 5 --format json -o runs.json",
                "",
            ),
            ("runslice compare runs.json", "which differences are real"),
            ("runslice compare runs.json -o compare.html", ""),
        ],
    ),
    (
        "choose",
        &[
            (
                "runslice choose mlfq -w desk --duration 2s --goal 'p99 wait of pointer'",
                "",
            ),
            (
                "runslice sim eevdf -w desk --duration 4s --events desk.jsonl",
                "or a trace of your machine",
            ),
            ("runslice choose fifo mlfq --from desk.jsonl", ""),
        ],
    ),
    (
        "score",
        &[
            (
                "runslice sim eevdf -w desk --duration 4s --events desk.jsonl",
                "or a trace of your machine",
            ),
            (
                "runslice score desk.jsonl",
                "how far a rerun can be trusted",
            ),
        ],
    ),
    (
        "tune",
        &[(
            "runslice tune mlfq -w desk --goal 'p99 wait of pointer' --budget 50",
            "needs the Python package",
        )],
    ),
    (
        "evaluate",
        &[
            (
                r#"printf '[[load]]\nload = "desk"\n' > e.toml"#,
                "docs/evaluate.md has all keys",
            ),
            (
                "runslice evaluate e.toml fifo mlfq",
                "limits, then scores against eevdf",
            ),
        ],
    ),
    (
        "fidelity",
        &[
            (
                "runslice fidelity fifo -w desk",
                "downloads a kernel; takes 2 min",
            ),
            ("runslice fidelity --machine host", "as root"),
        ],
    ),
    (
        "calibrate",
        &[
            (
                "runslice record --with bpf --for 30s -o idle.jsonl",
                "as root",
            ),
            (
                "runslice calibrate idle.jsonl -o mine.toml",
                "needs the line above",
            ),
        ],
    ),
    (
        "report",
        &[
            (
                "runslice sim mlfq -w desk --duration 2s --events desk.jsonl",
                "",
            ),
            ("runslice report desk.jsonl", "writes report.html"),
            ("runslice report desk.jsonl --svg figures", ""),
        ],
    ),
    (
        "record",
        &[
            ("runslice record --for 30s", "as root; writes trace.dat"),
            ("runslice choose --from trace.dat", "needs the line above"),
            ("runslice record -o build.dat -- make", "as root"),
            (
                "runslice record --anonymous --for 30s",
                "as root; a file to pass on",
            ),
        ],
    ),
    (
        "stat",
        &[
            (
                "runslice sim mlfq -w desk --schedstat desk.stat",
                "of a simulation",
            ),
            ("runslice stat report desk.stat", ""),
            ("runslice stat top", "needs a terminal"),
        ],
    ),
    (
        "stat record",
        &[
            (
                "runslice stat record now.stat --for 5s",
                "needs a kernel with /proc/schedstat",
            ),
            ("runslice stat report now.stat", "needs the line above"),
        ],
    ),
    (
        "stat report",
        &[
            (
                "runslice sim mlfq -w desk --schedstat desk.stat",
                "of a simulation",
            ),
            ("runslice stat report desk.stat", ""),
            ("runslice stat report desk.stat --by cpu", ""),
        ],
    ),
    (
        "stat diff",
        &[
            (
                "runslice sim fifo -w desk --duration 2s --schedstat a.stat",
                "",
            ),
            (
                "runslice stat diff a.stat a.stat",
                "from its first snapshot to its last",
            ),
        ],
    ),
    (
        "stat task",
        &[(
            "runslice stat task $$ --for 2s",
            "needs a kernel with schedstats",
        )],
    ),
    (
        "stat top",
        &[
            ("runslice stat top", "needs a terminal"),
            (
                "runslice stat top --sort waiting --threads",
                "needs a terminal",
            ),
        ],
    ),
    (
        "stat export",
        &[
            (
                "runslice stat export",
                "needs a kernel with /proc/schedstat",
            ),
            (
                "runslice stat export --once",
                "needs a kernel with /proc/schedstat",
            ),
        ],
    ),
    (
        "run",
        &[
            ("runslice run mlfq --for 10s", "as root"),
            ("runslice run mlfq -- make", "as root"),
        ],
    ),
    (
        "set",
        &[
            ("runslice status", "needs a kernel with sched_ext"),
            ("runslice set mlfq guard_ms=10000", "as root"),
        ],
    ),
    (
        "status",
        &[("runslice status", "needs a kernel with sched_ext")],
    ),
    ("stop", &[("runslice stop", "as root")]),
    (
        "play",
        &[
            ("runslice play screen --for 2s", "needs 2 s of your machine"),
            ("runslice play desk --policy mlfq", "as root"),
        ],
    ),
    (
        "bench",
        &[
            (
                "runslice bench mlfq o1 -- make",
                "as root; eleven runs under each",
            ),
            (
                "runslice bench mlfq --play desk --runs 5 -- sleep 10",
                "as root",
            ),
        ],
    ),
    (
        "load",
        &[
            ("runslice load echo", "takes half a minute"),
            (
                "runslice load hackbench --groups 2",
                "needs the package rt-tests",
            ),
        ],
    ),
    (
        "load chat",
        &[("runslice load chat --rooms 1", "takes some seconds")],
    ),
    ("load aim", &[("runslice load aim", "takes some minutes")]),
    (
        "load kernbench",
        &[(
            "runslice load kernbench",
            "takes some minutes; needs a compiler",
        )],
    ),
    (
        "load contest",
        &[(
            "runslice load contest",
            "takes some minutes; needs a compiler",
        )],
    ),
    (
        "load echo",
        &[("runslice load echo", "takes half a minute")],
    ),
    (
        "load levels",
        &[(
            "runslice load levels --task 'hog: run' --for 2s",
            "takes 2 s",
        )],
    ),
    (
        "load turnaround",
        &[("runslice load turnaround", "takes some minutes")],
    ),
    (
        "load hackbench",
        &[(
            "runslice load hackbench --groups 2",
            "needs the package rt-tests",
        )],
    ),
    (
        "load web",
        &[(
            "runslice load web --own --requests 500",
            "takes some seconds",
        )],
    ),
    (
        "load oltp",
        &[("runslice load oltp", "needs mariadbd and sysbench")],
    ),
    (
        "load sampler",
        &[("runslice load sampler --every 1s", "takes 10 s")],
    ),
    (
        "load series",
        &[
            (
                r#"echo '{"runs": [{"id": "a", "command": ["ls"], "timeout_s": 9}]}' > p.json"#,
                "",
            ),
            ("runslice load series p.json", ""),
        ],
    ),
    (
        "vm",
        &[
            ("runslice vm -- uname -r", "downloads a kernel"),
            (
                "runslice vm --kernel 7.2 -- runslice run mlfq --for 5s",
                "downloads a kernel",
            ),
        ],
    ),
    (
        "doctor",
        &[(
            "runslice doctor",
            "needs nothing; status 4 says what is missing",
        )],
    ),
    (
        "lab",
        &[
            ("runslice lab sjf", "questions about some jobs on one CPU"),
            ("runslice lab sjf --answers", ""),
            ("runslice lab mlfq -w desk --seed 7", ""),
        ],
    ),
    (
        "reproduce",
        &[
            ("runslice reproduce", "the experiments that there are"),
            ("runslice reproduce 002-response", "takes about 1 min"),
            ("runslice reproduce torrey --table VI", "takes about 1 min"),
        ],
    ),
    (
        "completions",
        &[
            ("runslice completions bash > runslice", ""),
            ("runslice completions zsh > _runslice", ""),
        ],
    ),
    (
        "man",
        &[
            ("runslice man pages", ""),
            ("man ./pages/runslice-sim.1", "needs man"),
        ],
    ),
];
