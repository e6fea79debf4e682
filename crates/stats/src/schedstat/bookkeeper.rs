//! Version 4 from a simulated run: events give times, samples give counters.

use std::io::{self, Write};

use model::{
    Event, EventKind, EventMask, Header, Op, PrevState, Sample, Sampler, SimTime, Sink, TaskId,
    What,
};

use super::layout::Layout;
use super::snapshot::Snapshot;
use super::version4::{Bookkeeping, HZ, MachineCounts, version_4};
use traces::Output;

/// `SCX_KICK_PREEMPT` (kernel 6.18): the target's task loses the CPU.
const KICK_PREEMPT: u64 = 2;
const NS_PER_JIFFY: u64 = 1_000_000;

/// Keeps the books of version 4 through a run, and writes a [`Snapshot`] at each sample.
///
/// Which waits count is told by [`Bookkeeping`]. A task counts as preempted, and so as one that
/// stays in its list, if it lost the CPU to a kick that demands it or had slice left, as only a
/// higher class takes the CPU from such a task. All else that ends a turn while the task stays
/// runnable puts it into a list anew.
#[derive(Debug)]
pub struct Bookkeeper<W> {
    bookkeeping: Bookkeeping,
    output: Output<W>,
    cpus: Vec<Cpu>,
    tasks: Vec<BookedTask>,
    /// Whether the file says its HZ.
    says_hz: bool,
}

/// One CPU's books, in nanoseconds.
#[derive(Clone, Debug, Default)]
struct Cpu {
    running: Option<TaskId>,
    /// Since when the task's time has not been booked, or since when the CPU idles.
    since: u64,
    cpu_time: u64,
    run_delay: u64,
    pcnt: u64,
    idle_jiffies: u64,
    /// A kick demands that the task leaves.
    preempt: bool,
    /// The task had slice left when it stopped.
    slice_left: bool,
    /// The policy was asked what comes next, and no switch has followed.
    asked: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct BookedTask {
    /// Since when it waits for a CPU, if that counts.
    queued: Option<u64>,
    waits: bool,
}

impl<W: Write> Bookkeeper<W> {
    /// Writes every snapshot to `writer`, in the format of `/proc/schedstat`.
    pub const fn new(bookkeeping: Bookkeeping, writer: W) -> Self {
        Self {
            bookkeeping,
            output: Output::new(writer),
            cpus: Vec::new(),
            tasks: Vec::new(),
            says_hz: false,
        }
    }

    /// The writer, flushed.
    ///
    /// # Errors
    /// The first error of the writer. Nothing is written after it.
    pub fn close(self) -> io::Result<W> {
        self.output.close()
    }

    /// A span as the kernel of the time sees it: a difference of clocks that show jiffies.
    fn span(&self, from: u64, to: u64) -> u64 {
        match self.bookkeeping {
            Bookkeeping::Full => to - from,
            Bookkeeping::V4 => (to / NS_PER_JIFFY - from / NS_PER_JIFFY) * NS_PER_JIFFY,
        }
    }

    fn take_event(&mut self, event: &Event) {
        let now = event.time.as_nanos();
        self.settle_kept(event);
        match event.what() {
            What::New { .. } => {
                let index = event.task.index();
                if self.tasks.len() <= index {
                    self.tasks.resize(index + 1, BookedTask::default());
                }
            }
            What::Wakeup(wakeup) => {
                // A child is linked into its parent's list without a stamp.
                let counts = !wakeup.new || self.bookkeeping == Bookkeeping::Full;
                if let Some(task) = self.tasks.get_mut(event.task.index()) {
                    task.waits = true;
                    task.queued = counts.then_some(now);
                }
            }
            What::Migrate { .. } => {
                // Being pulled is being queued; an older stamp is kept.
                if let Some(task) = self.tasks.get_mut(event.task.index())
                    && task.waits
                {
                    task.queued = task.queued.or(Some(now));
                }
            }
            What::Kick { flags, .. } if flags & KICK_PREEMPT != 0 => {
                if let Some(cpu) = self.cpus.get_mut(event.cpu.index()) {
                    cpu.preempt = true;
                }
            }
            What::Callback { op, a, b } => self.called(event, op, (a, b)),
            What::Switch { prev, state, .. } => self.switched(event, prev, state),
            _ => {}
        }
    }

