//! Makes questions of a statement's tests and the runs' values.

use crate::claim::{Cell, Question, Side, Tolerance};
use toml::Spanned;

use model::file::Source;
use model::{span, suggest};
use stats::probe::{Form, Steps, Wanted};

use super::cells::{CellId, Results, Sequence};
use super::draft::{self, Base, Other, Test};
use super::experiment::{Experiment, Made, Point, Statement};
use crate::error::{Error, Result, wrong};

/// Every kind of test with what it must have; experiments/README.md describes them.
const KINDS: [(&str, &[&str]); 17] = [
    ("ratio", &["runs", "metric", "arm", "base"]),
    ("equal", &["runs", "metric", "arm", "base"]),
    ("within", &["runs", "metric", "arm"]),
    ("every", &["runs", "metric", "arm"]),
    ("slope", &["runs", "metric", "arm", "x"]),
    ("flat", &["runs", "metric", "arm"]),
    ("rises", &["runs", "metric", "arm", "x"]),
    ("falls", &["runs", "metric", "arm", "x"]),
    ("order", &["runs", "metric", "arms"]),
    ("lowest", &["runs", "metric", "arm"]),
    ("highest", &["runs", "metric", "arm"]),
    ("lowest-at", &["runs", "metric", "arm", "x", "among"]),
    ("highest-at", &["runs", "metric", "arm", "x", "among"]),
    ("crosses", &["runs", "metric", "arm", "base", "x", "among"]),
    ("agree", &["runs", "metric", "arm", "base"]),
    ("trace", &["runs", "arm", "probe", "want"]),
    ("untestable", &["why"]),
];

/// Farthest factor of a ratio from the published one that still counts as the same: for throughput
/// and turnaround; longest waits may say 1.5.
const MARGIN: f64 = 1.15;
/// Farthest that equals may be apart.
const EQUAL: f64 = 0.03;

/// A test's questions, by name.
pub type Asked = Vec<(String, Question)>;

/// The kinds of machine.
pub const MACHINES: [&str; 3] = ["sim", "vm", "host"];

/// Puts the tests of a statement as questions about `results`, which come from a `machine` of that
/// kind; `quick` says that some runs were left out.
///
/// # Errors
/// What is wrong with a test, with file, line and column.
pub fn questions(
    experiment: &Experiment,
    statement: &Statement,
    results: &Results,
    machine: &str,
    quick: bool,
) -> Result<Asked> {
    let mut all = Asked::new();
    for test in &statement.tests {
        let asker = Asker {
            experiment,
            results,
            quick,
            test,
            source: Source {
                file: &experiment.file,
                text: &experiment.text,
            },
        };
        let asked = asker.ask(machine)?.into_iter();
        all.extend(asked.map(|(name, question)| (name, marked(test, question))));
    }
    // Names number the resamples, and tell parts apart.
    for at in 0..all.len() {
        let same = all[..at]
            .iter()
            .filter(|(name, _)| *name == all[at].0)
            .count();
        if same > 0 {
            let number = same + 1;
            all[at].0 += &format!(" ({number})");
        }
    }
    for (name, _) in &mut all {
        *name = format!("{} {name}", statement.id).trim_end().to_owned();
    }
    Ok(all)
}

/// The question as the test marks it.
fn marked(test: &Test, question: Question) -> Question {
    match (&test.cannot_fail, question) {
        (None, question) | (_, question @ Question::NotTestable { .. }) => question,
        (Some(why), question) => Question::CannotFail {
            why: why.clone(),
            question: Box::new(question),
        },
    }
}

struct Asker<'a> {
    experiment: &'a Experiment,
    results: &'a Results,
    quick: bool,
    test: &'a Test,
    source: Source<'a>,
}

/// What the base of a ratio, or the test itself, names.
#[derive(Clone, Copy)]
struct Chosen<'a> {
    set: usize,
    arm: usize,
    metric: &'a str,
}

impl<'a> Asker<'a> {
    fn wrong(&self, what: impl std::fmt::Display) -> Error {
        wrong(&self.source, &self.test.kind, what)
    }

