//! Comparisons of sets of runs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;
use serde_json::Value;
use stats::compare::{Row, Settings};

use crate::about::About;
use crate::comparison::{
    Asking, Compared, Family, Form, refuse_nothing, status, table_of, verdict, write,
};
use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::export::ExportTable;
use crate::look::WidthOptions;
use crate::output;
use crate::sets::{self, File};

use super::failure::{Answer, Failure, answer};
use super::run::Run;

/// Runs to compare.
#[derive(Clone, Debug)]
pub enum Set {
    /// A file or folder, as on the command line.
    File(PathBuf),
    /// A document of `--format json` that is in no file.
    Document {
        /// What the file would be called.
        name: String,
        /// The document.
        bytes: Vec<u8>,
    },
}

/// The options that a comparison may have.
#[derive(Debug, Parser)]
#[command(
    name = "runslice compare",
    no_binary_name = true,
    disable_help_flag = true
)]
struct Options {
    #[command(flatten)]
    asking: Asking,
}

/// A comparison that was made.
#[derive(Debug)]
pub struct Verdict {
    words: Vec<String>,
    family: Family,
    rows: Vec<Row>,
    settings: Settings,
    status: Status,
}

/// Compares; `options` are words of `runslice compare`.
///
/// # Errors
/// As `runslice compare`.
pub fn compare(sets: &[Set], options: &[String]) -> Result<Answer<Verdict>, Failure> {
    answer(|| compared(sets, options))
}

fn compared(sets: &[Set], options: &[String]) -> anyhow::Result<Verdict> {
    // A wrong option is told before files are read.
    Options::try_parse_from(options)?;
    let mut files: Vec<(String, File)> = Vec::new();
    for set in sets {
        files.push(set.read()?);
        sets::refuse_shared(&files)?;
    }
    let mut words: Vec<String> = ["runslice", "compare"].map(str::to_owned).into();
    words.extend(files.iter().map(|(name, _)| name.clone()));
    words.extend(options.iter().cloned());
    let files = files.into_iter().map(|(_, file)| file).collect();
    of_files(files, options, words)
}

/// Holds the policies of a run against its first, by the goals that were asked for; `options` are
/// words of `runslice compare`.
///
/// # Errors
/// When there are no two policies or no goals, or an option is wrong.
pub fn judge(run: &Run, options: &[String]) -> Result<Answer<Verdict>, Failure> {
    answer(|| {
        let file = File {
            stem: "goals".to_owned(),
            sets: run.goal_sets(),
            baseline: None,
            again: None,
            looks: 1,
            unique: BTreeSet::new(),
        };
        let words = [run.words(), options.to_vec()].concat();
        of_files(vec![file], options, words)
    })
}

fn of_files(files: Vec<File>, options: &[String], words: Vec<String>) -> anyhow::Result<Verdict> {
    let asking = Options::try_parse_from(options)?.asking;
    let (family, rows, settings) = asking.judge(files)?;
    refuse_nothing(&rows)?;
    let status = status(&rows, asking.fail_if);
    Ok(Verdict {
        words,
        family,
        rows,
        settings,
        status,
    })
}

impl Set {
    /// Its name on the command line, and what it has.
    fn read(&self) -> anyhow::Result<(String, File)> {
        match self {
            Self::File(path) => Ok((path.display().to_string(), File::read(&COMPUTER, path)?)),
            Self::Document { name, bytes } => {
                let document: Value =
                    serde_json::from_slice(bytes).with_context(|| format!("{name}: no JSON"))?;
                Ok((name.clone(), File::of_document(name, &document)?))
            }
        }
    }
}

impl Verdict {
    /// The command line that writes the same as `format`.
    pub fn command(&self, format: &str) -> Vec<String> {
        let format = ["--format", format].map(str::to_owned);
        [self.words.clone(), format.into()].concat()
    }

    /// The status that `runslice compare` ends with: 0, 5 if the limit of `--fail-if` is exceeded,
    /// 6 if the runs do not decide.
    #[must_use]
    pub fn status(&self) -> u8 {
        self.status as u8
    }

    /// The answer in sentences.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        verdict(&self.rows)
    }

    /// The bytes that `runslice compare` writes.
    ///
    /// # Errors
    /// When there is no such format.
    pub fn write(&self, format: &str) -> Result<Vec<u8>, Failure> {
        let form: Form = super::run::one_of("--format <FORMAT>", format)?;
        let bytes = About::called(&self.command(format), || {
            output::in_memory(form.export(), |to| {
                let compared = Compared {
                    family: &self.family,
                    rows: &self.rows,
                    settings: &self.settings,
                };
                write(&compared, form, WidthOptions::default().width(), to)
            })
        });
        Ok(bytes.map_err(anyhow::Error::from)?)
    }

    /// A row for each comparison: the cells that CSV and Parquet have.
    #[must_use]
    pub fn table(&self) -> ExportTable {
        About::called(&self.command("parquet"), || table_of(&self.rows))
    }
}
