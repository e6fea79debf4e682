//! Results for whoever looks at a pull request: the XML of `JUnit`, and Markdown.

use std::io::{self, Write};

use ask::outcome::{Outcome, Results};
use ask::words::counted;
use model::Nanos;

use super::{goals, human};
use crate::Tone;
use crate::figure::escape;

/// Tasks that a failure names.
const NAMED: usize = 5;
/// Characters that Markdown or HTML would take for more than themselves.
const MARKUP: &str = "\\`*_{}[]<>#!|~&";

/// Something that a policy promises, and how it broke that.
struct Case {
    name: &'static str,
    /// What went wrong, in a line and in more.
    failure: Option<(String, String)>,
}

/// What every run is tested for. `limit` is the wait that --fail-on names.
fn cases(outcome: &Outcome, limit: Option<Nanos>) -> Vec<Case> {
    let ejection = outcome.ejection().map(|line| (line.clone(), line));
    let starved = &outcome.summary.starved;
    let named: Vec<String> = starved
        .iter()
        .take(NAMED)
        .map(|it| format!("{} waited for {}", it.name, it.waited))
        .collect();
    let starved = (!starved.is_empty()).then(|| {
        let line = format!(
            "{} starved to the end",
            counted(starved.len() as u64, "task")
        );
        (line, named.join("\n"))
    });
    let mut cases = vec![
        Case {
            name: "is not ejected",
            failure: ejection,
        },
        Case {
            name: "starves no task",
            failure: starved,
        },
    ];
    if let Some(limit) = limit {
        let tasks = outcome.report.tasks.iter();
        let long: Vec<_> = tasks.filter(|task| task.wait_max >= limit).collect();
        let named = long.iter().take(NAMED);
        let named = named.map(|it| format!("{} waited for {}", it.name, it.wait_max));
        let named = named.collect::<Vec<_>>().join("\n");
        let line = format!(
            "{} waited for {limit} or longer",
            counted(long.len() as u64, "task")
        );
        cases.push(Case {
            name: "lets no task wait as long as --fail-on says",
            failure: (!long.is_empty()).then_some((line, named)),
        });
    }
    cases
}

/// The figures of which no verdict is made: a queue still grew when the run ended.
fn grown(outcome: &Outcome) -> Vec<String> {
    let report = &outcome.report;
    let spans = report.spans.iter().filter(|it| it.grows);
    let spans = spans.map(|it| format!("{}: {}", it.group, it.name));
    let deadlines = report.deadlines.iter().filter(|it| it.grows);
    let deadlines = deadlines.map(|it| format!("{}: {}", it.group, it.name));
    let waits = report.all.grows.then(|| "waits of all tasks".to_owned());
    spans.chain(deadlines).chain(waits).collect()
}

/// Writes the XML of `JUnit`: a suite for each run, a test for each thing that a policy must not
/// do.
///
/// # Errors
/// When `to` does not take it.
pub fn junit(results: &Results, limit: Option<Nanos>, to: &mut dyn Write) -> io::Result<()> {
    let suites: Vec<(&Outcome, Vec<Case>)> = results
        .outcomes
        .iter()
        .map(|outcome| (outcome, cases(outcome, limit)))
        .collect();
    let failed = |cases: &[Case]| cases.iter().filter(|case| case.failure.is_some()).count();
    let tests = suites
        .iter()
        .map(|(outcome, cases)| cases.len() + grown(outcome).len());
    let tests: usize = tests.sum();
    let failures: usize = suites.iter().map(|(_, cases)| failed(cases)).sum();
    writeln!(
        to,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"runslice\" tests=\"{tests}\" failures=\"{failures}\">"
    )?;
    for (outcome, cases) in &suites {
        let name = format!(
            "{} under {}, seed {}",
            outcome.policy, results.workload, outcome.report.seed
        );
        writeln!(
            to,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">",
            escape(&name),
            cases.len() + grown(outcome).len(),
            failed(cases)
        )?;
        for title in grown(outcome) {
            writeln!(
                to,
                "    <testcase classname=\"{}\" name=\"{}\"><skipped message=\"no verdict: this \
                 figure grows with the duration\"/></testcase>",
                escape(&outcome.policy),
                escape(&title)
            )?;
        }
        for case in cases {
            let (class, name) = (escape(&outcome.policy), escape(case.name));
            write!(to, "    <testcase classname=\"{class}\" name=\"{name}\"")?;
            match &case.failure {
                None => writeln!(to, "/>")?,
                Some((line, more)) => writeln!(
                    to,
                    ">\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
                    escape(line),
                    escape(more)
                )?,
            }
        }
        writeln!(to, "  </testsuite>")?;
    }
    writeln!(to, "</testsuites>")
}

/// Text that means nothing but itself in Markdown.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.chars() {
        if MARKUP.contains(letter) {
            plain.push('\\');
        }
        match letter {
            '\n' | '\r' => plain.push(' '),
            // Without the empty letter behind it somebody of that name would get a message.
            '@' => plain.push_str("@\u{200b}"),
            _ => plain.push(letter),
        }
    }
    plain
}

/// Writes the answer as Markdown: in short, then goal by goal, then a table of the policies.
///
/// # Errors
/// When `to` does not take it.
pub fn markdown(
    results: &Results,
    limit: Option<Nanos>,
    is_many: bool,
    to: &mut dyn Write,
) -> io::Result<()> {
    let answer = goals::answer(results, is_many);
    writeln!(
        to,
        "### {}\n\n{}\n",
        plain(&human::heading(results)),
        plain(&answer.short)
    )?;
    let mut told: Vec<String> = Vec::new();
    for outcome in &results.outcomes {
        for failure in cases(outcome, limit)
            .into_iter()
            .filter_map(|case| case.failure)
        {
            let line = if failure.0.starts_with(&outcome.policy) {
                failure.0
            } else {
                format!("{}: {}", outcome.policy, failure.0)
            };
            if !told.contains(&line) {
                told.push(line);
            }
        }
    }
    for line in &told {
        writeln!(to, "- **{}**", plain(line))?;
    }
    for (what, said) in &answer.said {
        writeln!(to, "- {}: {}", plain(what), plain(said))?;
    }
    let heads = answer
        .heads
        .iter()
        .map(|(of, what)| format!(" {} |", plain(&format!("{of} {what}"))));
    let rules = answer.heads.iter().map(|_| " ---: |");
    writeln!(to, "\n| policy |{}", heads.collect::<String>())?;
    writeln!(to, "| --- |{}", rules.collect::<String>())?;
    for (arm, cells) in &answer.rows {
        let cells = cells.iter().map(|(text, tone)| match tone {
            Tone::Good => format!(" **{}** |", plain(text)),
            _ => format!(" {} |", plain(text)),
        });
        writeln!(to, "| {} |{}", plain(arm), cells.collect::<String>())?;
    }
    writeln!(to, "\n{}", plain(&answer.advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(plain("a|b<img>"), "a\\|b\\<img\\>");
        assert_eq!(plain("one\ntwo *three*"), "one two \\*three\\*");
        assert_eq!(plain("41.8 %"), "41.8 %");
    }
}
