//! What is played and simulated: every workload under every policy, twice.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use model::{Advised, seeds};
use serde::{Deserialize, Serialize};
use workload::Workload;

use crate::error::UsageError;
use crate::services::Services;
use crate::workload_arg::Written;
use crate::{input, policy};

/// The file's name in a folder of plays.
const FILE: &str = "fidelity.json";
/// The version of its format.
pub const VERSION: u32 = 1;
/// The folder of the workloads, below it.
const LOADS: &str = "loads";
/// Most plays of a folder: at a second each they take three hours.
const PLAYS_MAX: usize = 10_000;
/// Most bytes of a workload's name and of a policy's words: they are parts of names of files, which
/// have 255.
const NAME_MAX: usize = 200;
/// How often each workload is played under each policy, unless somebody says how often: the second
/// time shows what the seed alone changes.
pub const TIMES: u32 = 2;

/// What a folder of plays is for. Another request needs another folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedPlays {
    /// [`VERSION`].
    pub runslice_fidelity: u32,
    /// `vm` or `host`.
    pub machine: String,
    /// The kernel that plays: the version that a guest boots, or the running kernel's release.
    pub kernel: String,
    /// CPUs of the machine.
    pub cpus: u16,
    /// Length of each run in nanoseconds.
    pub duration_ns: u64,
    /// Seed of the first run of each workload.
    pub seed: u64,
    /// Plays of each workload and policy, each with a seed of its own. Older files do not say it.
    #[serde(default = "times")]
    pub times: u32,
    /// Whether events are kept.
    pub events: bool,
    /// The policies with their knobs, as the user wrote them.
    pub policies: Vec<String>,
    /// Names of the workloads; their files stand below `loads`.
    pub workloads: Vec<String>,
}

const fn times() -> u32 {
    TIMES
}

impl AskedPlays {
    /// Refuses more plays, or longer names, than a folder holds.
    fn refuse_many(&self) -> Result<(), UsageError> {
        let names = self.workloads.iter().chain(&self.policies);
        if let Some(long) = names.clone().find(|it| it.len() > NAME_MAX) {
            let begin: String = long.chars().take(20).collect();
            let text = format!(
                "the name `{begin}...` has {} bytes, and at most {NAME_MAX} are possible",
                long.len()
            );
            return Err(UsageError::new(text));
        }
        let (loads, policies) = (self.workloads.len(), self.policies.len());
        let times = self.times;
        let plays = loads
            .saturating_mul(policies)
            .saturating_mul(times as usize);
        if plays > PLAYS_MAX {
            let text = format!(
                "{loads} workloads under {policies} policies, {times} times each, are {plays} \
                 plays, and at most {PLAYS_MAX} are possible"
            );
            return Err(UsageError::new(text));
        }
        Ok(())
    }
}

/// One play of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Play {
    /// The name of its files.
    pub id: String,
    /// Index of its workload.
    pub workload: usize,
    /// Index of its policy.
    pub policy: usize,
    /// Its seed.
    pub seed: u64,
}

/// A request and the workloads that it names.
#[derive(Debug)]
pub struct PlaysRequest {
    /// The request.
    pub asked: AskedPlays,
    /// The text of each workload.
    pub texts: Vec<String>,
    /// Where it is kept.
    pub folder: PathBuf,
}

impl PlaysRequest {
    /// A request for plays that are to be kept in `folder`.
    ///
    /// # Errors
    /// When two plays would have one name, or there are more than a folder holds.
    pub fn new(
        services: &Services<'_>,
        asked: AskedPlays,
        texts: Vec<String>,
        folder: &Path,
    ) -> Result<Self, UsageError> {
        let request = Self {
            asked,
            texts,
            folder: folder.to_owned(),
        };
        request.asked.refuse_many()?;
        request.refuse_twins(services)?;
        Ok(request)
    }

