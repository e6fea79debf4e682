//! experiment.toml and statements.toml as they stand. experiments/README.md describes them.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// statements.toml: by id.
pub type Statements = BTreeMap<String, StatementText>;

/// A statement of a document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementText {
    /// Number of the document: `002`.
    pub document: String,
    /// What it says.
    pub text: String,
    /// Whether no document says it: asked all the same, and not counted.
    #[serde(default)]
    pub ours: bool,
}

/// documents.toml: by number.
pub type Documents = BTreeMap<String, PublishedDocument>;

/// Who wrote a document, and when.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedDocument {
    /// Family names.
    pub author: String,
    /// Its title.
    pub title: String,
    /// When it appeared.
    pub year: u16,
}

impl std::fmt::Display for PublishedDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            author,
            title,
            year,
        } = self;
        write!(f, "{author}, \"{title}\", {year}")
    }
}

/// experiment.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    pub experiment: Head,
    #[serde(default)]
    pub machine: DraftMachine,
    #[serde(default)]
    pub arm: BTreeMap<Spanned<String>, DraftArm>,
    #[serde(default)]
    pub runs: BTreeMap<Spanned<String>, Runs>,
    #[serde(default)]
    pub probe: BTreeMap<Spanned<String>, DraftProbe>,
    #[serde(default)]
    pub metric: BTreeMap<Spanned<String>, Metric>,
    #[serde(default)]
    pub across: BTreeMap<Spanned<String>, Across>,
    #[serde(default)]
    pub statement: Vec<Statement>,
    #[serde(default)]
    pub figure: Vec<Figure>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    pub document: Spanned<String>,
    pub title: String,
    pub source: String,
    #[serde(default)]
    pub baseline: Option<Spanned<String>>,
    #[serde(default)]
    pub seeds: Option<Spanned<u32>>,
    #[serde(default)]
    pub seed: Option<u64>,
    #[serde(default)]
    pub duration: Option<Spanned<String>>,
    /// What the document says of itself that cannot all be true.
    #[serde(default)]
    pub contradictions: Vec<String>,
    /// What a reader must know of every number here.
    #[serde(default)]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DraftMachine {
    pub profile: Option<Spanned<String>>,
    pub cpus: Option<u16>,
    pub hz: Option<u32>,
    pub smt: Option<u16>,
    pub llc: Option<u16>,
    pub node: Option<u16>,
    pub kernel: Option<Spanned<String>>,
    pub watchdog: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DraftArm {
    pub policy: Spanned<String>,
    pub label: Option<String>,
}

/// Every combination of the lists, under each arm.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    pub workload: Spanned<String>,
    pub label: Option<String>,
    pub arms: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub scale: BTreeMap<Spanned<String>, Values>,
    pub cpus: Option<OneOrMore>,
    /// Names of points that are left out: `hogs=64 jobs=2`.
    #[serde(default)]
    pub without: Vec<BTreeMap<Spanned<String>, i64>>,
    pub machine: Option<DraftMachine>,
    pub seeds: Option<Spanned<u32>>,
    pub duration: Option<Spanned<String>>,
    #[serde(default = "yes")]
    pub quick: bool,
}

const fn yes() -> bool {
    true
}

/// What a parameter is given.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a whole number, a list of them, or a name of calibration.toml"
)]
pub enum Values {
    One(i64),
    More(Vec<i64>),
    /// `machine.name` of calibration.toml.
    Calibrated(String),
}

/// calibration.toml: numbers by machine and name.
pub type Calibration = BTreeMap<String, BTreeMap<String, i64>>;

/// A value of a parameter, or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a whole number, or a list of them")]
pub enum OneOrMore {
    /// One.
    One(i64),
    /// Several.
    More(Vec<i64>),
}