    /// The index of a name among all.
    fn find(
        &self,
        name: &Spanned<String>,
        kind: &str,
        all: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<usize> {
        let at = all.clone().position(|it| it == name.get_ref());
        at.ok_or_else(|| {
            let hint = suggest::hint(name.get_ref(), all);
            let what = format!("there is no {kind} `{}`: {hint}", name.get_ref());
            wrong(&self.source, name, what)
        })
    }

    fn set(&self, name: &Spanned<String>) -> Result<usize> {
        let all = self.experiment.sets.iter().map(|set| set.name.as_str());
        self.find(name, "runs", all)
    }

    fn arm(&self, name: &Spanned<String>) -> Result<usize> {
        let all = self.experiment.arms.iter().map(|arm| arm.name.as_str());
        self.find(name, "arm", all)
    }

    fn metric(&self, name: &Spanned<String>) -> Result<&'a str> {
        let all = self.experiment.metrics.iter().map(|it| it.name.as_str());
        let at = self.find(name, "metric", all)?;
        Ok(&self.experiment.metrics[at].name)
    }

    fn side(&self) -> Result<Option<Side>> {
        let Some(side) = &self.test.side else {
            return Ok(None);
        };
        match side.get_ref().as_str() {
            "above" => Ok(Some(Side::Above)),
            "below" => Ok(Some(Side::Below)),
            _ => Err(wrong(&self.source, side, "expected \"above\" or \"below\"")),
        }
    }

    /// What the test must have.
    fn check(&self) -> Result<()> {
        let kind = &self.test.kind;
        let needs = KINDS.iter().find(|(name, _)| name == kind.get_ref());
        let Some((_, needs)) = needs else {
            let hint = suggest::hint(kind.get_ref(), KINDS.iter().map(|(name, _)| *name));
            let what = format!("there is no kind of test `{}`: {hint}", kind.get_ref());
            return Err(self.wrong(what));
        };
        let test = self.test;
        for need in *needs {
            let there = match *need {
                "runs" => test.runs.is_some(),
                "metric" => test.metric.is_some(),
                "arm" => test.arm.is_some(),
                "arms" => test.arms.as_ref().is_some_and(|arms| arms.len() > 1),
                "base" => test.base.is_some(),
                "x" => test.x.is_some(),
                "among" => test.among.as_ref().is_some_and(|it| !it.is_empty()),
                "probe" => test.probe.is_some(),
                "want" => test.want.is_some(),
                _ => test.why.is_some(),
            };
            if !there {
                return Err(self.wrong(format!("a test of this kind needs `{need}`")));
            }
        }
        if let Some(margin) = test.margin.as_ref().filter(|it| *it.get_ref() <= 0.0) {
            return Err(wrong(&self.source, margin, "a margin is above 0"));
        }
        if let Some(within) = test.within.as_ref().filter(|_| kind.get_ref() != "trace") {
            let what = "`within` is for times of a trace; others have `margin`";
            return Err(wrong(&self.source, within, what));
        }
        Ok(())
    }

    fn ask(&self, machine: &str) -> Result<Asked> {
        self.check()?;
        let test = self.test;
        let name = test.name.clone().unwrap_or_default();
        for known in test.machines.iter().flatten() {
            self.find(known, "kind of machine", MACHINES.iter().copied())?;
        }
        let kind = test.kind.get_ref().as_str();
        if kind == "untestable" {
            let why = test.why.clone().unwrap_or_default();
            return Ok(vec![(name, Question::NotTestable { why })]);
        }
        if let Some(machines) = &test.machines
            && !machines.iter().any(|it| it.get_ref() == machine)
        {
            let names: Vec<_> = machines.iter().map(|it| it.get_ref().as_str()).collect();
            let more = test
                .why
                .as_ref()
                .map_or_else(String::new, |why| format!(": {why}"));
            let why = format!("needs --machine {}{more}", names.join(" or "));
            return Ok(vec![(name, Question::NotTestable { why })]);
        }
        let set = self.set(test.runs.as_ref().expect("checked"))?;
        if kind == "trace" {
            return self.traces(set, &name);
        }
        let chosen = Chosen {
            set,
            arm: match (&test.arm, &test.arms) {
                (Some(arm), _) => self.arm(arm)?,
                (None, Some(arms)) => self.arm(&arms[0])?,
                (None, None) => return Err(self.wrong("a test of this kind needs `arm`")),
            },
            metric: self.metric(test.metric.as_ref().expect("checked"))?,
        };
        self.check_has(chosen)?;
        let groups = self.groups(chosen)?;
        let several = groups.len() > 1;
        let mut asked = Asked::new();
        for points in groups {
            let question = self.question(kind, chosen, &points)?;
            let question = question.unwrap_or_else(|why| Question::Lacking { why });
            let mut name = name.clone();
            if several {
                let label = self.group_label(chosen, &points);
                name = format!("{name} {label}").trim().to_owned();
            }
            asked.push((name, question));
        }
        Ok(asked)
    }

