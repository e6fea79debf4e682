//! What `stat top` shows, as text; what keys change in it.

use model::Nanos;

/// Counters of one CPU or task over an interval, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// `cpu3`, or the task's number.
    pub id: String,
    /// The task's name; empty for CPUs.
    pub name: String,
    pub run: u64,
    pub wait: u64,
    pub slices: u64,
}

/// One interval.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// What the first line says of it.
    pub title: String,
    /// Its length in nanoseconds.
    pub length: u64,
    pub cpus: Vec<Row>,
    pub tasks: Vec<Row>,
}

/// Lists to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// CPUs.
    Cpus,
    /// Tasks.
    Tasks,
}

/// Column to sort by: greatest first, but names and numbers in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Sort {
    /// Number of the CPU or task.
    Id,
    /// Part of the interval on a CPU.
    Busy,
    /// Part of the interval in a run queue, waiting.
    Waiting,
    /// Average wait.
    Latency,
    /// Average time on the CPU.
    Runslice,
    /// Number of times on the CPU.
    Slices,
}

impl Sort {
    const ALL: [Self; 6] = [
        Self::Id,
        Self::Busy,
        Self::Waiting,
        Self::Latency,
        Self::Runslice,
        Self::Slices,
    ];

    fn step(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

/// What a key asks for beyond the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing.
    Nothing,
    /// The end.
    Quit,
    /// The interval behind this one, of a recording.
    Next,
    /// The one before.
    Previous,
}

/// The state of the screen.
#[derive(Clone, Debug)]
pub struct Screen {
    pub what: What,
    pub sort: Sort,
    pub reversed: bool,
    pub paused: bool,
    /// Rows that are scrolled away.
    pub scrolled: usize,
}

impl Screen {
    /// The lines of a terminal of `rows` times `columns`; never more, and never longer.
    pub fn lines(&self, interval: &Interval, rows: usize, columns: usize) -> Vec<String> {
        let list = match self.what {
            What::Cpus => &interval.cpus,
            What::Tasks => &interval.tasks,
        };
        let mut list: Vec<&Row> = list.iter().collect();
        list.sort_by(|a, b| self.order(a, b));
        let paused = if self.paused { ", paused" } else { "" };
        let mut lines = vec![
            format!("{}{paused}", interval.title),
            "q quit  c CPUs  t tasks  < > sort by  r reverse  space pause  j k scroll".to_owned(),
            self.heading(),
        ];
        let room = rows.saturating_sub(lines.len());
        let first = self.scrolled.min(list.len().saturating_sub(1));
        let shown = list.into_iter().skip(first).take(room);
        lines.extend(shown.map(|row| self.line(row, interval.length)));
        lines.truncate(rows);
        lines
            .into_iter()
            .map(|line| line.trim_end().chars().take(columns).collect())
            .collect()
    }

    fn order(&self, a: &Row, b: &Row) -> std::cmp::Ordering {
        let number = |row: &Row| row.id.trim_start_matches("cpu").parse::<u64>().unwrap_or(0);
        let by_number = number(a).cmp(&number(b));
        let order = match self.sort {
            Sort::Id => by_number,
            Sort::Busy => b.run.cmp(&a.run),
            Sort::Waiting => b.wait.cmp(&a.wait),
            Sort::Latency => mean(b.wait, b.slices).cmp(&mean(a.wait, a.slices)),
            Sort::Runslice => mean(b.run, b.slices).cmp(&mean(a.run, a.slices)),
            Sort::Slices => b.slices.cmp(&a.slices),
        };
        let order = if self.reversed {
            order.reverse()
        } else {
            order
        };
        // Equals do not change places from one look to the next.
        order.then(by_number)
    }

    fn heading(&self) -> String {
        let marked = |sort: Sort, title: &str| {
            if sort == self.sort {
                format!("{title}{}", if self.reversed { "^" } else { "v" })
            } else {
                title.to_owned()
            }
        };
        let (id, name) = match self.what {
            What::Cpus => ("CPU", ""),
            What::Tasks => ("task", "name"),
        };
        format!(
            "{:>8}  {:>8}  {:>9}  {:>10}  {:>10}  {:>9}  {name}",
            marked(Sort::Id, id),
            marked(Sort::Busy, "busy"),
            marked(Sort::Waiting, "waiting"),
            marked(Sort::Latency, "latency"),
            marked(Sort::Runslice, "runslice"),
            marked(Sort::Slices, "slices/s"),
        )
    }

    fn line(&self, row: &Row, length: u64) -> String {
        let share = |part: u64| {
            let tenths = (u128::from(part) * 1_000).checked_div(u128::from(length));
            tenths.map_or_else(|| "-".to_owned(), |t| format!("{}.{} %", t / 10, t % 10))
        };
        let span = |sum: u64| {
            mean(sum, row.slices).map_or_else(|| "-".to_owned(), |ns| Nanos::new(ns).to_string())
        };
        let rate = (u128::from(row.slices) * 10_000_000_000).checked_div(u128::from(length));
        let rate = rate.map_or_else(|| "-".to_owned(), |t| format!("{}.{}", t / 10, t % 10));
        format!(
            "{:>8}  {:>8}  {:>9}  {:>10}  {:>10}  {rate:>9}  {}",
            row.id,
            share(row.run),
            share(row.wait),
            span(row.wait),
            span(row.run),
            row.name
        )
    }

