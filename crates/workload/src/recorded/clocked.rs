//! Tasks that compute until their alarm clock rings.

use std::collections::VecDeque;

use model::{Nanos, SimTime};

use super::{Act, RecordedTask};

/// Stints of a task that are kept: an alarm that more of them follow has not ended its work.
const KEPT: usize = 16;
/// Who does so much of its work at one go, in per cent, has nothing else to do.
const MOSTLY: u128 = 90;
/// Who computed for less is not taken for one that stops by the clock.
const LEAST: Nanos = Nanos::from_millis(100);

/// A time on a CPU.
#[derive(Clone, Copy, Debug)]
struct Stint {
    since: SimTime,
    until: SimTime,
    /// The place in the script of the act that it belongs to.
    at: usize,
    /// When that act began.
    begin: SimTime,
}

/// The last times that a task was on a CPU.
#[derive(Debug, Default)]
pub(super) struct Stints(VecDeque<Stint>);

impl Stints {
    /// It ran; `at` is where the act will stand in the script.
    pub fn add(&mut self, since: SimTime, until: SimTime, at: usize) {
        let begin = self.0.back().filter(|it| it.at == at).map(|it| it.begin);
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Stint {
            since,
            until,
            at,
            begin: begin.unwrap_or(since),
        });
    }

    /// The act that was under way, or had been last, at a moment: its place, when it began, and how
    /// long it went on after the moment.
    fn act_at(&self, moment: SimTime) -> Option<(usize, SimTime, Nanos)> {
        let Stint { at, begin, .. } = *self.0.iter().rev().find(|it| it.since < moment)?;
        let of_act = self.0.iter().filter(|it| it.at == at && it.until > moment);
        let after: u64 = of_act
            .map(|it| it.until.since(it.since.max(moment)).get())
            .sum();
        Some((at, begin, Nanos::new(after)))
    }
}

impl RecordedTask {
    /// What it computes at one go, if that is nearly all that it does.
    fn at_one_go(&self, at: usize) -> Option<Nanos> {
        let ran = |act: &Act| match *act {
            Act::Run(span) => u128::from(span.get()),
            _ => 0,
        };
        let one = ran(self.script.get(at)?);
        let all: u128 = self.script.iter().map(ran).sum();
        let is_most = one * 100 >= MOSTLY * all && one >= u128::from(LEAST.get());
        is_most.then(|| Nanos::new(u64::try_from(one).unwrap_or(u64::MAX)))
    }

    /// Lets it compute until its alarm clock rings, however much that is, if that is what it did:
    /// nearly all of its work is what the alarm ended. Says whether it is so.
    pub fn stop_by(&mut self, alarm: SimTime) -> bool {
        let Some((at, begin, after)) = self.stints.act_at(alarm) else {
            return false;
        };
        let Some(one) = self.at_one_go(at) else {
            return false;
        };
        if after.get() * 2 > one.get() || begin >= alarm {
            return false;
        }
        self.script[at] = Act::Poll(alarm.since(begin));
        self.polls = true;
        if !after.is_zero() {
            self.script.insert(at + 1, Act::Run(after));
        }
        true
    }

    /// When it ended, if it only computed, and for how long.
    pub fn computed_until(&self) -> Option<(SimTime, Nanos)> {
        let at = self
            .script
            .iter()
            .rposition(|it| matches!(it, Act::Run(span) if *span >= LEAST));
        Some((self.ended?, self.at_one_go(at?)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::RecordedLoad;
    use crate::recorded::tests::{event, new, switch, wakeup};
    use crate::{CostScale, Operation, Scripted, Workload};
    use model::{EventKind, PrevState, TaskId};

    const MS: u64 = 1_000_000;
    const NONE: u32 = TaskId::NONE.0;

    /// Two tasks share a CPU for 600 ms, in turns of 100 and of 50 ms, and exit a millisecond of
    /// their own after that.
    fn two_hogs() -> RecordedLoad {
        let mut events = vec![
            new(0, 0, NONE),
            new(0, 1, NONE),
            wakeup(0, 0, NONE),
            wakeup(0, 1, NONE),
            switch(0, 0, NONE, PrevState::Idle),
        ];
        for turn in 0..4 {
            let begin = turn * 150 * MS;
            if turn > 0 {
                events.push(switch(begin, 0, 1, PrevState::Runnable));
            }
            events.push(switch(begin + 100 * MS, 1, 0, PrevState::Runnable));
        }
        events.push(event(601 * MS, EventKind::Exit, 1, (0, 0)));
        events.push(switch(601 * MS, 0, 1, PrevState::Dead));
        events.push(switch(602 * MS, NONE, 0, PrevState::Dead));
        let mut load = crate::recorded::tests::recorded(&events);
        load.end = SimTime::from_nanos(602 * MS);
        load
    }

    fn scripts(load: &Workload) -> Vec<Vec<Scripted>> {
        let script = |group: &crate::Group| match &group.body[0].op {
            Operation::Script(script) => script.to_vec(),
            other => panic!("{other:?}"),
        };
        load.groups.iter().map(script).collect()
    }

    #[test]
    fn who_computes_until_its_alarm_rings_stops_by_the_clock() {
        let mut load = two_hogs();
        let alarm = SimTime::from_nanos(600 * MS);
        assert!(load.set_alarm(TaskId(0), alarm));
        assert!(load.set_alarm(TaskId(1), alarm));
        let load = load.into_workload("r", CostScale::ONE).unwrap();
        // The second one began 100 ms later.
        let [first, second] = [600, 500].map(|ms| Scripted::Poll(Nanos::from_millis(ms)));
        let last = Scripted::Run(Nanos::from_millis(1));
        assert_eq!(scripts(&load), [[first, last], [second, last]]);
        assert!(load.groups.iter().all(|it| it.variables == 1));
    }

    #[test]
    fn an_alarm_long_before_the_end_of_the_work_ends_nothing() {
        let mut load = two_hogs();
        assert!(!load.set_alarm(TaskId(0), SimTime::from_nanos(120 * MS)));
        let load = load.into_workload("r", CostScale::ONE).unwrap();
        assert_eq!(scripts(&load)[0], [Scripted::Run(Nanos::from_millis(401))]);
    }

    #[test]
    fn who_works_with_others_is_not_cut_off() {
        let mut events = vec![
            new(0, 0, NONE),
            new(0, 1, NONE),
            wakeup(0, 0, NONE),
            switch(0, 0, NONE, PrevState::Idle),
        ];
        for turn in 0..4 {
            let begin = turn * 200 * MS;
            events.push(wakeup(begin + 150 * MS, 1, 0));
            events.push(switch(begin + 160 * MS, 1, 0, PrevState::Runnable));
            events.push(switch(begin + 200 * MS, 0, 1, PrevState::Sleeping));
        }
        events.push(switch(900 * MS, NONE, 0, PrevState::Dead));
        let mut load = crate::recorded::tests::recorded(&events);
        assert!(!load.set_alarm(TaskId(0), SimTime::from_nanos(899 * MS)));
        assert_eq!(load.end_together(Nanos::from_millis(4)), None);
    }

    #[test]
    fn ends_at_one_moment_after_unlike_work_are_told() {
        let load = two_hogs();
        let found = load.end_together(Nanos::from_millis(4));
        assert_eq!(found, Some((2, SimTime::from_nanos(602 * MS))));
        // Of equal work an equal end is no wonder.
        assert_eq!(load.end_together(Nanos::from_millis(400)), None);
    }
}