    /// An arm that the runs do not have is a mistake of the file.
    fn check_has(&self, chosen: Chosen<'_>) -> Result<()> {
        let set = &self.experiment.sets[chosen.set];
        if set.arms.contains(&chosen.arm) {
            return Ok(());
        }
        let arm = &self.experiment.arms[chosen.arm].name;
        Err(self.wrong(format!("the runs `{}` have no arm `{arm}`", set.name)))
    }

    /// The points that the test is about, those together that one question has.
    fn groups(&self, chosen: Chosen<'_>) -> Result<Vec<Vec<usize>>> {
        let set = &self.experiment.sets[chosen.set];
        let mut points = self.select(chosen.set, &self.test.at)?;
        let kind = self.test.kind.get_ref().as_str();
        if let Some(x) = self.across(chosen.metric) {
            let names = set.points[points[0]].settings.iter();
            if !names.clone().any(|(name, _)| name == x) {
                let metric = chosen.metric;
                let what = format!("`{metric}` is over `{x}`, which these runs do not have");
                return Err(self.wrong(what));
            }
            // It is the same along `x`: one point is enough.
            let first = |point: &usize| {
                let along = set.along(*point, x);
                points.iter().find(|at| along.contains(at)) == Some(point)
            };
            points = points.iter().copied().filter(first).collect();
        }
        let Some(x) = &self.test.x else {
            return Ok(match kind {
                "every" | "flat" => vec![points],
                _ => points.into_iter().map(|point| vec![point]).collect(),
            });
        };
        let names = set
            .points
            .first()
            .into_iter()
            .flat_map(|it| it.settings.iter());
        self.find(x, "parameter", names.map(|(name, _)| name.as_str()))?;
        let rest = |at: usize| -> Vec<&(String, i64)> {
            let settings = set.points[at].settings.iter();
            settings.filter(|(name, _)| name != x.get_ref()).collect()
        };
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for point in points {
            match groups
                .iter_mut()
                .find(|group| rest(group[0]) == rest(point))
            {
                Some(group) => group.push(point),
                None => groups.push(vec![point]),
            }
        }
        for group in &mut groups {
            group.sort_by_key(|at| set.points[*at].get(x.get_ref()));
        }
        Ok(groups)
    }

