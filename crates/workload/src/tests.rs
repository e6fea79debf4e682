//! Reading workload files, and what is said about bad ones.

use super::*;
use model::{Advice as _, CpuId, Nanos, Profile, Rng, SimTime};

mod cgroups;
mod devices;
mod stepper;

fn parse(tables: &str) -> Workload {
    let text = format!("[workload]\nname = \"test\"\n{tables}");
    Workload::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What is said about `tables`, whose first line is line 3 of the file.
fn refusal(tables: &str) -> String {
    let text = format!("[workload]\nname = \"test\"\n{tables}");
    Workload::parse(&text, "test.toml")
        .expect_err("this is no workload")
        .in_full()
}

/// What is said about one task's operations; `do` stands in line 4, its text in column 7.
fn refusal_of(ops: &str) -> String {
    let message = refusal(&format!(
        "[task.t]\ndo = '{ops}'\n[chan.c]\nkind = \"unix\"\ncount = 2\n[chan.d]\nkind = \"pipe\"\n\
         [lock.l]\n[barrier.b]\nparties = 2\n[deadline.dl]\nperiod = \"1ms\"\n"
    ));
    message
        .strip_prefix("test.toml:4:")
        .unwrap_or(&message)
        .to_owned()
}

#[test]
fn the_example_of_the_manual_is_a_workload() {
    let manual = include_str!("../../../docs/workload.md");
    let example = manual
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let workload = Workload::parse(example, "docs/workload.md").unwrap();
    assert_eq!(workload.channels[0].count, 4);
    assert_eq!(workload.stop.after, Some(Nanos::from_secs(10)));
    assert_eq!(
        (workload.groups[1].name.as_str(), workload.groups[1].nice),
        ("reader", 5)
    );
}

#[test]
fn the_manual_has_the_table_of_operations() {
    let manual = include_str!("../../../docs/workload.md");
    let rows: Vec<String> = OPERATIONS
        .iter()
        .map(|info| format!("| `{}` | {} |\n", info.forms.join("`, `"), info.meaning))
        .collect();
    let table = format!(
        "| operation | meaning |\n| --- | --- |\n{}\n",
        rows.concat()
    );
    assert!(
        manual.contains(&table),
        "docs/workload.md must have this table under Operations:\n{table}"
    );
}

#[test]
fn the_manual_names_every_kernel_that_a_machine_can_have() {
    let manual = include_str!("../../../docs/workload.md");
    let row = manual.lines().find(|it| it.starts_with("| `kernel` |"));
    let row = row.expect("docs/workload.md has a row for the kernel");
    for kernel in model::Kernel::ALL {
        let name = format!("`\"{}\"`", kernel.name());
        assert!(row.contains(&name), "{name} is missing: {row}");
    }
}

#[test]
fn every_row_of_the_table_is_read_and_every_operation_has_a_row() {
    fn names<'a>(steps: &'a [Step], found: &mut Vec<&'a str>) {
        for step in steps {
            found.push(Info::of(&step.op).name);
            match &step.op {
                Operation::If {
                    then, otherwise, ..
                } => {
                    names(then, found);
                    names(otherwise, found);
                }
                Operation::Choose(arms) => arms.iter().for_each(|(_, arm)| names(arm, found)),
                Operation::Loop { body, .. }
                | Operation::While { body, .. }
                | Operation::Attempt {
                    otherwise: body, ..
                } => names(body, found),
                _ => {}
            }
        }
    }
    let workload = parse(
        "[chan.c]\nkind = \"queue\"\n[lock.l]\n[lock.k]\nkind = \"keyed\"\nkeys = 2\n\
         [lock.w]\nkind = \"rw\"\n[sem.s]\n[cond.v]\n[listen.a]\n[barrier.b]\nparties = 1\n\
         [arrival.r]\nkind = \"poisson\"\nrate = 9\nsend = \"c\"\n[disk.d]\n\
         [mem]\nram = \"8MiB\"\nswap = \"d\"\n[deadline.e]\nperiod = \"1ms\"\n[cgroup.g]\n\
         [task.t]\ncount = 1\ndo = [\"run(1ms), exec(1ms), sleep(1ms), sleepuntil(1s)\",\n\
         \"poll(1ms, 1us), timer(1ms), send(c)\",\n\
         \"recv(c), bcast(c, 0, 1), lock(l) else [ exit ], unlock(l), lock(l), lock_shared(w)\",\n\
         \"unlock_all(k), sem_wait(s), sem_post(s), wait(v, l), signal(v), broadcast(v)\",\n\
         \"connect(a), accept(a), done(r), read(d, 1), write(d, 1), fsync(d), writeback(d)\",\n\
         \"touch(1), reclaim, barrier(b), yield, suspend, resume(t), fork(t), waitpid(all)\",\n\
         \"migrate_disable, migrate_enable\",\n\
         \"pool(t, 1, 1), choose(1: yield), if(1)[ yield ], loop(2)[ ], for(i, 2)[ ]\",\n\
         \"while(0)[ ], let x = 1, setnice(self, 1), setaffinity(self, all)\",\n\
         \"setpolicy(self, normal), cgroup_move(self, g), cgroup_weight(g, 1)\",\n\
         \"cgroup_max(g, inf), cgroup_idle(g, 1), phase(p), span_begin(m), span_end(m)\",\n\
         \"span_begin(m, 1), span_end(m, 1), count(n), release(e), complete(e)\"]\n",
    );
    let mut found = Vec::new();
    names(&workload.groups[0].body, &mut found);
    for info in OPERATIONS {
        // A `for` becomes a loop.
        let name = if info.name == "for" {
            "loop"
        } else {
            info.name
        };
        assert!(found.contains(&name), "`{}` is not read", info.name);
    }
}

