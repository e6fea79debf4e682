//! `runslice lab --students FILE --exam FILE -o FOLDER`: a sheet for each student.

use std::io::Write as _;
use std::path::Path;

use ask::input;
use ask::lab::{Exam, ExamSheet, read_students};
use show::lab::exam;

use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::output;

use super::put;

/// Bytes of a list of names or an exam, at most.
const LONGEST: u64 = 8 << 20;

/// Makes the sheets of an exam.
///
/// # Errors
/// When a file is bad, a policy cannot run, or the folder takes no file.
pub fn run(students: &Path, exam_file: &Path, folder: &Path) -> anyhow::Result<Status> {
    let text = input::text(&COMPUTER, exam_file, LONGEST)?;
    let exam = Exam::read(&COMPUTER, &text, &input::shown(exam_file))?;
    let names = input::bytes(&COMPUTER, students, LONGEST)?;
    let students = read_students(&names, &input::shown(students), &exam.key)?;
    let sheets = students.iter().map(|it| exam.sheet(&COMPUTER, it));
    let sheets = sheets.collect::<Result<Vec<_>, _>>()?;
    write_all(&exam, &sheets, folder)?;
    say(&exam, &sheets, folder)?;
    Ok(Status::Done)
}

fn write_all(exam: &Exam, sheets: &[ExamSheet], folder: &Path) -> anyhow::Result<()> {
    let own = folder.join("sheets");
    output::make_folder(&own)?;
    for sheet in sheets {
        let path = own.join(format!("{}.html", sheet.student.slug));
        put(&path, |to| {
            exam::sheets(exam, std::slice::from_ref(sheet), to)
        })?;
    }
    put(&folder.join("booklet.html"), |to| {
        exam::sheets(exam, sheets, to)
    })?;
    put(&folder.join("answers.csv"), |to| exam::answers(sheets, to))?;
    put(&folder.join("moodle.xml"), |to| {
        exam::moodle(exam, sheets, to)
    })
}

fn say(exam: &Exam, sheets: &[ExamSheet], folder: &Path) -> anyhow::Result<()> {
    let mut to = output::open(None)?;
    let folder = folder.display();
    let first = sheets.first();
    let jobs = first.map_or(0, |sheet| sheet.jobs.len());
    let questions: usize = first.map_or(0, |sheet| {
        sheet
            .parts
            .iter()
            .map(|part| 1 + part.questions.len())
            .sum()
    });
    writeln!(
        to,
        "{} sheets, each with {jobs} jobs and {questions} questions",
        sheets.len()
    )?;
    let bars: Vec<String> = exam.bars().iter().map(usize::to_string).collect();
    writeln!(
        to,
        "bars to draw: {} on each sheet{}",
        bars.join(" + "),
        others(exam, sheets)
    )?;
    writeln!(
        to,
        "{folder}/booklet.html  all sheets, for A4; one each is in {folder}/sheets"
    )?;
    writeln!(to, "{folder}/answers.csv   the answers")?;
    writeln!(
        to,
        "{folder}/moodle.xml    the questions but the charts, for Moodle's import"
    )?;
    Ok(to.flush()?)
}

/// How many sheets have another number of bars.
fn others(exam: &Exam, sheets: &[ExamSheet]) -> String {
    let bars =
        |chart: &[(u64, u64, Option<char>)]| chart.iter().filter(|it| it.2.is_some()).count();
    let differs = |sheet: &&ExamSheet| {
        let own = sheet.parts.iter().map(|part| bars(&part.chart));
        !own.eq(exam.bars().iter().copied())
    };
    match sheets.iter().filter(differs).count() {
        0 => String::new(),
        count => format!("; {count} of them have nearly as many"),
    }
}
