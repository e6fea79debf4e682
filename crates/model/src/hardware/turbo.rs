//! Ceilings of frequencies by the number of cores that execute.

use serde::{Deserialize, Serialize};

use super::CpuClass;
use crate::file::{FileError, FileTable, FileValue, Problem, Source, texts};
use crate::profile::values::{FREQUENCIES, amount};

const CEILINGS: &str = "frequencies of `opps` that fall from one core on, as [\"1-2: 5.0GHz\", \
                        \"3-6: 4.7GHz\"]";

/// The most that CPUs of a class reach while at most so many of its cores execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// Cores of the class in one package. The last ceiling holds for more, too.
    pub cores: u16,
    /// Kilohertz.
    pub khz: u32,
}

impl CpuClass {
    /// The number of the highest frequency while so many of its cores execute.
    #[must_use]
    pub fn ceiling(&self, cores: usize) -> usize {
        let mut all = self.turbo.iter();
        let found = all.find(|it| cores <= usize::from(it.cores));
        let khz = found.or(self.turbo.last()).map(|it| it.khz);
        let at = self.opps.iter().position(|opp| Some(opp.khz) == khz);
        at.unwrap_or(self.opps.len().saturating_sub(1))
    }

    /// Whether its ceilings are frequencies that it has, and fall.
    pub(super) fn has_right_turbo(&self) -> bool {
        let has = |it: &Ceiling| self.opps.iter().any(|opp| opp.khz == it.khz);
        let falls = |pair: &[Ceiling]| pair[0].cores < pair[1].cores && pair[0].khz >= pair[1].khz;
        self.turbo.iter().all(has) && self.turbo.windows(2).all(falls)
    }
}

/// `[turbo]`: ceilings of classes.
pub(super) fn read<'a>(
    source: &'a Source<'a>,
    value: FileValue<'a>,
    classes: &mut [CpuClass],
) -> Result<(), FileError> {
    let table = FileTable::new(source, "[turbo]".to_owned(), value)?;
    for (name, at, value) in table.entries() {
        let Some(number) = classes.iter().position(|class| class.name == name) else {
            let names = classes.iter().map(|class| class.name.as_str());
            return Err(source.error(at, Problem::unknown("class", name, names)));
        };
        let class = &mut classes[number];
        for text in texts(source, value, CEILINGS)? {
            let fail = || {
                let problem = Problem::unexpected(format!("\"{}\"", text.text), CEILINGS);
                source.error(text.place(0), problem)
            };
            let (first, ceiling) = ceiling_of(text.text).ok_or_else(fail)?;
            let before = class.turbo.last().map_or(0, |last| last.cores);
            class.turbo.push(ceiling);
            if first.checked_sub(1) != Some(before) || !class.has_right_turbo() {
                return Err(fail());
            }
        }
    }
    Ok(())
}

/// The first number of cores of `3-6: 4.7GHz`, and the ceiling.
fn ceiling_of(text: &str) -> Option<(u16, Ceiling)> {
    let (cores, frequency) = text.split_once(':')?;
    let (first, last) = cores.split_once('-').unwrap_or((cores, cores));
    let (first, cores) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let khz = u32::try_from(amount(frequency.trim(), &FREQUENCIES)?).ok()?;
    (first <= cores).then_some((first, Ceiling { cores, khz }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hardware;

    #[test]
    fn a_ceiling_falls_with_the_cores_that_execute() {
        let text = "[hardware]\nname = \"m\"\nsources = [\"me\"]\norder = [\"a*8\"]\n\
                    [class.a]\ncapacity = 1024\nopps = [\"3GHz\", \"4.7GHz\", \"5GHz\"]\n\
                    [turbo]\na = [\"1-2: 5.0GHz\", \"3-6: 4.7GHz\"]\n";
        let hardware = Hardware::parse(text, "m.toml").unwrap_or_else(|error| panic!("{error}"));
        let class = &hardware.classes[0];
        let khz = [0, 1, 2, 3, 6, 8].map(|cores| class.opps[class.ceiling(cores)].khz);
        let (high, low) = (5_000_000, 4_700_000);
        assert_eq!(khz, [high, high, high, low, low, low]);
        assert_eq!(CpuClass::plain("b".to_owned(), 1024).ceiling(3), 0);
        for wrong in ["2: 5GHz", "0: 5GHz", "1: 4GHz", "1 5GHz", "2-1: 5GHz"] {
            let text = text.replace("1-2: 5.0GHz", wrong);
            assert!(Hardware::parse(&text, "m.toml").is_err(), "{wrong}");
        }
    }
}
