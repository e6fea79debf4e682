//! The tests of a statement: each is read once, into questions about cells of the experiment.

use std::collections::BTreeMap;

use crate::experiments::probe::{ProbeForm, Steps, WantedProbe};
use model::file::Source;
use model::{Advised, span, suggest};
use toml::Spanned;

use crate::experiments::cells::CellId;
use crate::experiments::claim::{ClaimQuestion, Side, Tolerance};
use crate::experiments::draft::{self, Base, OneOrMore, TestKind};
use crate::experiments::error::{Error, Result, wrong};
use crate::experiments::experiment::{Experiment, Made, Point};

/// Farthest factor of a ratio from the published one that still counts as the same: for throughput
/// and turnaround; longest waits may say 1.5.
const MARGIN: f64 = 1.15;
/// Farthest that equals may be apart.
const EQUAL: f64 = 0.03;

/// The kinds of machine.
pub const MACHINES: [&str; 3] = ["sim", "vm", "host"];

/// A question whose values the runs will have.
pub type AskedQuestion = ClaimQuestion<CellPlace, Traced>;

/// Where an experiment's numbers of a cell are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellPlace {
    /// The cell.
    pub id: CellId,
    /// Index of the metric.
    pub metric: usize,
    /// Whether the name of the cell says the metric.
    pub says_metric: bool,
}

/// Where the sequences of a probe are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The cell.
    pub id: CellId,
    /// Name of the probe.
    pub probe: String,
    /// Whether times are wanted as they are, and not rounded.
    pub exact: bool,
}

/// A test of a statement.
#[derive(Debug)]
pub struct Test {
    /// Its name; empty if it has none.
    pub name: String,
    /// Kinds of machine that can try it; all if there are none.
    pub machines: Vec<String>,
    /// Why others cannot.
    pub why: Option<String>,
    /// Why it holds whatever the schedulers do, if so.
    pub cannot_fail: Option<String>,
    /// Where both means of a pair are below this, there is nothing to compare.
    pub least: Option<f64>,
    /// Its questions, each with what tells it from the others.
    pub questions: Vec<(String, AskedQuestion)>,
}

/// Reads a test of an experiment that is whole but for its statements.
///
/// # Errors
/// What is wrong with it, with file, line and column.
pub fn read(experiment: &Experiment, source: Source<'_>, test: &draft::DraftTest) -> Result<Test> {
    let reader = TestReader {
        experiment,
        source,
        test,
    };
    reader.check()?;
    let name = |name: &Spanned<String>| {
        reader.find(name, "kind of machine", MACHINES.iter().copied())?;
        Ok(name.get_ref().clone())
    };
    let machines = test.machines.iter().flatten().map(name);
    Ok(Test {
        name: test.name.clone().unwrap_or_default(),
        machines: machines.collect::<Result<_>>()?,
        why: test.why.clone(),
        cannot_fail: test.cannot_fail.clone(),
        least: test.least,
        questions: reader.questions()?,
    })
}

struct TestReader<'a> {
    experiment: &'a Experiment,
    source: Source<'a>,
    test: &'a draft::DraftTest,
}

/// What the base of a ratio, or the test itself, names.
#[derive(Clone, Copy)]
struct Chosen {
    set: usize,
    arm: usize,
    metric: usize,
}

impl Chosen {
    const fn at(self, point: usize) -> CellPlace {
        let Self { set, arm, metric } = self;
        CellPlace {
            id: CellId { set, arm, point },
            metric,
            says_metric: false,
        }
    }
}

impl<'a> TestReader<'a> {
    fn wrong(&self, what: impl Into<Advised>) -> Error {
        wrong(&self.source, &self.test.kind, what)
    }

    /// What a test of this kind must have.
    fn need<T>(&self, value: Option<T>, name: &str) -> Result<T> {
        value.ok_or_else(|| self.wrong(format!("a test of this kind needs `{name}`")))
    }

