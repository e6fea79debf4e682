//! What was found in a trace, and what had to be guessed.

/// Counts of what a trace has, lacks, and where it contradicts itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// Records that were understood.
    pub records: u64,
    /// Lines or records that are of no use here.
    pub skipped: u64,
    /// Records that are cut or damaged, and so left out.
    pub damaged: u64,
    /// The line of the first of them, in a text.
    pub damaged_line: Option<u64>,
    /// The trace's clock, if it is named.
    pub clock: Option<String>,
    /// Places at which records were lost.
    pub gaps: u64,
    /// Records that were lost there, as far as the trace says.
    pub lost: u64,
    /// Records that came with a time before that of an earlier one.
    pub late: u64,
    /// By how many nanoseconds at most.
    pub late_ns_max: u64,
    /// The release of the kernel, such as `6.1.0-13-amd64`, if the trace says it.
    pub kernel: Option<String>,
    /// The byte at which the file breaks off within a record.
    pub cut_at: Option<u64>,
    /// The trace's buffer that was read, if there are several.
    pub buffer: Option<String>,
    /// Threads that existed before the trace began.
    pub before: u64,
    /// CPUs whose first record comes later than the begin, with the latest such time.
    pub late_cpus: (u64, u64),
    /// Threads that began to run although nothing woke them.
    pub unwoken: u64,
    /// Threads that changed their CPU without a record of it.
    pub unmoved: u64,
    /// Switches whose previous thread was not the one that ran.
    pub mismatched: u64,
    /// Numbers of threads that were used again without a record of the first thread's end.
    pub reused: u64,
    /// Threads that were woken on their way to sleep.
    pub races: u64,
    /// Wakeups by what caused them.
    pub wakeups: Causes,
    /// Which kinds of records there are.
    pub kinds: Kinds,
    /// How much a snapshot knows of the threads; `None` without one.
    pub coverage: Option<Coverage>,
    /// Why there is none although the trace has something in its place.
    pub no_snapshot: Option<String>,
    /// The policy that was attached, by a snapshot.
    pub scheduler: Option<String>,
    /// What the simulated machine has otherwise than the recorded one, one sentence each.
    pub machine: Vec<String>,
}

/// How much of the threads a snapshot knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Threads that were looked at.
    pub seen: u64,
    /// Forked threads that were not, and have what their parents had.
    pub inherited: u64,
    /// Threads of which nothing is known.
    pub unknown: u64,
    /// Threads that had something else at the end than at the begin, which is what they are given.
    pub changed: u64,
    /// Groups of processes with a share or a limit, which are not simulated.
    pub groups: u64,
}

/// Wakeups by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// By another thread.
    pub task: u64,
    /// By a clock that the thread had set.
    pub clock: u64,
    /// By a device that it waited for in state D.
    pub device: u64,
    /// By another interrupt.
    pub outside: u64,
    /// Not known.
    pub unsaid: u64,
}

/// Which kinds of records a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// `sched_switch`.
    pub switch: bool,
    /// `sched_waking`.
    pub waking: bool,
    /// `sched_wakeup`.
    pub wakeup: bool,
    /// `sched_migrate_task`.
    pub migrate: bool,
    /// `sched_process_fork`.
    pub fork: bool,
    /// Interrupts of devices, and softirqs.
    pub interrupts: bool,
    /// Timers that expire.
    pub timers: bool,
    /// Flags that tell a thread's context from an interrupt.
    pub contexts: bool,
}

