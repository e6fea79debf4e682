//! What is played and simulated: every workload under every policy, twice.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use model::{Advised, Nanos, seeds};
use serde::{Deserialize, Serialize};
use workload::Workload;

use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::workload_arg::Written;
use crate::{input, output};

/// The file's name in a folder of plays.
const FILE: &str = "fidelity.json";
/// The version of its format.
const VERSION: u32 = 1;
/// The folder of the workloads, below it.
const LOADS: &str = "loads";
/// Most plays of a folder: at a second each they take three hours.
const PLAYS_MAX: usize = 10_000;
/// Most bytes of a workload's name and of a policy's words: they are parts of names of files, which
/// have 255.
const NAME_MAX: usize = 200;
/// How often each workload is played: the second time shows what the seed alone changes.
const TIMES: u64 = 2;

/// What a folder of plays is for. Another request needs another folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    runslice_fidelity: u32,
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
    /// Whether events are kept.
    pub events: bool,
    /// The policies with their knobs, as the user wrote them.
    pub policies: Vec<String>,
    /// Names of the workloads; their files stand below `loads`.
    pub workloads: Vec<String>,
}

impl Asked {
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
        let plays = loads
            .saturating_mul(policies)
            .saturating_mul(TIMES as usize);
        if plays > PLAYS_MAX {
            let text = format!(
                "{loads} workloads under {policies} policies, {TIMES} times each, are {plays} \
                 plays, and at most {PLAYS_MAX} are possible"
            );
            return Err(UsageError::new(text));
        }
        Ok(())
    }
}

/// What `Asked` is made of.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// `vm` or `host`.
    pub machine: &'a str,
    /// See [`Asked::kernel`].
    pub kernel: String,
    /// CPUs of the machine.
    pub cpus: u16,
    /// Length of each run.
    pub duration: Nanos,
    /// Seed of the first run.
    pub seed: u64,
    /// Whether events are kept.
    pub events: bool,
    /// The policies.
    pub policies: Vec<String>,
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
pub struct Request {
    /// The request.
    pub asked: Asked,
    /// The text of each workload.
    pub texts: Vec<String>,
    /// Where it is kept.
    pub folder: PathBuf,
}

