//! What the stepper makes of operations.

use model::EventKind;

use super::*;

/// A machine where a millisecond passes with each command, and children exit at once when asked.
struct Still {
    now: SimTime,
    children: u32,
    instructions: u32,
    /// What was asked for and done, with its deadline.
    released: Vec<(u32, Option<SimTime>)>,
}

impl World for Still {
    fn now(&self) -> SimTime {
        self.now
    }

    fn cpus(&self) -> u16 {
        2
    }

    fn queued(&self, channel: ResourceInstance) -> u64 {
        u64::from(channel.index) + 5
    }

    fn children(&mut self) -> u32 {
        self.children
    }

    fn released(&mut self, deadline: u32, release: Option<SimTime>) {
        self.released.push((deadline, release));
    }

    fn count_instruction(&mut self) -> Result<(), TaskFault> {
        self.instructions += 1;
        match self.instructions {
            1_000.. => Err(TaskFault::NoProgress { steps: 1_000 }),
            _ => Ok(()),
        }
    }
}

/// All commands of a task that does `ops`; the last is the fault that ended it, if one did.
fn commands(ops: &str) -> (Vec<Command>, Option<TaskFault>) {
    let (commands, fault, _) = watched(ops);
    (commands, fault)
}

/// As [`commands`], with what the machine saw.
fn watched(ops: &str) -> (Vec<Command>, Option<TaskFault>, Still) {
    let workload = parse(&format!(
        "[chan.c]\nkind = \"unix\"\ncount = 2\n[deadline.d]\nperiod = \"2ms\"\n\
         [task.t]\ncount = 1\ndo = '{ops}'\n"
    ));
    let code = Code::new(&workload.groups[0].body, workload.groups[0].variables);
    let mut stepper = Stepper::new(&code, 1, 0, 0);
    let mut world = Still {
        now: SimTime::ZERO,
        children: 0,
        instructions: 0,
        released: Vec::new(),
    };
    let mut commands = Vec::new();
    loop {
        match stepper.next(&code, &workload, &mut world) {
            Err(fault) => return (commands, Some(fault), world),
            Ok(Command::Exit) => return (commands, None, world),
            Ok(command) => {
                match command {
                    Command::Fork(_) => world.children += 1,
                    Command::AwaitChild => world.children -= 1,
                    Command::Recv(_) => stepper.received(world.now, 7),
                    _ => {}
                }
                commands.push(command);
                world.now = world.now + Nanos::from_millis(1);
            }
        }
    }
}

fn at(ms: u64) -> SimTime {
    SimTime::ZERO + Nanos::from_millis(ms)
}

#[test]
fn the_expressions_of_an_instruction_are_those_that_it_evaluates() {
    let workload = parse(
        "[chan.c]\nkind = \"unix\"\n[task.t]\n\
         do = 'if(got)[ send(c, 9, 5) ], loop(2)[ yield ]'\n",
    );
    let code = Code::new(&workload.groups[0].body, workload.groups[0].variables);
    let mut all: Vec<Expr> = Vec::new();
    for instr in &code.instrs {
        all.extend(instr.exprs().into_iter().cloned());
    }
    for want in [Expr::Got, Expr::Number(9), Expr::Number(5)] {
        assert!(all.contains(&want), "{want:?}: {all:?}");
    }
}

#[test]
fn loops_conditions_and_expressions_are_behind_a_command() {
    let (found, fault) = commands(
        "for(i, 2)[ if(i == 1)[ send(c[i], 9, len(c[i])) ] else [ recv(c[cpus - 2]) ] ], \
         run(const(1us) * got), sleep(0ms)",
    );
    let instance = |index| ResourceInstance { of: 0, index };
    let send = Command::Send {
        to: instance(1),
        bytes: 9,
        value: 6,
    };
    let run = Command::Run(Nanos::from_micros(7));
    assert_eq!(fault, None);
    assert_eq!(found, [Command::Recv(instance(0)), send, run]);
}

#[test]
fn a_section_that_forbids_migration_is_a_command_at_either_end() {
    let (found, _) = commands("loop(2)[ migrate_disable, migrate_enable ]");
    let section = [Command::MigrateDisable, Command::MigrateEnable];
    assert_eq!(found, [section.clone(), section].concat());
}

#[test]
fn a_timer_and_a_release_keep_their_grid() {
    let (found, _) = commands("loop(2)[ timer(10ms), yield ]");
    let until = |ms| Command::SleepUntil(at(ms));
    assert_eq!(
        found,
        [until(10), Command::Yield, until(20), Command::Yield]
    );
    let (found, _) = commands("release(d), loop(7)[ yield ], release(d), complete(d)");
    let record = |kind, value| Command::Record {
        kind,
        number: 0,
        value,
    };
    // Released at 0, 2, 4 and 6 ms; at 7 ms the last of these is served, two are given up.
    let tail = [
        record(EventKind::Skipped, 2),
        record(EventKind::Deadline, 0),
    ];
    assert_eq!(found[7..], tail);
}

