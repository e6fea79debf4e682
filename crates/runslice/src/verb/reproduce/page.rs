//! What came of experiments, as one page that needs nothing else. Its own policy forbids that
//! anything is fetched or executed.

use std::io::{self, Write};

use experiments::claim::{Rules, Verdict};
use stats::figure::{Chart, escape, svg};

use super::human::{part, rows, summary};
use super::sides;
use crate::page::head;
use experiments::Judged;
use experiments::cells::Results;
use experiments::expected::Published;
use experiments::experiment::Experiment;

/// Everything that one kind of machine has to show.
pub struct Page<'a> {
    /// Its name: `sim`, `vm`, `host`.
    pub machine: &'static str,
    /// What was rerun.
    pub experiments: &'a [Experiment],
    /// What it gave, one entry an experiment.
    pub results: &'a [Results],
    /// What it says.
    pub judged: Vec<Judged<'a>>,
    /// The figures of each experiment.
    pub charts: Vec<Vec<Chart>>,
    /// How it was judged.
    pub rules: &'a Rules,
    /// Fingerprint of the calibration.
    pub calibration: &'a str,
}

const MORE: &str = "\
.v{font-weight:600;white-space:nowrap}.reproduced{color:#00734f}.same-direction{color:#0072b2}\
.undecided{color:#8a5a00}.not-reproduced,.opposite-direction{color:#b33a00}\
.not-testable{color:#5a5a5a}\
td.l,th.l{text-align:left}td.w{white-space:normal}ul.t{font-size:.85rem}\
@media (prefers-color-scheme:dark){.reproduced{color:#33c9a0}.same-direction{color:#8cc4ff}\
.undecided{color:#f0c14b}.not-reproduced,.opposite-direction{color:#ff8c42}\
.not-testable{color:#a8a8a8}}";

const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::SameDirection => "same-direction",
        Verdict::Undecided => "undecided",
        Verdict::NotReproduced => "not-reproduced",
        Verdict::OppositeDirection => "opposite-direction",
        Verdict::CannotFail | Verdict::NotTestable => "not-testable",
    }
}