impl Request {
    /// A new request, or the same as before: it is written to the folder, which may have it
    /// already.
    ///
    /// # Errors
    /// When two plays would have one name, the folder is for something else, or it takes no files.
    pub fn new(
        wanted: Wanted<'_>,
        loads: &[(String, Written)],
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let asked = Asked {
            runslice_fidelity: VERSION,
            machine: wanted.machine.to_owned(),
            kernel: wanted.kernel,
            cpus: wanted.cpus,
            duration_ns: wanted.duration.get(),
            seed: wanted.seed,
            events: wanted.events,
            policies: wanted.policies,
            workloads: loads.iter().map(|(name, _)| name.clone()).collect(),
        };
        let request = Self {
            asked,
            texts: loads.iter().map(|(_, load)| load.text.clone()).collect(),
            folder: folder.to_owned(),
        };
        request.asked.refuse_many()?;
        request.refuse_twins()?;
        let path = folder.join(FILE);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => request.write()?,
            _ => {
                let known = Self::read(folder)?;
                if known.asked != request.asked || known.texts != request.texts {
                    let message = format!(
                        "{} has plays of another request: choose another folder with --folder, \
                         or judge these with --from {}",
                        folder.display(),
                        folder.display()
                    );
                    return Err(UsageError::new(message).into());
                }
            }
        }
        Ok(request)
    }

    /// The request of a folder.
    ///
    /// # Errors
    /// When there is none, or it is bad.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let name = path.display().to_string();
        let text = input::text(&path, input::WRITTEN)?;
        let asked: Asked = serde_json::from_str(&text).with_context(|| name.clone())?;
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
        request.refuse_twins().with_context(|| name.clone())?;
        for name in &request.asked.workloads {
            let text = input::text(&load_file(folder, name), input::WRITTEN)?;
            request.texts.push(text);
        }
        Ok(request)
    }

    fn write(&self) -> anyhow::Result<()> {
        let loads = self.folder.join(LOADS);
        output::make_folder(&loads)?;
        for (name, text) in self.asked.workloads.iter().zip(&self.texts) {
            let path = load_file(&self.folder, name);
            output::write_whole(&path, text.as_bytes())?;
        }
        // What names the workloads comes last: whoever is interrupted before begins anew.
        let text = serde_json::to_string_pretty(&self.asked)?;
        output::write_whole(&self.folder.join(FILE), (text + "\n").as_bytes())
    }

    fn refuse_twins(&self) -> Result<(), UsageError> {
        let mut seen = BTreeSet::new();
        for play in self.plays() {
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
    pub fn plays(&self) -> Vec<Play> {
        let mut plays = Vec::new();
        for seed in self.seeds() {
            for (workload, name) in self.asked.workloads.iter().enumerate() {
                for (policy, words) in self.asked.policies.iter().enumerate() {
                    let label = crate::policy::label(words);
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
    fn seeds(&self) -> [u64; TIMES as usize] {
        [0, 1].map(|time| seeds::of_run(self.asked.seed, time))
    }

    /// The workload of a play.
    ///
    /// # Errors
    /// When its file is wrong.
    pub fn workload(&self, play: &Play) -> anyhow::Result<Workload> {
        let name = &self.asked.workloads[play.workload];
        let file = load_file(&self.folder, name);
        let (text, folder) = (self.texts[play.workload].clone(), self.folder.join(LOADS));
        let written = Written {
            file: file.to_string_lossy().into_owned(),
            text,
        };
        written.parse(&COMPUTER, &[], &|name| {
            crate::profile::find_in(&folder, name)
        })
    }

    /// The file of a play's workload.
    pub fn load_file(&self, play: &Play) -> PathBuf {
        load_file(&self.folder, &self.asked.workloads[play.workload])
    }

    /// How tables call the policy of a play.
    pub fn label(&self, play: &Play) -> String {
        crate::policy::label(&self.asked.policies[play.policy])
    }
}

fn load_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(LOADS).join(format!("{name}.toml"))
}

/// What of a name can stand in that of a file.
pub fn plain(name: &str) -> String {
    let letter = |letter: char| match letter {
        '-' | '_' | '=' | ',' => letter,
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '-',
    };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use folder::OwnFolder;

    use super::*;

    fn wanted(policies: &[&str]) -> Wanted<'static> {
        Wanted {
            machine: "vm",
            kernel: "6.18".to_owned(),
            cpus: 2,
            duration: Nanos::from_secs(1),
            seed: 1,
            events: false,
            policies: policies.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    fn load(name: &str) -> (String, Written) {
        let text =
            "[workload]\nname = \"x\"\n[task.t]\ndo = \"loop(inf)[ run(1ms), sleep(1ms) ]\"\n"
                .to_owned();
        let file = format!("{name}.toml");
        (name.to_owned(), Written { file, text })
    }

    #[test]
    fn every_workload_is_played_under_every_policy_with_two_seeds() {
        let folder = OwnFolder::new().unwrap();
        let loads = [load("a"), load("b")];
        let asked = wanted(&["fifo", "mlfq:queues=3"]);
        let request = Request::new(asked, &loads, folder.path()).unwrap();
        let plays = request.plays();
        let ids: Vec<&str> = plays.iter().map(|it| it.id.as_str()).collect();
        let first = [
            "a.fifo.1",
            "a.mlfq-queues=3.1",
            "b.fifo.1",
            "b.mlfq-queues=3.1",
        ];
        assert_eq!(ids[..4], first);
        assert_eq!(ids.len(), 8);
        assert_ne!(plays[0].seed, plays[4].seed);
        assert_eq!(request.workload(&plays[2]).unwrap().groups[0].name, "t");
    }

    #[test]
    fn more_plays_and_longer_names_than_a_folder_holds_are_refused_before_any_is_read() {
        let folder = OwnFolder::new().unwrap();
        let request = Request::new(wanted(&["fifo"]), &[load("a")], folder.path()).unwrap();
        let file = folder.path().join(FILE);
        let refused = |change: &dyn Fn(&mut Asked)| {
            let mut asked = request.asked.clone();
            change(&mut asked);
            fs::write(&file, serde_json::to_string(&asked).unwrap()).unwrap();
            format!("{:#}", Request::read(folder.path()).unwrap_err())
        };
        let all = |letter: char| (0..100).map(|n| format!("{letter}{n}")).collect::<Vec<_>>();
        let said = refused(&|asked| {
            (asked.workloads, asked.policies) = (all('w'), all('p'));
        });
        let want = "100 workloads under 100 policies, 2 times each, are 20000 plays, and at most \
                    10000 are possible";
        assert!(said.ends_with(want), "{said}");
        let said = refused(&|asked| asked.policies = vec!["x".repeat(1 << 20)]);
        assert!(
            said.contains("has 1048576 bytes, and at most 200"),
            "{said}"
        );
        // No file of theirs is there: it is not looked for.
        let said = refused(&|asked| asked.workloads = vec!["b".to_owned(); 2]);
        assert!(
            said.contains("two plays would both be called b.fifo."),
            "{said}"
        );
        let error = Request::new(wanted(&["fifo"]), &[load(&"x".repeat(300))], folder.path());
        assert!(error.unwrap_err().is::<UsageError>());
    }

    #[test]
    fn the_same_request_goes_on_in_its_folder_and_another_is_refused() {
        let folder = OwnFolder::new().unwrap();
        let of = |policies: &[&str], loads: &[(String, Written)]| {
            Request::new(wanted(policies), loads, folder.path())
        };
        let first = of(&["fifo"], &[load("a")]).unwrap();
        assert_eq!(of(&["fifo"], &[load("a")]).unwrap().asked, first.asked);
        assert_eq!(Request::read(folder.path()).unwrap().asked, first.asked);
        let mut changed = load("a");
        changed.1.text += "nice = 5\n";
        for (policies, loads) in [
            (["o1"], load("a")),
            (["fifo"], load("b")),
            (["fifo"], changed),
        ] {
            let error = of(&policies, &[loads]).unwrap_err();
            assert!(error.is::<UsageError>(), "{error:#}");
        }
    }

    #[test]
    fn names_that_would_share_a_file_or_leave_the_folder_are_refused() {
        let folder = OwnFolder::new().unwrap();
        let twice = Request::new(wanted(&["fifo", "fifo"]), &[load("a")], folder.path());
        assert!(twice.unwrap_err().is::<UsageError>());
        let request = Request::new(wanted(&["fifo"]), &[load("a")], folder.path()).unwrap();
        let text = serde_json::to_string(&request.asked).unwrap();
        for (from, to) in [
            ("\"a\"", "\"../a\""),
            ("\"a\"", "\"\""),
            ("\"runslice_fidelity\":1", "\"runslice_fidelity\":2"),
        ] {
            fs::write(folder.join(FILE), text.replace(from, to)).unwrap();
            Request::read(folder.path()).unwrap_err();
        }
    }
}
