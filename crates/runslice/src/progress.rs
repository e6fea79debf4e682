//! Progress on standard error, for people who wait: how much is done, how fast, and how long the
//! rest will take. A terminal gets a bar; a file or a pipe gets a line at intervals.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::{Event, EventMask, Header, Nanos, SimTime, Sink};

use crate::say::say;

/// Nothing is shown before this, so that short work stays silent.
const PATIENCE: Duration = Duration::from_secs(1);
/// From one look at the clock to the next.
const REFRESH: Duration = Duration::from_millis(100);
/// Pictures in a second at the most.
const RATE: u8 = 10;
/// From one line to the next where there is no terminal. Work that is shorter says nothing.
const LINES: Duration = Duration::from_secs(30);
/// Simulated time is counted in microseconds: a bar of nanoseconds has long numbers.
const STEP: u64 = 1_000;

/// A bar that stays hidden while it is young; lines where standard error is no terminal.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    name: String,
    is_time: bool,
    /// What a line without an end counts.
    counts: &'static str,
    born: Instant,
    shown: bool,
    /// When the next line is due, where there is no terminal.
    next_line: Option<Instant>,
}

impl Bar {
    /// A bar for `all` things of this name.
    pub fn of_things(name: &str, all: u64) -> Self {
        let template = "{prefix} [{bar:30}] {pos} of {len}, {rate}, {eta} left";
        Self::new(name, Some(all), template)
    }

    /// A count of things of this name, of which nobody knows how many there will be.
    pub fn of_tries(name: &str) -> Self {
        Self::new(name, None, "{prefix} {spinner} {pos} tried, {rate}")
    }

    /// A count of the system calls of a program of this name, which has attached no policy yet.
    pub fn of_calls(name: &str) -> Self {
        let template = "{prefix} {spinner} {pos} system calls, and no policy yet, {rate}";
        Self {
            counts: " system calls, and no policy yet",
            ..Self::new(name, None, template)
        }
    }

    /// A bar for the simulated time of a run, which ends at the latest at `end` if that is known.
    fn of_time(name: &str, end: Option<Nanos>) -> Self {
        let template = match end {
            Some(_) => "{prefix} [{bar:30}] {percent} % of {whole}, {rate}, {eta} left",
            None => "{prefix} {spinner} {done} simulated, {rate}",
        };
        Self::new(name, end.map(|end| end.get() / STEP), template)
    }

    fn new(name: &str, length: Option<u64>, template: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
        bar.set_prefix(model::plain::shown(name));
        bar.set_style(style(template));
        let born = Instant::now();
        Self {
            bar,
            name: name.to_owned(),
            is_time: is_time(template),
            counts: if is_time(template) {
                " simulated"
            } else {
                " tried"
            },
            born,
            shown: false,
            next_line: (!std::io::stderr().is_terminal()).then(|| born + LINES),
        }
    }

    /// Says how much is done.
    pub fn set(&mut self, done: u64) {
        self.bar.set_position(done);
        if self.next_line.is_some() {
            if let Some(line) = self.line_due(Instant::now()) {
                say("runslice", &line);
            }
            return;
        }
        if !self.shown && self.born.elapsed() >= PATIENCE {
            self.shown = true;
            // Draws nothing where standard error is no terminal.
            self.bar
                .set_draw_target(ProgressDrawTarget::stderr_with_hz(RATE));
        }
    }

