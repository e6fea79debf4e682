//! Who had which CPU, and who waited, over a stretch of a run that is cut into columns.

use model::{
    CpuId, Event, EventKind, EventMask, Header, Nanos, PrevState, SimTime, Sink, TaskId, What,
};

use traces::task_name;

/// Tasks that are kept; later ones are counted.
const MOST_TASKS: usize = 100_000;

/// A task within the stretch.
#[derive(Clone, Debug)]
pub struct TimelineRow {
    /// Its name.
    pub name: String,
    /// For each column, how long it ran.
    pub run: Vec<Nanos>,
    /// For each column, how long it waited for a CPU.
    pub wait: Vec<Nanos>,
}

/// Collects a stretch of a run.
#[derive(Debug)]
pub struct Timeline {
    from: SimTime,
    to: SimTime,
    columns: usize,
    header: Option<Header>,
    tasks: Vec<Task>,
    /// For each CPU and column, who ran there how long.
    cpus: Vec<Vec<Vec<(TaskId, Nanos)>>>,
    on: Vec<Option<(TaskId, SimTime)>>,
    left_out: usize,
    end: SimTime,
}

#[derive(Debug)]
struct Task {
    row: TimelineRow,
    waits_since: Option<SimTime>,
}

impl Timeline {
    /// A stretch from `from` to `to` in `columns` equal parts.
    ///
    /// # Panics
    /// If there is no column, or `to` is not after `from`.
    #[must_use]
    pub fn new(from: SimTime, to: SimTime, columns: usize) -> Self {
        assert!(columns > 0 && from < to, "a timeline has some length");
        Self {
            from,
            to,
            columns,
            header: None,
            tasks: Vec::new(),
            cpus: Vec::new(),
            on: Vec::new(),
            left_out: 0,
            end: SimTime::ZERO,
        }
    }

    /// The stretch, as far as the run went.
    #[must_use]
    pub fn stretch(&self) -> (SimTime, SimTime) {
        (self.from, self.to.min(self.end.max(self.from)))
    }

    /// The tasks, in the order of their birth.
    pub fn rows(&self) -> impl Iterator<Item = &TimelineRow> {
        self.tasks.iter().map(|task| &task.row)
    }

    /// For each CPU and each column, the task that ran there longest, as an index of
    /// [`Timeline::rows`]; `None` where the CPU idled for longer.
    #[must_use]
    pub fn owners(&self) -> Vec<Vec<Option<usize>>> {
        let owner = |column: usize, shares: &Vec<(TaskId, Nanos)>| {
            let (begin, end) = self.bounds(column);
            let all = end.since(begin).get();
            let run: u64 = shares.iter().map(|(_, span)| span.get()).sum();
            let longest = shares.iter().max_by_key(|(_, span)| *span)?;
            let idle = all.saturating_sub(run);
            (longest.1.get() >= idle).then(|| longest.0.index())
        };
        let cpus = self.cpus.iter();
        cpus.map(|cpu| {
            let columns = cpu.iter().enumerate();
            columns
                .map(|(column, shares)| owner(column, shares))
                .collect()
        })
        .collect()
    }

    /// Tasks that were too many to keep.
    #[must_use]
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// Where a column begins and ends.
    #[must_use]
    pub fn bounds(&self, column: usize) -> (SimTime, SimTime) {
        (self.at(column), self.at(column + 1))
    }

    fn at(&self, column: usize) -> SimTime {
        let all = u128::from(self.to.since(self.from).get());
        let part = all * column as u128 / self.columns as u128;
        SimTime::from_nanos(self.from.as_nanos() + part as u64)
    }

    /// Hands the part of `begin..end` that lies in each column to `give`.
    fn spread(&self, begin: SimTime, end: SimTime, mut give: impl FnMut(usize, Nanos)) {
        let (begin, end) = (begin.max(self.from), end.min(self.to));
        if begin >= end {
            return;
        }
        let all = u128::from(self.to.since(self.from).get());
        let first = u128::from(begin.since(self.from).get()) * self.columns as u128 / all;
        for column in first as usize..self.columns {
            let (from, to) = self.bounds(column);
            if from >= end {
                break;
            }
            let (from, to) = (from.max(begin), to.min(end));
            if from < to {
                give(column, to.since(from));
            }
        }
    }

    fn ran(&mut self, cpu: CpuId, task: TaskId, since: SimTime, now: SimTime) {
        let mut parts = Vec::new();
        self.spread(since, now, |column, span| parts.push((column, span)));
        for (column, span) in parts {
            if let Some(task) = self.tasks.get_mut(task.index()) {
                task.row.run[column] += span;
            }
            if let Some(cpu) = self.cpus.get_mut(cpu.index()) {
                match cpu[column].iter_mut().find(|(known, _)| *known == task) {
                    Some((_, sum)) => *sum += span,
                    None => cpu[column].push((task, span)),
                }
            }
        }
    }

