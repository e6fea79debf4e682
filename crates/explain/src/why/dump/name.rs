//! Names of tasks, as a kernel prints them.

/// A name, which may have spaces and brackets, and the number behind it.
pub fn name_of(words: &str) -> Option<(&str, u32)> {
    let named = |words: &'_ str| -> Option<(usize, u32)> {
        let (name, pid) = words.strip_suffix(']')?.rsplit_once('[')?;
        Some((name.len(), pid.parse().ok()?))
    };
    let without = || named(words.rsplit_once(' ')?.0);
    let (length, pid) = named(words).or_else(without)?;
    Some((&words[..length], pid))
}