    /// The line that is due at `now`, if one is: how much is done, how fast, and how long the rest
    /// takes at this speed.
    fn line_due(&mut self, now: Instant) -> Option<String> {
        if self.next_line.is_none_or(|due| now < due) {
            return None;
        }
        self.next_line = Some(now + LINES);
        let (done, length) = (self.bar.position(), self.bar.length());
        let number = |count: u64| {
            if self.is_time {
                Nanos::new(count.saturating_mul(STEP)).to_string()
            } else {
                count.to_string()
            }
        };
        let passed = now.duration_since(self.born);
        let rate = done as f64 / passed.as_secs_f64();
        let mut line = format!("{}: {}", self.name, number(done));
        if let Some(all) = length {
            let left = all.saturating_sub(done) as f64 / rate;
            line += &format!(" of {}", number(all));
            if left.is_finite() {
                line += &format!(", about {} s left", left.round());
            }
        } else {
            line += self.counts;
        }
        Some(line + &format!(", after {} s", passed.as_secs()))
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// The system calls of a program in a run. Where they are many, events are rare, with which the
/// run's own progress comes.
#[derive(Debug)]
pub struct CallLines {
    said: u64,
    due: Instant,
}

impl CallLines {
    /// So many calls between two lines are worth one.
    const MANY: u64 = 100_000;

    pub fn begin() -> Self {
        Self {
            said: 0,
            due: Instant::now() + LINES,
        }
    }

    /// The line that is due at `now`, if the program called `name` has made many calls since the
    /// last one: how many of them there are, and where the run is.
    pub fn line_due(
        &mut self,
        now: Instant,
        calls: u64,
        (name, at): (&str, SimTime),
    ) -> Option<String> {
        if now < self.due {
            return None;
        }
        self.due = now + LINES;
        let many = calls.saturating_sub(self.said) >= Self::MANY;
        self.said = calls;
        many.then(|| {
            format!("{name}: its program has made {calls} system calls; the run is at {at} s")
        })
    }
}

/// Whether a bar of this form counts simulated time.
fn is_time(template: &str) -> bool {
    template.contains("{whole}") || template.contains("{done}")
}

/// The style of a bar; with the numbers that only we know how to write.
fn style(template: &'static str) -> ProgressStyle {
    use indicatif::ProgressState;
    let time = |micros: u64| Nanos::new(micros.saturating_mul(STEP)).to_string();
    let is_time = is_time(template);
    let style = ProgressStyle::with_template(template).expect("the templates above are right");
    style
        .progress_chars("##-")
        .with_key(
            "whole",
            move |state: &ProgressState, to: &mut dyn std::fmt::Write| {
                let _ = to.write_str(&time(state.len().unwrap_or(0)));
            },
        )
        .with_key(
            "done",
            move |state: &ProgressState, to: &mut dyn std::fmt::Write| {
                let _ = to.write_str(&time(state.pos()));
            },
        )
        .with_key(
            "rate",
            move |state: &ProgressState, to: &mut dyn std::fmt::Write| {
                let _ = to.write_str(&rate(state.per_sec(), is_time));
            },
        )
}

/// How much is done in a second: things, or simulated time.
fn rate(per_second: f64, is_time: bool) -> String {
    if !per_second.is_finite() || per_second < 0.0 {
        return "-".to_owned();
    }
    if is_time {
        format!("{} a second", Nanos::new((per_second * STEP as f64) as u64))
    } else if per_second >= 10.0 {
        format!("{per_second:.0} a second")
    } else {
        format!("{per_second:.1} a second")
    }
}

/// Shows how much of a run's time has passed. Looks at the clock of the computer, so it is a sink
/// and never part of a machine.
#[derive(Debug)]
pub struct Progress {
    bar: Bar,
    next_look: Instant,
}

impl Progress {
    /// Progress of the run called `name`, which ends at `end` at the latest.
    pub fn of_run(name: &str, end: Option<Nanos>) -> Self {
        Self {
            bar: Bar::of_time(name, end.filter(|end| !end.is_zero())),
            next_look: Instant::now() + PATIENCE,
        }
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
        self.bar.set(last.time.as_nanos() / STEP);
    }

    fn finish(&mut self, _: SimTime) {
        self.bar.end();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal that remembers what was written.
    #[derive(Clone, Debug, Default)]
    struct Written(Arc<Mutex<String>>);

    impl Written {
        fn text(&self) -> String {
            self.0.lock().unwrap().trim().to_owned()
        }
    }

    impl TermLike for Written {
        fn width(&self) -> u16 {
            100
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().clear();
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What a bar shows when it is drawn.
    fn seen(bar: &mut Bar, done: u64) -> String {
        let terminal = Written::default();
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        bar.bar.set_draw_target(target);
        bar.bar.set_position(done);
        terminal.0.lock().unwrap().clear();
        bar.bar.tick();
        terminal.text()
    }

    #[test]
    fn a_bar_says_how_much_is_done_how_fast_and_how_long_it_takes() {
        let mut bar = Bar::of_things("runs", 40);
        let text = seen(&mut bar, 10);
        assert!(text.starts_with("runs [#######"), "{text}");
        assert!(
            text.contains("] 10 of 40, ") && text.contains(" a second, "),
            "{text}"
        );
        assert!(text.ends_with(" left"), "{text}");
        bar.end();
    }

    #[test]
    fn the_time_of_a_run_is_written_as_time_and_its_name_commands_no_terminal() {
        let mut bar = Bar::of_time("fi\u{1b}[2Jfo", Some(Nanos::from_secs(1)));
        let text = seen(&mut bar, 500_000);
        assert!(
            text.starts_with("fi\\u001b[2Jfo [###############"),
            "{text}"
        );
        assert!(text.contains("50 % of 1.00 s, "), "{text}");
        let mut endless = Bar::of_time("fifo", None);
        let text = seen(&mut endless, 2_000);
        assert!(text.contains("2.00 ms simulated, "), "{text}");
    }

    #[test]
    fn a_program_that_loads_is_told_by_its_calls() {
        let mut bar = Bar::of_calls("slow");
        let text = seen(&mut bar, 2_000);
        assert!(
            text.contains(" 2000 system calls, and no policy yet"),
            "{text}"
        );
        bar.next_line = Some(bar.born);
        let line = bar.line_due(bar.born + Duration::from_secs(30));
        let want = "slow: 2000 system calls, and no policy yet, after 30 s";
        assert_eq!(line.as_deref(), Some(want));
    }

    #[test]
    fn a_run_whose_program_makes_calls_without_end_is_told_by_them() {
        let mut calls = CallLines::begin();
        let at = SimTime::from_nanos(1_200_000_000);
        assert_eq!(
            calls.line_due(calls.due - REFRESH, 900_000, ("busy", at)),
            None
        );
        let mut said = |count: u64| calls.line_due(calls.due, count, ("busy", at));
        let want = "busy: its program has made 900000 system calls; the run is at 1.200000000 s";
        assert_eq!(said(900_000).as_deref(), Some(want));
        // Thirty seconds later it has made few more, and nothing needs to be said.
        assert_eq!(said(950_000), None);
        assert!(said(1_100_000).is_some());
    }

    #[test]
    fn without_a_terminal_a_line_comes_at_intervals() {
        let mut bar = Bar::of_things("runs", 40);
        let born = bar.born;
        bar.next_line = Some(born + LINES);
        bar.bar.set_position(10);
        let mut at = |seconds| bar.line_due(born + Duration::from_secs(seconds));
        assert_eq!(at(29), None);
        let want = "runs: 10 of 40, about 90 s left, after 30 s";
        assert_eq!(at(30).as_deref(), Some(want));
        assert_eq!(at(59), None);
        let want = "runs: 10 of 40, about 180 s left, after 60 s";
        assert_eq!(at(60).as_deref(), Some(want));
        let mut run = Bar::of_time("fifo", Some(Nanos::from_secs(10)));
        run.next_line = Some(run.born);
        run.bar.set_position(2_500_000);
        let line = run.line_due(run.born + Duration::from_secs(50));
        let want = "fifo: 2.50 s of 10.0 s, about 150 s left, after 50 s";
        assert_eq!(line.as_deref(), Some(want));
        let mut endless = Bar::of_time("fifo", None);
        endless.next_line = Some(endless.born);
        let line = endless.line_due(endless.born + Duration::from_secs(31));
        assert_eq!(line.as_deref(), Some("fifo: 0 ns simulated, after 31 s"));
    }

    #[test]
    fn rates_are_numbers_of_things_or_time() {
        assert_eq!(rate(12.4, false), "12 a second");
        assert_eq!(rate(0.25, false), "0.2 a second");
        assert_eq!(rate(2_000_000.0, true), "2.00 s a second");
        assert_eq!(rate(f64::NAN, true), "-");
    }
}
