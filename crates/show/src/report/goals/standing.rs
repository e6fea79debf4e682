//! Who does best, in a sentence or two: with whom that policy ties, where it is clearly worse, and
//! what is not ranked.

use stats::compare::{Better, Set};

use super::{ALL, Found, Places, ends, listed, sentence, shown};

/// What two values must differ by, as a part of the better one, to be called a trade-off.
const CLEARLY: f64 = 0.1;

/// Who does best and who does worst, with an example of what that is; and what is not ranked.
pub(super) fn short(found: &[Found<'_>], sets: &[Set], places: &[Places]) -> String {
    if let [only] = sets {
        if found.iter().all(|it| it.values[0].is_none()) {
            return format!("{} came to no result.", only.arm);
        }
        let told = found
            .iter()
            .map(|it| format!("{}: {}", it.goal.title(), shown(it, 0)));
        let told = told.collect::<Vec<_>>().join("; ");
        let grown = grown(found).map_or_else(String::new, |it| format!(" {it}"));
        return format!("Under {}: {told}.{grown}", only.arm);
    }
    if found.is_empty() {
        return "No policy came to a result.".to_owned();
    }
    let best = best_of(found, sets, places);
    let trade_off = best
        .first()
        .and_then(|it| trade_off((found, places), sets, *it));
    let (loss, lost) = trade_off.unzip();
    let said = [
        Some(ranked(found, sets, places)),
        loss,
        unranked(found, sets, lost),
        grown(found),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The policies that are first at most of what can be ranked.
pub(super) fn best_of(found: &[Found<'_>], sets: &[Set], places: &[Places]) -> Vec<usize> {
    standing(&known(found, sets, places), sets.len()).0.0
}

/// A goal, and who is first at it.
type Known<'a> = (&'a Found<'a>, &'a [usize]);

/// What can be ranked. Of more work nobody knows whether it is good, what all do alike tells
/// nobody apart, and a figure that grows with the duration says nothing of a policy.
fn known<'a>(found: &'a [Found<'a>], sets: &[Set], places: &'a [Places]) -> Vec<Known<'a>> {
    let firsts = places.iter().map(|it| it.firsts.as_slice());
    let known = found.iter().zip(firsts);
    let known = known.filter(|(it, firsts)| it.is_ranked() && firsts.len() < sets.len());
    known.collect()
}

/// What differs and has no good end, so that a reader does not take the ranking for all of it.
/// What is called `told` already is left out.
fn unranked(found: &[Found<'_>], sets: &[Set], told: Option<&Found<'_>>) -> Option<String> {
    let differs = |it: &&Found<'_>| {
        let (most, least) = ends(it);
        let is_told = told.is_some_and(|told| told.goal.tested == it.goal.tested);
        it.goal.better == Better::Neither && !is_told && it.text(most) != it.text(least)
    };
    let mut all = found.iter().filter(differs);
    let first = all.next()?;
    let said = format!("{} ({})", first.goal.title(), sentence(first, sets, &[]));
    Some(match all.count() {
        0 => format!("Not ranked: {said}."),
        more => format!("Not ranked: {said}, and {more} more."),
    })
}

/// Of which goals no verdict is made, because their figures grow with the duration.
fn grown(found: &[Found<'_>]) -> Option<String> {
    let grown = found.iter().filter(|it| !it.grown.is_empty());
    let titles: Vec<String> = grown.map(|it| it.goal.title()).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let grows = match titles.as_slice() {
        [] => return None,
        [_] => "this figure grows",
        _ => "these figures grow",
    };
    Some(format!(
        "No verdict on {}: {grows} with the duration, because work came faster than it was done.",
        listed(&titles)
    ))
}

/// Where the best policy is clearly worse than another, most of all at what it does less of.
fn trade_off<'a>(
    (found, places): (&'a [Found<'a>], &[Places]),
    sets: &[Set],
    best: usize,
) -> Option<(String, &'a Found<'a>)> {
    let loss = |it: &Found<'_>, places: &Places| {
        let (own, top) = (it.values[best]?, ends(it).0?);
        let loss = (own - top).abs() / own.abs().max(top.abs());
        let is_clear = places.behind.contains(&best) && loss >= CLEARLY;
        (it.grown.is_empty() && is_clear).then_some(loss)
    };
    let all = found.iter().zip(places);
    let all = all.filter_map(|(it, places)| Some((it, loss(it, places)?)));
    let (most, _) = all.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let at = (0..sets.len()).find(|at| most.values[*at] == ends(most).0)?;
    let does = match most.goal.better {
        Better::Lower => "worse at",
        Better::Higher | Better::Neither => "less of",
    };
    let said = format!(
        "But {} does {does} {}: {} against {} under {}.",
        sets[best].arm,
        most.goal.title(),
        shown(most, best),
        shown(most, at),
        sets[at].arm,
    );
    Some((said, most))
}

