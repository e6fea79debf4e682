//! What people call a metric, and in which unit they read it: one name and one unit wherever the
//! same thing is told.

use super::Set;

/// A metric as people read it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Named {
    /// What it is called: `pointer: late moves`.
    pub title: String,
    /// Of missed deadlines, if all runs had about as many: the share that one is, in millionths. A
    /// share can be read without knowing how many there were.
    pub share_of_one: Option<f64>,
}

impl Named {
    /// The name of `metric` in these sets, which are compared.
    #[must_use]
    pub fn of(metric: &str, sets: [&Set; 2]) -> Self {
        let title = sets.iter().find_map(|set| set.titles.get(metric));
        Self {
            title: title.map_or_else(|| title_of(metric), Clone::clone),
            share_of_one: share_of_one(metric, sets),
        }
    }
}

/// `late move` becomes `late moves`; words that are no nouns stay.
#[must_use]
pub fn plural(word: &str) -> String {
    match word {
        "late" | "missed" => word.to_owned(),
        _ => format!("{word}s"),
    }
}

/// What a metric is called of which no load says more.
#[must_use]
pub fn title_of(metric: &str) -> String {
    let words: Vec<&str> = metric.split('.').collect();
    let of = |group: &str, name: &str| {
        if group == name {
            group.to_owned()
        } else {
            format!("{group} {name}")
        }
    };
    match words.as_slice() {
        ["machine", "elapsed_ns"] => "time to end".to_owned(),
        ["time_ns"] => "time of the command".to_owned(),
        ["deadline", group, name, "missed" | "missed_ppm"] => {
            format!("{}: missed deadlines", of(group, name))
        }
        ["counter", group, name, "total"] => format!("{group}: {name}"),
        ["span", group, name, column] => match column.strip_prefix("length_ns_") {
            Some(figure) => format!("{group}: {name} {figure}"),
            None => metric.to_owned(),
        },
        ["all", column] => figure(column).unwrap_or_else(|| metric.to_owned()),
        [group, column] if *group != "machine" => {
            figure(column).map_or_else(|| metric.to_owned(), |it| format!("{group}: {it}"))
        }
        _ => metric.to_owned(),
    }
}

/// `wakeup_ns_p99` is `wakeup p99`.
fn figure(column: &str) -> Option<String> {
    let (what, figure) = column.split_once("_ns_")?;
    Some(format!("{what} {figure}"))
}

/// How much the numbers of deadlines of runs may differ for one share to stand for one deadline.
const DIFFERENCE_MAX: f64 = 0.25;

/// The share that one missed deadline is of the mean number of deadlines of a run.
fn share_of_one(metric: &str, sets: [&Set; 2]) -> Option<f64> {
    let name = metric.strip_prefix("deadline.")?.strip_suffix(".missed")?;
    let (mut counts, mut all_missed) = (Vec::new(), 0.0);
    for set in sets {
        let met = set.find(&format!("deadline.{name}.met"))?;
        let missed = set.find(metric)?;
        if met.values.len() != missed.values.len() {
            return None;
        }
        all_missed += missed.values.iter().sum::<f64>();
        counts.extend(met.values.iter().zip(&missed.values).map(|(a, b)| a + b));
    }
    let least = counts.iter().copied().fold(f64::INFINITY, f64::min);
    let most = counts.iter().copied().fold(0.0, f64::max);
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    // None is a share of 0, of however many.
    let is_one_share = all_missed == 0.0 || most - least <= mean * DIFFERENCE_MAX;
    (least > 0.0 && is_one_share).then_some(1e6 / mean)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compare::Reported;

    fn set(met: &[u64], missed: &[u64]) -> Set {
        let mut set = Set::new("fifo", "", "");
        for (met, missed) in met.iter().zip(missed) {
            let report = json!({"deadlines": [
                {"group": "ui", "deadline": "frame", "word": "late frame",
                 "met": met, "missed": missed},
            ]});
            set.add_report(&Reported::of(&report), None);
        }
        set
    }

    #[test]
    fn a_deadline_is_called_what_its_load_calls_it_and_read_as_a_share() {
        let (one, other) = (set(&[90, 99], &[10, 1]), set(&[50], &[50]));
        let named = Named::of("deadline.ui.frame.missed", [&one, &other]);
        assert_eq!(named.title, "ui: late frames");
        assert_eq!(named.share_of_one, Some(1e4));
        let share = Named::of("deadline.ui.frame.missed_ppm", [&one, &other]);
        assert_eq!((share.title, share.share_of_one), (named.title, None));
        // Of runs with other numbers of deadlines one is no certain share.
        let longer = set(&[150], &[50]);
        let named = Named::of("deadline.ui.frame.missed", [&one, &longer]);
        assert_eq!(named.share_of_one, None);
        let [none, none_of_more] = [set(&[100], &[0]), set(&[300], &[0])];
        let named = Named::of("deadline.ui.frame.missed", [&none, &none_of_more]);
        assert_eq!(named.share_of_one, Some(5e3));
    }

    #[test]
    fn metrics_have_names_that_people_use() {
        for (metric, title) in [
            ("deadline.ui.frame.missed", "ui frame: missed deadlines"),
            ("span.make.make.length_ns_p99", "make: make p99"),
            ("counter.job.compiled.total", "job: compiled"),
            ("machine.elapsed_ns", "time to end"),
            ("all.wakeup_ns_p99", "wakeup p99"),
            ("pointer.delay_ns_mean", "pointer: delay mean"),
            ("machine.switches", "machine.switches"),
        ] {
            assert_eq!(title_of(metric), title);
        }
    }
}