    /// A CPU that was asked and did not switch kept its task, which ends a turn and begins one.
    fn settle_kept(&mut self, event: &Event) {
        let Some(cpu) = self.cpus.get(event.cpu.index()) else {
            return;
        };
        let Some(asked) = cpu.asked else { return };
        // Within the same schedule() the policy may be asked again and then be told of the end.
        let same = match event.what() {
            What::Switch { .. } | What::Migrate { .. } => true,
            What::Callback { op, .. } => op != Op::Tick && event.time.as_nanos() == asked,
            _ => false,
        };
        if same {
            return;
        }
        // A sample may have booked an idle CPU's time beyond the moment in which it was asked.
        let ran = cpu.running.map(|_| self.span(cpu.since, asked));
        let cpu = &mut self.cpus[event.cpu.index()];
        cpu.asked = None;
        cpu.preempt = false;
        if let Some(ran) = ran {
            cpu.cpu_time += ran;
            cpu.since = asked;
        }
    }

    fn called(&mut self, event: &Event, op: Op, (stays, slice_left): (u64, u64)) {
        let Some(cpu) = self.cpus.get_mut(event.cpu.index()) else {
            return;
        };
        match op {
            Op::Dispatch => cpu.asked = Some(event.time.as_nanos()),
            Op::Stopping => cpu.slice_left = stays == 1 && slice_left > 0,
            _ => {}
        }
    }

    fn switched(&mut self, event: &Event, prev: TaskId, state: PrevState) {
        let now = event.time.as_nanos();
        let Some(cpu) = self.cpus.get(event.cpu.index()) else {
            return;
        };
        let ran = self.span(cpu.since, now);
        let waited = self
            .tasks
            .get(event.task.index())
            .and_then(|task| task.queued)
            .map(|queued| self.span(queued, now));
        let stays = (cpu.preempt || cpu.slice_left) && self.bookkeeping == Bookkeeping::V4;
        if let Some(task) = self.tasks.get_mut(prev.index()) {
            task.waits = state == PrevState::Runnable;
            task.queued = (task.waits && !stays).then_some(now);
        }
        let cpu = &mut self.cpus[event.cpu.index()];
        cpu.idle_until(now);
        if cpu.running.is_some() {
            cpu.cpu_time += ran;
        }
        cpu.since = now;
        cpu.asked = None;
        cpu.preempt = false;
        cpu.slice_left = false;
        cpu.running = (event.task != TaskId::NONE).then_some(event.task);
        if cpu.running.is_some() {
            cpu.run_delay += waited.unwrap_or(0);
            cpu.pcnt += 1;
        }
        if let Some(task) = self.tasks.get_mut(event.task.index()) {
            *task = BookedTask::default();
        }
    }
}

impl Cpu {
    /// Counts the milliseconds of the clock that found the CPU idle.
    fn idle_until(&mut self, now: u64) {
        if self.running.is_none() {
            self.idle_jiffies += now / NS_PER_JIFFY - self.since / NS_PER_JIFFY;
            self.since = now;
        }
    }
}

impl<W: Write> Sink for Bookkeeper<W> {
    fn wants(&self) -> EventMask {
        let kinds = [
            EventKind::New,
            EventKind::Wakeup,
            EventKind::Migrate,
            EventKind::Switch,
            EventKind::Kick,
            EventKind::Callback,
        ];
        let kinds = kinds.into_iter().fold(EventMask::NONE, EventMask::with);
        self.output.wants(kinds)
    }

    fn begin(&mut self, header: &Header) {
        self.cpus = vec![Cpu::default(); usize::from(header.machine.cpus)];
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            self.take_event(event);
        }
    }

    fn finish(&mut self, _end: SimTime) {}
}

