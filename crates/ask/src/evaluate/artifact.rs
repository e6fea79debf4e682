//! What a program reads that writes the next candidate: what to change, in at most 4 KB.

use std::fmt::Write as _;

use super::score::WORSE;
use super::{Breach, Evaluation};

/// Most bytes.
pub const ARTIFACT_MAX: usize = 4096;

/// The text.
#[must_use]
pub fn text(evaluation: &Evaluation) -> String {
    let mut text = String::new();
    let score = evaluation.combined();
    // Writing into a text does not fail.
    let _ = if evaluation.is_refused() {
        let stage = evaluation.stage.word();
        writeln!(text, "Refused at the stage `{stage}`. Score {score}.")
    } else {
        let percent = percent(score);
        writeln!(text, "Score {score:.4}: {percent} against the baseline.")
    };
    for breach in &evaluation.breaches {
        text += &broken(breach);
    }
    text += &by_load(evaluation);
    text += &by_goal(evaluation);
    cut(text)
}

/// A log ratio as people read it.
#[must_use]
pub fn percent(ratio: f64) -> String {
    format!("{:+.1} %", (libm::exp(ratio) - 1.0) * 100.0)
}

fn broken(breach: &Breach) -> String {
    let limit = breach.limit.word();
    let load = breach.load.as_ref();
    let load = load.map(|it| format!(" under {it}")).unwrap_or_default();
    let [broken, all] = breach.draws;
    let draws = match all {
        0 => String::new(),
        all => format!(" in {broken} of {all} runs"),
    };
    let (words, advice) = (breach.words.trim_end(), breach.advice());
    format!("\nLimit `{limit}`{load}{draws}: {words}\n{advice}\n")
}

/// The loads from the worst to the best.
fn by_load(evaluation: &Evaluation) -> String {
    let mut loads: Vec<_> = evaluation.scored.iter().flat_map(|it| &it.loads).collect();
    if loads.is_empty() {
        return String::new();
    }
    loads.sort_by(|a, b| a.score[0].total_cmp(&b.score[0]));
    let mut text = "\nLoads, the worst first:\n".to_owned();
    for load in loads {
        let percent = percent(load.score[0]);
        let worse = if load.is_worse {
            format!(", shown worse by more than {:.0} %", WORSE * 100.0)
        } else {
            String::new()
        };
        let _ = writeln!(text, "{}: {percent}{worse}", load.load);
    }
    text
}

/// The goals at which the candidate is worse, the worst first.
fn by_goal(evaluation: &Evaluation) -> String {
    let worse = evaluation.metrics.iter().filter(|it| it.gain[2] < 0.0);
    let mut worse: Vec<_> = worse.collect();
    if worse.is_empty() {
        return String::new();
    }
    worse.sort_by(|a, b| a.gain[0].total_cmp(&b.gain[0]));
    let mut text = "\nWorse than the baseline at:\n".to_owned();
    for metric in worse {
        let percent = percent(metric.gain[0]);
        let _ = writeln!(text, "{} of {}: {percent}", metric.goal, metric.load);
    }
    text
}

/// Whole lines, as many as there is room for.
fn cut(text: String) -> String {
    if text.len() <= ARTIFACT_MAX {
        return text;
    }
    const REST: &str = "...\n";
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        let room = ARTIFACT_MAX - REST.len() - kept.len();
        if line.len() > room {
            let mut end = room.min(line.len());
            while !line.is_char_boundary(end) {
                end -= 1;
            }
            kept += &line[..end];
            break;
        }
        kept += line;
    }
    kept + REST
}

#[cfg(test)]
mod tests {
    use super::super::limits::LimitKind;
    use super::super::{Cost, Stage};
    use super::*;

    fn refused(words: &str) -> Evaluation {
        Evaluation {
            candidate: "c".to_owned(),
            object: None,
            stage: Stage::Compile,
            breaches: vec![Breach {
                limit: LimitKind::Compiles,
                load: None,
                draws: [0, 0],
                words: words.to_owned(),
                advice: None,
                finding: None,
                case: None,
            }],
            scored: None,
            metrics: Vec::new(),
            cost: Cost::default(),
        }
    }

    #[test]
    fn a_refusal_says_what_to_change() {
        let said = text(&refused("c.bpf.c:3:1: error: no such thing"));
        assert!(said.contains("`compiles`: c.bpf.c:3:1: error"), "{said}");
        assert!(
            said.ends_with("Correct what the compiler names.\n"),
            "{said}"
        );
    }

    #[test]
    fn no_text_is_longer_than_its_limit_whatever_the_candidate_makes_the_compiler_say() {
        for words in ["ä".repeat(10_000), "a line\n".repeat(10_000)] {
            let said = text(&refused(&words));
            assert!(said.len() <= ARTIFACT_MAX, "{}", said.len());
            assert!(said.ends_with("...\n") && said.len() > ARTIFACT_MAX - 20);
        }
    }
}
