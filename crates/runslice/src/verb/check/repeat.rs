//! How a run is repeated.

use ask::words;
use model::{Interleave, Nanos, Stall};

/// What a command has to say to repeat a run.
pub(super) struct Repeat<'a> {
    pub name: &'a str,
    pub set: &'a [(String, String)],
    pub load: &'a str,
}

impl Repeat<'_> {
    /// The command that does `verb` with the run with these stalls, in one line.
    pub(super) fn command(&self, verb: &str, duration: Nanos, stalls: &[Stall]) -> String {
        self.words(verb, duration, stalls).join(" ")
    }

    /// Its words, each as a shell takes it.
    pub(super) fn words(&self, verb: &str, duration: Nanos, stalls: &[Stall]) -> Vec<String> {
        let mut words = vec!["runslice".to_owned(), verb.to_owned(), self.name.to_owned()];
        let mut put = |option: &str, value: String| words.extend([option.to_owned(), value]);
        for (name, value) in self.set {
            put("--set", format!("{name}={value}"));
        }
        put("-w", self.load.to_owned());
        put("--duration", exact(duration));
        if !stalls.is_empty() {
            put("--interleave", Interleave::At(stalls.to_vec()).to_string());
        }
        words.iter().map(|word| words::quoted(word)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_keeps_names_with_blanks_in_one_piece() {
        let again = Repeat {
            name: "my policies/it's.bpf.o",
            set: &[("slice_ns".to_owned(), "5".to_owned())],
            load: "a load.toml",
        };
        let command = again.command("sim", Nanos::from_millis(50), &[]);
        let (policy, load) = (r"'my policies/it'\''s.bpf.o'", "'a load.toml'");
        let want = format!("runslice sim {policy} --set slice_ns=5 -w {load} --duration 50ms");
        assert_eq!(command, want);
    }
}
