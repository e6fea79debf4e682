//! What to say when a name is unknown: the nearest one that exists, and all of them.

/// Ends a message about the unknown name `wrong`: what was probably meant, and what there is.
pub fn hint<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let all = known.join(", ");
    match nearest(wrong, &known) {
        Some(name) => format!("did you mean `{name}`? There are: {all}"),
        None if known.is_empty() => "there are none".to_owned(),
        None => format!("there are: {all}"),
    }
}

/// The known name that takes the fewest edits, if they are few for its length.
fn nearest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    let closest = known.iter().min_by_key(|name| edits(wrong, name))?;
    let few = 1 + closest.chars().count() / 3;
    (edits(wrong, closest) <= few).then_some(closest)
}

/// Insertions, deletions and replacements that turn `from` into `to`.
///
/// Source: Wagner and Fischer (1974), "The String-to-String Correction Problem".
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_single_edits() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("mlfq", "mlfq"), 0);
    }

    #[test]
    fn a_slip_of_the_keyboard_gets_a_suggestion_and_nonsense_does_not() {
        assert_eq!(
            hint("fif", ["fifo", "mlfq"]),
            "did you mean `fifo`? There are: fifo, mlfq"
        );
        assert_eq!(hint("staircase", ["fifo", "mlfq"]), "there are: fifo, mlfq");
        assert_eq!(hint("x", []), "there are none");
    }
}