impl OneOrMore {
    /// All.
    pub fn list(&self) -> Vec<i64> {
        match self {
            Self::One(one) => vec![*one],
            Self::More(list) => list.clone(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DraftProbe {
    /// Required by all but counters of the policy.
    pub who: Option<Spanned<String>>,
    pub runs: Option<Vec<Spanned<String>>>,
    pub after: Option<Spanned<String>>,
    pub waits: Option<BTreeMap<String, Vec<String>>>,
    pub least: Option<Spanned<String>>,
    pub longer: Option<Spanned<String>>,
    pub levels: Option<Spanned<String>>,
    pub unit: Option<Spanned<String>>,
    #[serde(default)]
    pub priority: bool,
    #[serde(default)]
    pub flags: bool,
    pub spans: Option<Spanned<String>>,
    pub deadlines: Option<Spanned<String>>,
    /// The length of the spans of time in which something is counted.
    pub every: Option<Spanned<String>>,
    /// What is counted: the policy's counters, else tasks that begin.
    pub counters: Option<Vec<Spanned<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    pub value: Spanned<String>,
    #[serde(default)]
    pub unit: String,
    pub label: Option<String>,
    /// Shown in the table only for these.
    pub runs: Option<Vec<Spanned<String>>>,
    /// Whether tables show the deviation of the runs instead of the lowest and the highest.
    #[serde(default)]
    pub deviation: bool,
}

/// A metric of the runs of one seed at several points.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Across {
    pub metric: Spanned<String>,
    pub x: String,
    pub take: Spanned<String>,
    pub from: Option<i64>,
    pub to: Option<i64>,
    pub level: Option<f64>,
    pub until: Option<f64>,
    #[serde(default)]
    pub unit: String,
    pub label: Option<String>,
    pub runs: Option<Vec<Spanned<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    pub id: Spanned<String>,
    #[serde(default)]
    pub test: Vec<DraftTest>,
    /// Why it is not reproduced, if it is not.
    pub cause: Option<String>,
    pub note: Option<String>,
    /// Why runs could not have told a false statement from a true one: then it is not called
    /// reproduced.
    pub cannot_tell: Option<String>,
}

/// What kind of question a test is; experiments/README.md describes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestKind {
    Ratio,
    Equal,
    Within,
    Every,
    Slope,
    Flat,
    Rises,
    Falls,
    Order,
    Lowest,
    Highest,
    LowestAt,
    HighestAt,
    Crosses,
    Agree,
    Trace,
    Untestable,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DraftTest {
    pub kind: Spanned<TestKind>,
    pub name: Option<String>,
    pub runs: Option<Spanned<String>>,
    pub metric: Option<Spanned<String>>,
    pub arm: Option<Spanned<String>>,
    pub arms: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub at: BTreeMap<Spanned<String>, OneOrMore>,
    pub base: Option<Spanned<Base>>,
    pub x: Option<Spanned<String>>,
    #[serde(default)]
    pub log_x: bool,
    #[serde(default)]
    pub log_y: bool,
    pub side: Option<Spanned<String>>,
    pub published: Option<f64>,
    pub margin: Option<Spanned<f64>>,
    pub beyond: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub ties: Option<f64>,
    /// Where both numbers of a pair are below this, there is nothing to compare.
    pub least: Option<f64>,
    /// Values of `x`: of a turning point, or where signs change.
    pub among: Option<Vec<i64>>,
    pub probe: Option<Spanned<String>>,
    pub want: Option<String>,
    /// The file that has it, in the folder.
    pub want_file: Option<Spanned<String>>,
    #[serde(default)]
    pub prefix: bool,
    /// How far times of a sequence may be from those of `want`: a span.
    pub within: Option<Spanned<String>>,
    pub why: Option<String>,
    /// Why it holds whatever the schedulers do, if so: then it is not counted, because it says
    /// nothing of a scheduler.
    pub cannot_fail: Option<String>,
    /// Kinds of machine that can try it; all without it.
    pub machines: Option<Vec<Spanned<String>>>,
}

/// What a cell is divided by: an arm, or a cell that differs in what is said.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected an arm, or a table with runs, arm, metric, at"
)]
pub enum Base {
    Arm(String),
    Cell(Other),
}

/// Without places of its own: they get lost where one of two forms is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Other {
    pub runs: Option<String>,
    pub metric: Option<String>,
    pub arm: Option<String>,
    #[serde(default)]
    pub at: BTreeMap<String, OneOrMore>,
}

/// What is drawn of the runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// Where the document has its own.
    pub place: String,
    /// Whose runs.
    pub runs: Spanned<String>,
    /// What is drawn over `x`.
    pub metric: Option<Spanned<String>>,
    /// Instead of a metric: how this probe's level goes with time.
    pub probe: Option<Spanned<String>>,
    /// The parameter of the horizontal axis.
    pub x: Option<Spanned<String>>,
    /// Whose curves; those of all arms without it.
    pub arms: Option<Vec<Spanned<String>>>,
    /// Which values other parameters have; a curve for each without it.
    #[serde(default)]
    pub at: BTreeMap<Spanned<String>, OneOrMore>,
    /// Whether the horizontal axis is logarithmic.
    #[serde(default)]
    pub log_x: bool,
    /// Whether the vertical one is.
    #[serde(default)]
    pub log_y: bool,
    /// Heights that the document's text names, drawn across a figure over time.
    #[serde(default)]
    pub published: Vec<u64>,
}
