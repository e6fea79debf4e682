//! What events and explanations tell of schedulers one below the other: whose callbacks, decisions
//! and queues there were, and what ended one of them while the others went on.

use explain::why::{Fault, Finding, Observer};
use model::{CpuId, Event, EventKind, EventMask, ExitKind, Header, Op, SimTime, Sink, Text, What};
use workload::RunSpec;

use crate::subs::{DISTURBER, SPINNER, below, spec};

/// Takes events with decisions, and texts.
#[derive(Default)]
struct All {
    events: Vec<Event>,
    texts: Vec<Text>,
}

impl Sink for All {
    fn wants(&self) -> EventMask {
        EventMask::ALL.union(EventMask::DECISIONS)
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, events: &[Event]) {
        self.events.extend(events);
    }

    fn text(&mut self, text: &Text) {
        self.texts.push(text.clone());
    }

    fn finish(&mut self, _: SimTime) {}
}

fn all_of(spec: &RunSpec) -> All {
    let mut all = All::default();
    sim::run(spec, &mut all).unwrap_or_else(|error| panic!("{error}"));
    all
}

impl All {
    /// The scheduler of each event that `chosen` makes something of.
    fn by_scheduler<T>(&self, chosen: impl Fn(What) -> Option<T>) -> Vec<(u32, T)> {
        let mut now = 0;
        let mut found = Vec::new();
        for event in &self.events {
            if let What::Scheduler { scheduler, cgroup } = event.what() {
                assert_ne!(scheduler, now, "it is told only where it changes");
                assert_eq!(cgroup, u64::from(scheduler) + 1, "`/a` is the first one");
                now = scheduler;
            }
            found.extend(chosen(event.what()).map(|it| (now, it)));
        }
        found
    }
}

#[test]
fn events_say_whose_callbacks_decisions_and_queues_they_are() {
    let mut spec = spec(&[], &format!("{SPINNER}{DISTURBER}"));
    spec.policy.subs.push(below("a", &[]));
    let all = all_of(&spec);
    let ops = all.by_scheduler(|what| match what {
        What::Callback { op, .. } => Some(op),
        _ => None,
    });
    let has = |who, op| ops.contains(&(who, op));
    assert!(has(0, Op::SubAttach) && !has(1, Op::SubAttach));
    assert!(has(1, Op::SubCapsUpdated) && !has(0, Op::SubCapsUpdated));
    assert!(has(0, Op::Enqueue) && has(1, Op::Enqueue));
    // Both give their queues the same numbers.
    let queues = all.by_scheduler(|what| match what {
        What::Queue { id, exists, .. } if id < 2 => Some((id, exists)),
        _ => None,
    });
    let wanted = [0_u32, 1].map(|who| [(who, (0_u64, true)), (who, (1, true))]);
    assert_eq!(queues, wanted.concat());
    let text = |scheduler: u32| Text::Scheduler {
        scheduler,
        policy: "sub".to_owned(),
        cgroup: "/a".to_owned(),
    };
    assert_eq!(all.texts.iter().filter(|it| **it == text(1)).count(), 1);
    let end = all.texts.iter().find_map(|it| match it {
        Text::SubExit { scheduler, exit } => Some((*scheduler, exit.kind)),
        _ => None,
    });
    assert_eq!(end, Some((1, ExitKind::Parent)));
}

#[test]
fn a_run_of_one_scheduler_has_no_event_of_schedulers() {
    let all = all_of(&spec(&[], SPINNER));
    assert!(all.events.iter().any(|it| it.kind == EventKind::Insert));
    assert!(!all.events.iter().any(|it| it.kind == EventKind::Scheduler));
    let is_of_subs = |text: &Text| matches!(text, Text::Scheduler { .. } | Text::SubExit { .. });
    assert!(!all.texts.iter().any(is_of_subs));
}

fn found(spec: &RunSpec) -> Option<Finding> {
    let mut observer = Observer::new(1, None);
    sim::run(spec, &mut observer).unwrap_or_else(|error| panic!("{error}"));
    observer.finding()
}

/// The function of the line to look at: that of a scheduler below has its cgroup in front.
fn function(finding: &Finding) -> &str {
    let place = finding.culprit.as_ref().and_then(|it| it.place.as_ref());
    place.map_or("none", |it| &it.function)
}

