//! Races between the callbacks of a policy, and whether another order shows them.

use bpf::SourceLine;
use model::{Advised, Exit, Interleave, Nanos, SimTime, Stall};
use sim::{FoundRace, Interleaved, MetWrite, RaceClass, Simulation};
use workload::RunSpec;

use crate::error::{Error, UsageError, of_run};
use crate::services::Services;
use crate::violation;

/// Lengths of stalls that are tried, the shortest first.
const SPANS: [Nanos; 4] = [
    Nanos::from_micros(20),
    Nanos::from_micros(200),
    Nanos::from_millis(2),
    Nanos::from_millis(20),
];
/// Pairs of a variable that are tried.
const MOST_TRIED: usize = 4;

/// Looks for races in a run.
#[derive(Clone, Debug)]
pub struct Races {
    /// The run. Its order is that of atomic callbacks.
    pub spec: RunSpec,
    /// Variables of which races are known and accepted.
    pub accepted: Vec<String>,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct RaceReport {
    /// By variable, the worst first.
    pub variables: Vec<RacingVariable>,
    /// Variables that race and are accepted.
    pub accepted: Vec<String>,
    /// Accesses that were looked at.
    pub accesses: u64,
    /// How the run ended without any stall.
    pub exit: Exit,
}

/// A variable on which callbacks race.
#[derive(Clone, Debug)]
pub struct RacingVariable {
    /// Its pairs of lines, the worst first; at least one.
    pub pairs: Vec<FoundRace>,
    /// What shows it, if anything that was tried does.
    pub shown: Option<ShownRace>,
}

/// A stall in which another CPU wrote what was about to be overwritten.
#[derive(Clone, Debug)]
pub struct ShownRace {
    /// Where a CPU stops, and how long.
    pub stall: Stall,
    /// The lines that met.
    pub met: FoundRace,
    /// Why the policy was ejected then, if it was.
    pub exit: Option<Exit>,
}

/// What a stall of a run has let happen: another CPU wrote what a CPU was about to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetRace {
    /// The variable.
    pub variable: String,
    /// The line that had read it before, if one had.
    pub reads: Option<String>,
    /// The line before which the CPU stopped.
    pub writes: String,
    /// The line of the other CPU.
    pub other: String,
    /// Which CPUs, and when.
    pub met: MetWrite,
}

/// The races that the stalls of a run show; none of a run without stalls.
///
/// # Errors
/// When policy, load or machine are bad.
pub fn met(spec: &RunSpec, options: sim::Options) -> anyhow::Result<Vec<MetRace>> {
    let has_stalls = matches!(
        spec.machine.interleave,
        Some(Interleave::At(_) | Interleave::Seeded { .. })
    );
    if !has_stalls || spec.policy.program.is_some() {
        return Ok(Vec::new());
    }
    let run = Simulation::new(spec).with_options(options);
    let finished = run.looking_for_races().start().map_err(of_run)?;
    let races = finished.interleaved.unwrap_or_default().races.into_iter();
    let met = races.filter_map(|race| {
        Some(MetRace {
            met: race.met?,
            reads: race.reads.as_ref().map(|it| place(Some(it))),
            writes: place(race.writes.as_ref()),
            other: place(race.other.as_ref()),
            variable: race.variable,
        })
    });
    Ok(met.collect())
}

/// Races by their variables, in the order of the worst of each.
fn by_variable(races: Vec<FoundRace>) -> Vec<RacingVariable> {
    let mut variables: Vec<RacingVariable> = Vec::new();
    for race in races {
        let known = variables.iter_mut();
        let mut known = known.filter(|it| it.worst().variable == race.variable);
        match known.next() {
            Some(known) => known.pairs.push(race),
            None => variables.push(RacingVariable {
                pairs: vec![race],
                shown: None,
            }),
        }
    }
    variables
}

/// What a class is called.
#[must_use]
pub const fn word(class: RaceClass) -> &'static str {
    match class {
        RaceClass::LostUpdate => "lost update",
        RaceClass::TwoWriters => "two writers",
        RaceClass::Reader => "read while it is written",
    }
}

/// A line of a policy, for people.
#[must_use]
pub fn place(line: Option<&SourceLine>) -> String {
    line.map_or_else(
        || "?".to_owned(),
        |it| match &it.file {
            Some(file) => format!("{file}:{} ({})", it.line, it.function),
            None => it.function.clone(),
        },
    )
}

impl RacingVariable {
    /// The worst pair.
    ///
    /// # Panics
    /// If it has none.
    #[must_use]
    pub fn worst(&self) -> &FoundRace {
        self.pairs.first().expect("a variable has a pair")
    }
}

