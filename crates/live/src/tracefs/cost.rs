//! What the recording of an event costs, and a switch with its wakeup, measured on this machine.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

/// Round trips of a token that are timed together.
const ROUNDS: u32 = 400;
/// So many times.
const BLOCKS: usize = 9;
/// Events of a thread that is woken and gets the CPU; each round trip has two such threads.
pub const OF_A_TURN: [&str; 3] = ["sched_waking", "sched_wakeup", "sched_switch"];

/// What was measured; `None`: it is too small to be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCosts {
    /// CPU time that the recording of an event takes.
    pub event: Option<Duration>,
    /// CPU time of a switch between two tasks with the wakeup before it, without recording.
    pub switch: Option<Duration>,
}

/// How long an event of the scheduler takes longer with recording than without: the difference of
/// a token's round trips between two threads of one CPU, of which each has `events` events. `off`
/// ends the recording. What a round trip takes then, less its system calls, is two switches with
/// their wakeups.
///
/// # Errors
/// When there are no pipes or threads for it.
pub fn measure(events: u32, off: impl FnOnce() -> io::Result<()>) -> io::Result<EventCosts> {
    if events == 0 {
        return Ok(EventCosts::default());
    }
    let mut track = Track::new()?;
    let with = track.median()?;
    off()?;
    let without = track.median()?;
    let calls = track.calls()?;
    drop(track);
    Ok(EventCosts::of([with, without, calls], events))
}

impl EventCosts {
    /// From the times of [`ROUNDS`] round trips with and without recording, and of as many writes
    /// and reads.
    fn of([with, without, calls]: [Duration; 3], events: u32) -> Self {
        let seen = |more: Option<Duration>, parts: u32| {
            let each = more.map(|more| more / (parts * ROUNDS));
            each.filter(|each| !each.is_zero())
        };
        Self {
            event: seen(with.checked_sub(without), events),
            switch: seen(without.checked_sub(2 * calls), 2),
        }
    }
}

/// Two threads on one CPU that hand a token to each other.
struct Track {
    to: Option<File>,
    from: File,
    other: Option<thread::JoinHandle<()>>,
    before: CpuSet,
}

impl Track {
    fn new() -> io::Result<Self> {
        let before = rustix::thread::sched_getaffinity(None)?;
        let mut one = CpuSet::new();
        one.set(sched_getcpu());
        sched_setaffinity(None, &one)?;
        let pipe = || pipe_with(PipeFlags::CLOEXEC);
        let ((from_us, to), (from, to_us)) = (pipe()?, pipe()?);
        // It inherits the affinity, and ends with the pipe.
        let other = thread::Builder::new()
            .name("token".to_owned())
            .spawn(move || {
                let (mut from, mut to) = (File::from(from_us), File::from(to_us));
                let mut token = [0];
                while matches!(from.read(&mut token), Ok(1)) && to.write_all(&token).is_ok() {}
            });
        Ok(Self {
            to: Some(File::from(to)),
            from: File::from(from),
            other: Some(other?),
            before,
        })
    }

    /// The median time of [`ROUNDS`] round trips.
    fn median(&mut self) -> io::Result<Duration> {
        let to = self.to.as_mut().expect("it is open until the end");
        median(to, &mut self.from)
    }

    /// The median time of [`ROUNDS`] writes and reads of a pipe that nobody waits for.
    fn calls(&mut self) -> io::Result<Duration> {
        let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
        median(&mut File::from(to), &mut File::from(from))
    }
}

/// The median time of [`ROUNDS`] bytes that are written and read.
fn median(to: &mut File, from: &mut File) -> io::Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..BLOCKS {
        let began = Instant::now();
        for _ in 0..ROUNDS {
            to.write_all(&[1])?;
            from.read_exact(&mut [0])?;
        }
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[BLOCKS / 2])
}

impl Drop for Track {
    fn drop(&mut self) {
        self.to = None;
        if let Some(other) = self.other.take() {
            let _ = other.join();
        }
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_has_two_switches_and_the_system_calls_of_both_threads() {
        let rounds = |us: u64| Duration::from_micros(us) * ROUNDS;
        let found = EventCosts::of([rounds(16), rounds(10), rounds(1)], 6);
        let want = EventCosts {
            event: Some(Duration::from_micros(1)),
            switch: Some(Duration::from_micros(4)),
        };
        assert_eq!(found, want);
        let none = EventCosts::of([rounds(9), rounds(10), rounds(5)], 6);
        assert_eq!(none, EventCosts::default());
    }

    #[test]
    fn a_token_goes_round_and_the_thread_may_run_everywhere_again() {
        let before = rustix::thread::sched_getaffinity(None).unwrap();
        let mut is_off = false;
        let off = || {
            is_off = true;
            Ok(())
        };
        measure(6, off).unwrap();
        assert!(is_off);
        assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), before);
        // Without events there is nothing to measure.
        let nothing = measure(0, || Ok(())).unwrap();
        assert_eq!(nothing, EventCosts::default());
        assert!(measure(6, || Err(io::ErrorKind::Other.into())).is_err());
    }
}
