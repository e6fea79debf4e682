//! Compares the plays of a folder with simulations of the same, and with each other.

use std::path::Path;

use model::Profile;
use stats::compare::machines::{FigurePair, MachineRun, MachinesScore, Pair, worst};

use super::Fidelity;
use super::asked::{Play, PlaysRequest};
use super::first::{First, Turns};
use super::kept::{Kept, events_file};
use super::simulated::{self, KeptPlay};
use crate::policy;
use crate::services::Services;
use crate::words::{self, counted};

/// The row of the kernel against itself.
pub const CEILING: &str = "ceiling";

/// What the tables say.
#[derive(Debug)]
pub struct JudgedPlays {
    /// What was done, for the line above the tables.
    pub headline: String,
    /// What was compared: each profile, then the kernel with itself.
    pub compared: Vec<(String, MachinesScore)>,
    /// The same by policy.
    pub policies: Vec<(String, Vec<(String, MachinesScore)>)>,
    /// The same by workload.
    pub workloads: Vec<(String, Vec<(String, MachinesScore)>)>,
    /// The figures that are farthest apart.
    pub worst: Vec<WorstFigure>,
    /// What could not be compared, with the reason.
    pub missing: Vec<String>,
    /// What does not reach the score that was asked for, a sentence each.
    pub missed: Vec<String>,
}

/// A figure that is far from the kernel's.
#[derive(Debug)]
pub struct WorstFigure {
    /// The profile.
    pub row: String,
    /// The workload.
    pub workload: String,
    /// The policy with its knobs.
    pub policy: String,
    /// Seed of the run.
    pub seed: u64,
    /// The figure.
    pub cell: FigurePair,
    /// The factor between two plays with other seeds.
    pub ceiling: Option<f64>,
    /// The command that plays it again and simulates it beside.
    pub again: String,
    /// The command that simulates it.
    pub simulate: String,
    /// The first turn of a CPU in which both runs differ, if events were kept.
    pub first: Option<First>,
}

/// The plays that there are.
type Plays = Vec<(Play, Kept)>;

/// The runs of one row of the table against the kernel's.
struct Against<'a> {
    name: &'a str,
    pairs: Vec<Pair<'a>>,
    /// Of which play each pair is.
    plays: Vec<usize>,
}

/// Simulates the plays with each profile, and compares.
///
/// # Errors
/// When a file of the folder is bad, or a policy or the machine cannot be simulated.
pub fn judged(asked: &Fidelity<'_>, services: &Services<'_>) -> anyhow::Result<JudgedPlays> {
    let request = asked.plays;
    let (plays, mut missing) = plays(asked, services)?;
    let mut simulated = Vec::new();
    for (name, profile) in &asked.profiles {
        let run =
            |(play, kept): &(Play, Kept)| simulated::run(services, (request, play, kept), profile);
        let runs = services.map(&plays, services.jobs(asked.jobs), "simulated runs", run)?;
        for (run, (play, _)) in runs.iter().zip(&plays) {
            if let Err(line) = run {
                missing.push(format!("{} with {name}: simulated: {line}", play.id));
            }
        }
        simulated.push(runs);
    }
    let mut rows: Vec<Against<'_>> = Vec::new();
    for ((name, _), runs) in asked.profiles.iter().zip(&simulated) {
        rows.push(against(name, &plays, runs));
    }
    rows.push(ceiling(&plays));
    let mut judged = JudgedPlays {
        headline: headline(request, plays.len()),
        compared: scores(&rows, |_| true),
        policies: Vec::new(),
        workloads: Vec::new(),
        worst: far(asked, services, &plays, &rows)?,
        missing,
        missed: Vec::new(),
    };
    for words in &request.asked.policies {
        let policy = policy::label(services, words);
        let scores = scores(&rows, |run| run.policy == policy);
        judged.policies.push((policy, scores));
    }
    for load in &request.asked.workloads {
        let scores = scores(&rows, |run| run.load == *load);
        judged.workloads.push((load.clone(), scores));
    }
    judged.find_first(asked, services, &plays)?;
    Ok(judged)
}

