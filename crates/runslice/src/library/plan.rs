//! Plans of many runs, for engines that make them elsewhere.
//!
//! A plan has cells. A cell is a policy under a workload on a machine; a run is a cell with a seed.
//! What a cell is made of travels as two byte strings, its object and all the rest, so that a
//! worker gets each of them once however many runs it makes.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, bail, ensure};
use model::{Advised, Nanos};
use serde_json::Value;
use stats::compare::measures;
use workload::RunSpec;

use crate::about::About;
use crate::bundle::{Bound, Bundle};
use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::export::{ExportTable, Form, Kind, MACHINE, machine_cells};
use crate::plan::{self, Planned, Programs};
use ask::program::ProgramOptions;

use crate::scheduler;
use crate::store::{self, SIMULATES, fingerprint};
use crate::workload_arg::Written;
use crate::{recording, runs, sets};

use super::failure::{Answer, Failure, answer};
use super::given::Load;
use super::run::Request;

/// The runs that a sweep's file or a list of requests asks for. Of a run only its seed is kept.
#[derive(Debug)]
pub struct Plan {
    cells: Vec<Planning>,
    runs: usize,
}

/// A cell of the plan.
#[derive(Debug)]
struct Planning {
    /// With the first seed.
    run: Planned,
    /// Where its workload comes from.
    source: Source,
    /// A run for each.
    seeds: Vec<u64>,
    /// The number of its first run.
    begin: usize,
}

/// Where the workload of a cell comes from.
#[derive(Clone, Debug)]
enum Source {
    /// From its name.
    Named,
    /// From a text that is in no file.
    Text(Arc<Written>),
    /// From a recording.
    Recorded,
}

/// A cell with its seeds, before its runs are counted.
type Found = (Planned, Source, Vec<u64>);

/// A cell that a worker makes runs of.
#[derive(Clone, Debug)]
pub struct Cell(Planned);

impl Plan {
    /// The runs of a sweep's file, in its order.
    ///
    /// # Errors
    /// As `runslice sweep`.
    pub fn read(path: &Path) -> Result<Answer<Self>, Failure> {
        answer(|| {
            let programs = Programs {
                commands: &[],
                options: &ProgramOptions::default(),
            };
            let cells = plan::read_cells(&COMPUTER, path, programs)?;
            let cells = cells
                .into_iter()
                .map(|(run, seeds)| (run, Source::Named, seeds));
            Ok(Self::of_cells(cells))
        })
    }

    /// The runs of requests, request by request.
    ///
    /// # Errors
    /// As `runslice sim` for the first request that is wrong, with its number.
    pub fn of(requests: &[Request]) -> Result<Answer<Self>, Failure> {
        answer(|| {
            let mut cells = Vec::new();
            for (at, request) in requests.iter().enumerate() {
                let place = format!("request {}", at + 1);
                let more = cells_of(request, &place).with_context(|| place.clone())?;
                cells.extend(more);
            }
            Ok(Self::of_cells(cells.into_iter()))
        })
    }

    fn of_cells(cells: impl Iterator<Item = Found>) -> Self {
        let mut runs = 0;
        let cells = cells.map(|(run, source, seeds)| {
            let begin = runs;
            runs += seeds.len();
            Planning {
                run,
                source,
                seeds,
                begin,
            }
        });
        let cells = cells.collect();
        Self { cells, runs }
    }

    /// Number of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// Number of cells.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// Attaches each policy once, so that a wrong knob is told before hours of runs.
    ///
    /// # Errors
    /// When one cannot be attached.
    pub fn try_policies(&self) -> Result<Answer<()>, Failure> {
        answer(|| plan::try_policies(&COMPUTER, self.cells.iter().map(|cell| &cell.run)))
    }

    /// The cell and the seed of run `index`; `None` if there are not so many.
    #[must_use]
    pub fn run(&self, index: usize) -> Option<(usize, u64)> {
        let at = self
            .cells
            .partition_point(|cell| cell.begin <= index)
            .checked_sub(1)?;
        let cell = &self.cells[at];
        let seed = cell.seeds.get(index - cell.begin)?;
        Some((at, *seed))
    }