    /// The parameter that a metric is taken over.
    fn across(&self, metric: &str) -> Option<&'a str> {
        match &self.experiment.metric(metric)?.made {
            Made::Across { x, .. } => Some(x),
            Made::Formula(_) => None,
        }
    }

    /// What tells one group of points from the others.
    fn group_label(&self, chosen: Chosen<'a>, points: &[usize]) -> String {
        let point = &self.experiment.sets[chosen.set].points[points[0]];
        let x = self.test.x.as_ref().map(|x| x.get_ref().as_str());
        point.label_without([x, self.across(chosen.metric)])
    }

    /// The points of a set that have these values.
    fn select(
        &self,
        set: usize,
        at: &std::collections::BTreeMap<Spanned<String>, draft::OneOrMore>,
    ) -> Result<Vec<usize>> {
        let points = &self.experiment.sets[set].points;
        for name in at.keys() {
            let names = points.first().into_iter().flat_map(|it| it.settings.iter());
            self.find(name, "parameter", names.map(|(name, _)| name.as_str()))?;
        }
        let is = |point: &Point| {
            at.iter().all(|(name, values)| {
                let have = point.get(name.get_ref());
                values.list().iter().any(|value| have == Some(*value))
            })
        };
        let found: Vec<usize> = (0..points.len()).filter(|it| is(&points[*it])).collect();
        match found.is_empty() {
            true => Err(self.wrong("no run is at the points of `at`")),
            false => Ok(found),
        }
    }

    /// The base's cell for a point of the arm's set: the same point unless the file says another.
    fn base(&self, chosen: Chosen<'a>, point: usize) -> Result<(Chosen<'a>, usize)> {
        let whole = self
            .test
            .base
            .as_ref()
            .expect("asked only where there is one");
        let placed = |name: &String| Spanned::new(whole.span(), name.clone());
        let other = match whole.get_ref() {
            Base::Arm(arm) => {
                let arm = self.arm(&placed(arm))?;
                let base = Chosen { arm, ..chosen };
                self.check_has(base)?;
                return Ok((base, point));
            }
            Base::Cell(other) => other,
        };
        let Other {
            runs,
            metric,
            arm,
            at,
        } = other;
        let (runs, metric, arm) = (
            runs.as_ref().map(placed),
            metric.as_ref().map(placed),
            arm.as_ref().map(placed),
        );
        let at = at
            .iter()
            .map(|(name, values)| (placed(name), values.clone()));
        let at: std::collections::BTreeMap<_, _> = at.collect();
        let base = Chosen {
            set: runs.map_or(Ok(chosen.set), |runs| self.set(&runs))?,
            arm: arm.map_or(Ok(chosen.arm), |arm| self.arm(&arm))?,
            metric: metric.map_or(Ok(chosen.metric), |it| self.metric(&it))?,
        };
        self.check_has(base)?;
        let own = &self.experiment.sets[chosen.set].points[point].settings;
        let wanted = |candidate: &Point| {
            candidate.settings.iter().all(|(name, value)| {
                match at.iter().find(|(key, _)| key.get_ref() == name) {
                    Some((_, values)) => values.list().contains(value),
                    // What the arm's set lacks is free.
                    None => own.iter().all(|(key, it)| key != name || it == value),
                }
            })
        };
        self.select(base.set, &at)?;
        let points = &self.experiment.sets[base.set].points;
        let found: Vec<usize> = (0..points.len())
            .filter(|it| wanted(&points[*it]))
            .collect();
        match found[..] {
            [one] => Ok((base, one)),
            [one, ..] if self.across(base.metric).is_some() => Ok((base, one)),
            [] => Err(self.wrong("no run is at the base's point")),
            _ => Err(self.wrong("several runs are at the base's point; say more in its `at`")),
        }
    }

    /// Why nothing is known of these runs whatever happened, if so.
    fn left_out(&self, set: usize) -> Option<String> {
        let set = &self.experiment.sets[set];
        let is_left_out = self.quick && !set.quick;
        is_left_out.then(|| format!("--quick leaves out the runs `{}`", set.name))
    }

    /// A cell's values; the inner error says what the runs lack.
    fn cell(&self, chosen: Chosen<'_>, point: usize) -> Result<Cell, String> {
        if let Some(why) = self.left_out(chosen.set) {
            return Err(why);
        }
        let id = CellId {
            set: chosen.set,
            arm: chosen.arm,
            point,
        };
        let metric = self.experiment.metric(chosen.metric).expect("was found");
        let name = Results::name(self.experiment, id, self.across(chosen.metric));
        let values = self.results.values(self.experiment, id, metric);
        let values = values.map_err(|why| format!("{name}: {why}"))?;
        Ok(Cell { name, values })
    }

    fn base_cell(&self, chosen: Chosen<'a>, point: usize) -> Result<Result<Option<Cell>, String>> {
        if self.test.base.is_none() {
            return Ok(Ok(None));
        }
        let (base, at) = self.base(chosen, point)?;
        let mut cell = self.cell(base, at);
        if let Ok(cell) = &mut cell
            && base.metric != chosen.metric
        {
            cell.name = format!("{} of {}", base.metric, cell.name);
        }
        Ok(cell.map(Some))
    }

    /// The cells of all arms but the test's.
    fn others(&self, chosen: Chosen<'a>, point: usize) -> Result<Result<Vec<Cell>, String>> {
        let arms = match &self.test.arms {
            Some(names) => names
                .iter()
                .map(|it| self.arm(it))
                .collect::<Result<Vec<_>, _>>()?,
            None => self.experiment.sets[chosen.set].arms.clone(),
        };
        let arms = arms.into_iter().filter(|arm| *arm != chosen.arm);
        Ok(arms
            .map(|arm| self.cell(Chosen { arm, ..chosen }, point))
            .collect())
    }

    /// The question about some points; the inner error says what the runs lack.
    fn question(
        &self,
        kind: &str,
        chosen: Chosen<'a>,
        points: &[usize],
    ) -> Result<Result<Question, String>> {
        let mut cells = Vec::new();
        for point in points {
            match (self.cell(chosen, *point), self.base_cell(chosen, *point)?) {
                (Ok(cell), Ok(base)) => cells.push((cell, base)),
                (Err(why), _) | (_, Err(why)) => return Ok(Err(why)),
            }
        }
        let test = self.test;
        let margin = test.margin.as_ref().map(|it| *it.get_ref());
        let (low, high) = (
            test.low.unwrap_or(f64::NEG_INFINITY),
            test.high.unwrap_or(f64::INFINITY),
        );
        let ties = test.ties.unwrap_or(0.0);
        let single = || cells[0].clone();
        let with_base = || {
            let (arm, base) = single();
            (arm, base.expect("checked"))
        };
        Ok(Ok(match kind {
            "ratio" => {
                let (arm, base) = with_base();
                return self.ratio(chosen, points[0], arm, base).map(Ok);
            }
            "equal" => {
                let (arm, base) = with_base();
                let margin = margin.unwrap_or(EQUAL);
                Question::Equal { arm, base, margin }
            }
            "agree" => {
                let (left, right) = with_base();
                let margin = margin.unwrap_or(EQUAL);
                Question::Agree {
                    left,
                    right,
                    margin,
                }
            }
            "within" => {
                let (cell, base) = single();
                let (low, high) = self.limits(low, high)?;
                Question::Within {
                    cell,
                    base,
                    low,
                    high,
                    published: test.published,
                }
            }
            "every" => {
                let (low, high) = self.limits(low, high)?;
                let cells = cells.into_iter().map(|(cell, _)| cell).collect();
                Question::Every { cells, low, high }
            }
            "slope" => Question::Slope {
                points: self.with_places(chosen, points, cells),
                log: test.log_y,
                low,
                high,
            },
            "flat" => Question::Flat {
                points: cells.into_iter().map(|(cell, _)| cell).collect(),
                margin: margin.unwrap_or(EQUAL),
            },
            "rises" | "falls" => Question::Monotone {
                points: cells,
                side: if kind == "rises" {
                    Side::Above
                } else {
                    Side::Below
                },
            },
            "order" => {
                let mut all = vec![single().0];
                match self.others(chosen, points[0])? {
                    Ok(others) => all.extend(others),
                    Err(why) => return Ok(Err(why)),
                }
                Question::Order { cells: all, ties }
            }
            "lowest" | "highest" => match self.others(chosen, points[0])? {
                Ok(others) if others.is_empty() => {
                    return Err(self.wrong("the runs have no other arm"));
                }
                Ok(others) => Question::Extreme {
                    cell: single().0,
                    others,
                    side: if kind == "lowest" {
                        Side::Below
                    } else {
                        Side::Above
                    },
                    ties,
                },
                Err(why) => return Ok(Err(why)),
            },
            "lowest-at" | "highest-at" => {
                let inside = self.among(chosen.set, points)?;
                let cells = cells.into_iter().map(|(cell, _)| cell);
                Question::Turn {
                    points: cells.zip(inside).collect(),
                    side: if kind == "lowest-at" {
                        Side::Below
                    } else {
                        Side::Above
                    },
                }
            }
            // `among`: where the arm is above its base already; elsewhere it is below.
            _ => {
                let inside = self.among(chosen.set, points)?;
                let first = self.side()?.unwrap_or(Side::Above);
                let other = match first {
                    Side::Above => Side::Below,
                    Side::Below => Side::Above,
                };
                let pairs = cells.into_iter().zip(inside);
                Question::Signs {
                    pairs: pairs
                        .map(|((arm, base), inside)| {
                            let base = base.expect("checked");
                            (arm, base, if inside { first } else { other })
                        })
                        .collect(),
                }
            }
        }))
    }

    fn limits(&self, low: f64, high: f64) -> Result<(f64, f64)> {
        // `published = 20, margin = 0.1` is from 18 to 22.
        let (low, high) = match (self.test.published, &self.test.margin) {
            (Some(published), Some(margin)) => {
                let reach = published.abs() * margin.get_ref();
                (published - reach, published + reach)
            }
            _ => (low, high),
        };
        match low == f64::NEG_INFINITY && high == f64::INFINITY {
            true => Err(self.wrong("needs `low`, `high`, or `published` with `margin`")),
            false => Ok((low, high)),
        }
    }

    /// Which points have one of the values of `among`.
    fn among(&self, set: usize, points: &[usize]) -> Result<Vec<bool>> {
        let x = self.test.x.as_ref().expect("checked");
        let wanted = self.test.among.as_ref().expect("checked");
        let set = &self.experiment.sets[set];
        let value = |at: &usize| set.points[*at].get(x.get_ref());
        for wanted in wanted {
            if !points.iter().any(|at| value(at) == Some(*wanted)) {
                return Err(self.wrong(format!("no run has {} {wanted}", x.get_ref())));
            }
        }
        let is = |at| value(at).is_some_and(|value| wanted.contains(&value));
        Ok(points.iter().map(is).collect())
    }

    fn with_places(
        &self,
        chosen: Chosen<'_>,
        points: &[usize],
        cells: Vec<(Cell, Option<Cell>)>,
    ) -> Vec<(f64, Cell, Option<Cell>)> {
        let x = self.test.x.as_ref().expect("checked").get_ref();
        let set = &self.experiment.sets[chosen.set];
        let place = |at: &usize| {
            let value = set.points[*at].get(x).unwrap_or_default() as f64;
            if self.test.log_x { value.log2() } else { value }
        };
        let places = points.iter().map(place);
        places
            .zip(cells)
            .map(|(x, (cell, base))| (x, cell, base))
            .collect()
    }

    fn ratio(&self, chosen: Chosen<'a>, point: usize, arm: Cell, base: Cell) -> Result<Question> {
        let (other, at) = self.base(chosen, point)?;
        let number = |chosen: Chosen<'_>, point| {
            let (set, arm) = (chosen.set, chosen.arm);
            let row = self.experiment.published(set, point, arm, chosen.metric);
            row.and_then(|row| row.value.number())
        };
        let table = number(chosen, point).zip(number(other, at));
        let published = self.test.published;
        let published = published.or_else(|| table.map(|(arm, base)| arm / base));
        let side = match (self.side()?, published) {
            (Some(side), _) => side,
            (None, Some(ratio)) if ratio > 1.0 => Side::Above,
            (None, Some(_)) => Side::Below,
            (None, None) => {
                let what = "no ratio is published for this point: say a `side`";
                return Err(self.wrong(what));
            }
        };
        Ok(Question::Ratio {
            arm,
            base,
            side,
            published,
            margin: self.test.margin.as_ref().map_or(MARGIN, |it| *it.get_ref()),
            beyond: self.test.beyond.unwrap_or(1.0),
        })
    }

    /// How far times of the sequence that `probe` finds may be from those that are said.
    fn tolerance(&self, probe: &Wanted) -> Result<Option<Tolerance>> {
        let Some(text) = &self.test.within else {
            return Ok(None);
        };
        let within = span::parse(text.get_ref());
        let within = within.map_err(|error| wrong(&self.source, text, error))?;
        let Form::Levels {
            steps: Steps::Times(unit) | Steps::Stays(unit),
            ..
        } = probe.form
        else {
            let what = format!(
                "the probe `{}` writes no times: it needs `levels = \"times\"` or \"stays\"",
                probe.name
            );
            return Err(wrong(&self.source, text, what));
        };
        let want = self.test.want.as_deref().expect("checked");
        Tolerance::check(want).map_err(|entry| {
            let what = format!("the entry `{entry}` of the sequence has no time, as in `120:3`");
            wrong(&self.source, text, what)
        })?;
        Ok(Some(Tolerance { unit, within }))
    }

    /// One question for each point and arm.
    fn traces(&self, set: usize, name: &str) -> Result<Asked> {
        let probe = self.test.probe.as_ref().expect("checked");
        let probes = &self.experiment.sets[set].probes;
        let at = self.find(probe, "probe", probes.iter().map(|it| it.name.as_str()))?;
        let within = self.tolerance(&probes[at])?;
        let arm = self.arm(self.test.arm.as_ref().expect("checked"))?;
        let metric = "";
        self.check_has(Chosen { set, arm, metric })?;
        let points = self.select(set, &self.test.at)?;
        let several = points.len() > 1;
        let question = |point: usize| match self.got(CellId { set, arm, point }, probe.get_ref()) {
            Ok(got) => Question::Trace {
                want: self.test.want.clone().unwrap_or_default(),
                got: got
                    .into_iter()
                    .map(|it| match within {
                        Some(_) => it.exact,
                        None => it.rounded,
                    })
                    .collect(),
                within,
                prefix: self.test.prefix,
            },
            Err(why) => Question::Lacking { why },
        };
        let named = |point: usize| {
            let label = &self.experiment.sets[set].points[point].label;
            let name = if several {
                format!("{name} {label}")
            } else {
                name.to_owned()
            };
            (name.trim().to_owned(), question(point))
        };
        Ok(points.into_iter().map(named).collect())
    }

    /// What a probe found in each run of a cell; the error says what the runs lack.
    fn got(&self, id: CellId, probe: &str) -> Result<Vec<Sequence>, String> {
        if let Some(why) = self.left_out(id.set) {
            return Err(why);
        }
        let traces = self.results.traces(id, probe);
        traces.map_err(|why| format!("{}: {why}", Results::name(self.experiment, id, None)))
    }
}