/// Who does best and who does worst at what has a good end.
fn ranked(found: &[Found<'_>], sets: &[Set], places: &[Places]) -> String {
    let known = known(found, sets, places);
    if known.is_empty() {
        let grows = found.iter().any(|it| !it.grown.is_empty());
        let alike = found.iter().any(Found::is_ranked);
        return match (grows, alike) {
            (true, false) => "Nothing can be ranked.".to_owned(),
            _ => "All policies do alike at what this load is for.".to_owned(),
        };
    }
    let ((best, count), mut worst) = standing(&known, sets.len());
    worst.retain(|at| !best.contains(at));
    let called = |at: &[usize]| {
        let names: Vec<&str> = at.iter().map(|at| sets[*at].arm.as_str()).collect();
        (listed(&names), if names.len() == 1 { "does" } else { "do" })
    };
    let (who, does) = called(&best);
    let all = known.len();
    let mut said = match (count, all) {
        (_, 1) => format!("{who} {does} best at the one thing that can be ranked"),
        (2, 2) => format!("{who} {does} best at both things that can be ranked"),
        (count, all) if count == all => {
            format!("{who} {does} best at all {all} things that can be ranked")
        }
        (count, all) => {
            let each = if best.len() > 1 { "each " } else { "" };
            format!("{who} {does} best: {each}first at {count} of {all} things that can be ranked")
        }
    };
    said += &tied(&known, sets, &best);
    said += ".";
    let (Some(&winner), Some(&loser)) = (best.first(), worst.first()) else {
        return said;
    };
    let example = known.iter().find(|(it, firsts)| {
        let is_worst = shown(it, loser) != shown(it, winner);
        firsts.contains(&winner) && is_worst && it.values[loser].is_some()
    });
    let (who, does) = called(&worst);
    said += &format!(" {who} {does} worst.");
    if let Some((it, _)) = example {
        let [winner, loser] = [winner, loser].map(|at| (&sets[at].arm, shown(it, at)));
        let of = match it.goal.of.as_str() {
            ALL => String::new(),
            of => format!(" of {of}"),
        };
        said += &format!(
            " For example, {}{of}: {} under {} and {} under {}.",
            it.goal.what, loser.1, loser.0, winner.1, winner.0
        );
    }
    said
}

/// With whom the best policy shares first places, and how many.
fn tied(known: &[Known<'_>], sets: &[Set], best: &[usize]) -> String {
    let [best] = best else {
        return String::new();
    };
    let shared = known
        .iter()
        .filter(|(_, firsts)| firsts.len() > 1 && firsts.contains(best));
    let shared: Vec<&Known<'_>> = shared.collect();
    let with = |at: &usize| *at != *best && shared.iter().any(|(_, firsts)| firsts.contains(at));
    let others = (0..sets.len()).filter(with);
    let others: Vec<&str> = others.map(|at| sets[at].arm.as_str()).collect();
    let firsts = known.iter().filter(|(_, firsts)| firsts.contains(best));
    let firsts = firsts.count();
    match (shared.len(), others.len()) {
        (0, _) => String::new(),
        // The names of many say less than the lines about each thing.
        (count, 3..) if count == firsts => ", at each as well as others".to_owned(),
        (count, 3..) => format!(", at {count} of them as well as others"),
        (count, _) => format!(", at {count} of them alike with {}", listed(&others)),
    }
}

/// Which of so many policies are first most often, and how often that is; and which are last most
/// often.
fn standing(known: &[Known<'_>], policies: usize) -> ((Vec<usize>, usize), Vec<usize>) {
    let is_last = |it: &Found<'_>, at: usize| {
        let (_, worst) = ends(it);
        it.values[at].is_some() && it.text(it.values[at]) == it.text(worst)
    };
    let mut first = vec![0_usize; policies];
    let mut last = vec![0_usize; policies];
    for (it, firsts) in known {
        for at in 0..policies {
            let is_first = firsts.contains(&at);
            first[at] += usize::from(is_first);
            last[at] += usize::from(!is_first && is_last(it, at));
        }
    }
    let most = |of: &[usize]| of.iter().copied().max().unwrap_or(0);
    let names = |of: &[usize]| -> Vec<usize> {
        let most = most(of);
        (0..policies)
            .filter(|at| most > 0 && of[*at] == most)
            .collect()
    };
    ((names(&first), most(&first)), names(&last))
}

#[cfg(test)]
mod tests {
    use super::super::Goal;
    use super::*;
    use stats::compare::Measure;

    #[test]
    fn who_shares_the_best_place_does_not_do_worst() {
        let goal = |what: &str| Goal {
            of: ALL.to_owned(),
            what: what.to_owned(),
            shown: what.to_owned(),
            tested: what.to_owned(),
            better: Better::Lower,
        };
        let goals = [goal("waits"), goal("misses")];
        let at = |goal, values: [f64; 2]| Found {
            goal,
            measure: Measure::Count,
            values: values.map(Some).to_vec(),
            grown: Vec::new(),
        };
        let found = [at(&goals[0], [1.0, 2.0]), at(&goals[1], [2.0, 1.0])];
        let sets = ["a", "b"].map(|arm| Set::new(arm, "here", "simulated"));
        let places = [0, 1].map(|first| Places {
            firsts: vec![first],
            behind: Vec::new(),
        });
        assert_eq!(
            ranked(&found, &sets, &places),
            "a and b do best: each first at 1 of 2 things that can be ranked."
        );
    }

    #[test]
    fn many_who_share_the_best_place_are_not_listed() {
        let goal = Goal {
            of: ALL.to_owned(),
            what: "waits".to_owned(),
            shown: "waits".to_owned(),
            tested: "waits".to_owned(),
            better: Better::Lower,
        };
        let found = [0, 1].map(|_| Found {
            goal: &goal,
            measure: Measure::Count,
            values: [1.0, 1.0, 1.0, 1.0, 2.0].map(Some).to_vec(),
            grown: Vec::new(),
        });
        let sets = ["a", "b", "c", "d", "e"].map(|arm| Set::new(arm, "here", "simulated"));
        let said = |firsts: [&[usize]; 2]| {
            let places = firsts.map(|firsts| Places {
                firsts: firsts.to_vec(),
                behind: Vec::new(),
            });
            ranked(&found, &sets, &places)
        };
        let all = said([&[0, 1, 2], &[0, 3]]);
        let want = "a does best at both things that can be ranked, at each as well as others. \
                    e does worst.";
        assert!(all.starts_with(want), "{all}");
        let some = said([&[0, 1, 2, 3], &[0]]);
        let want = "a does best at both things that can be ranked, at 1 of them as well as others.";
        assert!(some.starts_with(want), "{some}");
    }
}