#[test]
fn an_error_that_ends_one_and_not_the_other_is_found_with_its_line() {
    // It has rights to tasks that run at once only, and inserts plainly.
    let mut spec = spec(&[("caps", "9")], &format!("{SPINNER}{DISTURBER}"));
    spec.policy.subs.push(below("a", &[("to_local", "1")]));
    let finding = found(&spec).expect("the kernel ended one");
    assert_eq!(finding.fault, Fault::Reenqueued);
    assert_eq!(finding.scheduler.as_deref(), Some("sub at /a"));
    assert_eq!(function(&finding), "a/sub_enqueue");
    let victim = finding.victim.as_ref().expect("the kernel names it");
    assert_eq!(victim.name, "tvp");
    let missing = finding
        .verdict
        .missing
        .as_ref()
        .expect("it was turned away");
    assert_eq!(
        (missing.cpu, missing.rights),
        (CpuId(1), &["SCX_CAP_ENQ"][..])
    );
    let message = finding.message.as_deref().unwrap_or_default();
    assert!(message.contains("reenqueued 257 times"), "{message}");
    assert!(finding.is_fault());
}

/// Kicks make the kernel turn the task away until it ends the scheduler, and the root runs it: that
/// is no cure.
#[test]
fn a_task_that_runs_because_its_scheduler_has_ended_is_not_cured() {
    let load = "[cgroup.a]\n[task.other]\ncpus = \"2\"\ndo = \"run(inf)\"\n\
        [task.kworker]\ncpus = \"3\"\ndo = \"sleep(1050ms), loop(inf)[ run(200us), sleep(1s) ]\"\n\
        [task.tvp]\ncgroup = \"/a\"\ncpus = \"3\"\ndo = \"run(inf)\"\n";
    let mut spec = spec(&[("caps", "9")], load);
    spec.machine.cpus = 4;
    spec.duration = Some(model::Nanos::from_secs(3));
    let mut sub = below("a", &[("sub_ops.enqueue", "0")]);
    sub.attach_at = model::Nanos::from_secs(1);
    spec.policy.subs.push(sub);
    let mut finding = found(&spec).expect("a task waits");
    assert_eq!(finding.victim.as_ref().map(|it| &*it.name), Some("tvp"));
    let run = (&spec, sim::Options::default());
    let services = ask::services::Services::default();
    let trials = ask::trial::attempt(&services, run, &mut finding).expect("nobody stops it");
    let is_kick = |it: &ask::trial::CureTrial| it.cure == ask::trial::Cure::KickIdle;
    assert!(!trials.proven().is_some_and(is_kick), "{trials:?}");
}

#[test]
fn a_file_of_events_tells_the_same_as_the_run() {
    let mut spec = spec(&[("caps", "9")], &format!("{SPINNER}{DISTURBER}"));
    spec.policy.subs.push(below("a", &[("to_local", "1")]));
    let mut lines = traces::JsonLines::with_decisions(Vec::new());
    sim::run(&spec, &mut lines).unwrap_or_else(|error| panic!("{error}"));
    let file = lines.close().expect("memory takes it");
    let mut observer = Observer::new(1, None);
    traces::replay(&file[..], &mut observer).unwrap_or_else(|error| panic!("{error}"));
    assert!(observer.finding().is_some());
    assert_eq!(observer.finding(), found(&spec));
}

#[test]
fn who_kills_one_below_is_named() {
    let mut spec = spec(&[("kills@150ms", "1")], SPINNER);
    spec.policy.subs.push(below("a", &[]));
    let finding = found(&spec).expect("one was killed");
    assert_eq!(finding.scheduler.as_deref(), Some("sub at /a"));
    // The line is that of the one above.
    assert_eq!(function(&finding), "sub_dispatch");
    assert_eq!(finding.fault, Fault::OwnError);
    assert_eq!(finding.message.as_deref(), Some("asked for"));
}

#[test]
fn a_queue_of_a_scheduler_below_is_named_by_its_cgroup() {
    let load = format!("{SPINNER}{DISTURBER}");
    let mut spec = spec(&[("hands_down", "0")], &load);
    spec.policy.subs.push(below("a", &[]));
    let finding = found(&spec).expect("nobody looks there");
    assert_eq!(finding.scheduler, None, "nobody was ended");
    assert_eq!(finding.fault, Fault::UnreadQueue);
    let queue = finding.queue.as_ref().expect("it waits in one");
    assert_eq!((queue.of.as_deref(), queue.id), (Some("a"), 1));
    assert!(queue.is_passed_by, "no CPU is handed down");
}
