//! How far the simulation of a recording can be trusted.

use clap::Parser;

use crate::about::About;
use crate::export::ExportTable;
use crate::output;
use crate::report::Format;
use crate::score;

use super::failure::{Answer, Failure, answer};

/// The words after `runslice score`.
#[derive(Debug, Parser)]
#[command(
    name = "runslice score",
    no_binary_name = true,
    disable_help_flag = true
)]
struct Words {
    #[command(flatten)]
    request: score::Score,
}

/// A score.
#[derive(Debug)]
pub struct Scored {
    words: Vec<String>,
    scored: score::Scored,
}

/// Scores a recording; `words` are those after `runslice score`, its files and options but for
/// those of the output.
///
/// # Errors
/// As `runslice score`.
pub fn score(words: &[String]) -> Result<Answer<Scored>, Failure> {
    answer(|| {
        let request = Words::try_parse_from(words)?.request;
        let scored = score::Scored::make(&request)?;
        let front = ["runslice", "score"].map(str::to_owned);
        Ok(Scored {
            words: front.into_iter().chain(words.iter().cloned()).collect(),
            scored,
        })
    })
}

impl Scored {
    /// The command line that writes the same as `format`.
    #[must_use]
    pub fn command(&self, format: &str) -> Vec<String> {
        let format = ["--format", format].map(str::to_owned);
        [self.words.clone(), format.into()].concat()
    }

    /// For which questions the recording can be trusted and for which not, in sentences.
    #[must_use]
    pub fn answer(&self) -> String {
        self.scored.answer()
    }

    /// The status that `runslice score` ends with: 0, or 6 if nothing can be said.
    #[must_use]
    pub fn status(&self) -> u8 {
        self.scored.status() as u8
    }

    /// The bytes that `runslice score` writes.
    ///
    /// # Errors
    /// When there is no such format.
    pub fn write(&self, format: &str) -> Result<Vec<u8>, Failure> {
        let form: Format = super::run::one_of("--format <FORMAT>", format)?;
        let bytes = About::called(&self.command(format), || {
            output::in_memory(form.export(), |to| self.scored.write(form, to))
        });
        Ok(bytes.map_err(anyhow::Error::from)?)
    }

    /// A row for each part: the cells that CSV and Parquet have.
    #[must_use]
    pub fn table(&self) -> ExportTable {
        About::called(&self.command("parquet"), || self.scored.table())
    }
}
