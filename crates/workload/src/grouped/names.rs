//! Names of groups in the file.

use std::collections::BTreeSet;

use super::kind::GroupHistory;

/// A thread's name without the words that have digits, such as `kworker events` of
/// `kworker/0:1-events`. All letters, if every word has digits.
pub fn stem(name: &str) -> String {
    let words = name.split([' ', '/', ':', '-', '#']);
    let plain =
        words.filter(|word| !word.is_empty() && !word.contains(|c: char| c.is_ascii_digit()));
    let plain: Vec<&str> = plain.collect();
    if plain.is_empty() {
        let letters = name.chars().filter(char::is_ascii_alphabetic);
        return letters.collect();
    }
    plain.join(" ")
}

/// Names every kind: letters, digits and `_`, no two alike.
pub fn name(kinds: &mut [GroupHistory], anonymous: bool) {
    let mut given = BTreeSet::new();
    for (number, kind) in (1..).zip(kinds) {
        if anonymous {
            kind.name = format!("task{number}");
            kind.called.clear();
            continue;
        }
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut name: String = kind.called.chars().map(plain).collect();
        name = name.trim_matches('_').to_owned();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            name = format!("task_{name}").trim_matches('_').to_owned();
        }
        let mut free = name.clone();
        let mut again = 2;
        while !given.insert(free.clone()) {
            free = format!("{name}_{again}");
            again += 1;
        }
        kind.name = free;
    }
}
