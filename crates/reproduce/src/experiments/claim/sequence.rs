//! Whether a sequence of levels is the one that is said.

use model::Nanos;

/// How far times of a sequence may be from those that are said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// What a time that is said counts in.
    pub unit: Nanos,
    /// Farthest that a time may be from it; this far is still the same.
    pub within: Nanos,
}

/// An entry with its times: `120@40:3`, `120:3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SequenceEntry<'a> {
    /// With its flags.
    level: &'a str,
    begin: Option<u64>,
    length: u64,
}

impl<'a> SequenceEntry<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (head, length) = text.split_once(':')?;
        let (level, begin) = match head.split_once('@') {
            Some((level, begin)) => (level, Some(begin.parse().ok()?)),
            None => (head, None),
        };
        let length = length.parse().ok()?;
        Some(Self {
            level,
            begin,
            length,
        })
    }
}

impl Tolerance {
    /// Whether a sequence that is said has times to be near to.
    ///
    /// # Errors
    /// The first entry that has none.
    pub fn check(want: &str) -> Result<(), &str> {
        let mut entries = want.split_whitespace();
        match entries.find(|entry| SequenceEntry::parse(entry).is_none()) {
            Some(entry) => Err(entry),
            None => Ok(()),
        }
    }

    /// How far the times of `got`, nanoseconds, are from those of `want`, at most. `None` if they
    /// are too far, or it is another level.
    fn off(self, want: &str, got: &str) -> Option<Nanos> {
        let (want, got) = (SequenceEntry::parse(want)?, SequenceEntry::parse(got)?);
        let said = |units: u64| units.saturating_mul(self.unit.get());
        let begins = match (want.begin, got.begin) {
            (Some(want), Some(got)) => said(want).abs_diff(got),
            (None, None) => 0,
            _ => return None,
        };
        let off = Nanos::new(begins.max(said(want.length).abs_diff(got.length)));
        (want.level == got.level && off <= self.within).then_some(off)
    }

    /// An entry whose times are nanoseconds, for people.
    fn show(entry: &str) -> String {
        let Some(it) = SequenceEntry::parse(entry) else {
            return entry.to_owned();
        };
        let begin = it.begin.map(|at| format!(" from {}", Nanos::new(at)));
        let (begin, length) = (begin.unwrap_or_default(), Nanos::new(it.length));
        format!("{}{begin} for {length}", it.level)
    }
}

/// Whether all of `got` are `want`, and in words how, or where the first is not.
pub(super) fn compare(
    want: &str,
    got: &[String],
    within: Option<Tolerance>,
    prefix: bool,
) -> (bool, String) {
    let want: Vec<&str> = want.split_whitespace().collect();
    let mut farthest = Nanos::ZERO;
    for run in got {
        let got: Vec<&str> = run.split_whitespace().collect();
        let at = want.iter().zip(&got).position(|(want, got)| match within {
            None => want != got,
            Some(within) => match within.off(want, got) {
                Some(off) => {
                    farthest = farthest.max(off);
                    false
                }
                None => true,
            },
        });
        let is_short = got.len() < want.len() || !prefix && got.len() > want.len();
        let Some(at) = at.or_else(|| is_short.then_some(got.len().min(want.len()))) else {
            continue;
        };
        let shown = match (got.get(at), within) {
            (None, _) => "missing".to_owned(),
            (Some(entry), None) => (*entry).to_owned(),
            (Some(entry), Some(_)) => Tolerance::show(entry),
        };
        let said = want.get(at).copied().unwrap_or("the end");
        let units = within.map(|it| format!(", in units of {}, within {}", it.unit, it.within));
        let units = units.unwrap_or_default();
        return (
            false,
            format!("entry {} is {shown} instead of {said}{units}", at + 1),
        );
    }
    match (got.len(), within) {
        (0, _) => (false, "no run has the sequence".to_owned()),
        (runs, None) => (true, format!("exactly so in {runs} runs")),
        (runs, Some(it)) => {
            let entries = want.len();
            let words = format!(
                "in this order in {runs} runs, each of {entries} times within {}; the farthest is \
                 off by {farthest}",
                it.within
            );
            (true, words)
        }
    }
}