    fn x(&self) -> Result<&'a Spanned<String>> {
        self.need(self.test.x.as_ref(), "x")
    }

    /// The index of a name among all.
    fn find<'b>(
        &self,
        name: &Spanned<String>,
        kind: &str,
        all: impl Iterator<Item = &'b str> + Clone,
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

    fn metric(&self, name: &Spanned<String>) -> Result<usize> {
        let all = self.experiment.metrics.iter().map(|it| it.name.as_str());
        self.find(name, "metric", all)
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

    /// What belongs to some kinds only.
    fn check(&self) -> Result<()> {
        let test = self.test;
        if let Some(margin) = test.margin.as_ref().filter(|it| *it.get_ref() <= 0.0) {
            return Err(wrong(&self.source, margin, "a margin is above 0"));
        }
        let is_pair = *test.kind.get_ref() == TestKind::Within && test.base.is_some();
        if test.least.is_some() && !is_pair {
            return Err(self.wrong("`least` is for `within` with a `base`"));
        }
        let is_trace = *test.kind.get_ref() == TestKind::Trace;
        if let Some(within) = test.within.as_ref().filter(|_| !is_trace) {
            let what = Advised::new("`within` is for times of a trace", "others have `margin`");
            return Err(wrong(&self.source, within, what));
        }
        Ok(())
    }

    fn questions(&self) -> Result<Vec<(String, AskedQuestion)>> {
        match self.test.kind.get_ref() {
            TestKind::Untestable => {
                let why = self.need(self.test.why.clone(), "why")?;
                return Ok(vec![(String::new(), ClaimQuestion::NotTestable { why })]);
            }
            TestKind::Trace => return self.traces(),
            _ => {}
        }
        let arm = match (self.test.kind.get_ref(), &self.test.arm, &self.test.arms) {
            (_, Some(arm), _) => arm,
            (TestKind::Order, None, Some(arms)) if arms.len() > 1 => &arms[0],
            (TestKind::Order, ..) => return self.need(None, "arms"),
            _ => return self.need(None, "arm"),
        };
        let chosen = Chosen {
            set: self.set(self.need(self.test.runs.as_ref(), "runs")?)?,
            arm: self.arm(arm)?,
            metric: self.metric(self.need(self.test.metric.as_ref(), "metric")?)?,
        };
        self.check_has(chosen)?;
        let groups = self.groups(chosen)?;
        let several = groups.len() > 1;
        let question = |points: Vec<usize>| {
            let label = if several {
                self.group_label(chosen, &points)
            } else {
                String::new()
            };
            Ok((label, self.question(chosen, &points)?))
        };
        groups.into_iter().map(question).collect()
    }

    /// An arm that the runs do not have is a mistake of the file.
    fn check_has(&self, Chosen { set, arm, .. }: Chosen) -> Result<()> {
        let set = &self.experiment.sets[set];
        if set.arms.contains(&arm) {
            return Ok(());
        }
        let arm = &self.experiment.arms[arm].name;
        Err(self.wrong(format!("the runs `{}` have no arm `{arm}`", set.name)))
    }

    /// The points that the test is about, those together that one question has.
    fn groups(&self, chosen: Chosen) -> Result<Vec<Vec<usize>>> {
        let set = &self.experiment.sets[chosen.set];
        let mut points = self.select(chosen.set, &self.test.at)?;
        if let Some(x) = across(self.experiment, chosen.metric) {
            let names = set.points[points[0]].settings.iter();
            if !names.clone().any(|(name, _)| name == x) {
                let metric = &self.experiment.metrics[chosen.metric].name;
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
            return Ok(match self.test.kind.get_ref() {
                TestKind::Every | TestKind::Flat => vec![points],
                _ => points.into_iter().map(|point| vec![point]).collect(),
            });
        };
        self.parameter(x, chosen.set)?;
        let rest = |at: usize| -> Vec<&(String, i64)> {
            let settings = set.points[at].settings.iter();
            settings.filter(|(name, _)| name != x.get_ref()).collect()
        };
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for point in points {
            let mut known = groups.iter_mut();
            match known.find(|group| rest(group[0]) == rest(point)) {
                Some(group) => group.push(point),
                None => groups.push(vec![point]),
            }
        }
        for group in &mut groups {
            group.sort_by_key(|at| set.points[*at].get(x.get_ref()));
        }
        Ok(groups)
    }

    /// The runs have a parameter of this name.
    fn parameter(&self, name: &Spanned<String>, set: usize) -> Result<()> {
        let points = &self.experiment.sets[set].points;
        let names = points.first().into_iter().flat_map(|it| it.settings.iter());
        self.find(name, "parameter", names.map(|(name, _)| name.as_str()))?;
        Ok(())
    }

    /// What tells one group of points from the others.
    fn group_label(&self, chosen: Chosen, points: &[usize]) -> String {
        let point = &self.experiment.sets[chosen.set].points[points[0]];
        let x = self.test.x.as_ref().map(|x| x.get_ref().as_str());
        point.label_without([x, across(self.experiment, chosen.metric)])
    }

    /// The points of a set that have these values.
    fn select(&self, set: usize, at: &BTreeMap<Spanned<String>, OneOrMore>) -> Result<Vec<usize>> {
        for name in at.keys() {
            self.parameter(name, set)?;
        }
        let points = &self.experiment.sets[set].points;
        let is = |point: &Point| {
            at.iter().all(|(name, values)| {
                let have = point.get(name.get_ref());
                values.list().iter().any(|value| have == Some(*value))
            })
        };
        let found: Vec<usize> = (0..points.len()).filter(|it| is(&points[*it])).collect();
        if found.is_empty() {
            Err(self.wrong("no run is at the points of `at`"))
        } else {
            Ok(found)
        }
    }

    /// The base's cell for a point of the arm's set: the same point unless the file says another.
    fn base(&self, chosen: Chosen, point: usize) -> Result<CellPlace> {
        let whole = self.need(self.test.base.as_ref(), "base")?;
        let placed = |name: &String| Spanned::new(whole.span(), name.clone());
        let other = match whole.get_ref() {
            Base::Arm(arm) => {
                let arm = self.arm(&placed(arm))?;
                let base = Chosen { arm, ..chosen };
                self.check_has(base)?;
                return Ok(base.at(point));
            }
            Base::Cell(other) => other,
        };
        let [runs, arm, metric] =
            [&other.runs, &other.arm, &other.metric].map(|name| name.as_ref().map(placed));
        let base = Chosen {
            set: runs.map_or(Ok(chosen.set), |runs| self.set(&runs))?,
            arm: arm.map_or(Ok(chosen.arm), |arm| self.arm(&arm))?,
            metric: metric.map_or(Ok(chosen.metric), |it| self.metric(&it))?,
        };
        self.check_has(base)?;
        let at = other.at.iter();
        let at = at.map(|(name, values)| (placed(name), values.clone()));
        let at: BTreeMap<_, _> = at.collect();
        self.select(base.set, &at)?;
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
        let points = &self.experiment.sets[base.set].points;
        let found: Vec<usize> = (0..points.len())
            .filter(|it| wanted(&points[*it]))
            .collect();
        let is_one = match found[..] {
            [] => return Err(self.wrong("no run is at the base's point")),
            [_] => true,
            _ => across(self.experiment, base.metric).is_some(),
        };
        if !is_one {
            return Err(self.wrong(Advised::new(
                "several runs are at the base's point",
                "say more in its `at`",
            )));
        }
        Ok(CellPlace {
            says_metric: base.metric != chosen.metric,
            ..base.at(found[0])
        })
    }

    /// A cell, with that of the base if there is one.
    fn pair(&self, chosen: Chosen, point: usize) -> Result<(CellPlace, Option<CellPlace>)> {
        let has_base = self.test.base.is_some();
        let base = has_base.then(|| self.base(chosen, point)).transpose()?;
        Ok((chosen.at(point), base))
    }

    /// The cells of all arms but the test's.
    fn others(&self, chosen: Chosen, point: usize) -> Result<Vec<CellPlace>> {
        let arms = match &self.test.arms {
            Some(names) => names
                .iter()
                .map(|it| self.arm(it))
                .collect::<Result<Vec<_>>>()?,
            None => self.experiment.sets[chosen.set].arms.clone(),
        };
        let others = arms.into_iter().filter(|arm| *arm != chosen.arm);
        let cells = others.map(|arm| {
            let other = Chosen { arm, ..chosen };
            self.check_has(other).map(|()| other.at(point))
        });
        cells.collect()
    }

    /// The question about some points.
    fn question(&self, chosen: Chosen, points: &[usize]) -> Result<AskedQuestion> {
        let first = points[0];
        let test = self.test;
        let margin = test.margin.as_ref().map_or(EQUAL, |it| *it.get_ref());
        let ties = test.ties.unwrap_or(0.0);
        let kind = *test.kind.get_ref();
        Ok(match kind {
            TestKind::Ratio => self.ratio(chosen, first)?,
            TestKind::Equal => ClaimQuestion::Equal {
                arm: chosen.at(first),
                base: self.base(chosen, first)?,
                margin,
            },
            TestKind::Agree => ClaimQuestion::Agree {
                left: chosen.at(first),
                right: self.base(chosen, first)?,
                margin,
            },
            TestKind::Within => {
                let (cell, base) = self.pair(chosen, first)?;
                let (low, high) = self.limits()?;
                ClaimQuestion::Within {
                    cell,
                    base,
                    low,
                    high,
                    published: test.published,
                }
            }
            TestKind::Every => {
                let (low, high) = self.limits()?;
                let cells = points.iter().map(|at| chosen.at(*at)).collect();
                ClaimQuestion::Every { cells, low, high }
            }
            TestKind::Flat => ClaimQuestion::Flat {
                points: points.iter().map(|at| chosen.at(*at)).collect(),
                margin,
            },
            TestKind::Order => {
                let mut cells = vec![chosen.at(first)];
                cells.extend(self.others(chosen, first)?);
                ClaimQuestion::Order { cells, ties }
            }
            TestKind::Lowest | TestKind::Highest => {
                let others = self.others(chosen, first)?;
                if others.is_empty() {
                    return Err(self.wrong("the runs have no other arm"));
                }
                ClaimQuestion::Extreme {
                    cell: chosen.at(first),
                    others,
                    side: kind.side(),
                    ties,
                }
            }
            _ => self.along(kind, chosen, points)?,
        })
    }

    /// The question about points that differ in `x`.
    fn along(&self, kind: TestKind, chosen: Chosen, points: &[usize]) -> Result<AskedQuestion> {
        self.x()?;
        let pairs = points.iter().map(|at| self.pair(chosen, *at));
        let pairs: Vec<(CellPlace, Option<CellPlace>)> = pairs.collect::<Result<_>>()?;
        Ok(match kind {
            TestKind::Slope => ClaimQuestion::Slope {
                points: self.with_places(chosen, points, pairs)?,
                log: self.test.log_y,
                low: self.test.low.unwrap_or(f64::NEG_INFINITY),
                high: self.test.high.unwrap_or(f64::INFINITY),
            },
            TestKind::Rises | TestKind::Falls => ClaimQuestion::Monotone {
                points: pairs,
                side: kind.side(),
            },
            TestKind::LowestAt | TestKind::HighestAt => {
                let inside = self.among(chosen.set, points)?;
                let cells = pairs.into_iter().map(|(cell, _)| cell);
                ClaimQuestion::Turn {
                    points: cells.zip(inside).collect(),
                    side: kind.side(),
                }
            }
            // `among`: where the arm is above its base already; elsewhere it is below.
            _ => {
                let inside = self.among(chosen.set, points)?;
                let first = self.side()?.unwrap_or(Side::Above);
                let pairs = pairs.into_iter().zip(inside);
                let pairs = pairs.map(|((arm, base), inside)| {
                    let base = self.need(base, "base")?;
                    let side = if inside { first } else { first.other() };
                    Ok((arm, base, side))
                });
                ClaimQuestion::Signs {
                    pairs: pairs.collect::<Result<_>>()?,
                }
            }
        })
    }

    fn limits(&self) -> Result<(f64, f64)> {
        let test = self.test;
        // `published = 20, margin = 0.1` is from 18 to 22.
        if let (Some(published), Some(margin)) = (test.published, &test.margin) {
            let reach = published.abs() * margin.get_ref();
            return Ok((published - reach, published + reach));
        }
        match (test.low, test.high) {
            (None, None) => Err(self.wrong("needs `low`, `high`, or `published` with `margin`")),
            (low, high) => Ok((
                low.unwrap_or(f64::NEG_INFINITY),
                high.unwrap_or(f64::INFINITY),
            )),
        }
    }

    /// Which points have one of the values of `among`.
    fn among(&self, set: usize, points: &[usize]) -> Result<Vec<bool>> {
        let x = self.x()?;
        let wanted = self.test.among.as_ref().filter(|it| !it.is_empty());
        let wanted = self.need(wanted, "among")?;
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
        chosen: Chosen,
        points: &[usize],
        pairs: Vec<(CellPlace, Option<CellPlace>)>,
    ) -> Result<Vec<(f64, CellPlace, Option<CellPlace>)>> {
        let x = self.x()?.get_ref();
        let set = &self.experiment.sets[chosen.set];
        let place = |at: &usize| {
            let value = set.points[*at].get(x).unwrap_or_default() as f64;
            if self.test.log_x { value.log2() } else { value }
        };
        let places = points.iter().map(place).zip(pairs);
        Ok(places.map(|(x, (cell, base))| (x, cell, base)).collect())
    }

    fn ratio(&self, chosen: Chosen, point: usize) -> Result<AskedQuestion> {
        let (arm, base) = (chosen.at(point), self.base(chosen, point)?);
        let number = |CellPlace { id, metric, .. }: CellPlace| {
            let metric = &self.experiment.metrics[metric].name;
            let row = self.experiment.published(id.set, id.point, id.arm, metric);
            row.and_then(|row| row.value.number())
        };
        let table = number(arm).zip(number(base));
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
        Ok(ClaimQuestion::Ratio {
            arm,
            base,
            side,
            published,
            margin: self.test.margin.as_ref().map_or(MARGIN, |it| *it.get_ref()),
            beyond: self.test.beyond.unwrap_or(1.0),
        })
    }

    /// How far times of the sequence that `probe` finds may be from those that are said.
    fn tolerance(&self, probe: &WantedProbe, want: &str) -> Result<Option<Tolerance>> {
        let Some(text) = &self.test.within else {
            return Ok(None);
        };
        let within = span::parse(text.get_ref());
        let within = within.map_err(|error| wrong(&self.source, text, error))?;
        let ProbeForm::Levels {
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
        Tolerance::check(want).map_err(|entry| {
            let what = format!("the entry `{entry}` of the sequence has no time, as in `120:3`");
            wrong(&self.source, text, what)
        })?;
        Ok(Some(Tolerance { unit, within }))
    }

    /// One question for each point.
    fn traces(&self) -> Result<Vec<(String, AskedQuestion)>> {
        let set = self.set(self.need(self.test.runs.as_ref(), "runs")?)?;
        let arm = self.arm(self.need(self.test.arm.as_ref(), "arm")?)?;
        let probe = self.need(self.test.probe.as_ref(), "probe")?;
        let want = self.need(self.test.want.as_ref(), "want")?;
        let whole = &self.experiment.sets[set];
        let names = whole.probes.iter().map(|it| it.name.as_str());
        let at = self.find(probe, "probe", names)?;
        let within = self.tolerance(&whole.probes[at], want)?;
        let metric = 0;
        self.check_has(Chosen { set, arm, metric })?;
        let points = self.select(set, &self.test.at)?;
        let several = points.len() > 1;
        let question = |point: usize| {
            let label = if several {
                whole.points[point].label.clone()
            } else {
                String::new()
            };
            let got = Traced {
                id: CellId { set, arm, point },
                probe: probe.get_ref().clone(),
                exact: within.is_some(),
            };
            let question = ClaimQuestion::Trace {
                want: want.clone(),
                got,
                within,
                prefix: self.test.prefix,
            };
            (label, question)
        };
        Ok(points.into_iter().map(question).collect())
    }
}

/// The parameter that a metric is taken over.
pub fn across(experiment: &Experiment, metric: usize) -> Option<&str> {
    match &experiment.metrics[metric].made {
        Made::Across { x, .. } => Some(x),
        Made::Formula(_) => None,
    }
}

impl TestKind {
    /// Where the arm, or the line, is said to go.
    const fn side(self) -> Side {
        match self {
            Self::Falls | Self::Lowest | Self::LowestAt => Side::Below,
            _ => Side::Above,
        }
    }
}
