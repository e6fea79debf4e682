//! Shares of the threads of a core, from timings of two kinds of work on them.

use std::fmt::Write as _;

use toml::de::DeValue;

use crate::Advised;
use crate::file::{FileError, FileTable, FileValue, Problem, Source, describe};
use crate::profile::values::{check_plain, exact};

const PAIRS: [&str; 4] = ["cc", "cm", "mc", "mm"];
const WINDOWS: &str = "a list of five windows or more, as [[52100, 31300, 3400, 3400]]";
const WINDOW: &str = "units alone and beside the other thread, and the frequency then in MHz, as \
                      [52100, 31300, 3400, 3400]";

/// Fewest windows of a pair of which a median is taken.
const FEWEST: usize = 5;
/// The greatest number that sums leave room for.
const MOST: u64 = 1 << 40;
/// By how many per cent frequencies may differ: the share would be that of the frequency, too.
const MOVES: u64 = 2;
/// From how many per cent of the median on the windows' spread is told, and is too much.
const WIDE: u128 = 5;
const TOO_WIDE: u128 = 20;
/// The least and the greatest share of a hardware file, in millionths.
const LIMITS: [u64; 2] = [100_000, 1_000_000];

/// Timings of the threads of a core. A window is a stretch of time in which a thread works alone,
/// and one as long in which the other thread works, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmtTimings {
    host: String,
    date: String,
    is_virtual: bool,
    pairs: Vec<Vec<Window>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    alone: u64,
    beside: u64,
    mhz: [u64; 2],
}

/// A share, in millionths.
struct Spread {
    least: u64,
    median: u64,
    greatest: u64,
}

impl SmtTimings {
    /// Reads timings. `file` is what messages call them.
    ///
    /// # Errors
    /// If `text` holds no timings: the first mistake, with its place.
    pub fn parse(text: &str, file: &str) -> Result<Self, FileError> {
        let source = &Source { text, file };
        let root = source.toml()?;
        let mut root = FileTable::root(source, root.get_ref());
        let head = root.require("timings", "a table with the host's name")?;
        root.finish()?;
        let mut head = FileTable::new(source, "[timings]".to_owned(), head)?;
        let mut word = |key| -> Result<String, FileError> {
            let expected = "a name of letters, digits, `-`, `_` and `.`";
            let value = head.require(key, expected)?;
            let word = crate::file::text(source, value, expected)?;
            check_plain(source, word.text, word.place(0))?;
            Ok(word.text.to_owned())
        };
        let (host, date) = (word("host")?, word("date")?);
        let is_virtual = head.flag("virtual")?;
        let mut pairs = Vec::new();
        for key in PAIRS {
            pairs.push(windows(source, head.require(key, WINDOWS)?)?);
        }
        head.finish()?;
        Ok(Self {
            host,
            date,
            is_virtual,
            pairs,
        })
    }

    /// Why nothing is measured in a virtual machine.
    #[must_use]
    pub fn of_virtual_machine() -> Advised {
        Advised::new(
            "a virtual machine does not know which threads share a core, and at which frequency",
            "measure on the computer itself",
        )
    }

