//! A request, and how it is answered.

use std::sync::Mutex;

use anyhow::Context as _;
use ask::Services;
use ask::explain::{Explain, ExplainOf};
use ask::load_source::LoadSource;
use ask::machine::MachineChange;
use ask::note::Note;
use ask::runner::Runner;
use ask::simulate::{Simulate, Simulated};
use ask::{policy, workload_arg};
use model::Sink;
use serde::Deserialize;
use serde_json::{Value, json};
use show::figure::Collector;
use show::report::page::{self, PagePart};
use show::report::{human, json as as_json};
use show::{Look, Origin, Tone};
use stats::Metrics;
use traces::{Tee, TraceHash};
use workload::RunSpec;

use crate::bars::Bars;
use crate::catalogue;
use crate::files::PageFiles;

/// Columns of texts that are not asked for others.
const COLUMNS: usize = 80;

/// What a page asks. Names are those of the command line's options.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Request {
    /// The catalogue is asked for, and nothing else.
    list: bool,
    /// Policies as on the command line: `mlfq:queues=5`, or a file of the page.
    policies: Vec<String>,
    /// A load that is built in, or a file of the page.
    workload: Option<String>,
    cpus: Option<u16>,
    smt: Option<u16>,
    smt_share: Option<String>,
    hz: Option<u32>,
    kernel: Option<String>,
    profile: Option<String>,
    seed: Option<u64>,
    duration: Option<String>,
    runs: Option<u32>,
    /// What is wanted of the answer.
    want: Vec<Want>,
    /// Columns of texts.
    columns: Option<usize>,
    /// Names and lengths of files, whose bytes follow the head.
    files: Vec<(String, usize)>,
    #[serde(skip)]
    given: PageFiles,
}

/// A part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Want {
    /// What `sim` prints.
    Text,
    /// `sim --format json`.
    Json,
    /// `sim --format html`.
    Page,
    /// What `explain` prints about each policy.
    Explain,
    /// Number and hash of the events, as `sim --audit` has them.
    Hash,
    /// Who had which CPU when.
    Bars,
    /// Bars with decisions.
    Decisions,
}

impl Request {
    /// Reads the bytes of a request.
    ///
    /// # Errors
    /// When they are none.
    pub fn read(bytes: &[u8]) -> anyhow::Result<Self> {
        let (length, rest) = bytes.split_first_chunk().context("the request is cut")?;
        let length = u32::from_le_bytes(*length) as usize;
        let (head, mut rest) = rest
            .split_at_checked(length)
            .context("the request is cut")?;
        let mut request: Self = serde_json::from_slice(head).context("no request")?;
        for (name, length) in std::mem::take(&mut request.files) {
            let (file, behind) = rest
                .split_at_checked(length)
                .context("the request is cut")?;
            request.given.0.push((name, file.to_vec()));
            rest = behind;
        }
        Ok(request)
    }

    /// The answer.
    ///
    /// # Errors
    /// When a policy, a load or the machine is wrong.
    pub fn answer(&self) -> anyhow::Result<Value> {
        if self.list {
            return catalogue::all();
        }
        let notes = Mutex::new(Vec::new());
        let hears = |note: &Note| {
            if let Ok(mut notes) = notes.lock() {
                notes.push(note.text.clone());
            }
        };
        let services = Services {
            files: Some(&self.given),
            hears: Some(&hears),
            ..Services::default()
        };
        let question = self.question(&services)?;
        let specs = question.specs(&services).map_err(ask::Error::into_cause)?;
        let simulated = question.run(&services, specs);
        let simulated = simulated.map_err(ask::Error::into_cause)?;
        let mut answer = self.written(&simulated)?;
        if self.wants(Want::Page) {
            answer["page"] = self.page(&services, &question, &simulated)?.into();
        }
        let single = simulated
            .specs
            .iter()
            .map(|spec| self.single(&services, spec));
        answer["runs"] = single.collect::<anyhow::Result<Vec<Value>>>()?.into();
        answer["notes"] = notes.into_inner().unwrap_or_default().into();
        Ok(answer)
    }

    fn wants(&self, want: Want) -> bool {
        self.want.contains(&want)
    }

    fn question(&self, services: &Services<'_>) -> anyhow::Result<Simulate> {
        let schedulers = self.policies.iter().map(|it| policy::open(services, it));
        let duration = self.duration.as_deref().map(workload_arg::parse_duration);
        let kernel = self.kernel.as_deref().map(ask::kernel::parse);
        let smt_share = self.smt_share.as_deref().map(ask::machine::parse_smt_share);
        Ok(Simulate {
            schedulers: schedulers.collect::<anyhow::Result<_>>()?,
            load: self
                .workload
                .as_deref()
                .map(|it| LoadSource::Named(it.into())),
            machine: MachineChange {
                cpus: self.cpus,
                smt: self.smt,
                hz: self.hz,
                kernel: kernel.transpose().map_err(anyhow::Error::msg)?,
                profile: self.profile.clone(),
                smt_share: smt_share.transpose().map_err(anyhow::Error::msg)?,
                ..MachineChange::default()
            },
            seed: self.seed,
            duration: duration.transpose().map_err(anyhow::Error::msg)?,
            runs: self.runs.filter(|runs| *runs > 1),
            ..Simulate::default()
        })
    }