impl<W: Write> Sampler for Bookkeeper<W> {
    fn sample(&mut self, sample: &Sample) {
        let now = sample.time.as_nanos();
        let layout = Layout::of(4).expect("version 4 has a table");
        let mut snapshot = Snapshot::new(layout, now / NS_PER_JIFFY);
        let full = self.bookkeeping == Bookkeeping::Full;
        for (index, counts) in sample.cpus.iter().enumerate() {
            let cpu = &mut self.cpus[index];
            cpu.idle_until(now);
            // The old kernel books a turn when it ends.
            let open = if full && cpu.running.is_some() {
                now - cpu.since
            } else {
                0
            };
            let machine = MachineCounts {
                yields: counts.yields,
                picks: counts.picks,
                schedules: counts.schedules,
                idle_jiffies: cpu.idle_jiffies,
                cpu_time: (cpu.cpu_time + open) / NS_PER_JIFFY,
                run_delay: cpu.run_delay / NS_PER_JIFFY,
                pcnt: cpu.pcnt + counts.kept,
            };
            let policy = |name: &str| sample.policy_count(name, index);
            let counters = version_4(&machine, policy, sample.cpus.len());
            snapshot.push_cpu(index as u32, &counters);
        }
        snapshot.sum_totals();
        snapshot
            .write(self.output.buffer())
            .expect("memory takes every write");
        // Behind the first snapshot, so that the file begins as the kernel's did.
        if !std::mem::replace(&mut self.says_hz, true) {
            writeln!(self.output.buffer(), "# HZ={HZ}").expect("memory takes every write");
        }
        self.output.write_when_full();
    }
}

#[cfg(test)]
mod tests {
    use model::CpuCounts;

    use super::*;
    use crate::schedstat::SchedstatReader;
    use traces::testing::{self, StreamWriter, event, with};

    /// The last snapshot's run time, wait and count of CPU 0 in jiffies, at `end` nanoseconds.
    fn books(bookkeeping: Bookkeeping, stream: &StreamWriter, end: u64) -> [u64; 3] {
        let mut bookkeeper = Bookkeeper::new(bookkeeping, Vec::new());
        bookkeeper.begin(&testing::header(1));
        bookkeeper.events(&stream.events);
        bookkeeper.sample(&Sample {
            time: SimTime::from_nanos(end),
            cpus: vec![CpuCounts::default()],
            policy: Vec::new(),
        });
        let text = bookkeeper.close().unwrap();
        let mut reader = SchedstatReader::new(text.as_slice());
        let snapshot = reader.next_snapshot().unwrap().unwrap();
        assert_eq!(snapshot.timestamp(), end / MS);
        assert!(reader.next_snapshot().unwrap().is_none());
        assert_eq!(reader.hz(), Some(1_000), "the file knows its HZ");
        let cpu = snapshot.cpu(0).unwrap();
        ["cpu_time", "run_delay", "pcnt"].map(|name| cpu.get(name).unwrap())
    }

    const MS: u64 = 1_000_000;
    const A: Option<(u32, PrevState)> = Some((0, PrevState::Runnable));

    fn kick(ns: u64) -> Event {
        with(
            event(ns, EventKind::Kick, 0, TaskId::NONE),
            (0, KICK_PREEMPT, 0),
        )
    }

    fn callback(ns: u64, op: Op, a: u64, b: u64) -> Event {
        with(
            event(ns, EventKind::Callback, 0, TaskId(0)),
            (op as u8, a, b),
        )
    }

    #[test]
    fn an_idle_cpu_that_looks_in_vain_may_be_sampled_before_it_looks_again() {
        let mut bookkeeper = Bookkeeper::new(Bookkeeping::Full, Vec::new());
        bookkeeper.begin(&testing::header(1));
        let look = |ns| {
            with(
                event(ns, EventKind::Callback, 0, TaskId::NONE),
                (Op::Dispatch as u8, 0, 0),
            )
        };
        for (looks, sample) in [(MS, 2 * MS), (3 * MS, 4 * MS)] {
            bookkeeper.events(&[look(looks)]);
            bookkeeper.sample(&Sample {
                time: SimTime::from_nanos(sample),
                cpus: vec![CpuCounts::default()],
                policy: Vec::new(),
            });
        }
        assert_eq!(bookkeeper.cpus[0].idle_jiffies, 4);
        assert_eq!(bookkeeper.cpus[0].cpu_time, 0);
    }

