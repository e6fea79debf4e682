//! Lines of a policy's own, where a header's function or two callbacks decided.

use std::fs;
use std::path::Path;

use explain::why::{Act, Fault, Observer};
use model::Nanos;
use runslice_tests::run::Run;

const POLICY: &str = "last-first";

/// The line of the policy that has this comment.
fn marked(comment: &str) -> u32 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("policies/{POLICY}.bpf.c"));
    let text = fs::read_to_string(path).expect("the policy is there");
    let at = text.lines().position(|line| line.contains(comment));
    u32::try_from(at.expect("a marked line") + 1).expect("a short file")
}

fn place(act: Option<&Act>) -> (&str, &str, u32) {
    let act = act.expect("a line is named");
    let place = act.place.as_ref().expect("the object has lines");
    let file = place.file.as_deref().unwrap_or_default();
    let file = file.rsplit('/').next().unwrap_or_default();
    (act.callback, file, place.line)
}

/// The wrapper and the iterator would be the innermost lines; neither says who erred.
#[test]
fn a_wrong_order_names_the_insert_of_the_policy_and_the_choice() {
    let run = Run {
        until: Nanos::from_secs(8),
        ..Run::new(POLICY, "[task.hog]\ncount = 4\ndo = \"run(inf)\"\n")
    };
    let mut observer = Observer::new(0, None);
    let _summary = run.feed(&mut observer);
    let finding = observer.finding().expect("the first ones starve");
    assert_eq!(finding.fault, Fault::PassedOver, "{finding:?}");
    let file = "last-first.bpf.c";
    let inserted = place(finding.culprit.as_ref());
    assert_eq!(inserted, ("enqueue", file, marked("/* the insert */")));
    let chosen = place(finding.also.as_ref());
    assert_eq!(chosen, ("dispatch", file, marked("/* the choice */")));
}
