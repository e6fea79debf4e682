//! A key that is held down: a program behind a terminal answers each press, with hogs or builds
//! beside it.
//!
//! The response is what "A comparison of interactivity in the Linux 2.6 scheduler and an MLFQ
//! scheduler" (Torrey, Coleman and Miller, 2007) measures: from the wakeup of the program that
//! answers to its turn on a CPU. It is read from the kernel's own trace, which also tells who had
//! the CPU in between. Without root there is only what the program sees: from the press to the
//! moment when it has read it.

use std::collections::BTreeMap;
use std::hint::{black_box, spin_loop};
use std::io::{self, Read as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{Rng, quantile};
use workload::SchedPolicy;

use super::kernbench::{Builder, Jobs, Prepared};
use super::processes::Processes;
use super::terminal::Terminal;
use super::trace::{Response, Trace};
use super::{Error, LoadCell, LoadOutcome, LoadTable, count, mean, micros};
use crate::play::shared::MemoryPlan;
use crate::play::spin::{PAUSE_EVERY, Spin};
use crate::play::sys;
use live::process;
use live::record::{self, Depth, Recorder};

/// The real-time priority of the finger: nothing may delay it.
const FINGER: u8 = 50;

/// Keys and what runs beside them.
#[derive(Clone, Debug)]
pub struct Echo {
    /// Presses, at least 1.
    pub samples: u32,
    /// From one press to the next, on the average.
    pub period: Duration,
    /// CPU time of an answer.
    pub work: Duration,
    /// Tasks that compute for ever.
    pub hogs: u32,
    /// Builds that begin anew when they end, one job each.
    pub builds: Vec<Builder>,
    /// Ignore tasks that ran for less than this between wakeup and response: a policy needs that
    /// time to take the CPU away again.
    pub least: Duration,
    /// Decides when within its period a key is pressed.
    pub seed: u64,
}

/// Who kept the program from its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Between {
    /// Nobody got the CPU before it.
    Nobody,
    /// A hog.
    Hog,
    /// A task of the kernel.
    Kernel,
    /// A program of a build.
    Build,
    /// Anything else on the computer.
    Other,
}

impl Between {
    const ALL: [Self; 5] = [
        Self::Nobody,
        Self::Hog,
        Self::Kernel,
        Self::Build,
        Self::Other,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Hog => "hog",
            Self::Kernel => "daemon",
            Self::Build => "build",
            Self::Other => "other",
        }
    }
}

/// When a key was pressed, seen by the program, and shown: nanoseconds, 0 for not yet.
struct Stamps {
    pressed: &'static [AtomicU64],
    seen: &'static [AtomicU64],
    shown: &'static [AtomicU64],
}

impl Echo {
    /// Presses all keys and says how they were answered.
    ///
    /// # Errors
    /// When there is no terminal, or a process cannot be started.
    pub fn run(&self) -> Result<LoadOutcome, Error> {
        if self.samples == 0 || self.period.is_zero() {
            let wrong = "a key is pressed at least once, and a period is not 0";
            return Err(Error::Size(wrong.to_owned()));
        }
        let builds: Result<Vec<_>, _> = self.builds.iter().map(Builder::prepare).collect();
        let builds = builds?;
        let stamps = self.stamps()?;
        let terminal = Terminal::open().map_err(Error::doing("open a terminal"))?;
        let spin = Spin::calibrate();
        let mut processes = Processes::new()?;
        let hogs = self.begin_hogs(&mut processes)?;
        begin_builds(&mut processes, &builds)?;
        let (mut inside, mut outside) = (&terminal.inside, &terminal.outside);
        let work = u64::try_from(self.work.as_nanos()).unwrap_or(u64::MAX);
        let echo = processes.spawn("echo", |gate| {
            gate.pass();
            let mut key = [0];
            for seen in stamps.seen {
                inside.read_exact(&mut key)?;
                seen.store(record::clock(), Ordering::Relaxed);
                spin.burn(work);
                inside.write_all(&key)?;
            }
            Ok(())
        })?;
        processes.spawn("screen", |gate| {
            gate.pass();
            let mut key = [0];
            for shown in stamps.shown {
                outside.read_exact(&mut key)?;
                shown.store(record::clock(), Ordering::Relaxed);
            }
            Ok(())
        })?;
        let mut outcome = LoadOutcome::default();
        let mut fingers = Processes::new()?;
        let is_urgent = process::is_root();
        fingers.spawn("finger", |gate| {
            gate.pass();
            self.press(&terminal, stamps.pressed, is_urgent)
        })?;
        // Everybody has been forked: it makes a thread.
        let recorder = self.record(&mut outcome)?;
        processes.open(processes.len())?;
        fingers.open(1)?;
        fingers.wait()?;
        self.wait_for_the_last(&mut processes, &stamps)?;
        let trace = recorder.map(Recorder::stop).transpose()?.map(Trace::of);
        processes.end();
        let responses = trace
            .as_ref()
            .map(|trace| trace.responses(echo.cast_unsigned()));
        let classes = Classes {
            trace: trace.as_ref(),
            hogs: &hogs,
            builds: !self.builds.is_empty(),
            least: u64::try_from(self.least.as_nanos()).unwrap_or(u64::MAX),
        };
        self.tell(
            &mut outcome,
            &stamps,
            &responses.unwrap_or_default(),
            &classes,
        );
        Ok(outcome)
    }