    /// The same as a command line.
    fn origin(&self) -> Origin {
        let mut words: Vec<String> = vec!["runslice".into(), "sim".into()];
        words.extend(self.policies.iter().cloned());
        let options = [
            ("--workload", self.workload.clone()),
            ("--cpus", self.cpus.map(|it| it.to_string())),
            ("--smt", self.smt.map(|it| it.to_string())),
            ("--smt-share", self.smt_share.clone()),
            ("--hz", self.hz.map(|it| it.to_string())),
            ("--kernel", self.kernel.clone()),
            ("--profile", self.profile.clone()),
            ("--seed", self.seed.map(|it| it.to_string())),
            ("--duration", self.duration.clone()),
            (
                "--runs",
                self.runs.filter(|it| *it > 1).map(|it| it.to_string()),
            ),
        ];
        for (option, value) in options {
            words.extend(value.into_iter().flat_map(|it| [option.to_owned(), it]));
        }
        Origin::new(words)
    }

    fn written(&self, simulated: &Simulated) -> anyhow::Result<Value> {
        let (results, origin) = (&simulated.results, self.origin());
        let is_many = self.runs.is_some_and(|runs| runs > 1);
        let mut answer = json!({ "command": origin.again() });
        if self.wants(Want::Text) {
            let look = Look {
                width: Some(self.columns.unwrap_or(COLUMNS)),
                ..Look::default()
            };
            let mut bytes = Vec::new();
            if is_many {
                show::report::runs::write(results, look, &mut bytes)?;
            } else {
                human::write(results, look, &mut bytes)?;
            }
            // The page has no colours of a terminal.
            bytes.retain(|byte| Tone::of_mark(*byte).is_none());
            answer["text"] = String::from_utf8(bytes)?.into();
        }
        if self.wants(Want::Json) {
            let mut bytes = Vec::new();
            if is_many {
                as_json::write_runs(results, &origin, &mut bytes)?;
            } else {
                as_json::write(results, &origin, &mut bytes)?;
            }
            answer["json"] = String::from_utf8(bytes)?.into();
        }
        Ok(answer)
    }

    /// The page of the runs, each made once more for what is drawn of it.
    fn page(
        &self,
        services: &Services<'_>,
        question: &Simulate,
        simulated: &Simulated,
    ) -> anyhow::Result<String> {
        let is_many = question.runs.is_some();
        let (mut tails, mut collected) = (Vec::new(), Vec::new());
        for spec in &simulated.specs {
            let mut metrics = Metrics::new();
            let mut collector = Collector::of_load(&spec.header(None));
            let mut sinks = Tee::new(vec![&mut metrics, &mut collector]);
            Runner::new(spec, services).with_sink(&mut sinks).start()?;
            tails.push((spec.policy.name.clone(), metrics.tails()));
            collected.extend((!is_many).then_some(collector));
        }
        let part = PagePart {
            results: &simulated.results,
            tails,
            collected,
        };
        let mut bytes = Vec::new();
        page::write(part, is_many, &self.origin(), &mut bytes)?;
        Ok(String::from_utf8(bytes)?)
    }

    /// What is wanted of the first run of one policy.
    fn single(&self, services: &Services<'_>, spec: &RunSpec) -> anyhow::Result<Value> {
        let mut answer = json!({ "policy": spec.policy.name });
        let is_drawn = self.wants(Want::Bars) || self.wants(Want::Decisions);
        let mut hash = self.wants(Want::Hash).then(TraceHash::new);
        let mut bars = is_drawn.then(|| Bars::new(self.wants(Want::Decisions)));
        let mut sinks: Vec<&mut dyn Sink> = Vec::new();
        sinks.extend(hash.as_mut().map(|it| it as &mut dyn Sink));
        sinks.extend(bars.as_mut().map(|it| it as &mut dyn Sink));
        if !sinks.is_empty() {
            let mut sinks = Tee::new(sinks);
            Runner::new(spec, services).with_sink(&mut sinks).start()?;
        }
        if let Some(hash) = hash {
            answer["events"] = hash.count().into();
            answer["hash"] = format!("{:016x}", hash.value()).into();
        }
        if let Some(bars) = bars {
            answer["bars"] = serde_json::to_value(&bars)?;
        }
        if self.wants(Want::Explain) {
            let explain = Explain {
                of: ExplainOf::Run(Box::new(spec.clone()), sim::Options::default()),
                task: None,
                worst: None,
                right: None,
            };
            let told = explain.ask(services).map_err(ask::Error::into_cause)?;
            let columns = self.columns.unwrap_or(COLUMNS);
            answer["explain"] = show::explanation::text::of(&told, columns).into();
        }
        Ok(answer)
    }
}
