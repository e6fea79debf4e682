//! Sheets of questions and grades: for people, and as JSON.

pub mod exam;
pub mod graded;

use std::io::{self, Write};

use ask::AnswerKind;
use ask::lab::{Grades, LabQuestion, LabSheet};
use serde_json::json;

/// Writes the sheet of a policy as text, with the answers if they are wanted.
///
/// # Errors
/// When `to` does not take it.
pub fn sheet(
    policy: &str,
    sheet: &LabSheet,
    has_answers: bool,
    to: &mut dyn Write,
) -> io::Result<()> {
    writeln!(to, "Policy {policy}, seed {}.", sheet.seed)?;
    for rule in &sheet.rules {
        writeln!(to, "{rule}")?;
    }
    writeln!(to, "\n{}", sheet.load)?;
    for (at, LabQuestion { text, answer }) in sheet.questions.iter().enumerate() {
        writeln!(to, "{}. {text}", at + 1)?;
        if has_answers {
            writeln!(to, "   {answer}")?;
        }
    }
    if !has_answers {
        writeln!(to, "\n--answers prints the answers.")?;
    }
    Ok(())
}

/// Writes the sheet of a policy as JSON, with the answers if they are wanted.
///
/// # Errors
/// When `to` does not take it.
pub fn sheet_json(
    policy: &str,
    sheet: &LabSheet,
    has_answers: bool,
    to: &mut dyn Write,
) -> io::Result<()> {
    let all = sheet.questions.iter().map(|LabQuestion { text, answer }| {
        let answer = has_answers.then_some(answer);
        json!({ "question": text, "answer": answer })
    });
    let all: Vec<_> = all.collect();
    let document = json!({
        AnswerKind::Sheet.key(): AnswerKind::Sheet.version(),
        "policy": policy, "seed": sheet.seed, "rules": sheet.rules, "load": sheet.load,
        "questions": all,
    });
    writeln!(to, "{document:#}")
}

/// Writes grades as JSON.
///
/// # Errors
/// When `to` does not take them.
pub fn grades_json(grades: &Grades, to: &mut dyn Write) -> io::Result<()> {
    let mut document = serde_json::to_value(grades).map_err(io::Error::from)?;
    document[AnswerKind::Grades.key()] = AnswerKind::Grades.version().into();
    writeln!(to, "{document:#}")
}