    /// The key under which the results of run `index` are kept.
    ///
    /// # Errors
    /// When there is no such run.
    pub fn key(&self, index: usize) -> Result<String, Failure> {
        Ok(self.planned(index)?.key(SIMULATES).to_string())
    }

    /// The key of the run of a cell with a seed.
    ///
    /// # Errors
    /// When there is no such cell.
    pub fn key_of(&self, cell: usize, seed: u64) -> Result<String, Failure> {
        let cell = self.cells.get(cell).context("the plan has no such cell")?;
        Ok(cell
            .run
            .with_seed(SIMULATES, seed)
            .key(SIMULATES)
            .to_string())
    }

    fn planned(&self, index: usize) -> anyhow::Result<Planned> {
        let Some((cell, seed)) = self.run(index) else {
            let message = format!("there is no run {index}: the plan has {}", self.runs);
            return Err(UsageError::new(message).into());
        };
        Ok(self.cells[cell].run.with_seed(SIMULATES, seed))
    }

    /// The cell as it is here, for workers of this process.
    #[must_use]
    pub fn cell(&self, cell: usize) -> Option<Cell> {
        self.cells.get(cell).map(|it| Cell(it.run.clone()))
    }

    /// The object of a cell; empty if there is no such cell.
    #[must_use]
    pub fn object(&self, cell: usize) -> &[u8] {
        let cell = self.cells.get(cell);
        cell.map_or(&[], |it| &it.run.spec.policy.object)
    }

    /// All that a cell is but its object, for another process.
    ///
    /// # Errors
    /// When it has what only this process can reach: a scheduler's own program, or a trace.
    pub fn rest(&self, cell: usize) -> Result<Vec<u8>, Failure> {
        let cell = self.cells.get(cell);
        let rest = cell
            .context("the plan has no such cell")
            .and_then(Planning::rest);
        Ok(rest?)
    }

    /// A name of the whole plan: the same runs have the same, in every process.
    #[must_use]
    pub fn id(&self) -> String {
        let cells = self.cells.iter().flat_map(|cell| {
            let key = cell.run.key(SIMULATES).to_string();
            let seeds = cell.seeds.iter().flat_map(|seed| seed.to_le_bytes());
            key.into_bytes()
                .into_iter()
                .chain(seeds)
                .collect::<Vec<_>>()
        });
        format!("{:032x}", fingerprint(cells.collect::<Vec<_>>()))
    }

    /// What every metric was in the runs from `begin` up to `end`, as a Parquet file: a row for
    /// each metric of each run.
    ///
    /// # Errors
    /// When one of them is not in the store.
    pub fn part(&self, store: &Store, begin: usize, end: usize) -> Result<Vec<u8>, Failure> {
        let part = || -> anyhow::Result<Vec<u8>> {
            let mut table = ExportTable::new(RUN.into_iter().chain(MACHINE).chain(MEASURED));
            for index in begin..end.min(self.runs) {
                let run = self.planned(index)?;
                let key = run.key(SIMULATES);
                let line = store
                    .0
                    .get(key)
                    .with_context(|| format!("run {index} ({}) is not in the store", run.place))?;
                rows(index, &run, &serde_json::from_str(&line)?, &mut table);
            }
            let mut bytes = Vec::new();
            table.write(PARQUET, &mut bytes)?;
            Ok(bytes)
        };
        Ok(part()?)
    }

    /// Writes `results.json` of the store, as `runslice sweep` does.
    ///
    /// # Errors
    /// When a run is not in the store, or the file cannot be written.
    pub fn finish(&self, store: &Store) -> Result<String, Failure> {
        let finish = || -> anyhow::Result<String> {
            let lines = (0..self.runs).map(|index| {
                let run = self.planned(index)?;
                let gone = || format!("run {index} ({}) is not in the store", run.place);
                store.0.get(run.key(SIMULATES)).with_context(gone)
            });
            let path = store.0.finish(sets::SWEEP, lines)?;
            Ok(path.display().to_string())
        };
        Ok(finish()?)
    }
}