    /// A runs, B takes the CPU for 5 ms, A runs on until 20 ms.
    fn interrupted(before: &[Event]) -> StreamWriter {
        let stream = StreamWriter::new()
            .born(0, 0, 0, 0)
            .wakeup(0, 0, 0)
            .switch(0, 0, None, Some(0))
            .born(0, 1, 1, 0)
            .wakeup(10 * MS, 1, 0);
        let stream = before
            .iter()
            .fold(stream, |stream, &event| stream.push(event));
        stream.switch(10 * MS, 0, A, Some(1)).switch(
            15 * MS,
            0,
            Some((1, PrevState::Sleeping)),
            Some(0),
        )
    }

    #[test]
    fn a_task_whose_slice_ended_waits_and_a_preempted_one_stays_in_its_list() {
        use Bookkeeping::{Full, V4};
        let ended = interrupted(&[]);
        let kicked = interrupted(&[kick(10 * MS)]);
        // The last turn of A is open: the old kernel books it when it ends.
        assert_eq!(books(V4, &ended, 20 * MS), [15, 5, 3]);
        assert_eq!(books(V4, &kicked, 20 * MS), [15, 0, 3]);
        assert_eq!(books(Full, &kicked, 20 * MS), [20, 5, 3]);
    }

    #[test]
    fn a_higher_class_takes_the_cpu_from_a_task_with_slice_left() {
        let stopped = interrupted(&[callback(10 * MS, Op::Stopping, 1, MS)]);
        assert_eq!(books(Bookkeeping::V4, &stopped, 20 * MS), [15, 0, 3]);
    }

    #[test]
    fn a_kick_that_changed_nothing_is_forgotten() {
        let kept = [
            kick(4 * MS),
            callback(4 * MS, Op::Dispatch, 0, 1),
            callback(8 * MS, Op::Tick, 0, 0),
            callback(10 * MS, Op::Dispatch, 0, 1),
        ];
        assert_eq!(
            books(Bookkeeping::V4, &interrupted(&kept), 20 * MS),
            [15, 5, 3]
        );
    }

    #[test]
    fn a_pulled_task_is_queued_and_a_child_is_not() {
        let child =
            StreamWriter::new()
                .born(0, 0, 0, 0)
                .start(0, 0, 0)
                .switch(7 * MS, 0, None, Some(0));
        assert_eq!(books(Bookkeeping::V4, &child, 9 * MS), [0, 0, 1]);
        assert_eq!(books(Bookkeeping::Full, &child, 9 * MS), [2, 7, 1]);
        let pulled = StreamWriter::new()
            .born(0, 0, 0, 0)
            .start(0, 0, 1)
            .migrate(3 * MS, 0, 1, 0)
            .switch(7 * MS, 0, None, Some(0));
        assert_eq!(books(Bookkeeping::V4, &pulled, 9 * MS), [0, 4, 1]);
    }

    #[test]
    fn jiffies_are_those_that_a_clock_of_jiffies_shows() {
        // 0.9 ms across a tick are one jiffy, and 0.9 ms between two ticks are none.
        let across = |from: u64| {
            StreamWriter::new()
                .born(0, 0, 0, 0)
                .wakeup(from, 0, 0)
                .switch(from, 0, None, Some(0))
                .switch(from + 900_000, 0, Some((0, PrevState::Sleeping)), None)
        };
        assert_eq!(books(Bookkeeping::V4, &across(500_000), 9 * MS), [1, 0, 1]);
        assert_eq!(books(Bookkeeping::V4, &across(50_000), 9 * MS), [0, 0, 1]);
    }
}