    fn stamps(&self) -> Result<Stamps, Error> {
        let number = self.samples as usize;
        let mut plan = MemoryPlan::default();
        let [pressed, seen, shown] = [0; 3].map(|_| plan.longs(number));
        let longs = plan.build()?.longs;
        Ok(Stamps {
            pressed: &longs[pressed],
            seen: &longs[seen],
            shown: &longs[shown],
        })
    }

    fn begin_hogs(&self, processes: &mut Processes) -> Result<Vec<u32>, Error> {
        let hog = |_| {
            let pid = processes.spawn("hog", |gate| {
                gate.pass();
                let mut value = 1.0_f64;
                loop {
                    for _ in 0..PAUSE_EVERY {
                        value = black_box(value * 1.000_000_1);
                    }
                    // An emulated CPU lets the others run at this.
                    spin_loop();
                }
            })?;
            Ok(pid.cast_unsigned())
        };
        (0..self.hogs).map(hog).collect()
    }

    /// The kernel's trace, or a note why there is none.
    fn record(&self, outcome: &mut LoadOutcome) -> Result<Option<Recorder>, Error> {
        if process::is_root() {
            record::be_urgent();
            return Ok(Some(Recorder::start(Depth::Events, false)?));
        }
        let note = "without root there is no trace of wakeups: only the times that programs see, \
                    and the finger is no real-time task";
        outcome.notes.push(note.to_owned());
        Ok(None)
    }

    /// Presses each key at a random moment of its period.
    fn press(&self, terminal: &Terminal, pressed: &[AtomicU64], is_urgent: bool) -> io::Result<()> {
        if is_urgent {
            sys::set_policy(0, SchedPolicy::Fifo(FINGER))?;
        }
        sys::no_timer_slack();
        let mut rng = Rng::new(self.seed, 0);
        let period = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        let mut begin = record::clock();
        let mut keys = &terminal.outside;
        for stamp in pressed {
            sys::sleep_until(begin + rng.below(period));
            begin += period;
            stamp.store(record::clock(), Ordering::Relaxed);
            keys.write_all(b"k")?;
        }
        Ok(())
    }

    /// Waits until the last key is on the screen, at most a thousand periods: who is starved so
    /// long is not answered.
    fn wait_for_the_last(&self, processes: &mut Processes, stamps: &Stamps) -> Result<(), Error> {
        let last = stamps.shown.last().expect("there is at least one key");
        for _ in 0..1000 {
            if last.load(Ordering::Relaxed) != 0 {
                return Ok(());
            }
            processes.check()?;
            std::thread::sleep(self.period);
        }
        Ok(())
    }

    fn tell(
        &self,
        outcome: &mut LoadOutcome,
        stamps: &Stamps,
        responses: &[Response],
        classes: &Classes,
    ) {
        let all = |stamps: &[AtomicU64]| -> Vec<u64> {
            stamps.iter().map(|it| it.load(Ordering::Relaxed)).collect()
        };
        let (pressed, seen, shown) = (all(stamps.pressed), all(stamps.seen), all(stamps.shown));
        let spans = |ends: &[u64]| -> Vec<u64> {
            let pairs = pressed.iter().zip(ends);
            pairs
                .filter_map(|(from, to)| to.checked_sub(*from))
                .collect()
        };
        outcome.add("keys", "", count(pressed.len() as u64));
        tell_spans(outcome, "seen", spans(&seen));
        tell_spans(outcome, "shown", spans(&shown));
        if classes.trace.is_none() {
            return;
        }
        // A first turn before any key is no answer.
        let first = pressed.first().copied().unwrap_or(0);
        let answers: Vec<&Response> = responses.iter().filter(|it| it.woken >= first).collect();
        tell_spans(
            outcome,
            "response",
            answers.iter().map(|it| it.took).collect(),
        );
        let mut of_class: BTreeMap<Between, Vec<u64>> = BTreeMap::new();
        let mut table = LoadTable {
            name: "responses".to_owned(),
            columns: vec!["at_ns", "response_ns", "between"],
            rows: Vec::new(),
        };
        for answer in &answers {
            let class = classes.of(answer);
            of_class.entry(class).or_default().push(answer.took);
            table.rows.push(vec![
                LoadCell::Number(answer.woken.saturating_sub(first)),
                LoadCell::Number(answer.took),
                LoadCell::Word(class.name().to_owned()),
            ]);
        }
        let of = |class: &Between| of_class.get(class).cloned().unwrap_or_default();
        let answered = answers.len().max(1) as u64;
        for class in Between::ALL {
            let part = 100.0 * count(of(&class).len() as u64) / count(answered);
            outcome.add(format!("{}_part", class.name()), "%", part);
        }
        for class in Between::ALL.iter().filter(|class| !of(class).is_empty()) {
            tell_spans(outcome, &format!("response_{}", class.name()), of(class));
        }
        outcome.tables.push(table);
    }
}