/// Parquet, where this program has it.
#[cfg(feature = "parquet")]
const PARQUET: Form = Form::Parquet;
/// Without Parquet the parts are CSV.
#[cfg(not(feature = "parquet"))]
const PARQUET: Form = Form::Csv;

/// The columns of a part: which run it is, its machine, and what was measured.
const RUN: [(&str, Kind); 9] = [
    ("schema", Kind::Text),
    ("version", Kind::Text),
    ("run", Kind::Whole),
    ("key", Kind::Text),
    ("place", Kind::Text),
    ("policy", Kind::Text),
    ("knobs", Kind::Text),
    ("workload", Kind::Text),
    ("scale", Kind::Text),
];
const MEASURED: [(&str, Kind); 7] = [
    ("seed", Kind::Whole),
    ("duration_ns", Kind::Whole),
    ("exit", Kind::Text),
    ("metric", Kind::Text),
    ("measure", Kind::Text),
    ("better", Kind::Text),
    ("value", Kind::Real),
];

/// Version of the columns; it grows when one is removed or changes its meaning.
const VERSION: u32 = 1;

fn rows(index: usize, run: &Planned, line: &Value, table: &mut ExportTable) {
    let RunSpec {
        policy,
        workload,
        machine,
        seed,
        duration,
        ..
    } = &run.spec;
    let pairs = |all: Vec<String>| all.join(",");
    let knobs = policy
        .set
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let scale = run
        .scale
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let exit = line["exit"]["reason"].as_str().unwrap_or_default();
    let begin = [
        format!("runslice_sweep_metrics/{VERSION}"),
        About::VERSION.to_owned(),
        index.to_string(),
        run.key(SIMULATES).to_string(),
        sets::own::place_of(line),
        policy.name.clone(),
        pairs(knobs.collect()),
        workload.name.clone(),
        pairs(scale.collect()),
    ];
    let end = [
        seed.to_string(),
        duration.map_or_else(String::new, |it: Nanos| it.get().to_string()),
        exit.to_owned(),
    ];
    let machine = machine_cells(machine);
    let front = begin.iter().chain(&machine).chain(&end).cloned();
    for measured in measures(&line["report"]) {
        let word = |value: Value| value.as_str().unwrap_or_default().to_owned();
        let value = measured.value;
        let row = [
            measured.name.clone(),
            word(serde_json::to_value(measured.measure).unwrap_or_default()),
            word(serde_json::to_value(measured.better).unwrap_or_default()),
            if value.is_finite() {
                value.to_string()
            } else {
                String::new()
            },
        ];
        table.row(front.clone().chain(row));
    }
}

/// The cells of a request: one for each policy.
fn cells_of(request: &Request, place: &str) -> anyhow::Result<Vec<Found>> {
    let (specs, options) = request.read()?;
    runs::refuse_recordings_of_runs(&specs)?;
    let place: Arc<str> = place.into();
    let load: Arc<str> = request.load.as_ref().map_or("", Load::word).into();
    let source = match &request.load {
        Some(Load::Text(written)) => Source::Text(Arc::clone(written)),
        Some(Load::Recorded(_)) => Source::Recorded,
        _ => Source::Named,
    };
    let cells = specs.into_iter().map(|mut spec| {
        let program = spec.policy.program.as_mut();
        if let Some(program) = program.filter(|it| it.recorded.is_none()) {
            // Another file of this name gives other results.
            program.file = scheduler::number_of_file(&program.command);
        }
        let seeds = match options.runs {
            None => vec![spec.seed],
            Some(count) => runs::seeded(&spec, count)
                .iter()
                .map(|it| it.seed)
                .collect(),
        };
        let run = Planned {
            spec,
            scale: options.scale.clone(),
            load: Arc::clone(&load),
            place: Arc::clone(&place),
            front: OnceLock::new(),
        };
        (run, source.clone(), seeds)
    });
    Ok(cells.collect())
}