    /// The file that says what a folder is for.
    #[must_use]
    pub fn file(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    /// The files of its folder, in the order in which they must be written: the one that names the
    /// workloads comes last, so that whoever is interrupted before begins anew.
    ///
    /// # Errors
    /// When a name of a policy or workload is no text.
    pub fn files(&self) -> serde_json::Result<Vec<(PathBuf, String)>> {
        let names = self.asked.workloads.iter();
        let loads = names.map(|name| load_file(&self.folder, name));
        let mut files: Vec<_> = loads.zip(self.texts.iter().cloned()).collect();
        let text = serde_json::to_string_pretty(&self.asked)?;
        files.push((Self::file(&self.folder), text + "\n"));
        Ok(files)
    }

    /// The folder of its workloads.
    #[must_use]
    pub fn loads(&self) -> PathBuf {
        self.folder.join(LOADS)
    }

    /// The request of a folder.
    ///
    /// # Errors
    /// When there is none, or it is bad.
    pub fn read(services: &Services<'_>, folder: &Path) -> anyhow::Result<Self> {
        let path = Self::file(folder);
        let name = path.display().to_string();
        let text = input::text(services, &path, input::WRITTEN)?;
        let asked: AskedPlays = serde_json::from_str(&text).with_context(|| name.clone())?;
        if asked.runslice_fidelity != VERSION {
            let version = asked.runslice_fidelity;
            bail!(Advised::new(
                format!("{name}: it has version {version}"),
                format!("this program reads {VERSION}")
            ));
        }
        let names = asked.workloads.iter().chain(&asked.policies);
        if let Some(bad) = names.clone().find(|it| it.is_empty()) {
            bail!("{name}: a workload or policy has the name `{bad}`");
        }
        // They become parts of paths.
        if let Some(bad) = asked.workloads.iter().find(|it| plain(it) != **it) {
            bail!("{name}: `{bad}` is no name of a workload");
        }
        asked.refuse_many().with_context(|| name.clone())?;
        let mut request = Self {
            texts: Vec::new(),
            folder: folder.to_owned(),
            asked,
        };
        // Each of the files is read once.
        request
            .refuse_twins(services)
            .with_context(|| name.clone())?;
        for name in &request.asked.workloads {
            let text = input::text(services, &load_file(folder, name), input::WRITTEN)?;
            request.texts.push(text);
        }
        Ok(request)
    }

    fn refuse_twins(&self, services: &Services<'_>) -> Result<(), UsageError> {
        let mut seen = BTreeSet::new();
        for play in self.plays(services) {
            if !seen.insert(play.id.clone()) {
                let message = format!(
                    "two plays would both be called {}: give each workload and policy once, and \
                     names that differ in letters or digits",
                    play.id
                );
                return Err(UsageError::new(message));
            }
        }
        Ok(())
    }

    /// All plays: those of the first seed first.
    #[must_use]
    pub fn plays(&self, services: &Services<'_>) -> Vec<Play> {
        let mut plays = Vec::new();
        for seed in self.seeds() {
            for (workload, name) in self.asked.workloads.iter().enumerate() {
                for (policy, words) in self.asked.policies.iter().enumerate() {
                    let label = policy::label(services, words);
                    plays.push(Play {
                        id: format!("{name}.{}.{seed}", plain(&label)),
                        workload,
                        policy,
                        seed,
                    });
                }
            }
        }
        plays
    }

    /// The seeds of the plays of each workload.
    fn seeds(&self) -> impl Iterator<Item = u64> {
        let times = u64::from(self.asked.times);
        (0..times).map(|time| seeds::of_run(self.asked.seed, time))
    }

    /// The workload of a play.
    ///
    /// # Errors
    /// When its file is wrong.
    pub fn workload(&self, services: &Services<'_>, play: &Play) -> anyhow::Result<Workload> {
        let name = &self.asked.workloads[play.workload];
        let file = load_file(&self.folder, name);
        let (text, folder) = (self.texts[play.workload].clone(), self.loads());
        let written = Written {
            file: file.to_string_lossy().into_owned(),
            text,
        };
        written.parse_beside(services, &[], &folder)
    }

    /// The file of a play's workload.
    #[must_use]
    pub fn load_file(&self, play: &Play) -> PathBuf {
        load_file(&self.folder, &self.asked.workloads[play.workload])
    }

    /// How tables call the policy of a play.
    #[must_use]
    pub fn label(&self, services: &Services<'_>, play: &Play) -> String {
        policy::label(services, &self.asked.policies[play.policy])
    }
}

fn load_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(LOADS).join(format!("{name}.toml"))
}

/// What of a name can stand in that of a file.
#[must_use]
pub fn plain(name: &str) -> String {
    let letter = |letter: char| match letter {
        '-' | '_' | '=' | ',' => letter,
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '-',
    };
    name.chars().map(letter).collect()
}
