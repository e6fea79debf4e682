//! How results look on a terminal: its width, colors, and how much is told.

use std::io::{self, IsTerminal as _};

use clap::{Args, ValueEnum};
use show::Look;
pub use show::Tone;

/// Columns that tables have where nobody says how wide the terminal is.
const WIDTH: usize = 80;

/// How wide tables may be.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct WidthOptions {
    /// Show all columns of all tables, however wide they are, and every task of a recording.
    /// Default: as many columns as the terminal has room for, or 80 characters in a file, and of a
    /// recording the twenty names whose tasks waited longest.
    #[arg(long)]
    pub wide: bool,
}

/// Options of results for people.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct LookOptions {
    /// How wide tables may be.
    #[command(flatten)]
    pub tables: WidthOptions,

    /// Also show what policies count and print, and what took overhead.
    #[arg(short, long)]
    pub verbose: bool,

    /// Color the best and the worst. `auto` does so on a terminal, unless the environment variable
    /// `NO_COLOR` is set.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = When::Auto)]
    pub color: When,
}

/// When to use colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl WidthOptions {
    /// The columns that there is room for; `None` if all are wanted.
    pub fn width(self) -> Option<usize> {
        (!self.wide).then(width)
    }
}

/// Columns of the terminal, or of a file.
#[must_use]
pub fn width() -> usize {
    let terminal = terminal_size::terminal_size_of(io::stdout());
    terminal.map_or(WIDTH, |(width, _)| usize::from(width.0))
}

impl LookOptions {
    /// Width of the output in columns; `None` without a limit.
    pub fn width(self) -> Option<usize> {
        self.tables.width()
    }

    /// What tables and texts need to know of it.
    pub fn look(self) -> Look {
        Look {
            width: self.width(),
            is_verbose: self.verbose,
            is_wide: self.tables.wide,
        }
    }

    /// Whether standard output gets colors.
    pub fn has_color(self) -> bool {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        match self.color {
            When::Always => true,
            When::Never => false,
            When::Auto => io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb(),
        }
    }
}
