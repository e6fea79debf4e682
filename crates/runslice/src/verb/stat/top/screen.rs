//! What `stat top` shows, on a terminal or as lines; what keys change in it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use model::Nanos;
use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Table};
use ratatui::{layout::Rect, widgets};

/// Counters of one CPU or task over an interval, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopRow {
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
pub struct TopInterval {
    /// What the first line says of it.
    pub title: String,
    /// Its length in nanoseconds.
    pub length: u64,
    pub cpus: Vec<TopRow>,
    pub tasks: Vec<TopRow>,
}

/// Lists to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ShownList {
    /// CPUs.
    Cpus,
    /// Tasks.
    #[default]
    Tasks,
}

/// Column to sort by: greatest first, but names and numbers in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Sort {
    /// Number of the CPU or task.
    Id,
    /// Part of the interval on a CPU.
    #[default]
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
pub enum KeyAction {
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
#[derive(Clone, Debug, Default)]
pub struct Screen {
    pub what: ShownList,
    pub sort: Sort,
    pub reversed: bool,
    pub paused: bool,
    /// Rows that are scrolled away.
    pub scrolled: usize,
    /// What a name or number must contain to be shown, in any case of letters.
    pub filter: String,
    /// Keys go into the filter.
    pub is_typing: bool,
    /// The keys are explained.
    pub has_help: bool,
}

/// Longest filter, in characters; names have at most 15 bytes.
const FILTER_MAX: usize = 40;

/// Widths of the columns before the name.
const WIDTHS: [u16; 6] = [8, 8, 9, 9, 9, 9];
/// Columns that are left out where the terminal is too narrow for them and a name, this first.
const LEAST: [usize; 3] = [5, 4, 2];
/// Longest name of a thread.
const NAME: u16 = 15;

/// Rows that a page key goes on by.
const PAGE: usize = 10;

/// The keys and what they do.
const HELP: [(&str, &str); 12] = [
    ("t c", "tasks, CPUs"),
    ("< >", "sort by the column to the left, right"),
    (
        "B W L U S I",
        "sort by busy, waiting, latency, runslice, slices, number",
    ),
    ("r", "reverse the order"),
    (
        "/",
        "show only names and numbers with what you type; Enter ends",
    ),
    ("Esc", "show all again"),
    ("space", "pause, and go on"),
    ("j k \u{2191} \u{2193}", "scroll by a row"),
    ("PgUp PgDn Home", "scroll by ten rows, to the top"),
    ("n p", "next and previous interval of a recording"),
    ("h ?", "this help; any key closes it"),
    ("q", "quit"),
];

impl Screen {
    /// The rows that are shown, in their order.
    fn rows<'a>(&self, interval: &'a TopInterval) -> Vec<&'a TopRow> {
        let list = match self.what {
            ShownList::Cpus => &interval.cpus,
            ShownList::Tasks => &interval.tasks,
        };
        let wanted = self.filter.to_lowercase();
        let shown =
            |row: &&TopRow| row.id.contains(&wanted) || row.name.to_lowercase().contains(&wanted);
        let mut list: Vec<&TopRow> = list.iter().filter(shown).collect();
        list.sort_by(|a, b| self.order(a, b));
        list
    }

    /// Everything as lines, for where there is no terminal.
    pub fn lines(&self, interval: &TopInterval) -> Vec<String> {
        let line = |cells: [String; 7]| {
            let [id, busy, waiting, latency, runslice, slices, name] = cells;
            let line = format!(
                "{id:>8}  {busy:>8}  {waiting:>9}  {latency:>9}  {runslice:>9}  {slices:>9}  \
                 {name}"
            );
            line.trim_end().to_owned()
        };
        let rows = self.rows(interval).into_iter();
        let rows = rows.map(|row| line(self.cells(row, interval.length)));
        let head = [interval.title.clone(), line(self.heading())];
        head.into_iter().chain(rows).collect()
    }

    /// Draws all of the terminal.
    pub fn draw(&self, frame: &mut Frame<'_>, interval: &TopInterval) {
        let parts = [
            Constraint::Length(1),
            Constraint::Min(0),
            Constraint::Length(1),
        ];
        let [top, middle, bottom] = Layout::vertical(parts).areas(frame.area());
        let rows = self.rows(interval);
        let mut title = interval.title.clone();
        if !self.filter.is_empty() {
            title += &format!(", {} with \"{}\"", rows.len(), self.filter);
        }
        if self.paused {
            title += ", paused";
        }
        frame.render_widget(Line::styled(title, Modifier::BOLD), top);
        self.draw_table(frame, middle, &rows, interval.length);
        let keys = if self.is_typing {
            format!("/{}_   Enter: keep   Esc: show all", self.filter)
        } else {
            keys(bottom.width).to_owned()
        };
        frame.render_widget(Line::styled(keys, Modifier::DIM), bottom);
        if self.has_help {
            help(frame);
        }
    }

    fn draw_table(&self, frame: &mut Frame<'_>, area: Rect, rows: &[&TopRow], length: u64) {
        let first = self.scrolled.min(rows.len().saturating_sub(1));
        let columns = self.columns(area.width);
        let right = |cells: [String; 7]| {
            let [numbers @ .., name] = cells;
            let numbers = columns
                .iter()
                .map(|at| Line::from(numbers[*at].clone()).right_aligned());
            widgets::Row::new(numbers.chain([Line::from(name)]))
        };
        // No more than fits is laid out.
        let shown = rows.iter().skip(first).take(area.height.into());
        let shown = shown.map(|row| right(self.cells(row, length)));
        let widths = columns.iter().map(|at| Constraint::Length(WIDTHS[*at]));
        let widths = widths.chain([Constraint::Min(4)]);
        let heading = right(self.heading()).style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_widget(
            Table::new(shown, widths).header(heading).column_spacing(2),
            area,
        );
    }

    /// The columns before the name that so many characters have room for. The one that rows are
    /// sorted by stays.
    fn columns(&self, width: u16) -> Vec<usize> {
        let mut columns: Vec<usize> = (0..WIDTHS.len()).collect();
        let sorted = Sort::ALL.iter().position(|sort| *sort == self.sort);
        for least in LEAST {
            let needed: u16 = columns.iter().map(|at| WIDTHS[*at] + 2).sum();
            if needed + NAME > width && sorted != Some(least) {
                columns.retain(|at| *at != least);
            }
        }
        columns
    }

    fn order(&self, a: &TopRow, b: &TopRow) -> std::cmp::Ordering {
        let number = |row: &TopRow| row.id.trim_start_matches("cpu").parse::<u64>().unwrap_or(0);
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

    fn heading(&self) -> [String; 7] {
        let marked = |sort: Sort, title: &str| {
            if sort == self.sort {
                format!(
                    "{title}{}",
                    if self.reversed {
                        "\u{2191}"
                    } else {
                        "\u{2193}"
                    }
                )
            } else {
                title.to_owned()
            }
        };
        let (id, name) = match self.what {
            ShownList::Cpus => ("CPU", ""),
            ShownList::Tasks => ("task", "name"),
        };
        [
            marked(Sort::Id, id),
            marked(Sort::Busy, "busy"),
            marked(Sort::Waiting, "waiting"),
            marked(Sort::Latency, "latency"),
            marked(Sort::Runslice, "runslice"),
            marked(Sort::Slices, "slices/s"),
            name.to_owned(),
        ]
    }

    fn cells(&self, row: &TopRow, length: u64) -> [String; 7] {
        let share = |part: u64| {
            let tenths = (u128::from(part) * 1_000).checked_div(u128::from(length));
            tenths.map_or_else(|| "-".to_owned(), |t| format!("{}.{} %", t / 10, t % 10))
        };
        let span = |sum: u64| {
            mean(sum, row.slices).map_or_else(|| "-".to_owned(), |ns| Nanos::new(ns).to_string())
        };
        let rate = (u128::from(row.slices) * 10_000_000_000).checked_div(u128::from(length));
        let rate = rate.map_or_else(|| "-".to_owned(), |t| format!("{}.{}", t / 10, t % 10));
        [
            row.id.clone(),
            share(row.run),
            share(row.wait),
            span(row.wait),
            span(row.run),
            rate,
            row.name.clone(),
        ]
    }

    /// Does what a key says.
    pub fn key(&mut self, key: KeyEvent) -> KeyAction {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return KeyAction::Quit;
        }
        if self.has_help {
            self.has_help = false;
            return KeyAction::Nothing;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return KeyAction::Nothing;
        }
        match key.code {
            KeyCode::Char('q') => return KeyAction::Quit,
            KeyCode::Char('n') => return KeyAction::Next,
            KeyCode::Char('p') => return KeyAction::Previous,
            KeyCode::Char('c') => (self.what, self.scrolled) = (ShownList::Cpus, 0),
            KeyCode::Char('t') => (self.what, self.scrolled) = (ShownList::Tasks, 0),
            KeyCode::Char('>' | 's') => self.sort = self.sort.step(1),
            KeyCode::Char('<') => self.sort = self.sort.step(Sort::ALL.len() - 1),
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('/' | 'f') => self.is_typing = true,
            KeyCode::Char('h' | '?') => self.has_help = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('j') | KeyCode::Down => self.scrolled += 1,
            KeyCode::Char('k') | KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled += PAGE,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(PAGE),
            KeyCode::Home => self.scrolled = 0,
            KeyCode::Char(letter) => {
                let known = "IBWLUS".find(letter).map(|at| Sort::ALL[at]);
                self.sort = known.unwrap_or(self.sort);
            }
            _ => {}
        }
        KeyAction::Nothing
    }

    fn type_filter(&mut self, key: KeyCode) {
        self.scrolled = 0;
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(letter) if self.filter.chars().count() < FILTER_MAX => {
                self.filter.push(letter);
            }
            _ => {}
        }
    }
}

