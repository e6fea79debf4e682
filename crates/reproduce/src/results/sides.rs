//! What several kinds of machine say of the same statements.

use std::collections::BTreeMap;

use super::page::Page;
use super::words::number;
use crate::experiments::JudgedClaim;

/// A statement, and what each machine that decides it says.
pub struct SidesSaid<'a> {
    /// Its name.
    pub id: &'a str,
    /// What is said.
    pub text: &'a str,
    /// Machine and verdict, in the order of the machines.
    pub by: Vec<(&'static str, &'a JudgedClaim<'a>)>,
}

/// All statements by document and number.
pub fn of<'a>(pages: &'a [Page<'_>]) -> Vec<SidesSaid<'a>> {
    let mut all: BTreeMap<(&str, u32), SidesSaid<'a>> = BTreeMap::new();
    for page in pages {
        for judged in &page.judged {
            let (id, text) = (&judged.statement.id, &judged.statement.text);
            let digits = id.find(|it: char| it.is_ascii_digit()).unwrap_or(id.len());
            let key = (&id[..digits], id[digits..].parse().unwrap_or(u32::MAX));
            let said = all.entry(key).or_insert(SidesSaid {
                id,
                text,
                by: Vec::new(),
            });
            said.by.push((page.machine, judged));
        }
    }
    all.into_values().collect()
}

/// The numbers that were published, each with ours; where there are none, how many parts there are.
pub fn numbers(judged: &JudgedClaim<'_>) -> String {
    let held = judged.parts.iter().filter_map(|(_, finding)| {
        let (published, ours) = (finding.published?, finding.parts.first()?);
        let (published, ours) = (number(published), number(ours.value));
        Some(format!("published {published}, here {ours}"))
    });
    let held: Vec<String> = held.collect();
    match (held.is_empty(), judged.parts.len()) {
        (false, _) => held.join("; "),
        (true, 1) => "1 test without a published number".to_owned(),
        (true, count) => format!("{count} tests without published numbers"),
    }
}

#[cfg(test)]
mod tests {
    use crate::experiments::claim::Rules;

    use super::*;
    use crate::experiments::cells::{CellId, ExperimentResults, RunSample};
    use crate::experiments::experiment::{self, Experiment};
    use crate::experiments::files::Files;
    use crate::experiments::judge_all;

    const EXPERIMENT: &str = "
        [experiment]
        document = \"002\"
        title = \"t\"
        source = \"Table I\"
        seeds = 3
        [arm.a]
        policy = \"fifo\"
        [arm.b]
        policy = \"mlfq\"
        [runs.r]
        workload = \"l.toml\"
        [metric.m]
        value = \"machine.switches\"
        [[statement]]
        id = \"C2\"
        [[statement.test]]
        kind = \"every\"
        runs = \"r\"
        metric = \"m\"
        arm = \"a\"
        low = 0
        [[statement]]
        id = \"C10\"
        [[statement.test]]
        kind = \"ratio\"
        runs = \"r\"
        metric = \"m\"
        arm = \"b\"
        base = \"a\"
        published = 0.85
    ";

    fn experiments() -> [Experiment; 1] {
        let files = Files::of_texts(&[
            (
                "statements.toml",
                "[C2]\ndocument = \"002\"\ntext = \"two\"\n\
                 [C10]\ndocument = \"002\"\ntext = \"ten\"\n",
            ),
            ("x/experiment.toml", EXPERIMENT),
            ("x/expected.csv", "place,runs,at,arm,metric,value,note\n"),
            (
                "x/l.toml",
                "[workload]\nname = \"l\"\nstop = \"duration:1s\"\n[task.t]\ndo = \"run(inf)\"\n",
            ),
        ]);
        [experiment::read(&files, "x", &crate::machines::ProgramFiles).expect("an experiment")]
    }

    /// Results whose `b` has this ratio to `a`.
    fn results(ratio: f64) -> [ExperimentResults; 1] {
        let mut results = ExperimentResults::default();
        for (arm, value) in [(0, 100.0), (1, 100.0 * ratio)] {
            let sample = RunSample {
                numbers: BTreeMap::from([("machine.switches".to_owned(), value)]),
                ..RunSample::default()
            };
            let id = CellId {
                set: 0,
                arm,
                point: 0,
            };
            results.cells.insert(id, vec![sample; 3]);
        }
        [results]
    }

    #[test]
    fn each_machine_has_a_line_for_what_it_says_of_a_statement() {
        let experiments = experiments();
        let of_machines = [("sim", results(0.8)), ("vm", results(0.9))];
        let rules = Rules {
            quick: true,
            ..Rules::default()
        };
        let pages: Vec<Page<'_>> = of_machines
            .iter()
            .map(|(machine, results)| Page {
                machine,
                experiments: &experiments,
                results,
                judged: judge_all(&experiments, results, machine, &rules),
                charts: vec![Vec::new()],
                rules: &rules,
                calibration: "",
            })
            .collect();
        let lines: Vec<String> = of(&pages)
            .into_iter()
            .flat_map(|said| {
                let id = said.id;
                let by = said.by.into_iter();
                by.map(move |(machine, judged)| format!("{id} {machine}: {}", numbers(judged)))
            })
            .collect();
        assert_eq!(
            lines,
            [
                "C2 sim: 1 test without a published number",
                "C2 vm: 1 test without a published number",
                "C10 sim: published 0.85, here 0.8",
                "C10 vm: published 0.85, here 0.9",
            ]
        );
    }
}
