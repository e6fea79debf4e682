//! Exams: sheets that print on A4, a table of the answers, and questions for Moodle.

use std::io::{self, Write};

use ask::lab::{Exam, ExamAnswer, ExamPart, ExamSheet};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use model::Textbook;

use crate::export::{ColumnKind, ExportTable};

const STYLE: &str = include_str!("exam.css");

/// Writes a page with these sheets, each on an A4 page of its own or more.
///
/// # Errors
/// When `to` does not take it.
pub fn sheets(exam: &Exam, sheets: &[ExamSheet], to: &mut dyn Write) -> io::Result<()> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (exam.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                @for it in sheets { (sheet(exam, it)) }
            }
        }
    };
    writeln!(to, "{}", page.into_string())
}

fn sheet(exam: &Exam, sheet: &ExamSheet) -> Markup {
    html! {
        section {
            h1 { (exam.title) }
            p.name { (sheet.student.name) }
            @if !exam.text.is_empty() { p { (exam.text) } }
            p { (machine(exam.order)) }
            (jobs(sheet))
            @for (number, part) in sheet.parts.iter().enumerate() {
                (questions(number + 1, part, sheet))
            }
        }
    }
}

/// What the answers take for granted.
fn machine(order: Textbook) -> &'static str {
    match order {
        Textbook::ArrivalsFirst => {
            "One CPU. Nothing but the jobs takes time. A job that arrives just when a quantum ends \
             stands in the queue before the job whose quantum it was. Times are in ms."
        }
        Textbook::ArrivalsLast => {
            "One CPU. Nothing but the jobs takes time. A job that arrives just when a quantum ends \
             stands in the queue behind the job whose quantum it was. Times are in ms."
        }
    }
}

fn jobs(sheet: &ExamSheet) -> Markup {
    html! {
        table {
            tr { th { "job" } th { "arrives at" } th { "runs for" } }
            @for job in &sheet.jobs {
                tr { td { (job.name) } td { (job.arrives) } td { (job.length) } }
            }
        }
    }
}

fn questions(number: usize, part: &ExamPart, sheet: &ExamSheet) -> Markup {
    let end = columns(sheet);
    html! {
        h2 { (number) ". " (part.policy) }
        p { (part.summary) }
        (rules(part))
        p { "(a) Draw who has the CPU." }
        table.chart {
            tr { th { "ms" } @for ms in 0..end { td { (ms) } } }
            @for job in &sheet.jobs {
                tr { th { (job.name) } @for _ in 0..end { td {} } }
            }
        }
        @for (letter, question) in ('b'..).zip(&part.questions) {
            p.question { "(" (letter) ") " (question.text) span.blank {} }
        }
    }
}

/// What must be known of a policy.
fn rules(part: &ExamPart) -> Markup {
    html! {
        @if !part.rules.is_empty() {
            ul { @for rule in &part.rules { li { (rule) } } }
        }
    }
}

/// Columns of a chart: enough for every policy, and no hint when the last job ends.
fn columns(sheet: &ExamSheet) -> u64 {
    let work: u64 = sheet.jobs.iter().map(|job| job.length).sum();
    let last = sheet.jobs.iter().map(|job| job.arrives).max();
    (work + last.unwrap_or(0)).next_multiple_of(5)
}

/// Writes the answers of all sheets as CSV. A chart is written as its bars.
///
/// # Errors
/// When `to` does not take them.
pub fn answers(sheets: &[ExamSheet], to: &mut dyn Write) -> io::Result<()> {
    let columns = ["student", "sheet", "policy", "question", "text", "answer"];
    let mut table = ExportTable::new(columns.map(|name| (name, ColumnKind::Text)));
    for sheet in sheets {
        for (number, part) in sheet.parts.iter().enumerate() {
            let mut row = |letter: char, text: &str, answer: String| {
                table.row([
                    sheet.student.name.clone(),
                    sheet.student.slug.clone(),
                    part.policy.clone(),
                    format!("{}{letter}", number + 1),
                    text.to_owned(),
                    answer,
                ]);
            };
            row('a', "Draw who has the CPU.", bars(part));
            for (letter, question) in ('b'..).zip(&part.questions) {
                row(letter, &question.text, question.answer.text());
            }
        }
    }
    table.write(crate::export::Form::Csv, to)
}

/// A chart in words: `A 0 to 3, B 3 to 5`.
fn bars(part: &ExamPart) -> String {
    let bars = part.chart.iter().map(|(from, to, job)| match job {
        Some(job) => format!("{job} {from} to {to}"),
        None => format!("nobody {from} to {to}"),
    });
    bars.collect::<Vec<_>>().join(", ")
}

/// Writes the questions of all sheets for Moodle's import: a category for each question, with one
/// of each student, so that a quiz can draw from it.
///
/// # Errors
/// When `to` does not take them.
pub fn moodle(exam: &Exam, sheets: &[ExamSheet], to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<quiz>")?;
    let parts = sheets.first().map_or(0, |sheet| sheet.parts.len());
    for number in 0..parts {
        let asked = sheets[0].parts[number].questions.len();
        for (letter, at) in ('b'..).zip(0..asked) {
            let title = exam.title.replace('/', "//");
            let category = format!("$course$/{title}/{}{letter}", number + 1);
            let category = html! { question type="category" { category { text { (category) } } } };
            writeln!(to, "{}", category.into_string())?;
            for sheet in sheets {
                let part = &sheet.parts[number];
                if let Some(question) = part.questions.get(at) {
                    let text = html! {
                        p { (machine(exam.order)) }
                        (jobs(sheet))
                        p { b { (part.policy) } ": " (part.summary) }
                        (rules(part))
                        p { (question.text) }
                    };
                    let name = format!("{}{letter} {}", number + 1, sheet.student.slug);
                    let asked = moodle_question(&name, &text.into_string(), &question.answer);
                    writeln!(to, "{}", asked.into_string())?;
                }
            }
        }
    }
    writeln!(to, "</quiz>")
}

fn moodle_question(name: &str, text: &str, answer: &ExamAnswer) -> Markup {
    let kind = match answer {
        ExamAnswer::Time(_) => "numerical",
        ExamAnswer::Job(_) => "shortanswer",
    };
    html! {
        question type=(kind) {
            name { text { (name) } }
            questiontext format="html" { text { (text) } }
            answer fraction="100" {
                text { (answer.text()) }
                @if kind == "numerical" { tolerance { "0.01" } }
            }
        }
    }
}