    /// `[smt]` of a hardware file, and what is to be said of it.
    ///
    /// # Errors
    /// If the timings do not say what threads do to each other: of a virtual machine, with
    /// frequencies that moved, or of windows too different.
    pub fn table(&self) -> Result<(String, Vec<String>), Advised> {
        if self.is_virtual {
            return Err(Self::of_virtual_machine());
        }
        let mhz = || self.pairs.iter().flatten().flat_map(|window| window.mhz);
        let (least, most) = (mhz().min().unwrap_or(1), mhz().max().unwrap_or(1));
        let moved = (most - least) * 100 / most;
        if moved > MOVES {
            return Err(Advised::new(
                format!("the frequency moved by {moved} % between windows"),
                "set the governor performance and turbo off, and measure again",
            ));
        }
        let mut text = format!(
            "# Measured on {}, {}: the median of each pair's windows, the least and the greatest.\n\
             [smt]\n",
            self.host, self.date
        );
        let mut said = Vec::new();
        for (pair, windows) in PAIRS.iter().zip(&self.pairs) {
            let Spread {
                least,
                median,
                greatest,
            } = spread(windows);
            let wide = u128::from(greatest - least) * 100 / u128::from(median.max(1));
            if wide > TOO_WIDE {
                return Err(Advised::new(
                    format!("the windows of `{pair}` differ by {wide} % of their median"),
                    "end what else runs, and measure again",
                ));
            }
            if wide > WIDE {
                said.push(format!("the windows of `{pair}` differ by {wide} %"));
            }
            let share = median.clamp(LIMITS[0], LIMITS[1]);
            if share != median {
                let found = decimal(median);
                said.push(format!("`{pair}` is {found}, and a share is 0.1 to 1"));
            }
            let (share, least, greatest) = (decimal(share), decimal(least), decimal(greatest));
            let _ = writeln!(text, "{pair} = {share} # {least} to {greatest}");
        }
        Ok((text, said))
    }
}

/// The windows of a pair.
fn windows(source: &Source<'_>, value: FileValue<'_>) -> Result<Vec<Window>, FileError> {
    let wrong = |value: FileValue<'_>, expected: &str| {
        let problem = Problem::unexpected(describe(value), expected);
        source.error(value.span().start, problem)
    };
    let DeValue::Array(list) = value.get_ref() else {
        return Err(wrong(value, WINDOWS));
    };
    let mut windows = Vec::new();
    for row in list {
        let numbers = match row.get_ref() {
            DeValue::Array(row) => row.iter().map(number).collect::<Option<Vec<u64>>>(),
            _ => None,
        };
        let Some(&[alone, beside, first, second]) = numbers.as_deref() else {
            return Err(wrong(row, WINDOW));
        };
        if alone == 0 || first == 0 || second == 0 {
            return Err(wrong(row, WINDOW));
        }
        windows.push(Window {
            alone,
            beside,
            mhz: [first, second],
        });
    }
    if windows.len() < FEWEST {
        return Err(wrong(value, WINDOWS));
    }
    Ok(windows)
}

fn number(value: FileValue<'_>) -> Option<u64> {
    let DeValue::Integer(number) = value.get_ref() else {
        return None;
    };
    let plain = (number.radix() == 10).then(|| exact(number.as_str(), 1))?;
    plain.filter(|it| *it <= MOST)
}

/// What a thread keeps of its work in each of the windows, of which there are some.
fn spread(windows: &[Window]) -> Spread {
    let share = |it: &Window| {
        let millionths = u128::from(it.beside) * 1_000_000 / u128::from(it.alone);
        u64::try_from(millionths).unwrap_or(u64::MAX)
    };
    let mut shares: Vec<u64> = windows.iter().map(share).collect();
    shares.sort_unstable();
    let upper = shares.len() / 2;
    let lower = (shares.len() - 1) / 2;
    Spread {
        least: shares[0],
        median: shares[lower].midpoint(shares[upper]),
        greatest: shares[shares.len() - 1],
    }
}

