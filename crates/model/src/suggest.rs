//! What to say when a name is unknown: the nearest one that exists, and all of them.

/// Who has a near name reads no list that is longer, in bytes: a message is a few lines.
const LONGEST_LIST: usize = 280;

/// Ends a message about the unknown name `wrong`: what was probably meant, and what there is.
pub fn hint<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let all = known.join(", ");
    match crate::file::nearest(wrong, known.iter().copied()) {
        Some(name) if all.len() > LONGEST_LIST => format!("did you mean `{name}`?"),
        Some(name) => format!("did you mean `{name}`? There are: {all}"),
        None if known.is_empty() => "there are none".to_owned(),
        None => format!("there are: {all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_keyboard_gets_a_suggestion_and_nonsense_does_not() {
        assert_eq!(
            hint("fif", ["fifo", "mlfq"]),
            "did you mean `fifo`? There are: fifo, mlfq"
        );
        assert_eq!(hint("staircase", ["fifo", "mlfq"]), "there are: fifo, mlfq");
        assert_eq!(hint("x", []), "there are none");
    }

    #[test]
    fn a_long_list_is_left_out_beside_a_near_name_alone() {
        let many: Vec<String> = (0..100).map(|at| format!("name{at}")).collect();
        let said = |wrong| hint(wrong, many.iter().map(String::as_str));
        assert_eq!(said("nama7"), "did you mean `name7`?");
        assert!(said("cathedral").ends_with("name98, name99"));
    }
}