impl Planning {
    /// See [`Plan::rest`]: the bundle of a run, without its object.
    fn rest(&self) -> anyhow::Result<Vec<u8>> {
        let spec = &self.run.spec;
        let name = &self.run.load;
        let stays = |what: &str| {
            let policy = &spec.policy.name;
            UsageError::new(Advised::new(
                format!(
                    "{}: {policy} under {name} has {what}, which no other process is given",
                    self.run.place
                ),
                "use threads, or `runslice sweep`",
            ))
        };
        if spec.policy.program.is_some() {
            bail!(stays("a scheduler's own program"));
        }
        let workload = match &self.source {
            Source::Text(written) => Written::clone(written),
            Source::Recorded => bail!(stays("a recording")),
            Source::Named if recording::is_recording(Path::new(&**name)) => {
                bail!(stays("a recording"))
            }
            Source::Named => Written::find(&COMPUTER, name)?,
        };
        let mut policy = spec.policy.clone();
        policy.object = [].into();
        let bundle = Bundle {
            policy,
            machine: spec.machine.clone(),
            bound: Some(Bound {
                workload,
                scale: self.run.scale.clone(),
                seed: spec.seed,
                duration_ns: spec.duration.map(Nanos::get),
            }),
        };
        Ok(bundle.write())
    }
}

impl Cell {
    /// A cell from what [`Plan::rest`] and [`Plan::object`] gave in another process.
    ///
    /// # Errors
    /// When they are of another version, or no cell.
    pub fn of(rest: &[u8], object: &[u8]) -> Result<Answer<Self>, Failure> {
        answer(|| {
            let mut bundle = Bundle::read(&COMPUTER, rest)?;
            let bound = bundle.bound.take().context("a cell without a run")?;
            ensure!(
                bundle.policy.object.is_empty(),
                "a cell with an object inside"
            );
            bundle.policy.object = Arc::from(object);
            let profile = bundle.machine.profile.clone();
            let load = bound
                .workload
                .parse(&COMPUTER, &bound.scale, &|_| Ok(profile.clone()))?;
            let place = bound.workload.file;
            Ok(Self(Planned {
                spec: RunSpec {
                    policy: bundle.policy,
                    workload: Arc::new(load),
                    machine: bundle.machine,
                    seed: bound.seed,
                    tie_seed: None,
                    attach_after: Nanos::ZERO,
                    duration: bound.duration_ns.map(Nanos::new),
                },
                scale: bound.scale,
                load: place.as_str().into(),
                place: place.into(),
                front: OnceLock::new(),
            }))
        })
    }

    /// Makes the run with this seed: its key, and the line that the store keeps.
    ///
    /// # Errors
    /// When the policy or the machine is bad.
    pub fn make(&self, seed: u64) -> Result<Answer<(String, String)>, Failure> {
        answer(|| {
            let run = self.0.with_seed(SIMULATES, seed);
            Ok((run.key(SIMULATES).to_string(), store::make(&run)?))
        })
    }
}

/// The folder of results that `runslice sweep` keeps.
#[derive(Debug)]
pub struct Store(store::Store);

impl Store {
    /// The store in this folder, which is made if it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        Ok(Self(store::Store::open(folder)?))
    }

    /// The results of a run as one line of JSON; `None` if they are not there, or not whole.
    ///
    /// # Errors
    /// When `key` is none.
    pub fn get(&self, key: &str) -> Result<Option<String>, Failure> {
        let key = key.parse().map_err(anyhow::Error::from)?;
        Ok(self.0.get(key))
    }

    /// Keeps the results of a run. Whoever reads sees the whole or nothing.
    ///
    /// # Errors
    /// When `key` is none, `line` is no line of results, or it cannot be written.
    pub fn put(&self, key: &str, line: &str) -> Result<(), Failure> {
        let put = || -> anyhow::Result<()> {
            let key = key.parse::<store::Key>()?;
            let value: Value = serde_json::from_str(line).context("no results")?;
            ensure!(
                value.get("report").is_some() && !line.contains('\n'),
                "no line of results"
            );
            self.0.put(key, line)
        };
        Ok(put()?)
    }
}
