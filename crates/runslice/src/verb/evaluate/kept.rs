//! What the folder of a search keeps: answers, the best candidates, and how far the search is.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ask::bundle::Bundle;
use ask::evaluate::Evaluation;
use ask::evaluate::search::{Ledger, Nominee};
use model::{Advised, PolicySpec};
use serde::{Deserialize, Serialize};
use show::evaluation::CandidateDocument;

use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::store::{self, Key, SIMULATES};
use crate::{input, output};

/// How far the search is.
const FILE: &str = "search.json";
/// The version of the file's form.
const VERSION: u32 = 1;

/// A folder of a search.
pub struct Kept {
    folder: PathBuf,
    asked: String,
    /// How far the search is, as this process knows.
    pub ledger: Ledger,
}

/// The file as it stands.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    runslice_search: u32,
    /// What is searched by: spec, all that it names, and key.
    asked: String,
    ledger: Ledger,
}

impl Kept {
    /// The search in `folder` by what is `asked`, or a new one.
    ///
    /// # Errors
    /// When the file is bad, or another search has left it.
    pub fn open(folder: &Path, asked: &[u8], key: Option<String>) -> anyhow::Result<Self> {
        output::make_folder(folder)?;
        let spec = Key::of("", asked);
        let key = key.unwrap_or_else(|| "no key".to_owned());
        let mut kept = Self {
            folder: folder.to_owned(),
            asked: format!("spec {spec}, {key}"),
            ledger: Ledger::default(),
        };
        kept.ledger = kept.read()?;
        Ok(kept)
    }

    fn read(&self) -> anyhow::Result<Ledger> {
        let path = self.folder.join(FILE);
        if let Err(error) = fs::symlink_metadata(&path)
            && error.kind() == ErrorKind::NotFound
        {
            return Ok(Ledger::default());
        }
        let name = path.display();
        let text = input::text(&COMPUTER, &path, input::WRITTEN)?;
        let state: State = serde_json::from_str(&text).with_context(|| name.to_string())?;
        if state.runslice_search != VERSION {
            let message = format!("{name}: it has version {}", state.runslice_search);
            let advice = format!("this program reads {VERSION}");
            return Err(UsageError::new(Advised::new(message, advice)).into());
        }
        if state.asked != self.asked {
            let message = Advised::new(
                format!("{name} is of another search, by another file, object or key"),
                "choose another folder with --folder",
            );
            return Err(UsageError::new(message).into());
        }
        Ok(state.ledger)
    }

    /// Refuses a search that is over.
    ///
    /// # Errors
    /// When its key is spent.
    pub fn check_unspent(&self) -> Result<(), UsageError> {
        if !self.ledger.is_spent {
            return Ok(());
        }
        let folder = self.folder.display();
        Err(UsageError::new(Advised::new(
            format!("the search in {folder} is over: its key was printed and is spent"),
            "begin another one with a new key and --folder",
        )))
    }

    /// Changes how far the search is; several processes may do so at once.
    ///
    /// # Errors
    /// When the folder takes no file.
    pub fn change(&mut self, change: impl FnOnce(&mut Ledger)) -> anyhow::Result<()> {
        let cannot = model::CannotWrite::at(self.folder.display());
        // The folder itself is locked: no other file has to be there.
        let lock = File::open(&self.folder).map_err(&cannot)?;
        lock.lock().map_err(&cannot)?;
        self.ledger = self.read()?;
        change(&mut self.ledger);
        let state = State {
            runslice_search: VERSION,
            asked: self.asked.clone(),
            ledger: self.ledger.clone(),
        };
        let text = serde_json::to_string_pretty(&state).expect("names and numbers become JSON");
        output::write_whole(&self.folder.join(FILE), (text + "\n").as_bytes())
    }

    /// Notes that the sealed draws were asked.
    ///
    /// # Errors
    /// The errors of [`Kept::change`].
    pub fn spend(&mut self) -> anyhow::Result<()> {
        self.change(|ledger| ledger.is_spent = true)
    }

    /// Notes an evaluation; the policy is kept if it is one of the best.
    ///
    /// # Errors
    /// The errors of [`Kept::change`].
    pub fn note(
        &mut self,
        nominee: Option<Nominee>,
        policy: &PolicySpec,
        asked_gate: bool,
    ) -> anyhow::Result<()> {
        if let Some(nominee) = &nominee {
            let bundle = Bundle {
                policy: policy.clone(),
                machine: model::MachineSpec::default(),
                bound: None,
            };
            output::write_whole(Path::new(&self.path_of(nominee)), &bundle.write())?;
        }
        let before = self.ledger.best.clone();
        let id = nominee.as_ref().map(|it| it.id.clone());
        self.change(|ledger| ledger.evaluated(nominee, asked_gate))?;
        let gone = before.iter().map(|it| &it.id).chain(&id);
        for id in gone {
            if self.ledger.best.iter().all(|it| it.id != *id) {
                // Another process may have removed it.
                let _ = fs::remove_file(self.file_of(id));
            }
        }
        Ok(())
    }

    fn file_of(&self, id: &str) -> PathBuf {
        self.folder.join(format!("best-{id}.bundle"))
    }

    /// The file of one of the best.
    pub fn path_of(&self, nominee: &Nominee) -> String {
        self.file_of(&nominee.id).display().to_string()
    }

    /// The answer of this name.
    pub fn get(&self, answer: &str) -> Option<CandidateDocument> {
        let text = input::text(&COMPUTER, &self.answer(answer), input::WRITTEN).ok()?;
        let kept: CandidateDocument = serde_json::from_str(&text).ok()?;
        Some(kept.rounded())
    }

    /// Keeps an answer.
    ///
    /// # Errors
    /// When the folder takes no file.
    pub fn put(&self, answer: &str, document: &CandidateDocument) -> anyhow::Result<()> {
        let text = serde_json::to_string(document)?;
        output::write_whole(&self.answer(answer), (text + "\n").as_bytes())
    }

    fn answer(&self, answer: &str) -> PathBuf {
        let key = Key::of(SIMULATES, format!("{} {answer}", self.asked));
        self.folder.join(format!("{key}.json"))
    }

    /// Writes the runs that broke limits, each in a file for `explain`.
    ///
    /// # Errors
    /// When the folder takes no file.
    pub fn capsules(
        &self,
        (id, epoch): (&str, u64),
        evaluation: &Evaluation,
    ) -> anyhow::Result<Vec<Option<String>>> {
        // Another epoch has other draws: the answers of both stay true.
        store::keep_breaches(&self.folder, &evaluation.breaches, |_, limit| {
            format!("{limit}-{}-{epoch}.bundle", &id[..12])
        })
    }
}