impl JudgedPlays {
    /// Whether nothing was compared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.compared.iter().all(|(_, score)| score.cells == 0)
    }

    /// Says of each figure that is shown where the two runs part, if the play's events are there.
    fn find_first(
        &mut self,
        asked: &Fidelity<'_>,
        services: &Services<'_>,
        plays: &Plays,
    ) -> anyhow::Result<()> {
        for worst in &mut self.worst {
            let is_its = |(play, kept): &&(Play, Kept)| {
                let run = &kept.run;
                (&run.load, &run.policy, play.seed) == (&worst.workload, &worst.policy, worst.seed)
            };
            let its = plays.iter().find(is_its);
            let profile = asked.profiles.iter().find(|(name, _)| *name == worst.row);
            let (Some((play, kept)), Some((_, profile))) = (its, profile) else {
                continue;
            };
            let events = events_file(&asked.plays.folder, play);
            if services.kind(&events).is_some() {
                let of = (asked.plays, play, kept);
                worst.first = first(services, of, profile, &events)?;
            }
        }
        Ok(())
    }
}

fn first(
    services: &Services<'_>,
    of: KeptPlay<'_>,
    profile: &Profile,
    events: &Path,
) -> anyhow::Result<Option<First>> {
    let spec = simulated::spec(services, of, profile)?;
    let groups = || spec.workload.groups.iter().map(|group| group.name.clone());
    let played = Turns::of(groups()).read(services, events)?;
    let mut simulated = Turns::of(groups());
    simulated::feed(services, (of.1, &spec), &mut simulated)?;
    Ok(played.differ(&simulated))
}

/// The plays of the folder, and a line for each that is not there.
fn plays(asked: &Fidelity<'_>, services: &Services<'_>) -> anyhow::Result<(Plays, Vec<String>)> {
    let request = asked.plays;
    let (mut plays, mut missing) = (Vec::new(), Vec::new());
    for play in request.plays(services) {
        match Kept::read(services, request, &play)? {
            Some(mut kept) => {
                let workload = request.workload(services, &play)?;
                let is_its = |name: &str| workload.groups.iter().any(|group| group.name == name);
                // Only the kernel has others, and the ceiling is to be one for what is simulated.
                kept.run.groups.retain(|group| is_its(&group.name));
                plays.push((play, kept));
            }
            None => {
                let why = asked
                    .lacking
                    .get(&play.id)
                    .map_or("it was not played", String::as_str);
                missing.push(format!("{}: {why}", play.id));
            }
        }
    }
    Ok((plays, missing))
}

fn headline(request: &PlaysRequest, plays: usize) -> String {
    let asked = &request.asked;
    let place = match asked.machine.as_str() {
        "vm" => "counting VMs",
        _ => "a host",
    };
    let policies = match asked.policies.len() {
        1 => "1 policy".to_owned(),
        count => format!("{count} policies"),
    };
    format!(
        "{plays} plays of {} under {policies}, {} each, on {} of {place} with Linux {}",
        counted(asked.workloads.len() as u64, "workload"),
        model::Nanos::new(asked.duration_ns),
        counted(asked.cpus.into(), "CPU"),
        asked.kernel,
    )
}

fn against<'a>(
    name: &'a str,
    plays: &'a Plays,
    runs: &'a [Result<MachineRun, String>],
) -> Against<'a> {
    let both = plays.iter().zip(runs).enumerate();
    let both = both.filter_map(|(at, ((_, kept), run))| Some((at, kept, run.as_ref().ok()?)));
    let pair = |(at, kept, run): (usize, &'a Kept, &'a MachineRun)| {
        let pair = Pair::new(&kept.run, run);
        let pair = match other_seed(plays, at) {
            Some(other) => pair.again(&plays[other].1.run),
            None => pair,
        };
        (at, pair)
    };
    let (plays, pairs) = both.map(pair).unzip();
    Against { name, pairs, plays }
}

/// The same play with the other seed, if it is there.
fn other_seed(plays: &Plays, at: usize) -> Option<usize> {
    let of = |at: usize| (plays[at].0.workload, plays[at].0.policy);
    (0..plays.len()).find(|other| *other != at && of(*other) == of(at))
}

/// Each play of the first seed against the same of the other.
fn ceiling(plays: &Plays) -> Against<'_> {
    let mut found = Against {
        name: CEILING,
        pairs: Vec::new(),
        plays: Vec::new(),
    };
    for (at, (_, kept)) in plays.iter().enumerate() {
        if let Some(other) = other_seed(plays, at).filter(|other| *other > at) {
            found.pairs.push(Pair::new(&kept.run, &plays[other].1.run));
            found.plays.push(at);
        }
    }
    found
}

