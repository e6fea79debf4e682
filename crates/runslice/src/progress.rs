//! A progress bar on standard error, for people who wait.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use model::{Event, EventMask, Header, Nanos, SimTime, Sink};

/// Nothing is shown before this, so that short runs stay silent.
const PATIENCE: Duration = Duration::from_secs(1);
/// From one picture to the next.
const REFRESH: Duration = Duration::from_millis(100);
/// Marks of a full bar.
const WIDTH: u64 = 30;

/// Shows how much of a run's time has passed. Looks at the clock of the computer, so it is a sink
/// and never part of a machine.
#[derive(Debug)]
pub struct Progress {
    name: String,
    /// When the run ends at the latest; `None`: nobody knows.
    end: Option<Nanos>,
    next_look: Instant,
    shown: bool,
}

impl Progress {
    /// A bar for the run called `name`, or none when standard error is no terminal.
    pub fn on_terminal(name: &str, end: Option<Nanos>) -> Option<Self> {
        io::stderr().is_terminal().then(|| Self {
            name: name.to_owned(),
            end,
            next_look: Instant::now() + PATIENCE,
            shown: false,
        })
    }
}

impl Sink for Progress {
    fn wants(&self) -> EventMask {
        EventMask::NONE.with(model::EventKind::Switch)
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, events: &[Event]) {
        let now = Instant::now();
        let Some(last) = events.last() else { return };
        if now < self.next_look {
            return;
        }
        self.next_look = now + REFRESH;
        self.shown = true;
        // A bar that cannot be drawn is no reason to end the run.
        let _ = write!(
            io::stderr(),
            "\r\x1b[K{}",
            picture(&self.name, last.time, self.end)
        );
    }

    fn finish(&mut self, _: SimTime) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// The bar as text.
fn picture(name: &str, now: SimTime, end: Option<Nanos>) -> String {
    let passed = now.since(SimTime::ZERO);
    let Some(end) = end.filter(|end| !end.is_zero()) else {
        return format!("{name}: {passed} simulated");
    };
    let share = |of: u64| {
        let part = u128::from(passed.get()) * u128::from(of) / u128::from(end.get());
        u64::try_from(part).unwrap_or(of).min(of)
    };
    let full = share(WIDTH) as usize;
    let bar = format!("{}{}", "#".repeat(full), "-".repeat(WIDTH as usize - full));
    format!("{name} [{bar}] {:>3} % of {end}", share(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_with_simulated_time_and_never_overflows() {
        let at = |ms: u64| {
            picture(
                "fifo",
                SimTime::from_nanos(ms * 1_000_000),
                Some(Nanos::from_secs(1)),
            )
        };
        assert_eq!(at(0), format!("fifo [{}]   0 % of 1.00 s", "-".repeat(30)));
        assert_eq!(
            at(500),
            format!(
                "fifo [{}{}]  50 % of 1.00 s",
                "#".repeat(15),
                "-".repeat(15)
            )
        );
        assert_eq!(
            at(9000),
            format!("fifo [{}] 100 % of 1.00 s", "#".repeat(30))
        );
    }

    #[test]
    fn a_run_without_a_known_end_shows_its_time() {
        let text = picture("fifo", SimTime::from_nanos(2_000_000), None);
        assert_eq!(text, "fifo: 2.00 ms simulated");
    }
}
