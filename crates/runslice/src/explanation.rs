//! How what is said of a fault or of a wait is written.

pub mod json;
pub mod text;

pub use ask::explain::Explanation;

use crate::about::About;

/// The command line that was given, for a shell.
pub fn command() -> String {
    let words = About::words().into_iter().skip(1);
    let words = words.map(|word| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+%".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    let words: Vec<_> = words.collect();
    format!("runslice {}", words.join(" "))
}