#[test]
fn the_machine_hears_what_was_asked_for_and_what_is_done() {
    let (_, fault, world) = watched("release(d), yield, complete(d), release(d), yield");
    assert_eq!(fault, None);
    let want = [(0, Some(at(0))), (0, None), (0, Some(at(2)))];
    assert_eq!(world.released, want);
}

#[test]
fn a_task_sleeps_until_a_time_of_the_run_unless_it_has_passed() {
    let (found, fault) = commands("yield, sleepuntil(5ms), yield, sleepuntil(2ms), yield");
    let until = Command::SleepUntil(at(5));
    let want = [Command::Yield, until, Command::Yield, Command::Yield];
    assert_eq!((found, fault), (want.to_vec(), None));
}

#[test]
fn a_poll_takes_steps_until_the_clock_says_that_its_span_has_passed() {
    // A millisecond passes with each command, however short its step: others have the CPU.
    let (found, fault) = commands("loop(2)[ poll(1ms * (len(c[0]) - 2), 10us), yield ]");
    let step = Command::Run(Nanos::from_micros(10));
    let poll = [&step, &step, &step, &Command::Yield];
    assert_eq!(fault, None);
    assert_eq!(found.iter().collect::<Vec<_>>(), [poll, poll].concat());
}

#[test]
fn a_poll_does_not_cut_its_last_step_and_without_a_span_takes_none() {
    let (found, fault) = commands("poll(1ns, 5ms), poll(0ms, 5ms), poll(0ms, 5ms)");
    let want = vec![Command::Run(Nanos::from_millis(5))];
    assert_eq!((found, fault), (want, None));
}

#[test]
fn a_pool_evaluates_its_numbers_once_and_is_never_wider() {
    let (found, fault) = commands("pool(t, 2, 1 + rand(1) + 2)");
    let (fork, wait) = (Command::Fork(0), Command::AwaitChild);
    let want = [&fork, &fork, &wait, &fork, &wait, &wait];
    assert_eq!(found.iter().collect::<Vec<_>>(), want);
    assert_eq!(fault, None);
}

#[test]
fn a_time_that_no_run_reaches_is_a_fault() {
    for ops in [
        "loop(400)[ sleep(8640000s) ]",
        "loop(400)[ timer(8640000s) ]",
        "poll(1ns, 1ns)",
    ] {
        let workload = parse(&format!("[task.t]\ndo = '{ops}'\n"));
        let code = Code::new(&workload.groups[0].body, workload.groups[0].variables);
        let mut stepper = Stepper::new(&code, 1, 0, 0);
        let mut world = Still {
            now: TIME_MAX,
            children: 0,
            instructions: 0,
            released: Vec::new(),
        };
        let next = stepper.next(&code, &workload, &mut world);
        assert_eq!(next, Err(TaskFault::TooLate), "{ops}");
    }
}

#[test]
fn a_machine_can_stop_a_task_that_goes_round() {
    for ops in ["loop(inf)[ let x = 1 ]", "loop(inf)[ poll(0ns, 1ns) ]"] {
        let (found, fault) = commands(ops);
        assert_eq!(found, [], "{ops}");
        assert_eq!(fault, Some(TaskFault::NoProgress { steps: 1_000 }), "{ops}");
    }
}

#[test]
fn a_timer_with_a_deadline_says_at_each_point_how_late_the_work_before_it_was() {
    // Each command takes a millisecond, sleeps too; the deadline's slack is 2 ms.
    let late = |ops: &str| -> Vec<u64> {
        let (found, fault) = commands(ops);
        assert_eq!(fault, None, "{ops}");
        let late = found.iter().filter_map(|command| match command {
            Command::Record {
                kind: EventKind::Deadline,
                value,
                ..
            } => Some(*value),
            _ => None,
        });
        late.collect()
    };
    let in_time = late("loop(3)[ yield, timer(10ms, start, deadline(d)) ]");
    assert_eq!(in_time, [0, 0, 0]);
    let twice = late("loop(2)[ yield, yield, yield, timer(2ms, start, deadline(d)) ]");
    assert_eq!(
        twice,
        [1_000_000, 3_000_000],
        "at 3 ms for 2, at 7 ms for 4"
    );
    let moved = late("yield, yield, yield, timer(2ms, start, move, deadline(d))");
    assert_eq!(moved, [1_000_000]);
    // Nothing was due before a grid that begins with the operation.
    assert_eq!(late("yield, yield, yield, timer(2ms, deadline(d))"), []);
}
