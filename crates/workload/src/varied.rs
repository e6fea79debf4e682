//! A workload as computers do it: never twice the same to the nanosecond.

use model::Nanos;

use crate::{Amount, DRAW_MAX, Dist, Operation, Step, Workload};

impl Workload {
    /// The same load, in which each stretch of CPU time that the file gives as one number is up to
    /// one part of `parts` longer or shorter, evenly drawn each time. Stretches of fewer than
    /// `parts` nanoseconds, and those that are drawn anyway, stay.
    ///
    /// Fixed lengths lie at edges that no computer has: two tasks that always meet, or work that
    /// always ends right before its quantum does.
    ///
    /// # Panics
    /// If `parts` is 0.
    #[must_use]
    pub fn varied(&self, parts: u64) -> Self {
        let mut load = self.clone();
        for group in &mut load.groups {
            vary(&mut group.body, parts);
        }
        load
    }
}

fn vary(steps: &mut [Step], parts: u64) {
    for step in steps {
        match &mut step.op {
            Operation::Run(Some(Amount { dist, .. })) => vary_span(dist, parts),
            Operation::Loop { body, .. }
            | Operation::While { body, .. }
            | Operation::Attempt {
                otherwise: body, ..
            } => vary(body, parts),
            Operation::If {
                then, otherwise, ..
            } => {
                vary(then, parts);
                vary(otherwise, parts);
            }
            Operation::Choose(arms) => arms.iter_mut().for_each(|(_, arm)| vary(arm, parts)),
            _ => {}
        }
    }
}

fn vary_span(dist: &mut Dist, parts: u64) {
    let Dist::Const(span) = *dist else { return };
    let part = Nanos::new(span.get() / parts);
    if !part.is_zero() {
        let most = (span + part).min(DRAW_MAX);
        *dist = Dist::Uniform(Nanos::new(span.get() - part.get()), most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(operations: &str) -> Workload {
        let text = format!("[workload]\nname = \"load\"\n[task.t]\ndo = \"{operations}\"\n");
        Workload::parse(&text, "load.toml").unwrap()
    }

    #[test]
    fn fixed_work_is_drawn_around_its_length_wherever_it_stands() {
        let between = |low, high| format!("run(uniform({low}us, {high}us))");
        let run = between(990, 1010);
        for (before, after) in [
            ("run(1ms)", run.clone()),
            ("loop(3)[ run(1ms) ]", format!("loop(3)[ {run} ]")),
            ("if(1)[ run(1ms) ] else [ run(2ms) ]", {
                format!("if(1)[ {run} ] else [ {} ]", between(1980, 2020))
            }),
            (
                "choose(1: run(1ms), 2: yield)",
                format!("choose(1: {run}, 2: yield)"),
            ),
            ("while(0)[ run(1ms) ]", format!("while(0)[ {run} ]")),
        ] {
            assert_eq!(load(before).varied(100), load(&after), "{before}");
        }
    }

    #[test]
    fn what_is_drawn_endless_short_or_no_work_stays() {
        let same = "run(exp(1ms)), run(99ns), run(0ns), sleep(1ms), exec(1ms), run(inf)";
        assert_eq!(load(same).varied(100), load(same));
    }

    #[test]
    fn the_longest_work_stays_within_what_can_be_drawn() {
        let long = load("run(8640000s)").varied(100);
        let low = Nanos::from_secs(8_640_000 - 86_400);
        let want = Operation::Run(Some(Amount::once(Dist::Uniform(low, DRAW_MAX))));
        assert_eq!(long.groups[0].body[0].op, want);
    }
}
