//! What is to be said of a simulated run before it begins, and when it cannot be made.

use workload::RunSpec;

use crate::exit::UsageError;
use crate::say::say;

/// Says, before a run begins, that it ends at another time than the user may think.
pub fn say_end(spec: &RunSpec) {
    if let (_, Some(note)) = sim::latest_end(spec) {
        say("runslice", &note);
    }
}

/// A knob that does not exist is a mistake on the command line, not in a file.
pub fn explain(error: sim::Error) -> anyhow::Error {
    use sim::PolicyError::{Entry, Set, SetUp, When};
    match error {
        sim::Error::Policy {
            policy,
            source: source @ (Set(_) | When { .. } | Entry(_) | SetUp(_)),
        } => UsageError(format!(
            "policy `{policy}`: {}",
            with_advice(source.to_string())
        ))
        .into(),
        other => other.into(),
    }
}

/// The words for a number that is out of range end in the range; here they say to give one in it.
fn with_advice(mut words: String) -> String {
    let range = words
        .split_once(" is out of range for `")
        .and_then(|(before, rest)| Some(before.len() + rest.find("`: ")?));
    if let Some(at) = range {
        let colon = at + " is out of range for ``".len();
        words.replace_range(colon..colon + 1, "; give");
    }
    words
}