    fn waits_no_more(&mut self, id: TaskId, now: SimTime) {
        let since = self.tasks.get_mut(id.index());
        let Some(since) = since.and_then(|task| task.waits_since.take()) else {
            return;
        };
        let mut parts = Vec::new();
        self.spread(since, now, |column, span| parts.push((column, span)));
        let task = &mut self.tasks[id.index()];
        for (column, span) in parts {
            task.row.wait[column] += span;
        }
    }

    fn waits(&mut self, task: TaskId, now: SimTime) {
        if let Some(task) = self.tasks.get_mut(task.index()) {
            task.waits_since = Some(now);
        }
    }

    fn switched(&mut self, event: &Event, prev: TaskId, state: PrevState) {
        let at = event.cpu.index();
        if at < self.on.len()
            && let Some((task, since)) = self.on[at].take()
        {
            self.ran(event.cpu, task, since, event.time);
        }
        if state == PrevState::Runnable {
            self.waits(prev, event.time);
        }
        if event.task != TaskId::NONE {
            self.waits_no_more(event.task, event.time);
            if let Some(on) = self.on.get_mut(at) {
                *on = Some((event.task, event.time));
            }
        }
    }

    fn born(&mut self, group: u32, index: u32) {
        if self.tasks.len() >= MOST_TASKS {
            self.left_out += 1;
            return;
        }
        let header = self.header.as_ref();
        let name = header.map(|header| task_name(header, group, index));
        self.tasks.push(Task {
            row: TimelineRow {
                name: name.unwrap_or_default(),
                run: vec![Nanos::ZERO; self.columns],
                wait: vec![Nanos::ZERO; self.columns],
            },
            waits_since: None,
        });
    }
}

impl Sink for Timeline {
    fn wants(&self) -> EventMask {
        EventMask::NONE
            .with(EventKind::New)
            .with(EventKind::Wakeup)
            .with(EventKind::Switch)
            .with(EventKind::Exit)
    }

    fn begin(&mut self, header: &Header) {
        let cpus = usize::from(header.machine.cpus);
        self.cpus = vec![vec![Vec::new(); self.columns]; cpus];
        self.on = vec![None; cpus];
        self.header = Some(header.clone());
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            match event.what() {
                What::New { group, index, .. } if event.time < self.to => self.born(group, index),
                What::Wakeup(_) => self.waits(event.task, event.time),
                What::Switch { prev, state, .. } => self.switched(event, prev, state),
                What::Exit => self.waits_no_more(event.task, event.time),
                _ => {}
            }
        }
    }

    fn finish(&mut self, end: SimTime) {
        self.end = end;
        for cpu in 0..self.on.len() {
            if let Some((task, since)) = self.on[cpu].take() {
                self.ran(CpuId(cpu as u16), task, since, end);
            }
        }
        for task in 0..self.tasks.len() {
            self.waits_no_more(TaskId(task as u32), end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traces::testing::{event, header, with};

    fn at(ns: u64) -> SimTime {
        SimTime::from_nanos(ns)
    }

    #[test]
    fn columns_hold_what_ran_and_what_waited_in_them() {
        let mut timeline = Timeline::new(at(100), at(200), 4);
        let born = |index: u64| {
            with(
                event(0, EventKind::New, 0, TaskId(index as u32)),
                (0, index << 32, 0),
            )
        };
        let switch = |ns, task, previous: TaskId, state: PrevState| {
            with(
                event(ns, EventKind::Switch, 0, task),
                (state as u8, previous.0.into(), 0),
            )
        };
        timeline.begin(&header(1));
        timeline.events(&[
            born(0),
            born(1),
            event(50, EventKind::Wakeup, 0, TaskId(0)),
            event(50, EventKind::Wakeup, 0, TaskId(1)),
            switch(60, TaskId(0), TaskId::NONE, PrevState::Idle),
            switch(130, TaskId(1), TaskId(0), PrevState::Runnable),
            switch(160, TaskId::NONE, TaskId(1), PrevState::Sleeping),
        ]);
        timeline.finish(at(300));
        let rows: Vec<_> = timeline.rows().collect();
        let ns = |spans: &[Nanos]| spans.iter().map(|it| it.get()).collect::<Vec<_>>();
        assert_eq!(ns(&rows[0].run), [25, 5, 0, 0]);
        assert_eq!(ns(&rows[0].wait), [0, 20, 25, 25]);
        assert_eq!(ns(&rows[1].run), [0, 20, 10, 0]);
        assert_eq!(ns(&rows[1].wait), [25, 5, 0, 0]);
        assert_eq!(timeline.owners(), [[Some(0), Some(1), None, None]]);
        assert_eq!(timeline.stretch(), (at(100), at(200)));
    }

    #[test]
    fn a_row_has_the_name_that_its_task_has_everywhere() {
        let mut timeline = Timeline::new(at(100), at(200), 4);
        let stream = traces::testing::StreamWriter::new();
        let stream = stream.born(0, 0, 0, 0).born(0, 1, 1, 0).born(0, 2, 1, 1);
        stream.feed(&mut timeline, 1, 300);
        let names: Vec<&str> = timeline.rows().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["solo", "pair.0", "pair.1"]);
    }
}