/// Starts what builds each of the sources over and over.
fn begin_builds(processes: &mut Processes, builds: &[Prepared]) -> Result<(), Error> {
    for sources in builds {
        processes.spawn("builds", |gate| {
            gate.pass();
            loop {
                sources.build(Jobs::AtMost(1)).map_err(io::Error::other)?;
            }
        })?;
    }
    Ok(())
}

/// Mean, extremes and quantiles of spans in microseconds. Of none, there is nothing to tell.
fn tell_spans(outcome: &mut LoadOutcome, name: &str, mut spans: Vec<u64>) {
    spans.sort_unstable();
    outcome.add(format!("{name}_number"), "", count(spans.len() as u64));
    if spans.is_empty() {
        return;
    }
    outcome.add(format!("{name}_mean"), "us", mean(&spans) / 1e3);
    for (part, permille) in [("min", 0), ("p50", 500), ("p95", 950), ("max", 1000)] {
        let value = quantile(&spans, permille).expect("there are spans");
        outcome.add(format!("{name}_{part}"), "us", micros(value));
    }
}

/// Tells who is who.
struct Classes<'a> {
    trace: Option<&'a Trace>,
    hogs: &'a [u32],
    builds: bool,
    /// Nanoseconds.
    least: u64,
}

impl Classes<'_> {
    /// Who had the CPU longest before the program got it.
    fn of(&self, response: &Response) -> Between {
        let mut times: BTreeMap<Between, u64> = BTreeMap::new();
        for (pid, time) in &response.between {
            *times.entry(self.who(*pid)).or_default() += time;
        }
        let long = times.into_iter().filter(|(_, time)| *time >= self.least);
        let longest = long.max_by_key(|(_, time)| *time);
        longest.map_or(Between::Nobody, |(class, _)| class)
    }

    fn who(&self, pid: u32) -> Between {
        let name = self.trace.map_or("", |trace| trace.name(pid));
        if self.hogs.contains(&pid) {
            Between::Hog
        } else if self.trace.is_some_and(|trace| trace.is_kernel(pid)) {
            Between::Kernel
        } else if self.builds && !OWN.contains(&name) {
            Between::Build
        } else {
            Between::Other
        }
    }
}

/// Tasks of this load and of the program that runs it, beside builds and hogs.
const OWN: [&str; 4] = ["finger", "screen", "echo", "runslice"];

#[cfg(test)]
mod tests {
    use super::*;

    fn echo() -> Echo {
        Echo {
            samples: 5,
            period: Duration::from_millis(10),
            work: Duration::from_micros(50),
            hogs: 1,
            builds: Vec::new(),
            least: Duration::from_micros(20),
            seed: 1,
        }
    }

    #[test]
    fn every_key_is_seen_and_shown() {
        let outcome = echo().run().unwrap();
        for name in ["keys", "seen_number", "shown_number"] {
            assert_eq!(outcome.value(name), Some(5.0), "{name}: {outcome:?}");
        }
        // It is shown after it was seen and worked on.
        let (seen, shown) = (outcome.value("seen_mean"), outcome.value("shown_mean"));
        assert!(shown.unwrap() > seen.unwrap() + 40.0, "{outcome:?}");
        let none = Echo {
            samples: 0,
            ..echo()
        };
        assert!(none.run().is_err());
    }

    #[test]
    fn who_had_the_cpu_longest_names_the_class() {
        let classes = Classes {
            trace: None,
            hogs: &[8],
            builds: true,
            least: 10,
        };
        let response = |between: &[(u32, u64)]| Response {
            took: 100,
            woken: 0,
            between: between.to_vec(),
        };
        assert_eq!(classes.of(&response(&[])), Between::Nobody);
        assert_eq!(classes.of(&response(&[(8, 9)])), Between::Nobody);
        assert_eq!(
            classes.of(&response(&[(8, 5), (9, 3), (8, 5)])),
            Between::Hog
        );
        assert_eq!(classes.of(&response(&[(8, 10), (9, 11)])), Between::Build);
        let alone = Classes {
            builds: false,
            ..classes
        };
        assert_eq!(alone.of(&response(&[(8, 10), (9, 11)])), Between::Other);
    }
}