/// Millionths with three decimals.
fn decimal(millionths: u64) -> String {
    let thousandths = millionths / 1_000 + u64::from(millionths % 1_000 >= 500);
    format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Advice as _, Hardware};

    /// Windows in which a thread keeps so many per cent beside the other one, at that frequency.
    fn pair(name: &str, percents: [u64; 5], mhz: u64) -> String {
        let window = |percent: &u64| format!("[50000, {}, 3400, {mhz}]", percent * 500);
        let windows: Vec<String> = percents.iter().map(window).collect();
        format!("{name} = [{}]\n", windows.join(", "))
    }

    fn timings(cc: [u64; 5], mhz: u64, more: &str) -> String {
        let head = "[timings]\nhost = \"t14\"\ndate = \"2026-11-20\"\n";
        let all = [
            pair("cc", cc, mhz),
            pair("cm", [70, 71, 72, 73, 74], 3400),
            pair("mc", [55; 5], 3400),
            pair("mm", [80; 5], 3400),
        ];
        format!("{head}{more}{}", all.concat())
    }

    fn table(text: &str) -> Result<(String, Vec<String>), Advised> {
        let read = SmtTimings::parse(text, "t.toml");
        read.unwrap_or_else(|error| panic!("{error}")).table()
    }

    #[test]
    fn shares_are_the_medians_of_recorded_windows() {
        let (text, said) = table(&timings([62, 59, 60, 61, 60], 3400, "")).expect("it is right");
        let want = "# Measured on t14, 2026-11-20: the median of each pair's windows, the least \
                    and the greatest.\n[smt]\ncc = 0.600 # 0.590 to 0.620\n\
                    cm = 0.720 # 0.700 to 0.740\nmc = 0.550 # 0.550 to 0.550\n\
                    mm = 0.800 # 0.800 to 0.800\n";
        assert_eq!(text, want);
        assert!(said.is_empty(), "{said:?}");
        // A hardware file takes it.
        let file = format!(
            "[hardware]\nname = \"m\"\nsources = [\"me\"]\norder = [\"a*1\"]\n\
             [class.a]\ncapacity = 1024\nthreads = 2\n{text}"
        );
        let hardware = Hardware::parse(&file, "m.toml").unwrap_or_else(|error| panic!("{error}"));
        let smt = hardware.smt.expect("it has shares");
        assert_eq!((smt.cc, smt.cm, smt.mc, smt.mm), (614, 737, 563, 819));
    }

    #[test]
    fn what_says_nothing_of_threads_is_refused_or_told() {
        let refused = |text: &str| table(text).unwrap_err().what;
        let (good, wild) = ([60; 5], [50, 55, 60, 65, 70]);
        let said = refused(&timings(good, 3400, "virtual = true\n"));
        assert!(
            said.starts_with("a virtual machine does not know"),
            "{said}"
        );
        let said = refused(&timings(good, 3094, ""));
        assert_eq!(said, "the frequency moved by 9 % between windows");
        let said = refused(&timings(wild, 3400, ""));
        assert_eq!(said, "the windows of `cc` differ by 33 % of their median");
        let most = format!("[1, {MOST}, 3400, 3400]");
        let odd = timings(good, 3400, "").replacen("[50000, 30000, 3400, 3400]", &most, 1);
        let said = refused(&odd);
        assert_eq!(
            said,
            "the windows of `cc` differ by 183251937962566 % of their median"
        );
        let (_, said) = table(&timings([58, 59, 60, 61, 62], 3400, "")).expect("it is right");
        assert_eq!(said, ["the windows of `cc` differ by 6 %"]);
        let (text, said) = table(&timings([104; 5], 3400, "")).expect("it is right");
        assert!(text.contains("cc = 1.000 # 1.040 to 1.040"), "{text}");
        assert_eq!(said, ["`cc` is 1.040, and a share is 0.1 to 1"]);
    }

    #[test]
    fn mistakes_in_timings_have_their_places() {
        let good = timings([60; 5], 3400, "");
        for (from, to, want) in [
            ("mm =", "mn =", "t.toml:1:1: [timings] lacks `mm`"),
            (
                "[50000, 27500, 3400, 3400]",
                "[0, 1, 2, 3]",
                "t.toml:6:7: found a list",
            ),
            ("\"t14\"", "\"t 14\"", "t.toml:2:9: found \"t 14\""),
            (
                "[timings]",
                "[timing]",
                "t.toml:1:1: the file lacks `timings`",
            ),
        ] {
            let read = SmtTimings::parse(&good.replacen(from, to, 1), "t.toml");
            let said = read.expect_err(want).in_full();
            assert!(said.starts_with(want), "{said}");
        }
        let few = good.replacen("[50000, 27500, 3400, 3400], ", "", 1);
        let said = SmtTimings::parse(&few, "t.toml")
            .expect_err("four")
            .in_full();
        assert!(
            said.starts_with("t.toml:6:6: found a list; expected a list of five"),
            "{said}"
        );
    }
}