impl Findings {
    /// What a reader of the load must know, one sentence a line.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut all = vec![self.origin()];
        all.extend(self.losses());
        all.extend(self.guesses());
        all.extend(self.missing());
        all.extend(self.threads());
        all.extend(self.machine.iter().cloned());
        all
    }

    /// What is known of threads besides their events.
    fn threads(&self) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(why) = &self.no_snapshot {
            all.push(format!(
                "the snapshot of threads in the trace cannot be used: {why}"
            ));
        }
        if let Some(name) = &self.scheduler {
            all.push(format!("recorded under the policy `{name}`"));
        }
        let Some(coverage) = self.coverage else {
            let never = "nice values and affinities are not in this trace: tasks are taken at the \
                         priorities that their events show, and may use every CPU";
            all.push(never.to_owned());
            return all;
        };
        let Coverage {
            seen,
            inherited,
            unknown,
            changed,
            groups,
        } = coverage;
        let mut text = format!(
            "nice values and affinities: {seen} threads were looked at, {inherited} have those of \
             the threads that forked them"
        );
        if unknown > 0 {
            text += &format!(", of {unknown} they are unknown");
        }
        all.push(text);
        if changed > 0 {
            let of = plural(changed, "thread");
            all.push(format!(
                "{of} had others at the end: those of the begin are used"
            ));
        }
        if groups > 0 {
            let of = plural(groups, "group");
            all.push(format!(
                "shares and limits of {of} of processes are not simulated"
            ));
        }
        all
    }

    fn origin(&self) -> String {
        let Causes {
            task,
            clock,
            device,
            outside,
            unsaid,
        } = self.wakeups;
        let mut text = format!(
            "{} records; wakeups: {task} by tasks, {clock} by clocks, {device} by devices, \
             {outside} from outside",
            self.records
        );
        if unsaid > 0 {
            text += &format!(", {unsaid} of unknown cause");
        }
        if let Some(clock) = &self.clock {
            text += &format!("; clock `{clock}`");
        }
        if let Some(kernel) = &self.kernel {
            text += &format!("; Linux {kernel}");
        }
        if let Some(buffer) = &self.buffer {
            text += &format!("; buffer `{buffer}`");
        }
        text
    }

    fn losses(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.gaps > 0 {
            let many = match self.lost {
                0 => "an unknown number of records is".to_owned(),
                lost => format!("at least {lost} records are"),
            };
            let places = plural(self.gaps, "place");
            all.push(format!("{many} lost, at {places}"));
        }
        if self.damaged > 0 {
            let first = self.damaged_line;
            let first = first.map(|it| format!("; the first is in line {it}"));
            let first = first.unwrap_or_default();
            let many = plural(self.damaged, "record");
            all.push(format!("{many} cut or damaged, and left out{first}"));
        }
        if let Some(at) = self.cut_at {
            all.push(format!(
                "the file breaks off at byte {at}: what stands before it is used"
            ));
        }
        if self.late > 0 {
            all.push(format!(
                "{} came after a later one, by up to {} us: they are taken at the later time",
                plural(self.late, "record"),
                self.late_ns_max.div_ceil(1000)
            ));
        }
        let (cpus, until) = self.late_cpus;
        if cpus > 0 {
            all.push(format!(
                "{} had no record at the begin, one until {} ms after it: nothing is known of \
                 what ran there",
                plural(cpus, "CPU"),
                until / 1_000_000
            ));
        }
        all
    }

    fn guesses(&self) -> Vec<String> {
        let cases = [
            (self.before, "existed before the trace began", "thread"),
            (
                self.unwoken,
                "began to run without a wakeup: they are taken to be woken at that moment",
                "thread",
            ),
            (
                if self.kinds.migrate { self.unmoved } else { 0 },
                "changed the CPU without a record of it",
                "thread",
            ),
            (
                self.mismatched,
                "contradict the one before: the later one is believed",
                "switch",
            ),
            (
                self.reused,
                "had the number of another that was not seen to end",
                "thread",
            ),
            (self.races, "were woken on their way to sleep", "thread"),
        ];
        let told = cases.into_iter().filter(|(many, ..)| *many > 0);
        told.map(|(many, what, of)| format!("{} {what}", plural(many, of)))
            .collect()
    }

    fn missing(&self) -> Vec<String> {
        let kinds = &self.kinds;
        let cases = [
            (
                kinds.waking,
                "no `sched_waking`: who woke whom is not known",
            ),
            (
                kinds.waking || kinds.wakeup,
                "no wakeups: each task is taken to be woken when it begins to run",
            ),
            (
                kinds.migrate,
                "no `sched_migrate_task`: moves are seen at the next switch only",
            ),
            (
                kinds.fork,
                "no `sched_process_fork`: nobody is known to be forked",
            ),
            (
                kinds.contexts,
                "no flags of contexts: an interrupt's wakeup is recognised only by the idle task \
                 or by records of interrupts",
            ),
            (
                kinds.timers || kinds.interrupts,
                "no timers or interrupts: sleeps by clock are not told from work that comes from \
                 outside, and keep their absolute time",
            ),
        ];
        let missing = cases.into_iter().filter(|(has, _)| !has);
        missing.map(|(_, what)| what.to_owned()).collect()
    }
}

fn plural(many: u64, of: &str) -> String {
    let ending = match of {
        _ if many == 1 => "",
        "switch" => "es",
        _ => "s",
    };
    format!("{many} {of}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_guessed_and_missing_is_said() {
        let findings = Findings {
            records: 9,
            gaps: 2,
            lost: 7,
            late: 1,
            late_ns_max: 1_500,
            cut_at: Some(77),
            mismatched: 2,
            unmoved: 3,
            ..Findings::default()
        };
        let said = findings.sentences().join("\n");
        for want in [
            "9 records; wakeups: 0 by tasks",
            "at least 7 records are lost, at 2 places",
            "breaks off at byte 77",
            "1 record came after a later one, by up to 2 us",
            "2 switches contradict",
            "no `sched_waking`",
            "affinities",
        ] {
            assert!(said.contains(want), "{want}: {said}");
        }
        // Without records of moves each switch tells one; that is no contradiction.
        assert!(!said.contains("without a record of it"), "{said}");
    }

    #[test]
    fn what_a_snapshot_knows_takes_the_place_of_what_is_unknown() {
        let findings = Findings {
            coverage: Some(Coverage {
                seen: 7,
                inherited: 2,
                unknown: 1,
                changed: 1,
                groups: 3,
            }),
            scheduler: Some("mlfq".to_owned()),
            machine: vec!["caches are otherwise".to_owned()],
            ..Findings::default()
        };
        let said = findings.sentences().join("\n");
        for want in [
            "7 threads were looked at, 2 have those of the threads that forked them, of 1",
            "1 thread had others at the end",
            "3 groups of processes are not simulated",
            "under the policy `mlfq`",
            "caches are otherwise",
        ] {
            assert!(said.contains(want), "{want}: {said}");
        }
        assert!(!said.contains("not in this trace"), "{said}");
        let damaged = Findings {
            no_snapshot: Some("EOF".to_owned()),
            ..Findings::default()
        };
        let said = damaged.sentences().join("\n");
        assert!(
            said.contains("cannot be used: EOF") && said.contains("not in this trace"),
            "{said}"
        );
    }
}
