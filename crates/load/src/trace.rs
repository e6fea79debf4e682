//! What a recording says of single tasks: when each ran, what its policy said of it, and who ran
//! between its wakeup and its turn.

use std::collections::HashMap;

use live::record::{Raw, RecordKind, Recording};

/// `PF_KTHREAD` (linux/sched.h, 6.18).
const PF_KTHREAD: u32 = 0x0020_0000;

/// A recording, in the order of time.
#[derive(Debug)]
pub struct Trace {
    raws: Vec<Raw>,
    /// Names of tasks, and whether they are the kernel's.
    names: HashMap<u32, (String, bool)>,
    end: u64,
}

/// A time that a task had a CPU, and its policy said the same of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stay {
    /// When it began, `CLOCK_MONOTONIC` in nanoseconds.
    pub from: u64,
    /// When it ended.
    pub to: u64,
    /// What the policy said of the task; `None` without such a policy.
    pub said: Option<PolicyReport>,
    /// It wanted to go on.
    pub is_forced: bool,
    /// How long it had waited for it, nanoseconds; `None` if the wait was not seen to begin.
    pub waited: Option<u64>,
    /// It had the CPU before, and only what the policy says is new.
    pub goes_on: bool,
}

/// A policy's report on a task that begins to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyReport {
    /// Priority.
    pub prio: u32,
    /// Queue or level in the policy's own numbers.
    pub level: u32,
    /// Flags; bit 0: it calls the task interactive.
    pub flags: u64,
}

/// A wakeup and the turn that it led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// From the wakeup to the first instruction, nanoseconds.
    pub took: u64,
    /// When it was woken.
    pub woken: u64,
    /// Tasks that got the CPU in between, each with its time on it. The one that had it at the
    /// wakeup is not among them.
    pub between: Vec<(u32, u64)>,
}

impl Trace {
    /// Puts the records of a recording into order.
    #[must_use]
    pub fn of(recording: Recording) -> Self {
        let records = recording.records;
        let mut raws = records.raws;
        // Records of one CPU are in order; a stable sort keeps them so.
        raws.sort_by_key(|raw| raw.time);
        let mut names = HashMap::new();
        for raw in &raws {
            let has_facts = matches!(
                raw.kind,
                RecordKind::Fork | RecordKind::Rename | RecordKind::Snapshot
            );
            let facts = usize::try_from(raw.c)
                .ok()
                .and_then(|at| records.facts.get(at));
            if let (true, Some(facts)) = (has_facts, facts) {
                let is_kernel = facts.flags & PF_KTHREAD != 0;
                names.insert(raw.pid, (facts.comm.clone(), is_kernel));
            }
        }
        Self {
            raws,
            names,
            end: records.ended,
        }
    }

    /// The name that a task had last; empty if nothing says it.
    #[must_use]
    pub fn name(&self, pid: u32) -> &str {
        self.names.get(&pid).map_or("", |(name, _)| name)
    }

    /// Whether a task is a kernel thread.
    #[must_use]
    pub fn is_kernel(&self, pid: u32) -> bool {
        self.names
            .get(&pid)
            .is_some_and(|(_, is_kernel)| *is_kernel)
    }

    /// Every time that the task had a CPU, from the first that was seen to begin.
    #[must_use]
    pub fn stays(&self, pid: u32) -> Vec<Stay> {
        let mut stays: Vec<Stay> = Vec::new();
        let (mut said, mut open) = (None, false);
        // Since when it waits.
        let mut waits: Option<u64> = None;
        for raw in &self.raws {
            match raw.kind {
                RecordKind::Report if raw.pid == pid => {
                    let now = PolicyReport {
                        prio: raw.a,
                        level: raw.b,
                        flags: raw.c,
                    };
                    match stays.last_mut().filter(|_| open) {
                        Some(stay) => {
                            stay.to = raw.time;
                            stays.push(Stay {
                                from: raw.time,
                                to: self.end,
                                said: Some(now),
                                is_forced: true,
                                waited: None,
                                goes_on: true,
                            });
                        }
                        None => said = Some(now),
                    }
                }
                RecordKind::Switch if raw.a == pid && open => {
                    open = false;
                    let stay = stays.last_mut().expect("it is open");
                    stay.to = raw.time;
                    // TASK_RUNNING; a preempted task has it, too, by the record's flag.
                    stay.is_forced = raw.b == 0 || raw.flags & 1 != 0;
                    waits = stay.is_forced.then_some(raw.time);
                }
                RecordKind::Wakeup if raw.pid == pid && !open && waits.is_none() => {
                    waits = Some(raw.time);
                }
                RecordKind::Switch if raw.pid == pid => {
                    open = true;
                    stays.push(Stay {
                        from: raw.time,
                        to: self.end,
                        said: said.take(),
                        is_forced: true,
                        waited: waits.take().map(|since| raw.time - since),
                        goes_on: false,
                    });
                }
                _ => {}
            }
        }
        stays
    }