#[test]
fn a_jitter_lets_each_task_begin_later_by_its_own_draw() {
    let task = "[task.b]\ncount = 100\nstart = \"uniform(1ms, 2ms)\"\ndo = [\"run(1ms)\"]\n";
    let (exact, late) = (
        parse(task),
        parse(&format!("start_jitter = \"4ms\"\n{task}")),
    );
    assert_eq!(
        (exact.start_jitter, late.start_jitter),
        (Nanos::ZERO, Nanos::from_millis(4))
    );
    let later = |seed| {
        let of = |index| late.start(seed, 0, index).get() - exact.start(seed, 0, index).get();
        (0..100).map(of).collect::<Vec<_>>()
    };
    let drawn = later(1);
    assert!(drawn.iter().all(|by| *by <= 4_000_000), "{drawn:?}");
    assert!(drawn.iter().any(|by| *by > 3_000_000) && drawn.iter().any(|by| *by < 1_000_000));
    assert_ne!(drawn, later(2), "another seed");
    assert_eq!(drawn, later(1));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of what one file says")]
fn everything_in_the_tables_arrives_in_the_tree() {
    let workload = parse(
        "seed = 7\nstop = [\"task:b\", \"duration:3s\"]\nscale = { n = 3 }\n\
         [machine]\ncpus = 8\nhz = 1000\nsmt = 2\nllc = 4\nprofile = \"ideal\"\n\
         [chan.c]\nkind = \"tcp\"\ncount = \"2 * n\"\ncap = \"64KiB\"\nmsg = 0x10\n\
         [lock.l]\nhandoff = \"barge\"\n[barrier.g]\nparties = \"n + 1\"\n\
         [irq.i]\ncpu = 2\nevery = \"8ms\"\njitter = \"exp(1us)\"\nsend = \"c[n]\"\n\
         [irq.j]\npoisson = \"2ms\"\nresume = \"b\"\n\
         [deadline.d]\nperiod = \"10ms\"\nbegins = \"0ms\"\npassed = \"queue\"\n\
         miss = \"underrun\"\n\
         [task.b]\ncount = \"n\"\nnice = -5\npolicy = \"rr:12\"\ncpus = \"0-2\"\n\
         kind = \"process\"\nmigration_disabled = true\n\
         start = \"uniform(1ms, 2ms)\"\ndo = [\"run(1.5ms * n)\", \"yield\"]\n",
    );
    assert_eq!(
        (workload.seed, workload.scale.as_slice()),
        (7, &[("n".to_owned(), 3)][..])
    );
    let stop = StopRule {
        after: Some(Nanos::from_secs(3)),
        groups: vec![0],
        requests: vec![],
    };
    assert_eq!(workload.stop, stop);
    let machine = &workload.machine;
    assert_eq!(
        (machine.cpus, machine.hz, machine.smt, machine.llc),
        (8, 1000, 2, 4)
    );
    assert_eq!(machine.profile, Profile::Ideal);
    let channel = &workload.channels[0];
    assert_eq!(
        (channel.kind, channel.count, channel.msg),
        (ChannelKind::Tcp, 6, 16)
    );
    assert_eq!(channel.capacity, Capacity::Bytes(65_536));
    assert_eq!(workload.locks[0].handoff, Handoff::Barge);
    assert_eq!(
        (workload.barriers[0].count, workload.barriers[0].parties),
        (1, 4)
    );
    let irq = &workload.interrupts[0];
    let jitter = Some(Dist::Exp(Nanos::from_micros(1)));
    assert_eq!(irq.cpu, CpuId(2));
    assert_eq!(
        irq.arrival,
        Arrival::Periodic {
            period: Nanos::from_millis(8),
            jitter
        }
    );
    assert_eq!(
        irq.effect,
        Effect::Send(IndexedResource {
            of: 0,
            index: Expr::Number(3)
        })
    );
    let member = Target::Member {
        group: 0,
        index: Expr::Number(0),
    };
    assert_eq!(workload.interrupts[1].effect, Effect::Resume(member));
    let deadline = &workload.deadlines[0];
    assert_eq!(
        (deadline.begins, deadline.slack, deadline.skip),
        (Some(Nanos::ZERO), Nanos::from_millis(10), false)
    );
    let group = &workload.groups[0];
    assert_eq!(
        (group.count, group.nice, group.policy),
        (3, -5, SchedPolicy::RoundRobin(12))
    );
    assert_eq!(
        (group.cpus.clone(), group.kind, group.migration_disabled),
        (CpuSet::parse("0-2"), TaskKind::Process, true)
    );
    let amount = Amount {
        dist: Dist::Const(Nanos::from_micros(1500)),
        times: Expr::Number(3),
    };
    let lines: Vec<u32> = group.body.iter().map(|step| step.line).collect();
    assert_eq!(
        (&group.body[0].op, lines),
        (&Operation::Run(Some(amount)), vec![42, 42])
    );
}

#[test]
fn a_group_that_is_forked_has_no_tasks_from_the_start_unless_it_says_so() {
    let workload = parse(
        "[task.make]\ndo = \"pool(job, 2, 9), fork(ld), waitpid(all)\"\n[task.job]\ndo = \"exit\"\n\
         [task.ld]\ncount = 2\ndo = \"exit\"\n",
    );
    let counts: Vec<u32> = workload.groups.iter().map(|group| group.count).collect();
    assert_eq!(counts, [1, 0, 2]);
    assert_eq!(
        (workload.task_name(0, 0), workload.task_name(0, 1)),
        ("make".into(), "make.1".into())
    );
    assert_eq!(
        (workload.task_name(1, 0), workload.task_name(2, 1)),
        ("job.0".into(), "ld.1".into())
    );
}

#[test]
fn a_group_that_nobody_begins_is_an_error_where_it_stands() {
    let of = |text: &str| {
        let text = format!("[workload]\nname = \"x\"\n{text}");
        let read = Workload::parse(&text, "test.toml");
        read.map_err(|error| error.in_full())
            .err()
            .unwrap_or_default()
    };
    let circle = "[task.a]\ndo = \"fork(b)\"\n[task.b]\ndo = \"fork(a)\"\n";
    for text in ["[task.a]\ndo = \"loop(inf)[ fork(a) ]\"\n", circle] {
        let said = of(text);
        assert!(said.starts_with("test.toml:3:"), "{said}");
        assert!(said.contains("tasks that nobody begins"), "{said}");
        assert!(said.contains("`count = 1`"), "{said}");
    }
    // Whoever says a number has thought of it; and one that begins is enough.
    let none = circle.replacen("do =", "count = 0\ndo =", 1);
    let begun = format!("{circle}[task.c]\ndo = \"pool(b, 1, 2)\"\n");
    assert_eq!([of(&none), of(&begun)], ["", ""]);
}

#[test]
fn names_of_spans_counters_and_phases_are_collected_once() {
    let workload = parse(
        "[deadline.x]\nslack = \"1ms\"\nmiss = \"late\"\n[task.t]\ncount = 2\n\
         do = \"phase(p), span_begin(s), span_end(s), span_begin(u), count(a), count(b, 2), \
         count(a)\"\n",
    );
    let header = workload.header("fifo", &workload.machine, 9, None);
    assert_eq!(
        (header.spans, header.phases),
        (vec!["s".into(), "u".into()], vec!["p".to_owned()])
    );
    assert_eq!(header.counters, ["a", "b"]);
    // Operations say them by their place in those lists.
    let numbers = workload.groups[0].body.iter().map(|step| match &step.op {
        Operation::Phase(number) | Operation::SpanBegin(number) => *number,
        Operation::SpanEnd(number) => *number,
        Operation::Count { counter, .. } => *counter,
        other => panic!("{other:?}"),
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 0, 0, 1, 0, 1, 0]);
    assert_eq!(header.deadlines, [("x".to_owned(), "late".to_owned())]);
    assert_eq!((header.groups[0].count, header.seed), (2, 9));
}

#[test]
fn parameters_can_be_set_and_unknown_ones_are_refused() {
    let text =
        "[workload]\nname = \"t\"\nscale = { n = 1 }\n[task.t]\ncount = \"n * 2\"\ndo = \"exit\"\n";
    let set = |name: &str| Workload::parse_with(text, "t.toml", &[(name.to_owned(), 4)]);
    assert_eq!(set("n").unwrap().groups[0].count, 8);
    let message = set("nn").unwrap_err().in_full();
    assert_eq!(
        message,
        "t.toml:3:9: unknown parameter `nn`; did you mean `n`?"
    );
}

#[test]
fn operators_bind_as_the_manual_says() {
    let value = |text: &str| {
        let workload = parse(&format!("[task.t]\ncount = \"{text}\"\ndo = \"exit\"\n"));
        workload.groups[0].count
    };
    assert_eq!(value("2 + 3 * 4 - 6 / 4"), 13);
    assert_eq!(value("(2 + 3) * 4 % 7"), 6);
    assert_eq!(value("10 - 4 - 3"), 3);
    assert_eq!(value("- -7 % 4"), 3);
    assert_eq!(value("1 + 1 == 2 and not 3 < 2 or 1 / 0"), 1);
    assert_eq!(value("0 and 1 / 0 or not 0 == 1"), 1);
    assert_eq!(value("2 >= 2 and 2 <= 2 and 1 != 2 and 3 > 2"), 1);
}

const BAD_OPERATIONS: &[(&str, &str)] = &[
    ("run(1ms", "14: found the end; expected `)`"),
    (
        "run(1)",
        "11: found `1`; expected a span of time, as `1.5ms`, or a distribution",
    ),
    (
        "run(1.5)",
        "11: found `1.5`; expected a span of time, as `1.5ms`, or a distribution",
    ),
    (
        "run(exp(2ms) * 1.0)",
        "22: found `1.0`; expected a whole number as the factor, as `2`, a name or `( e )`",
    ),
    (
        "run(0.5ns)",
        "11: found `0.5ns`; expected whole nanoseconds",
    ),
    ("run(2sec)", "11: unknown unit `sec`; did you mean `s`?"),
    (
        "slep(1ms)",
        "7: unknown operation `slep`; did you mean `sleep`?",
    ),
    (
        "yield run(1ms)",
        "13: found `run`; expected `,`, `]` or the end after an operation",
    ),
    (
        "run(gauss(1ms, 2))",
        "11: unknown distribution `gauss`; correct the name",
    ),
    (
        "run(lognormal(1ms, 0))",
        "26: sigma is 0; expected more than 0 and at most 1000",
    ),
    (
        "run(uniform(2ms, 1ms))",
        "24: found 1000000 ns; expected a span of at least 2000000 ns",
    ),
    (
        "run(hist(1ms: 0))",
        "16: found weights whose sum is 0 or exceeds 64 bits; expected weights to draw by",
    ),
    ("send(e)", "12: unknown channel `e`; did you mean `c`?"),
    ("send(c)", "12: `c` has 2 instances; say which: `c[i]`"),
    (
        "send(c[x])",
        "14: `x` is no number, and the file gives no number that name; write a number, \
         or a name that stands in `scale`",
    ),
    ("recv(d[)", "14: found `)`; expected an integer or a name"),
    ("loop(3) run(1ms)", "15: found `run`; expected `[`"),
    ("loop(3)[ run(1ms)", "24: found the end; expected `]`"),
    ("run(1ms) ]", "16: found `]`; expected the end"),
    ("x = 3", "7: unknown variable `x`; correct the name"),
    (
        "loop(2)[ let x = 1 ], count(n, x)",
        "38: `x` is no number, and the file gives no number that name; write a number, \
         or a name that stands in `scale`",
    ),
    ("let self = 1", "11: `self` is taken; give it another name"),
    ("fork(tt)", "12: unknown task `tt`; did you mean `t`?"),
    ("waitpid(some)", "15: found `some`; expected `any` or `all`"),
    (
        "setpolicy(self, fifo:100)",
        "28: the real-time priority is 100; expected 1 to 99",
    ),
    (
        "setpolicy(self, dead)",
        "23: found `dead`; expected `normal` or `batch` or `idle` or `fifo` or `rr` or `deadline`",
    ),
    (
        "setaffinity(self, 1)",
        "25: found `1`; expected CPUs as `{0-3,5}`, or `all`",
    ),
    (
        "setaffinity(self, {3-1})",
        "25: found `{3-1})`; expected CPUs as `{0-3,5}`",
    ),
    ("lock(c)", "12: unknown lock `c`; did you mean `l`?"),
    ("release(b)", "15: unknown deadline `b`; correct the name"),
    ("timer(0s)", "13: the period is 0; expected 1ns or more"),
    ("poll(1ms, 0us)", "17: the step is 0; expected 1ns or more"),
    ("poll(1ms)", "15: found `)`; expected `,`"),
    (
        "choose(0: yield)",
        "13: found weights whose sum is 0 or exceeds 64 bits; expected weights to draw by",
    ),
    (
        "choose(self: yield)",
        "14: `self` is known only when the workload runs; expected a constant",
    ),
    (
        "choose(1 - 2: yield)",
        "14: the weight is -1; expected 0 or more",
    ),
    (
        "mem(D)",
        "7: `mem` is not simulated yet; see the end of docs/workload.md",
    ),
    ("run(1ms) ö", "16: found `ö`; expected a word or a sign"),
    (
        "count(n, 99999999999999999999)",
        "16: found `99999999999999999999`; expected an integer of at most 63 bits",
    ),
];

#[test]
fn a_mistake_in_an_operation_is_shown_where_it_stands() {
    for (ops, want) in BAD_OPERATIONS {
        assert_eq!(refusal_of(ops), *want, "{ops}");
    }
}

const BAD_TABLES: &[(&str, &str)] = &[
    (
        "",
        "test.toml:1:1: the file lacks `task`; expected at least one table [task.NAME]",
    ),
    (
        "[task.t]\n",
        "test.toml:3:1: [task.t] lacks `do`; expected what the task does",
    ),
    (
        "[task.t]\ndo = 3\n",
        "test.toml:4:6: found the number 3; \
         expected operations, as \"loop(inf)[ run(1ms), sleep(2ms) ]\"",
    ),
    (
        "[task.t]\ndoo = \"exit\"\ndo = \"exit\"\n",
        "test.toml:4:1: unknown key `doo`; did you mean `do`?",
    ),
    (
        "[tusk.t]\n",
        "test.toml:3:2: unknown key `tusk`; did you mean `task`?",
    ),
    (
        "[profile.D]\n",
        "test.toml:3:2: `[profile]` is not simulated yet; see the end of docs/workload.md",
    ),
    (
        "[task.t]\ncount = 1000000\ndo = \"exit\"\n",
        "test.toml:4:9: count is 1000000; expected 0 to 100000",
    ),
    (
        "[task.t]\ncount = 60000\ndo = \"exit\"\n[task.u]\ncount = 60000\ndo = \"exit\"\n",
        "test.toml:7:9: the number of tasks of all groups so far is 120000; \
         expected at most 100000",
    ),
    (
        "[task.t]\nnice = 20\ndo = \"exit\"\n",
        "test.toml:4:8: nice is 20; expected -20 to 19",
    ),
    (
        "[task.t]\nutil_max = 1025\ndo = \"exit\"\n",
        "test.toml:4:12: util_max is 1025; expected 0 to 1024",
    ),
    (
        "[task.t]\nutil_max = 1\nutil_min = 2\ndo = \"exit\"\n",
        "test.toml:5:12: found `util_min` of 2 above `util_max` of 1; \
         expected at most `util_max`",
    ),
    (
        "[task.t]\ncount = \"self\"\ndo = \"exit\"\n",
        "test.toml:4:10: `self` is known only when the workload runs; expected a constant",
    ),
    (
        "[task.t]\ncount = \"1 / 0\"\ndo = \"exit\"\n",
        "test.toml:4:10: no value: division by zero",
    ),
    (
        "[task.t]\ncount = -1\ndo = \"exit\"\n",
        "test.toml:4:9: count is -1; expected 0 to 100000",
    ),
    (
        "[task.t]\ncpus = \"4-2\"\ndo = \"exit\"\n",
        "test.toml:4:9: found \"4-2\"; expected CPUs, as \"0-3,5\" or \"all\"",
    ),
    (
        "[task.t]\nkind = \"fibre\"\ndo = \"exit\"\n",
        "test.toml:4:9: found \"fibre\"; expected \"thread\" or \"process\" or \"kernel\"",
    ),
    (
        "[task.self]\ndo = \"exit\"\n",
        "test.toml:3:7: `self` is taken; give it another name",
    ),
    (
        "[task.t-1]\ndo = \"exit\"\n",
        "test.toml:3:7: found `t-1`; \
         expected a name of letters, digits and `_` that begins with a letter",
    ),
    (
        "[chan.c]\n",
        "test.toml:3:1: [chan.c] lacks `kind`; \
         expected \"unix\", \"pipe\", \"tcp\" or \"queue\"",
    ),
    (
        "[chan.c]\nkind = \"pipe\"\ncap = \"0msg\"\n",
        "test.toml:5:8: the capacity is 0; expected 1 or more",
    ),
    (
        "[lock.l]\nkind = \"spin\"\n",
        "test.toml:4:9: found \"spin\"; expected \"mutex\" or \"rw\" or \"keyed\"",
    ),
    (
        "[deadline.d]\n",
        "test.toml:3:1: [deadline.d] lacks `slack`; expected a span of time",
    ),
    (
        "[deadline.d]\nslack = \"5ms\"\nbegins = \"0ms\"\n",
        "test.toml:3:1: [deadline.d] lacks `period`; expected a span of time, as it has `begins`",
    ),
    (
        "[irq.i]\nevery = \"1ms\"\npoisson = \"1ms\"\n",
        "test.toml:3:1: [irq.i] lacks `every`; expected one of `every`, `poisson` and `once`",
    ),
    (
        "[irq.i]\nonce = true\njitter = \"1ms\"\n",
        "test.toml:5:11: found `jitter`; expected it only with `every`",
    ),
    (
        "[irq.i]\nonce = 1\n",
        "test.toml:4:8: found the number 1; expected `true` or `false`",
    ),
    (
        "[irq.i]\nonce = true\nresume = \"t[self]\"\n",
        "test.toml:5:11: `self` is known only when the workload runs; expected a constant",
    ),
    (
        "[machine]\nhz = 200\n",
        "test.toml:4:6: found the number 200; expected 100, 250, 300 or 1000",
    ),
    (
        "[machine]\ncpus = 2000\n",
        "test.toml:4:8: cpus is 2000; expected 1 to 1024",
    ),
    (
        "[machine]\ncpus = 2\nllc = 8\n",
        "test.toml:5:7: found the number 8; expected at most 2, the number of CPUs",
    ),
    (
        "[machine]\nnode = 8\n",
        "test.toml:4:8: found the number 8; expected at most 4, the number of CPUs",
    ),
    (
        "stop = \"never\"\n",
        "test.toml:3:9: found \"never\"; \
         expected \"all-exit\", \"duration:30s\", \"task:NAME\" or \"arrival:NAME\"",
    ),
    (
        "stop = [\"task:u\"]\n",
        "test.toml:3:15: unknown task `u`; did you mean `t`?",
    ),
    (
        "stop = \"duration:5\"\n",
        "test.toml:3:18: found `5`; expected a span of time with its unit, as `1.5ms`",
    ),
    (
        "seed = -1\n",
        "test.toml:3:8: the seed is -1; expected 0 to 9223372036854775807",
    ),
    (
        "speed = 1\n",
        "test.toml:3:1: unknown key `speed`; did you mean `seed`?",
    ),
    (
        "scale = { inf = 1 }\n",
        "test.toml:3:11: `inf` is taken; give it another name",
    ),
];

#[test]
fn the_document_lists_every_kernel_that_a_machine_may_have() {
    let manual = include_str!("../../../docs/workload.md");
    let row = manual
        .lines()
        .find(|it| it.starts_with("| `kernel` | `\"6.18\"` |"));
    let values = row.expect("a row").rsplit_once("` | ").expect("its cell").1;
    let named: Vec<&str> = values.split('"').skip(1).step_by(2).collect();
    assert_eq!(named, model::Kernel::ALL.map(model::Kernel::name));
}

#[test]
fn a_mistake_in_a_table_is_shown_where_it_stands() {
    let task = "[task.t]\ndo = \"exit\"\n";
    for (tables, want) in BAD_TABLES {
        let needs_task = !tables.is_empty() && !tables.contains("[task");
        let tables = if needs_task {
            format!("{tables}{task}")
        } else {
            (*tables).to_owned()
        };
        assert_eq!(refusal(&tables), *want, "{tables}");
    }
}

#[test]
fn a_name_that_fits_no_table_is_refused_with_its_length() {
    let long = "x".repeat(256);
    let of_task = format!("[task.{long}]\ndo = \"exit\"\n");
    let want = "test.toml:3:7: found a name of 256 characters; expected at most 255";
    assert_eq!(refusal(&of_task), want);
    let of_load = format!("[workload]\nname = \"{long}\"\n[task.t]\ndo = \"exit\"\n");
    let error = Workload::parse(&of_load, "test.toml").unwrap_err();
    let want = "test.toml:2:9: found a name of 256 characters; expected at most 255";
    assert_eq!(error.in_full(), want);
}

#[test]
fn what_is_no_toml_is_refused_with_its_line() {
    let message = refusal("[task.t\n");
    assert!(
        message.starts_with("test.toml:3:8: not TOML: "),
        "{message}"
    );
    let message = Workload::parse("", "empty.toml").unwrap_err().in_full();
    assert_eq!(
        message,
        "empty.toml:1:1: the file lacks `workload`; expected a table with the workload's name"
    );
}

#[test]
fn a_mistake_in_a_long_string_is_shown_in_its_own_line() {
    let message = refusal("[task.t]\ndo = \"\"\"\n  run(1ms),\n  juggle(1ms)\n\"\"\"\n");
    assert_eq!(
        message,
        "test.toml:6:3: unknown operation `juggle`; correct the name"
    );
    let message = refusal("[task.t]\ndo = [\"run(1ms)\",\n  \"\\u006auggle(1ms)\"]\n");
    assert_eq!(
        message,
        "test.toml:5:3: unknown operation `juggle`; correct the name"
    );
}

#[test]
fn nesting_beyond_reason_is_refused_and_not_followed() {
    let deep = 100_000;
    for ops in [
        format!("count(n, {}1", "(".repeat(deep)),
        format!("count(n, {}1)", "-".repeat(deep)),
        format!("if({}1)[]", "not ".repeat(deep)),
        format!("count(n, 1{})", " + 1".repeat(deep)),
        "loop(2)[".repeat(deep),
        "choose(1:".repeat(deep),
        format!("count(n, {}", "len(c[".repeat(deep)),
    ] {
        let message = refusal_of(&ops);
        assert!(
            message.contains("nested or chained more than 100 deep"),
            "{message:.200}"
        );
    }
}

#[test]
fn no_text_makes_the_front_end_panic() {
    let text = include_str!("../../../workloads/desk.toml");
    let signs = [
        "[", "]", "(", ")", "\"", "'", "-", "=", "{", "}", "ö", "\n", "0", "ms", ":", ",",
    ];
    let mut rng = Rng::new(5, 0);
    let mut refused = 0;
    for _ in 0..3000 {
        let mut broken: Vec<char> = text.chars().collect();
        for _ in 0..=rng.below(3) {
            let at = usize::try_from(rng.below(broken.len() as u64)).unwrap();
            let sign = signs[usize::try_from(rng.below(signs.len() as u64)).unwrap()];
            let end = (at + usize::try_from(rng.below(4)).unwrap()).min(broken.len());
            broken.splice(at..end, sign.chars());
        }
        let broken: String = broken.into_iter().collect();
        refused += usize::from(Workload::parse(&broken, "broken.toml").is_err());
    }
    assert!(
        refused > 1000,
        "only {refused} of the broken files were refused"
    );
}

#[test]
fn draws_follow_their_distribution() {
    let mean = |dist: &Dist| {
        let mut rng = Rng::new(11, 0);
        (0..20_000)
            .map(|_| dist.sample(&mut rng).get())
            .sum::<u64>()
            / 20_000
    };
    let us = Nanos::from_micros;
    let near = |value: u64, want: u64| value.abs_diff(want) * 100 < want * 4;
    assert_eq!(mean(&Dist::Const(us(7))), 7_000);
    assert!(near(mean(&Dist::Uniform(us(10), us(30))), 20_000));
    assert!(near(mean(&Dist::Exp(us(50))), 50_000));
    // exp(sigma^2 / 2) = 1.1331 for sigma = 0.5.
    assert!(near(
        mean(&Dist::Lognormal {
            median: us(100),
            sigma: 0.5
        }),
        113_315
    ));
    // shape / (shape - 1) = 1.5 for a shape of 3.
    assert!(near(
        mean(&Dist::Pareto {
            scale: us(100),
            shape: 3.0
        }),
        150_000
    ));
    assert!(near(mean(&Dist::Hist(vec![(us(1), 3), (us(9), 1)])), 3_000));
}

#[test]
fn draws_are_the_same_on_every_machine() {
    let draws = |dist: Dist| {
        let mut rng = Rng::new(1, 2);
        [(); 3].map(|()| dist.sample(&mut rng).get())
    };
    // Computed apart from this code, with another library's logarithms and powers.
    let ms = Nanos::from_millis(1);
    assert_eq!(
        draws(Dist::Uniform(Nanos::ZERO, ms)),
        [507_741, 88_349, 854_496]
    );
    assert_eq!(draws(Dist::Exp(ms)), [708_751, 92_498, 1_927_548]);
    assert_eq!(
        draws(Dist::Lognormal {
            median: ms,
            sigma: 0.8
        }),
        [1_013_347, 472_246, 1_740_448]
    );
    assert_eq!(
        draws(Dist::Pareto {
            scale: ms,
            shape: 1.5
        }),
        [1_604_000, 1_063_606, 3_614_783]
    );
}

#[test]
fn a_draw_is_cut_before_it_overflows() {
    let mut rng = Rng::new(3, 0);
    let dist = Dist::Pareto {
        scale: Nanos::from_secs(1),
        shape: 0.001,
    };
    assert!((0..1000).all(|_| dist.sample(&mut rng) <= DRAW_MAX));
}
