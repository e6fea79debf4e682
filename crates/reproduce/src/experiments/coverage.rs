//! The table of experiments/README.md that says what reruns each part of the documents, held
//! against the files.

use std::collections::{BTreeMap, BTreeSet};

use crate::experiments::draft::Draft;
use crate::experiments::files::Files;

/// A row of the table, below the heading of its document.
#[derive(Debug)]
struct CoverageRow {
    document: String,
    /// Place and content, for messages.
    name: String,
    statements: Vec<String>,
    /// Experiments that rerun it; `None` if it is missing.
    experiments: Option<Vec<String>>,
    on_a_kernel: bool,
    /// Whether no document says it.
    ours: bool,
}

/// What one experiment.toml has.
struct Has {
    document: String,
    statements: BTreeSet<String>,
}

/// The row of a table's line below a document's heading.
fn row(document: &str, line: &str) -> Result<CoverageRow, String> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [place, what, statements, command] = cells[..] else {
        return Err(format!("{} cells instead of 4: {line}", cells.len()));
    };
    let name = format!("{place}: {what}");
    let mut row = CoverageRow {
        document: document.to_owned(),
        statements: statements.split_whitespace().map(str::to_owned).collect(),
        experiments: None,
        on_a_kernel: false,
        ours: false,
        name,
    };
    if let Some(reason) = command.strip_prefix("missing: ") {
        return if row.statements.is_empty() && reason.split_whitespace().count() >= 3 {
            Ok(row)
        } else {
            Err(format!(
                "missing, but not empty, or without a reason: {line}"
            ))
        };
    }
    let alone = command.strip_suffix(" in guests");
    row.on_a_kernel = alone.is_some();
    let quoted = alone.unwrap_or(command).strip_prefix('`');
    let names = quoted.and_then(|it| it.strip_suffix('`'));
    let names = names.ok_or_else(|| format!("neither experiments nor missing: {line}"))?;
    row.experiments = Some(names.split_whitespace().map(str::to_owned).collect());
    Ok(row)
}

/// All rows of the part called Coverage, and its sentence that counts them.
fn table(readme: &str) -> Result<(Vec<CoverageRow>, &str), String> {
    let part = readme.split("\n## Coverage\n").nth(1);
    let part = part.ok_or("there is no part Coverage")?;
    let part = part.split("\n## ").next().unwrap_or(part);
    let (mut rows, mut document, mut counted) = (Vec::new(), "", "");
    let mut ours = false;
    for line in part.lines() {
        if let Some(heading) = line.strip_prefix("### Document ") {
            document = heading.split(':').next().unwrap_or(heading);
            ours = heading.ends_with("in no document");
        } else if line.starts_with("Of ") {
            counted = line;
        } else if line.starts_with("| ")
            && !(line.starts_with("| place |") || line.starts_with("| --- |"))
        {
            rows.push(CoverageRow {
                ours,
                ..row(document, line)?
            });
        }
    }
    Ok((rows, counted))
}

/// What is wrong with a table, a line each.
fn faults(
    rows: &[CoverageRow],
    counted: &str,
    all: &BTreeMap<&str, Has>,
    (on_kernels, ours): (&[&str], &BTreeSet<String>),
) -> Vec<String> {
    let mut faults = Vec::new();
    for row in rows {
        let listed = row.statements.iter();
        let listed = listed.filter(|it| ours.contains(*it) != row.ours);
        let who = if row.ours { "a" } else { "no" };
        faults.extend(listed.map(|it| format!("{}: {who} document says `{it}`", row.name)));
    }
    let missing = rows.iter().filter(|row| row.experiments.is_none()).count();
    let due = format!("Of {} rows, {missing} are missing.", rows.len());
    if counted != due {
        faults.push(format!("`{counted}` should be `{due}`"));
    }
    // Pairs of an experiment and what the table says that it has.
    let mut said: BTreeSet<(&str, &str)> = BTreeSet::new();
    for row in rows {
        let Some(experiments) = &row.experiments else {
            continue;
        };
        for name in experiments {
            let Some(has) = all.get(name.as_str()) else {
                faults.push(format!("{}: no experiment `{name}`", row.name));
                continue;
            };
            said.insert((name, ""));
            if has.document != row.document && has.document != "anchors" {
                faults.push(format!("{}: `{name}` is of another document", row.name));
            }
            if row.on_a_kernel && !on_kernels.contains(&name.as_str()) {
                faults.push(format!("{}: `{name}` has no vm.toml", row.name));
            }
        }
        let mine = |name: &&String| all.contains_key(name.as_str());
        for it in &row.statements {
            let mut of = experiments.iter().filter(mine);
            match of.find(|name| all[name.as_str()].statements.contains(it)) {
                Some(name) => drop(said.insert((name, it))),
                None => faults.push(format!("{}: its experiments lack `{it}`", row.name)),
            }
        }
    }
    for (name, has) in all {
        for part in has.statements.iter().map(String::as_str).chain([""]) {
            if !said.contains(&(name, part)) {
                faults.push(format!("no row has `{part}` of `{name}`"));
            }
        }
    }
    faults
}