impl Races {
    /// Makes the run, and one for each variable that shows its race if it can.
    ///
    /// # Errors
    /// When policy, load or machine are bad, or nobody waits any more.
    pub fn ask(&self, services: &Services<'_>) -> Result<RaceReport, Error> {
        Ok(self.answer(services)?)
    }

    fn answer(&self, services: &Services<'_>) -> anyhow::Result<RaceReport> {
        let (found, exit) = self.run(services, Vec::new(), None)?;
        let mut variables = by_variable(found.races);
        self.check_accepted(&variables)?;
        let is_accepted = |it: &RacingVariable| self.accepted.contains(&it.worst().variable);
        let accepted = variables.extract_if(.., |it| is_accepted(it));
        let accepted = accepted.map(|it| it.worst().variable.clone()).collect();
        for variable in &mut variables {
            variable.shown = self.show(services, variable)?;
        }
        Ok(RaceReport {
            variables,
            accepted,
            accesses: found.points,
            exit,
        })
    }

    /// The variables on which callbacks race, without those of `accepted`, which races of another
    /// run have named.
    pub(crate) fn others(&self, services: &Services<'_>) -> anyhow::Result<Vec<RacingVariable>> {
        let (found, _) = self.run(services, Vec::new(), None)?;
        let mut variables = by_variable(found.races);
        variables.retain(|it| !self.accepted.contains(&it.worst().variable));
        for variable in &mut variables {
            variable.shown = self.show(services, variable)?;
        }
        Ok(variables)
    }

    /// Refuses a name that no variable of the policy can have: its race would never be accepted.
    fn check_accepted(&self, racing: &[RacingVariable]) -> anyhow::Result<()> {
        if self.accepted.is_empty() {
            return Ok(());
        }
        let image = sim::image(&self.spec.policy, &self.spec.machine).map_err(of_run)?;
        let unknown = self.accepted.iter().find(|name| !image.may_name(name));
        let Some(unknown) = unknown else {
            return Ok(());
        };
        let known = racing.iter().map(|it| it.worst().variable.as_str());
        let known: Vec<&str> = known.collect();
        let message = format!(
            "no variable of `{}` is called `{unknown}`",
            self.spec.policy.name
        );
        let advice = match known.as_slice() {
            [] => "`check --races` names variables as `--accepted` takes them".to_owned(),
            known => model::suggest::hint(unknown, known.iter().copied()),
        };
        Err(UsageError::new(Advised::new(message, advice)).into())
    }

    /// Lets a CPU stop before the write, until another one has written.
    fn show(
        &self,
        services: &Services<'_>,
        variable: &RacingVariable,
    ) -> anyhow::Result<Option<ShownRace>> {
        let pairs = variable.pairs.iter().take(MOST_TRIED);
        for race in pairs.filter(|race| race.class != RaceClass::Reader) {
            for span in SPANS {
                let point = race.point;
                let stall = Stall { point, span };
                // Nothing that comes behind the stall makes it a race.
                let end = race.at.since(SimTime::ZERO) + span;
                let (found, _) = self.run(services, vec![stall], Some(end))?;
                let mut met = found.races.into_iter();
                let met = met.find(|it| it.met.is_some() && it.variable == race.variable);
                if let Some(met) = met {
                    let spec = self.order(vec![stall], None);
                    let run = Simulation::new(&spec).with_options(violation::options());
                    let exit = run.start().map_err(of_run)?.summary.exit;
                    let exit = Some(exit).filter(|exit| exit.kind.is_error());
                    return Ok(Some(ShownRace { stall, met, exit }));
                }
            }
        }
        Ok(None)
    }

    /// The run with these stalls, up to `end` if that is given.
    fn order(&self, stalls: Vec<Stall>, end: Option<Nanos>) -> RunSpec {
        let mut spec = self.spec.clone();
        spec.machine.interleave = Some(Interleave::At(stalls));
        spec.duration = spec.duration.into_iter().chain(end).min();
        spec
    }

    fn run(
        &self,
        services: &Services<'_>,
        stalls: Vec<Stall>,
        end: Option<Nanos>,
    ) -> anyhow::Result<(Interleaved, Exit)> {
        services.check()?;
        let spec = self.order(stalls, end);
        let run = Simulation::new(&spec).with_options(violation::options());
        let finished = run.looking_for_races().start().map_err(of_run)?;
        let found = finished.interleaved.unwrap_or_default();
        Ok((found, finished.summary.exit))
    }
}