    /// Every wakeup of the task that was followed by a turn.
    #[must_use]
    pub fn responses(&self, pid: u32) -> Vec<Response> {
        let mut responses = Vec::new();
        let mut woken: Option<u64> = None;
        // On each CPU since the wakeup: who came, and when.
        let mut came: HashMap<u16, Vec<(u32, u64)>> = HashMap::new();
        for raw in &self.raws {
            match (raw.kind, woken) {
                (RecordKind::Wakeup, None) if raw.pid == pid => {
                    woken = Some(raw.time);
                    came.clear();
                }
                (RecordKind::Switch, Some(since)) if raw.pid == pid => {
                    let came = came.remove(&raw.cpu).unwrap_or_default();
                    let ends = came.iter().skip(1).map(|(_, at)| *at).chain([raw.time]);
                    let spans = came.iter().zip(ends);
                    let between = spans.map(|((who, from), to)| (*who, to - from));
                    responses.push(Response {
                        took: raw.time - since,
                        woken: since,
                        // Idling is nobody's time.
                        between: between.filter(|(who, _)| *who != 0).collect(),
                    });
                    woken = None;
                }
                (RecordKind::Switch, Some(_)) => {
                    came.entry(raw.cpu).or_default().push((raw.pid, raw.time));
                }
                _ => {}
            }
        }
        responses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use live::record::{RecordFacts, Records};

    const ME: u32 = 7;
    const HOG: u32 = 8;
    const KWORKER: u32 = 9;

    fn raw(time: u64, kind: RecordKind, pid: u32) -> Raw {
        Raw {
            time,
            pid,
            cpu: 0,
            kind,
            flags: 0,
            c: 0,
            a: 0,
            b: 0,
        }
    }

    /// `next` gets the CPU from `prev`, which sleeps if `state` is not 0.
    fn switch(time: u64, prev: u32, state: u32, next: u32) -> Raw {
        Raw {
            a: prev,
            b: state,
            ..raw(time, RecordKind::Switch, next)
        }
    }

    fn trace(raws: Vec<Raw>) -> Trace {
        let facts = vec![RecordFacts {
            flags: PF_KTHREAD,
            comm: "kworker/0:1".to_owned(),
            ..RecordFacts::default()
        }];
        let records = Records {
            raws,
            facts,
            began: 0,
            ended: 1000,
            cpus: 1,
            ..Records::default()
        };
        Trace::of(Recording {
            records,
            ..Recording::default()
        })
    }

    #[test]
    fn a_response_is_from_the_wakeup_to_the_turn_and_tells_who_was_between() {
        let trace = trace(vec![
            raw(0, RecordKind::Snapshot, KWORKER),
            raw(10, RecordKind::Wakeup, ME),
            switch(14, HOG, 0, ME),
            switch(20, ME, 1, HOG),
            raw(100, RecordKind::Wakeup, ME),
            // A second one finds it runnable.
            raw(105, RecordKind::Wakeup, ME),
            switch(110, HOG, 0, KWORKER),
            switch(140, KWORKER, 1, ME),
        ]);
        let responses = trace.responses(ME);
        assert_eq!(responses.len(), 2);
        assert_eq!((responses[0].took, responses[0].between.len()), (4, 0));
        assert_eq!(responses[1].took, 40);
        assert_eq!(responses[1].between, [(KWORKER, 30)]);
        assert!(trace.is_kernel(KWORKER) && !trace.is_kernel(HOG));
        assert_eq!(trace.name(KWORKER), "kworker/0:1");
    }

    #[test]
    fn a_stay_has_what_the_policy_said_and_how_it_ended() {
        let report = Raw {
            a: 120,
            b: 3,
            c: 1,
            ..raw(14, RecordKind::Report, ME)
        };
        let trace = trace(vec![
            report,
            switch(14, HOG, 0, ME),
            switch(20, ME, 1, HOG),
            switch(30, HOG, 0, ME),
            switch(50, ME, 0, HOG),
            switch(60, HOG, 0, ME),
        ]);
        let stays = trace.stays(ME);
        let said = PolicyReport {
            prio: 120,
            level: 3,
            flags: 1,
        };
        assert_eq!(stays[0].said, Some(said));
        assert_eq!(
            (stays[0].from, stays[0].to, stays[0].is_forced),
            (14, 20, false)
        );
        assert_eq!((stays[1].said, stays[1].is_forced), (None, true));
        // The last goes on when the recording ends.
        assert_eq!(stays[2].to, 1000);
    }

    /// A lone hog under mlfq sinks without ever losing its CPU.
    #[test]
    fn what_the_policy_says_of_a_task_that_goes_on_begins_a_stay() {
        let report = |time, level| Raw {
            b: level,
            ..raw(time, RecordKind::Report, ME)
        };
        let trace = trace(vec![
            report(14, 0),
            switch(14, HOG, 0, ME),
            report(24, 1),
            report(44, 2),
            switch(60, ME, 1, HOG),
            report(70, 3),
            switch(70, HOG, 0, ME),
        ]);
        let stays = trace.stays(ME);
        let brief = |stay: &Stay| {
            let level = stay.said.expect("it is said").level;
            (stay.from, stay.to, level, stay.is_forced, stay.goes_on)
        };
        let told: Vec<_> = stays.iter().map(brief).collect();
        let wanted = [
            (14, 24, 0, true, false),
            (24, 44, 1, true, true),
            (44, 60, 2, false, true),
            (70, 1000, 3, true, false),
        ];
        assert_eq!(told, wanted);
    }

    #[test]
    fn a_wait_is_from_the_wakeup_or_from_the_loss_of_the_cpu() {
        let trace = trace(vec![
            raw(0, RecordKind::Snapshot, KWORKER),
            switch(5, HOG, 0, ME),
            // It sleeps; the wakeup begins the wait, a second one does not.
            switch(20, ME, 1, HOG),
            raw(40, RecordKind::Wakeup, ME),
            raw(45, RecordKind::Wakeup, ME),
            switch(60, HOG, 0, ME),
            // One of a task that runs is none.
            raw(65, RecordKind::Wakeup, ME),
            // It loses the CPU and waits from then on.
            switch(70, ME, 0, HOG),
            switch(100, HOG, 0, ME),
        ]);
        let waited: Vec<_> = trace.stays(ME).iter().map(|stay| stay.waited).collect();
        assert_eq!(waited, [None, Some(20), Some(30)]);
    }
}
