//! Words that questions and answers have in common.

/// A number of things: `1 CPU`, `4 CPUs`.
#[must_use]
pub fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}