fn scores(
    rows: &[Against<'_>],
    keep: impl Fn(&MachineRun) -> bool,
) -> Vec<(String, MachinesScore)> {
    let score = |row: &Against<'_>| MachinesScore::of(&row.pairs, |pair| keep(pair.reference));
    rows.iter()
        .map(|row| (row.name.to_owned(), score(row)))
        .collect()
}

/// The figures that are farthest from the kernel's, over all profiles.
fn far(
    asked: &Fidelity<'_>,
    services: &Services<'_>,
    plays: &Plays,
    rows: &[Against<'_>],
) -> anyhow::Result<Vec<WorstFigure>> {
    let Some((ceiling, simulated)) = rows.split_last() else {
        return Ok(Vec::new());
    };
    let mut all: Vec<(&Against<'_>, usize, &FigurePair)> = Vec::new();
    for row in simulated {
        all.extend(
            worst(&row.pairs)
                .into_iter()
                .map(|(at, cell)| (row, at, cell)),
        );
    }
    // Stable: of equal figures that of the first row.
    let factor = |cell: &FigurePair| cell.factor.unwrap_or(0.0);
    all.sort_by(|(.., a), (.., b)| factor(b).total_cmp(&factor(a)));
    let shown = all.into_iter().take(asked.worst);
    let shown = shown.map(|(row, at, cell)| {
        let (play, kept) = &plays[row.plays[at]];
        Ok(WorstFigure {
            row: row.name.to_owned(),
            workload: kept.run.load.clone(),
            policy: kept.run.policy.clone(),
            seed: play.seed,
            cell: cell.clone(),
            ceiling: of_ceiling(ceiling, &kept.run, cell),
            again: again(asked.plays, play),
            simulate: simulate(services, (asked.plays, play, kept), row.name)?,
            first: None,
        })
    });
    shown.collect()
}

/// The factor of the same figure between the two plays of the same workload under the same policy.
fn of_ceiling(ceiling: &Against<'_>, run: &MachineRun, cell: &FigurePair) -> Option<f64> {
    let same = |pair: &&Pair<'_>| {
        (&pair.reference.load, &pair.reference.policy) == (&run.load, &run.policy)
    };
    let cells = &ceiling.pairs.iter().find(same)?.cells;
    let same = |it: &&FigurePair| it.group == cell.group && it.measure == cell.measure;
    cells.iter().find(same)?.factor
}

/// The command that plays it again and simulates it beside.
fn again(request: &PlaysRequest, play: &Play) -> String {
    let asked = &request.asked;
    let file = request.load_file(play).display().to_string();
    let (cpus, seed, span) = (
        asked.cpus.to_string(),
        play.seed.to_string(),
        span_of(request),
    );
    let mut words = Vec::new();
    if asked.machine == "vm" {
        words.extend([
            "runslice",
            "vm",
            "--det",
            "--kernel",
            &asked.kernel,
            "--cpus",
            &cpus,
            "--",
        ]);
    }
    words.extend([
        "runslice",
        "play",
        &file,
        "--policy",
        &asked.policies[play.policy],
    ]);
    words.extend(["--seed", &seed, "--for", &span, "--against-sim"]);
    words::command(&words)
}

/// The command that simulates it.
fn simulate(services: &Services<'_>, of: KeptPlay<'_>, profile: &str) -> anyhow::Result<String> {
    let (request, play, kept) = of;
    let machine = &kept.machine;
    let file = request.load_file(play).display().to_string();
    let policy = simulated::policy(services, of)?;
    let [cpus, hz] = [machine.cpus.to_string(), machine.hz.to_string()];
    let (seed, span) = (play.seed.to_string(), span_of(request));
    let mut words = vec!["runslice", "sim", &policy, "-w", &file];
    words.extend([
        "--cpus",
        &cpus,
        "--hz",
        &hz,
        "--kernel",
        machine.kernel.name(),
    ]);
    words.extend(["--profile", profile, "--seed", &seed, "--duration", &span]);
    let before = format!("{}ns", kept.run.before_ns);
    if kept.run.before_ns > 0 || !request.workload(services, play)?.interrupts.is_empty() {
        words.extend(["--as-played", &before]);
    }
    Ok(words::command(&words))
}

/// The length of each run as an option.
#[must_use]
pub fn span_of(request: &PlaysRequest) -> String {
    let ns = request.asked.duration_ns;
    let units = [
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let whole = units.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit));
    let (unit, name) = whole.unwrap_or((1, "ns"));
    format!("{}{name}", ns / unit)
}
