//! Options of a question, out of Python's values, and the command line that has the same.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use ask::error::UsageError;
use ask::kernel;
use ask::machine::{CPUS_MAX, MachineChange, SMT_MAX, parse_governor, parse_hz, parse_smt_share};
use ask::policy::{Preparation, setting, setup};
use ask::program::ProgramOptions;
use ask::sub;
use ask::workload_arg::{parse_duration, parse_scale};
use model::{Advice as _, Advised, Nanos, SubSpec};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use show::Format;
use show::format::OfferedFormats;

use crate::errors::usage;
use crate::wait::at_once;

/// Options with their values, as a command line has them; a result says which one gives the same.
#[derive(Clone, Debug, Default)]
pub struct Words(Vec<(&'static str, Option<String>)>);

impl Words {
    /// Adds an option.
    pub fn put(&mut self, option: &'static str, value: impl Into<String>) {
        self.0.push((option, Some(value.into())));
    }

    /// All options but these.
    pub fn without(&self, options: &[&str]) -> Self {
        let others = self.0.iter().filter(|(it, _)| !options.contains(it));
        Self(others.cloned().collect())
    }

    /// The words behind those of `front`.
    pub fn behind(&self, front: Vec<String>) -> Vec<String> {
        let words = self.0.iter().flat_map(|(option, value)| {
            let option = format!("--{}", option.replace('_', "-"));
            [Some(option), value.clone()].into_iter().flatten()
        });
        front.into_iter().chain(words).collect()
    }
}

/// The command line with a format behind it.
pub fn in_format(words: &[String], format: &str) -> Vec<String> {
    [words, &["--format".to_owned(), format.to_owned()]].concat()
}

/// The words of a command line up to the verb.
pub fn verb(verb: &str) -> impl Iterator<Item = String> + use<> {
    ["runslice", verb].map(str::to_owned).into_iter()
}

/// The format of this name, of those that an answer has.
///
/// # Errors
/// When it has no such format.
pub fn format_of(name: &str, offered: OfferedFormats) -> Result<Format, UsageError> {
    Format::of(name, offered).ok_or_else(|| {
        let names: Vec<&str> = offered.iter().map(|(format, _)| format.name()).collect();
        none_of("--format <FORMAT>", name, &names)
    })
}

/// One of `all`, or the words for a wrong one.
///
/// # Errors
/// When it is none.
pub fn one_of<'a>(option: &str, text: &str, all: &[&'a str]) -> Result<&'a str, UsageError> {
    let found = all.iter().find(|it| **it == text).copied();
    found.ok_or_else(|| none_of(option, text, all))
}

fn none_of(option: &str, text: &str, all: &[&str]) -> UsageError {
    let what = format!("invalid value `{text}` for `{option}`");
    UsageError::new(Advised::new(what, format!("there are: {}", all.join(", "))))
}

/// Python's values by the names of the options, as they are read.
pub struct Options<'py> {
    given: Bound<'py, PyDict>,
    /// Those that were read.
    pub words: Words,
}

impl<'py> Options<'py> {
    /// None of them is read yet.
    pub fn new(given: Bound<'py, PyDict>) -> Self {
        let words = Words::default();
        Self { given, words }
    }

    /// A whole number in `range`.
    pub fn number<T: TryFrom<u64>>(
        &mut self,
        option: &'static str,
        range: RangeInclusive<u64>,
    ) -> PyResult<Option<T>> {
        let Some(value) = self.given.get_item(option)? else {
            return Ok(None);
        };
        let number = value.extract::<u64>();
        let inside = number.as_ref().ok().filter(|it| range.contains(it));
        if let Some(Ok(found)) = inside.map(|it| T::try_from(*it)) {
            self.words.put(option, value.str()?.to_string());
            return Ok(Some(found));
        }
        let (least, most) = (range.start(), range.end());
        let todo = if number.is_err() {
            "give a whole number that is not below 0".to_owned()
        } else if *most == u64::MAX {
            format!("give a number from {least} on")
        } else {
            format!("give a number from {least} to {most}")
        };
        Err(no_value(&value.str()?.to_string(), option, &todo))
    }

