//! Which scheduler is best for a load.

use clap::Parser;

use crate::about::About;
use crate::choose::{Choose, Chosen as Inner, Given};
use crate::comparison::Form;
use crate::export::ExportTable;
use crate::output;

use super::failure::{Answer, Failure, answer};
use super::given::{Load, Policy};

/// The words after `runslice choose`.
#[derive(Debug, Parser)]
#[command(
    name = "runslice choose",
    no_binary_name = true,
    disable_help_flag = true
)]
struct Words {
    #[command(flatten)]
    request: Choose,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Choosing {
    /// The candidates; none: those of `runslice choose`.
    pub candidates: Vec<Policy>,
    /// The candidate that the others are held against; `None`: that of `runslice choose`.
    pub baseline: Option<Policy>,
    /// The workload.
    pub load: Load,
    /// Further options of `runslice choose`, as words, but for those of the output.
    pub options: Vec<String>,
}

/// What was chosen, and why.
#[derive(Debug)]
pub struct Chosen {
    words: Vec<String>,
    inner: Inner,
}

/// Simulates the candidates and ranks them.
///
/// # Errors
/// As `runslice choose`.
pub fn choose(asked: &Choosing) -> Result<Answer<Chosen>, Failure> {
    answer(|| {
        let words = asked.words();
        let request = Words::try_parse_from(&words)?.request;
        request.check()?;
        let load = asked.load.given(&request.scale)?;
        // A recording is cut into parts, which its name says.
        let load = load.filter(|_| !matches!(asked.load, Load::Recorded(_)));
        let policies = asked.candidates.iter().chain(&asked.baseline);
        let given: Vec<Given> = policies
            .filter(|it| !it.is_program())
            .map(|it| (it.word().to_owned(), it.found.clone()))
            .collect();
        let inner = Inner::make(&request, &given, load)?;
        let front = ["runslice", "choose"].map(str::to_owned);
        Ok(Chosen {
            words: front.into_iter().chain(words).collect(),
            inner,
        })
    })
}

impl Choosing {
    /// The words after `runslice choose`.
    fn words(&self) -> Vec<String> {
        let candidates = self.candidates.iter().flat_map(|it| {
            let option = it.is_program().then_some("--scheduler");
            option.into_iter().chain([it.word()])
        });
        let option = match &self.load {
            Load::Recorded(_) => "--from",
            _ => "--workload",
        };
        let baseline = self.baseline.iter();
        let baseline = baseline.flat_map(|it| ["--baseline", it.word()]);
        let words = candidates.chain([option, self.load.word()]).chain(baseline);
        let words = words.map(str::to_owned);
        words.chain(self.options.iter().cloned()).collect()
    }
}

impl Chosen {
    /// The command line that writes the same as `format`.
    #[must_use]
    pub fn command(&self, format: &str) -> Vec<String> {
        let format = ["--format", format].map(str::to_owned);
        [self.words.clone(), format.into()].concat()
    }

    /// The answer in sentences.
    #[must_use]
    pub fn answer(&self) -> Vec<String> {
        self.inner.answer()
    }

    /// The best candidate, if one is better than the baseline, and the command that runs it on a
    /// kernel.
    #[must_use]
    pub fn winner(&self) -> Option<(&str, String)> {
        self.inner.winner()
    }

    /// The status that `runslice choose` ends with: 0, or 6 if the runs do not decide.
    #[must_use]
    pub fn status(&self) -> u8 {
        self.inner.status() as u8
    }

    /// The bytes that `runslice choose` writes.
    ///
    /// # Errors
    /// When there is no such format.
    pub fn write(&self, format: &str) -> Result<Vec<u8>, Failure> {
        let form: Form = super::run::one_of("--format <FORMAT>", format)?;
        let bytes = About::called(&self.command(format), || {
            output::in_memory(form.export(), |to| self.inner.write(form, to))
        });
        Ok(bytes.map_err(anyhow::Error::from)?)
    }

    /// A row for each candidate and goal: the cells that CSV and Parquet have.
    #[must_use]
    pub fn table(&self) -> ExportTable {
        About::called(&self.command("parquet"), || self.inner.table())
    }
}
