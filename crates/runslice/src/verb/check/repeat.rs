//! How a run is repeated.

use model::{Nanos, Stall};

/// What a command has to say to repeat a run.
pub(super) struct Repeat<'a> {
    pub name: &'a str,
    pub set: &'a [(String, String)],
    pub load: &'a str,
}

impl Repeat<'_> {
    /// The command that does `verb` with the run with this stall, in one line.
    pub(super) fn command(&self, verb: &str, duration: Nanos, stall: Option<&Stall>) -> String {
        let set = self.set.iter();
        let set = set.map(|(name, value)| format!(" --set {name}={value}"));
        let set: String = set.collect();
        let stall = stall.map_or_else(String::new, |it| format!(" --interleave at={it}"));
        format!(
            "runslice {verb} {}{set} -w {} --duration {}{stall}",
            self.name,
            self.load,
            exact(duration)
        )
    }
}

/// A time as an option takes it, without loss.
fn exact(span: Nanos) -> String {
    let ns = span.get();
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let unit = units.iter().find(|(_, scale)| ns.is_multiple_of(*scale));
    unit.map_or_else(
        || format!("{ns}ns"),
        |(unit, scale)| format!("{}{unit}", ns / scale),
    )
}
