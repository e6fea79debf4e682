//! Words that questions and answers have in common.

/// A number of things: `1 CPU`, `4 CPUs`.
#[must_use]
pub fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

/// Names in a sentence: `a`, `a and b`, `a, b and c`.
#[must_use]
pub fn listed(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    }
}

/// A word as a shell takes it: in quotes where it would be something else without them.
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The words of a command as a shell takes them, in one line.
#[must_use]
pub fn command(words: &[impl AsRef<str>]) -> String {
    let words = words.iter().map(|word| quoted(word.as_ref()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_command_apart_into_its_words() {
        let words = [
            "runslice",
            "explain",
            "mlfq:queues=4,up=2",
            "my runs/it's $HOME.bundle",
            "",
            "a\nb",
            "*~\"\\`",
            "\u{e9}",
            "#no",
        ];
        let line = command(&words);
        assert_eq!(shlex::split(&line).unwrap(), words);
        assert!(
            line.starts_with("runslice explain mlfq:queues=4,up=2 'my "),
            "{line}"
        );
    }
}
