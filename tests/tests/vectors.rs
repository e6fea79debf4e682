//! Every scenario of `golden/vectors` happens as its file says, whatever executes the policy.
//!
//! The expected parts were written from the kernel's rules, not from the simulator. With
//! `UPDATE_GOLDEN=1` the files are rewritten; `git diff` is the review.

use std::fs;
use std::path::{Path, PathBuf};

use runslice_tests::collect::Collector;
use runslice_tests::scenario::Scenario;
use runslice_tests::simulate;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/vectors");
    let entries = fs::read_dir(folder).expect("the folder of vectors");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "scenario"));
    files.sort();
    files
}

/// Runs the scenario of one file; what differs, in words.
fn check(path: &Path, update: bool) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let scenario = Scenario::parse(&text)?;
    let mut collector = Collector::default();
    let spec = scenario.spec()?;
    let summary = simulate::on_both(&spec, &mut collector).map_err(|error| error.to_string())?;
    let actual = scenario.actual(&collector, &summary)?;
    if actual == scenario.expected {
        return Ok(());
    }
    if update {
        let text = scenario.with_expected(&actual);
        return fs::write(path, text).map_err(|error| error.to_string());
    }
    let differs = scenario
        .expected
        .iter()
        .zip(&actual)
        .find(|(want, got)| want != got);
    let (want, got) = differs.ok_or("parts are missing")?;
    let exit = &summary.exit;
    let exit = format!("{:?} {} {:?}", exit.kind, exit.message, exit.fault);
    Err(format!(
        "{}: expected | happened ({exit})\n{}",
        want.0,
        beside(&want.1, &got.1)
    ))
}

fn beside(want: &[String], got: &[String]) -> String {
    let same = want
        .iter()
        .zip(got)
        .take_while(|(want, got)| want == got)
        .count();
    let line = |lines: &[String], at: usize| lines.get(at).cloned().unwrap_or_default();
    let lines = (0..want.len().max(got.len())).map(|at| {
        let mark = if at == same { "  <- differs" } else { "" };
        format!("    {:<46} | {}{mark}\n", line(want, at), line(got, at))
    });
    lines.collect()
}

#[test]
fn every_vector_happens_as_its_file_says() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let files = files();
    assert!(files.len() >= 40, "only {} vectors", files.len());
    let mut failures = String::new();
    for path in &files {
        if let Err(what) = check(path, update) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            failures += &format!("{name}: {what}\n");
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// A vector whose expected part is wrong in any line must fail: the runner compares all of it.
#[test]
fn a_wrong_line_anywhere_in_a_vector_is_noticed() {
    let path = files()
        .into_iter()
        .find(|path| path.ends_with("v06_two_hogs_take_turns.scenario"));
    let text = fs::read_to_string(path.expect("vector 6")).expect("vector 6 is readable");
    let scenario = Scenario::parse(&text).expect("vector 6");
    let mut collector = Collector::default();
    let spec = scenario.spec().expect("vector 6");
    let summary = sim::run(&spec, &mut collector).expect("vector 6");
    for at in 0..scenario.expected[0].1.len() {
        let mut wrong = scenario.clone();
        wrong.expected[0].1.remove(at);
        let actual = wrong.actual(&collector, &summary).expect("known parts");
        assert_ne!(actual, wrong.expected, "line {at}");
    }
}