    /// Does what a key says.
    pub fn key(&mut self, key: u8) -> Asked {
        match key {
            // Control-C and Control-D come as bytes.
            b'q' | 3 | 4 => return Asked::Quit,
            b'c' => (self.what, self.scrolled) = (What::Cpus, 0),
            b't' => (self.what, self.scrolled) = (What::Tasks, 0),
            b'>' | b's' => self.sort = self.sort.step(1),
            b'<' => self.sort = self.sort.step(Sort::ALL.len() - 1),
            b'r' => self.reversed = !self.reversed,
            b' ' => self.paused = !self.paused,
            b'j' => self.scrolled += 1,
            b'k' => self.scrolled = self.scrolled.saturating_sub(1),
            b'n' => return Asked::Next,
            b'p' => return Asked::Previous,
            _ => {}
        }
        Asked::Nothing
    }
}

fn mean(sum: u64, count: u64) -> Option<u64> {
    sum.checked_div(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, name: &str, [run, wait, slices]: [u64; 3]) -> Row {
        Row {
            id: id.into(),
            name: name.into(),
            run: run * 1_000_000,
            wait: wait * 1_000_000,
            slices,
        }
    }

    fn interval() -> Interval {
        Interval {
            title: "3.0 s".into(),
            length: 1_000_000_000,
            cpus: vec![
                row("cpu0", "", [1000, 200, 40]),
                row("cpu1", "", [20, 0, 2]),
            ],
            tasks: vec![
                row("812", "hog", [900, 100, 9]),
                row("99", "shell", [100, 100, 31]),
                row("7", "idle", [0, 0, 0]),
            ],
        }
    }

    fn screen() -> Screen {
        Screen {
            what: What::Tasks,
            sort: Sort::Busy,
            reversed: false,
            paused: false,
            scrolled: 0,
        }
    }

    fn ids(screen: &Screen) -> Vec<String> {
        let lines = screen.lines(&interval(), 24, 80);
        let ids = lines[3..]
            .iter()
            .filter_map(|line| line.split_whitespace().next());
        ids.map(str::to_owned).collect()
    }

    #[test]
    fn a_frame_is_what_a_terminal_shows() {
        let lines = screen().lines(&interval(), 24, 80);
        let want = [
            "3.0 s",
            "q quit  c CPUs  t tasks  < > sort by  r reverse  space pause  j k scroll",
            "    task     busyv    waiting     latency    runslice   slices/s  name",
            "     812    90.0 %     10.0 %     11.1 ms      100 ms        9.0  hog",
            "      99    10.0 %     10.0 %     3.23 ms     3.23 ms       31.0  shell",
            "       7     0.0 %      0.0 %           -           -        0.0  idle",
        ];
        assert_eq!(lines, want);
    }

    #[test]
    fn keys_choose_list_order_and_direction() {
        let mut screen = screen();
        assert_eq!(ids(&screen), ["812", "99", "7"]);
        screen.key(b'r');
        assert_eq!(ids(&screen), ["7", "99", "812"]);
        screen.key(b'r');
        screen.key(b'<');
        assert_eq!(
            (screen.sort, ids(&screen)),
            (Sort::Id, ["7", "99", "812"].map(str::to_owned).to_vec())
        );
        screen.key(b'<');
        assert_eq!(
            (screen.sort, ids(&screen)[0].as_str()),
            (Sort::Slices, "99")
        );
        screen.key(b'c');
        assert_eq!(ids(&screen), ["cpu0", "cpu1"]);
        assert_eq!(
            [b'q', 3, b'n', b'p', b'x'].map(|key| screen.key(key)),
            [
                Asked::Quit,
                Asked::Quit,
                Asked::Next,
                Asked::Previous,
                Asked::Nothing
            ]
        );
    }

    #[test]
    fn equals_keep_their_places() {
        let mut screen = screen();
        screen.sort = Sort::Waiting;
        // Both wait 100 ms.
        assert_eq!(ids(&screen)[..2], ["99", "812"]);
    }

    #[test]
    fn a_small_terminal_is_not_overrun() {
        let mut screen = screen();
        for (rows, columns) in [(0, 0), (1, 10), (4, 30), (5, 200)] {
            let lines = screen.lines(&interval(), rows, columns);
            assert!(lines.len() <= rows && lines.iter().all(|l| l.chars().count() <= columns));
        }
        screen.key(b'j');
        assert_eq!(ids(&screen), ["99", "7"]);
        for _ in 0..9 {
            screen.key(b'j');
        }
        assert_eq!(ids(&screen), ["7"], "the last row stays");
    }
}