/// Writes the page; what several machines say stands side by side before the rest.
///
/// # Errors
/// When `to` does not take it.
pub fn write(pages: &[Page<'_>], to: &mut dyn Write) -> io::Result<()> {
    head(
        "runslice: experiments, rerun",
        MORE,
        "Experiments, rerun",
        to,
    )?;
    if pages.len() > 1 {
        side_by_side(pages, to)?;
    }
    for page in pages {
        let prefix = match pages.len() {
            1 => String::new(),
            _ => {
                writeln!(to, "<h2>Machine {}</h2>", page.machine)?;
                format!("{}-", page.machine)
            }
        };
        writeln!(
            to,
            "<p class=\"where\">{} Calibration {}. Numbers are compared as ratios, slopes and \
             orders only.</p>",
            escape(&summary(&page.judged, page.rules)),
            escape(page.calibration),
        )?;
        page.verdicts(&prefix, to)?;
        for index in 0..page.experiments.len() {
            page.experiment(index, &prefix, to)?;
        }
    }
    write!(
        to,
        "<footer><p>Made by runslice {}. experiments/README.md says how verdicts are \
         made.</p></footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn side_by_side(pages: &[Page<'_>], to: &mut dyn Write) -> io::Result<()> {
    writeln!(
        to,
        "<div class=\"scroll\" role=\"region\" aria-label=\"Side by side\" tabindex=\"0\">\n\
         <table><caption>What each machine says</caption>\n<thead><tr>\
         <th scope=\"col\">statement</th><th scope=\"col\" class=\"l\">machine</th>\
         <th scope=\"col\" class=\"l\">verdict</th><th scope=\"col\" class=\"l\">numbers</th>\
         <th scope=\"col\" class=\"l\">says</th></tr></thead>\n<tbody>"
    )?;
    for said in sides::of(pages) {
        for (machine, judged) in said.by {
            writeln!(
                to,
                "<tr><td><a href=\"#{machine}-{id}\">{id}</a></td><td class=\"l\">{machine}</td>\
                 <td class=\"l v {}\">{}</td><td class=\"l w\">{}</td>\
                 <td class=\"l w\">{}</td></tr>",
                class(judged.verdict),
                judged.verdict.words(),
                escape(&sides::numbers(judged)),
                escape(said.text),
                id = escape(said.id),
            )?;
        }
    }
    writeln!(to, "</tbody></table></div>")
}

impl Page<'_> {
    /// The table of all statements.
    fn verdicts(&self, prefix: &str, to: &mut dyn Write) -> io::Result<()> {
        writeln!(
            to,
            "<div class=\"scroll\" role=\"region\" aria-label=\"Verdicts\" tabindex=\"0\">\n\
             <table><caption>Statements</caption>\n<thead><tr><th scope=\"col\">statement</th>\
             <th scope=\"col\" class=\"l\">verdict</th><th scope=\"col\" class=\"l\">says</th>\
             <th scope=\"col\" class=\"l\">experiment</th></tr></thead>\n<tbody>"
        )?;
        for judged in &self.judged {
            let statement = judged.statement;
            let name = &self.experiments[judged.experiment].name;
            writeln!(
                to,
                "<tr><td><a href=\"#{prefix}{id}\">{id}</a></td><td class=\"l v {}\">{}</td>\
                 <td class=\"l w\">{}</td><td class=\"l\">\
                 <a href=\"#{prefix}{name}\">{name}</a></td></tr>",
                class(judged.verdict),
                judged.verdict.words(),
                escape(&statement.text),
                id = escape(&statement.id),
                name = escape(name),
            )?;
        }
        writeln!(to, "</tbody></table></div>")
    }

    fn experiment(&self, index: usize, prefix: &str, to: &mut dyn Write) -> io::Result<()> {
        let experiment = &self.experiments[index];
        writeln!(
            to,
            "<section aria-labelledby=\"{prefix}{name}\">\n\
             <h2 id=\"{prefix}{name}\">{name}: {}</h2>\n\
             <p class=\"where\">Document {}, {}.</p>",
            escape(&experiment.title),
            escape(&experiment.document),
            escape(&experiment.source),
            name = escape(&experiment.name),
        )?;
        for (before, texts) in [
            ("Note: ", &experiment.notes),
            (
                "The document contradicts itself: ",
                &experiment.contradictions,
            ),
        ] {
            for text in texts {
                writeln!(to, "<p>{before}{}</p>", escape(text))?;
            }
        }
        for judged in self.judged.iter().filter(|it| it.experiment == index) {
            statement(judged, prefix, to)?;
        }
        for chart in &self.charts[index] {
            write!(
                to,
                "<figure>\n{}<figcaption>{}</figcaption>\n</figure>\n",
                svg(chart, false),
                escape(&chart.description)
            )?;
        }
        numbers(experiment, &self.results[index], to)?;
        writeln!(to, "</section>")
    }
}

fn statement(judged: &Judged<'_>, prefix: &str, to: &mut dyn Write) -> io::Result<()> {
    let statement = judged.statement;
    writeln!(
        to,
        "<p id=\"{prefix}{id}\"><b>{id}</b> <span class=\"v {}\">{}</span>: {}</p>\n\
         <ul class=\"t\">",
        class(judged.verdict),
        judged.verdict.words(),
        escape(&statement.text),
        id = escape(&statement.id),
    )?;
    for (name, finding) in &judged.parts {
        writeln!(
            to,
            "<li><span class=\"v {}\">{}</span>: {}</li>",
            class(finding.verdict),
            finding.verdict.words(),
            escape(&part(name, finding))
        )?;
    }
    writeln!(to, "</ul>")?;
    for (before, text) in [("Note", &statement.note), ("Cause", &statement.cause)] {
        if let Some(text) = text {
            writeln!(to, "<p>{before}: {}</p>", escape(text))?;
        }
    }
    Ok(())
}

/// The table of numbers, and the published ones that nothing is held against.
fn numbers(experiment: &Experiment, results: &Results, to: &mut dyn Write) -> io::Result<()> {
    let rows = rows(experiment, results);
    if !rows.is_empty() {
        let name = format!("Numbers of {}", experiment.name);
        writeln!(
            to,
            "<div class=\"scroll\" role=\"region\" aria-label=\"{name}\" tabindex=\"0\">\n\
             <table><caption>Published, and here: mean, lowest and highest run</caption>\n\
             <thead><tr><th scope=\"col\">runs</th><th scope=\"col\" class=\"l\">metric</th>\
             <th scope=\"col\" class=\"l\">scheduler</th><th scope=\"col\">published</th>\
             <th scope=\"col\">here</th><th scope=\"col\">ratio</th>\
             <th scope=\"col\">ratio here</th></tr></thead>\n<tbody>",
            name = escape(&name)
        )?;
        for row in &rows {
            let [published, here] = &row.ratios;
            writeln!(
                to,
                "<tr><td>{}</td><td class=\"l\">{}</td><td class=\"l\">{}</td><td>{}</td>\
                 <td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(&row.place),
                escape(&row.metric),
                escape(&row.arm),
                escape(&row.published),
                escape(&row.ours),
                escape(published),
                escape(here)
            )?;
        }
        writeln!(to, "</tbody></table></div>")?;
    }
    for row in experiment.expected.iter().filter(|row| row.runs.is_empty()) {
        let value = match row.value {
            Published::Number(value) => format!("{value}"),
            Published::Picture => "not available as numbers".to_owned(),
            Published::Missing => "missing".to_owned(),
        };
        let words = [&row.place, &row.arm, &row.metric, &value, &row.note];
        let words: Vec<&str> = words.into_iter().map(String::as_str).collect();
        let words: Vec<&str> = words.into_iter().filter(|it| !it.is_empty()).collect();
        writeln!(to, "<p class=\"where\">{}</p>", escape(&words.join(": ")))?;
    }
    Ok(())
}