    /// What `parse` reads in the text of the value.
    pub fn parsed<T, E: Into<Advised>>(
        &mut self,
        option: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> PyResult<Option<T>> {
        let Some(value) = self.given.get_item(option)? else {
            return Ok(None);
        };
        self.read(option, value.str()?.to_string(), parse).map(Some)
    }

    /// What `parse` reads in each text of a list.
    pub fn all<T, E: Into<Advised>>(
        &mut self,
        option: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> PyResult<Vec<T>> {
        let value = self.given.get_item(option)?;
        let texts: Vec<String> = value.map_or(Ok(Vec::new()), |it| it.extract())?;
        let texts = texts.into_iter();
        texts.map(|it| self.read(option, it, &parse)).collect()
    }

    fn read<T, E: Into<Advised>>(
        &mut self,
        option: &'static str,
        text: String,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> PyResult<T> {
        let read =
            parse(&text).map_err(|error| no_value(&text, option, &error.into().in_full()))?;
        self.words.put(option, text);
        Ok(read)
    }

    /// A text, such as a path.
    pub fn text(&mut self, option: &'static str) -> PyResult<Option<String>> {
        self.parsed(option, |text| Ok::<_, String>(text.to_owned()))
    }

    /// Whether something is wanted.
    pub fn flag(&mut self, option: &'static str) -> PyResult<bool> {
        let value = self.given.get_item(option)?;
        let is_set = value.map_or(Ok(false), |it| it.is_truthy())?;
        if is_set {
            self.words.0.push((option, None));
        }
        Ok(is_set)
    }

    /// Changes to the machine.
    pub fn machine(&mut self) -> PyResult<MachineChange> {
        let most = u64::from(CPUS_MAX);
        Ok(MachineChange {
            cpus: self.number("cpus", 1..=most)?,
            smt: self.number("smt", 1..=SMT_MAX.into())?,
            llc: self.number("llc", 0..=most)?,
            node: self.number("node", 0..=most)?,
            hz: self.parsed("hz", parse_hz)?,
            kernel: self.parsed("kernel", kernel::parse)?,
            profile: self.text("profile")?,
            smt_share: self.parsed("smt_share", parse_smt_share)?,
            interleave: self.parsed("interleave", str::parse)?,
            hardware: self.text("hardware")?,
            governor: self.parsed("governor", parse_governor)?,
            corner: None,
            textbook: self.parsed("machine", str::parse)?,
        })
    }

    /// The seed of the first run.
    pub fn seed(&mut self) -> PyResult<Option<u64>> {
        self.number("seed", 0..=u64::MAX)
    }

    /// How many threads work.
    pub fn jobs(&mut self) -> PyResult<Option<NonZeroUsize>> {
        let count = self.number("jobs", 1..=u64::MAX)?;
        Ok(count.and_then(NonZeroUsize::new))
    }

    /// When a run ends at the latest.
    pub fn duration(&mut self) -> PyResult<Option<Nanos>> {
        self.parsed("duration", parse_duration)
    }

    /// Parameters of the load.
    pub fn scale(&mut self) -> PyResult<Vec<(String, i64)>> {
        self.all("scale", parse_scale)
    }

    /// How schedulers' own programs run.
    pub fn programs(&mut self) -> PyResult<ProgramOptions> {
        let cpu = self.parsed("loader_cpu", |text| match text {
            "simulated" => Ok(false),
            "free" => Ok(true),
            _ => Err("there are: simulated, free".to_owned()),
        })?;
        Ok(ProgramOptions {
            free: cpu.unwrap_or(false),
            net: self.flag("loader_net")?,
            folder: self.text("loader_dir")?.map(PathBuf::from),
        })
    }

    /// Schedulers below every policy.
    pub fn subs(&mut self) -> PyResult<Vec<SubSpec>> {
        let texts = self.all("sub", |text| Ok::<_, String>(text.to_owned()))?;
        at_once(self.given.py(), |services| sub::find_all(services, &texts))
    }

    /// What a policy's loader would do.
    pub fn preparation(&mut self) -> PyResult<Preparation> {
        Ok(Preparation {
            set: self.all("set", setting)?,
            run: self.all("run", setup)?,
            run_attached: self.all("run_attached", setup)?,
            ops: self.text("ops")?,
        })
    }
}

fn no_value(text: &str, option: &str, todo: &str) -> PyErr {
    let option = option.replace('_', "-");
    usage(Advised::new(
        format!("invalid value `{text}` for `--{option}`"),
        todo,
    ))
}