/// The keys that fit below the table.
const fn keys(width: u16) -> &'static str {
    match width {
        76.. => "q quit  h help  t tasks  c CPUs  < > sort  r reverse  / filter  space pause",
        _ => "q quit  h help  < > sort  / filter  space pause",
    }
}

/// Draws the explanation of the keys over the middle of the screen.
fn help(frame: &mut Frame<'_>) {
    let lines = HELP.map(|(keys, what)| Line::from(format!(" {keys:<15} {what} ")));
    let width = lines.iter().map(Line::width).max().unwrap_or(0);
    let [width, height] = [width, lines.len()].map(|it| u16::try_from(it + 2).unwrap_or(u16::MAX));
    let across = Layout::horizontal([Constraint::Max(width)]).flex(Flex::Center);
    let [area] = across.areas(frame.area());
    let [area] = Layout::vertical([Constraint::Max(height)])
        .flex(Flex::Center)
        .areas(area);
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(" Keys ");
    frame.render_widget(Paragraph::new(lines.to_vec()).block(block), area);
}

fn mean(sum: u64, count: u64) -> Option<u64> {
    sum.checked_div(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, name: &str, [run, wait, slices]: [u64; 3]) -> TopRow {
        TopRow {
            id: id.into(),
            name: name.into(),
            run: run * 1_000_000,
            wait: wait * 1_000_000,
            slices,
        }
    }

    fn interval() -> TopInterval {
        TopInterval {
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

    fn press(screen: &mut Screen, keys: &str) -> KeyAction {
        let keys = keys.chars().map(|key| match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            key => KeyCode::Char(key),
        });
        let asked = keys.map(|key| screen.key(KeyEvent::from(key)));
        asked.last().unwrap_or(KeyAction::Nothing)
    }

    fn ids(screen: &Screen) -> Vec<String> {
        let interval = interval();
        screen
            .rows(&interval)
            .iter()
            .map(|row| row.id.clone())
            .collect()
    }

    /// What a terminal of this size shows.
    fn shown(screen: &Screen, columns: u16, rows: u16) -> Vec<String> {
        let backend = ratatui::backend::TestBackend::new(columns, rows);
        let mut terminal = ratatui::Terminal::new(backend).unwrap();
        terminal
            .draw(|frame| screen.draw(frame, &interval()))
            .unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| {
            (0..columns)
                .map(|x| buffer[(x, y)].symbol())
                .collect::<String>()
        };
        (0..rows).map(|y| line(y).trim_end().to_owned()).collect()
    }

    #[test]
    fn a_frame_is_what_a_terminal_shows() {
        let want = [
            "3.0 s",
            "    task     busy\u{2193}    waiting    latency   runslice   slices/s  name",
            "     812    90.0 %     10.0 %    11.1 ms     100 ms        9.0  hog",
            "      99    10.0 %     10.0 %    3.23 ms    3.23 ms       31.0  shell",
            "       7     0.0 %      0.0 %          -          -        0.0  idle",
        ];
        assert_eq!(Screen::default().lines(&interval()), want);
        let lines = shown(&Screen::default(), 80, 7);
        assert_eq!(lines[..5], want);
        assert!(lines[6].starts_with("q quit  h help"), "{lines:?}");
    }

    #[test]
    fn a_narrow_terminal_shows_whole_names_and_leaves_out_columns() {
        let mut screen = Screen::default();
        let narrow = shown(&screen, 60, 7);
        assert_eq!(
            narrow[1..3],
            [
                "    task     busy\u{2193}    waiting    latency  name",
                "     812    90.0 %     10.0 %    11.1 ms  hog",
            ]
        );
        assert_eq!(narrow[6], "q quit  h help  < > sort  / filter  space pause");
        // What rows are sorted by stays.
        press(&mut screen, "S");
        let narrow = shown(&screen, 60, 7);
        assert_eq!(
            narrow[1],
            "    task      busy    latency  slices/s\u{2193}  name"
        );
        assert!(shown(&screen, 80, 7)[1].contains("runslice  slices/s\u{2193}  name"));
    }

    #[test]
    fn keys_choose_list_order_and_direction() {
        let mut screen = Screen::default();
        assert_eq!(ids(&screen), ["812", "99", "7"]);
        press(&mut screen, "r");
        assert_eq!(ids(&screen), ["7", "99", "812"]);
        press(&mut screen, "r<");
        assert_eq!(
            (screen.sort, ids(&screen)),
            (Sort::Id, ["7", "99", "812"].map(str::to_owned).to_vec())
        );
        press(&mut screen, "S");
        assert_eq!(
            (screen.sort, ids(&screen)[0].as_str()),
            (Sort::Slices, "99")
        );
        press(&mut screen, "c");
        assert_eq!(ids(&screen), ["cpu0", "cpu1"]);
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(screen.key(control_c), KeyAction::Quit);
        let asked = ["q", "n", "p", "x"].map(|key| press(&mut screen, key));
        assert_eq!(
            asked,
            [
                KeyAction::Quit,
                KeyAction::Next,
                KeyAction::Previous,
                KeyAction::Nothing
            ]
        );
    }

    #[test]
    fn equals_keep_their_places() {
        let screen = Screen {
            sort: Sort::Waiting,
            ..Screen::default()
        };
        // Both wait 100 ms.
        assert_eq!(ids(&screen)[..2], ["99", "812"]);
    }

    #[test]
    fn a_filter_shows_what_contains_it_until_escape() {
        let mut screen = Screen::default();
        press(&mut screen, "/SHq");
        assert_eq!(ids(&screen), [""; 0], "q is typed and does not quit");
        assert!(screen.is_typing);
        screen.key(KeyEvent::from(KeyCode::Backspace));
        press(&mut screen, "\n");
        assert_eq!(ids(&screen), ["99"]);
        let lines = shown(&screen, 80, 6);
        assert_eq!(lines[0], "3.0 s, 1 with \"SH\"");
        press(&mut screen, "\u{1b}");
        assert_eq!(ids(&screen).len(), 3);
        press(&mut screen, &format!("/{}", "x".repeat(500)));
        assert_eq!(screen.filter.len(), FILTER_MAX);
    }

    #[test]
    fn help_explains_every_key_and_any_key_closes_it() {
        let mut screen = Screen::default();
        press(&mut screen, "?");
        let lines = shown(&screen, 80, 20).join("\n");
        for (keys, what) in HELP {
            assert!(
                lines.contains(what) && lines.contains(keys),
                "{keys}: {lines}"
            );
        }
        assert_eq!(press(&mut screen, "q"), KeyAction::Nothing);
        assert!(!screen.has_help);
    }

    #[test]
    fn a_small_terminal_is_not_overrun() {
        let mut screen = Screen::default();
        for (columns, rows) in [(1, 1), (10, 2), (30, 4), (200, 5)] {
            shown(&screen, columns, rows);
            screen.has_help = !screen.has_help;
        }
        screen.has_help = false;
        press(&mut screen, "j");
        assert_eq!(&shown(&screen, 80, 5)[2][..8], "      99");
        press(&mut screen, "jjjjjjjjj");
        assert_eq!(
            &shown(&screen, 80, 5)[2][..8],
            "       7",
            "the last row stays"
        );
    }
}