/// Every experiment of these files, and what it has.
fn all(files: &Files) -> BTreeMap<&str, Has> {
    let read = |name| {
        let text = files.get(&format!("{name}/experiment.toml"))?;
        let draft: Draft = toml::from_str(text).expect("the experiment is read elsewhere, too");
        let ids = draft.statement.iter().map(|it| it.id.get_ref().clone());
        let has = Has {
            document: draft.experiment.document.get_ref().clone(),
            statements: ids.collect(),
        };
        Some((name, has))
    };
    files.experiments().into_iter().filter_map(read).collect()
}

#[test]
fn the_table_of_coverage_has_every_experiment_and_statement() {
    let files = Files::embedded();
    let readme = files.get("README.md").unwrap();
    let (rows, counted) = table(readme).unwrap();
    let ours = crate::experiments::experiment::statements(&files).unwrap();
    let ours = ours.into_iter().filter(|(_, it)| it.ours);
    let ours: BTreeSet<String> = ours.map(|(id, _)| id).collect();
    let faults = faults(&rows, counted, &all(&files), (&files.on_kernels(), &ours));
    assert!(
        faults.is_empty(),
        "experiments/README.md:\n{}",
        faults.join("\n")
    );
}

/// The last field of a line: statements, or `vectors` (policies/VECTORS.md, or a test), `printed`,
/// `missing`.
#[test]
fn every_statement_of_a_document_is_among_the_sentences_of_the_second_reader() {
    let files = Files::embedded();
    let text = files.get("sentences.csv").unwrap();
    let rows = text.lines().skip(1);
    let rows = rows.map(|line| line.rsplit(',').next().unwrap_or_default());
    let named = rows.filter(|row| !["vectors", "printed", "missing"].contains(row));
    let named: BTreeSet<&str> = named.flat_map(|row| row.split(' ')).collect();
    let statements = crate::experiments::experiment::statements(&files).unwrap();
    let of_documents = statements.iter().filter(|(_, it)| !it.ours);
    let of_documents: BTreeSet<&str> = of_documents.map(|(id, _)| id.as_str()).collect();
    assert_eq!(named, of_documents);
}

#[test]
fn what_is_wrong_with_a_table_of_coverage_is_found() {
    let experiment = "[experiment]\ndocument = \"002\"\ntitle = \"t\"\nsource = \"s\"\n\
                      [[statement]]\nid = \"C1\"\n";
    let files = Files::of_texts(&[("002-x/experiment.toml", experiment)]);
    let ours = BTreeSet::from(["C7".to_owned()]);
    let said = |rows: &str, count: &str| {
        let readme = format!("\n## Coverage\n\n{count}\n\n### Document 002: t\n\n{rows}");
        match table(&readme) {
            Ok((rows, counted)) => faults(&rows, counted, &all(&files), (&[], &ours)).join("; "),
            Err(wrong) => wrong,
        }
    };
    let good = "| Table I | w | C1 | `002-x` |\n";
    let one = "Of 1 rows, 0 are missing.";
    assert_eq!(said(good, one), "");
    for (from, to, words) in [
        ("C1", "", "no row has `C1` of `002-x`"),
        ("C1", "C1 C2", "its experiments lack `C2`"),
        ("C1", "C1 C7", "no document says `C7`"),
        ("002-x", "002-y", "no experiment `002-y`"),
        ("002-x`", "002-x` in guests", "`002-x` has no vm.toml"),
        ("| w", "", "3 cells instead of 4"),
        ("`002-x`", "later", "neither experiments nor missing"),
        ("`002-x`", "missing: it is hard to do", "but not empty"),
        (
            "| Table I",
            "### Document 003: u\n| Table I",
            "is of another document",
        ),
        (
            "| Table I",
            "### Document 002: asked, in no document\n| Table I",
            "a document says `C1`",
        ),
    ] {
        let wrong = said(&good.replace(from, to), one);
        assert!(wrong.contains(words), "{wrong}");
    }
    let more = format!("{good}| Table II | w |  | missing: nobody knows why |\n");
    assert_eq!(said(&more, "Of 2 rows, 1 are missing."), "");
    let wrong = said(&more, one);
    assert!(
        wrong.contains("`Of 1 rows, 0 are missing.` should be"),
        "{wrong}"
    );
}
