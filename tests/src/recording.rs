//! Reads the recordings of `golden/traces`.

use model::{Op, SimTime};

use crate::call::{Call, Who};

/// What a kernel did in one scenario.
#[derive(Clone, Debug)]
pub struct Section {
    /// The scenario, `T1` to `T10`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Its callbacks, in the order in which they were recorded.
    pub calls: Vec<Call>,
}

/// The sections of a recording.
///
/// # Errors
/// The first line that is not of the form that `golden/traces/README.md` gives, with its number.
pub fn parse(text: &str) -> Result<Vec<Section>, String> {
    let mut sections: Vec<Section> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(head) = line.strip_prefix("-- ") {
            let (name, title) = head.split_once(": ").ok_or("a section needs a title")?;
            let (name, title) = (name.to_owned(), title.to_owned());
            sections.push(Section {
                name,
                title,
                calls: Vec::new(),
            });
            continue;
        }
        let call =
            parse_call(line).ok_or_else(|| format!("line {number}: not a callback: {line}"))?;
        let section = sections
            .last_mut()
            .ok_or("a callback before the first section")?;
        section.calls.push(call);
    }
    Ok(sections)
}

fn parse_call(line: &str) -> Option<Call> {
    let mut words = line.split_ascii_whitespace();
    let micros: u64 = words.next()?.parse().ok()?;
    let cpu = words.next()?.parse().ok()?;
    let current = Who::named(words.next()?);
    let name = words.next()?;
    let op = Op::ALL.into_iter().find(|op| op.name() == name)?;
    let task = Who::named(words.next()?);
    let a = words.next().map_or(Some(0), number)?;
    let b = words.next().map_or(Some(0), number)?;
    let time = SimTime::from_nanos(micros.checked_mul(1000)?);
    words.next().is_none().then_some(Call {
        time,
        cpu,
        current,
        op,
        task,
        a,
        b,
    })
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}
