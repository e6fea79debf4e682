//! Plays in a folder: what a kernel made of a workload, kept for every later comparison.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use model::{ExitKind, MachineSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stats::compare::machines::MachineRun;

use super::Brought;
use super::asked::{Play, Request};
use crate::{input, interrupt, output};

/// The folder of plays, below that of the request.
const PLAYS: &str = "plays";
/// The folder of their events.
const EVENTS: &str = "events";

/// What is kept of a play.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The machine, with the tick that was measured.
    pub machine: MachineSpec,
    /// What is compared.
    pub run: MachineRun,
}

impl Kept {
    /// The play of a folder; `None` if it is not there.
    ///
    /// # Errors
    /// When the file is bad.
    pub fn read(request: &Request, play: &Play) -> anyhow::Result<Option<Self>> {
        let path = file(&request.folder, play);
        if !path.exists() {
            return Ok(None);
        }
        let text = input::text(&path, input::WRITTEN)?;
        let kept: Self = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let named = (
            &request.asked.workloads[play.workload],
            request.label(play),
            play.seed,
        );
        let run = &kept.run;
        ensure!(
            named == (&run.load, run.policy.clone(), run.seed),
            "{}: it is a play of {} under {} with seed {}",
            path.display(),
            run.load,
            run.policy,
            run.seed
        );
        Ok(Some(kept))
    }

    /// Reads what `play --format json` printed.
    ///
    /// # Errors
    /// When it is something else, or the policy was ejected.
    pub fn of_document(text: &str, request: &Request, play: &Play) -> anyhow::Result<Self> {
        let document: Value = serde_json::from_str(text).context("no JSON was printed")?;
        let run = &document["runs"][0];
        if run["exit"]["kind"].as_u64() != Some(u64::from(ExitKind::Unreg as u32)) {
            let message = run["exit"]["message"].as_str().unwrap_or_default();
            let reason = run["exit"]["reason"].as_str().unwrap_or("it ended early");
            bail!("the policy was ejected: {reason}: {message}");
        }
        let take = |value: &Value, what: &'static str| -> anyhow::Result<Value> {
            match value {
                Value::Null => bail!("what was printed has no `{what}`"),
                value => Ok(value.clone()),
            }
        };
        let compared: MachineRun = serde_json::from_value(take(&run["compared"], "compared")?)?;
        Ok(Self {
            machine: serde_json::from_value(take(&document["machine"], "machine")?)?,
            run: MachineRun {
                load: request.asked.workloads[play.workload].clone(),
                policy: request.label(play),
                seed: play.seed,
                ..compared
            },
        })
    }

    /// Keeps what a play brought, with its events, which lie in `from` if there are any.
    ///
    /// # Errors
    /// When it brought no run, or the folder takes no file.
    pub fn keep(
        brought: &Brought,
        request: &Request,
        play: &Play,
        from: &Path,
    ) -> anyhow::Result<()> {
        let text = match &brought.printed {
            Ok(text) => text,
            Err(why) => bail!("{why}"),
        };
        let kept = Self::of_document(text, request, play)?;
        let events = from.join(events_name(play));
        if events.exists() {
            let to = events_file(&request.folder, play);
            make(to.parent())?;
            let mut events =
                File::open(&events).map_err(model::CannotRead::at(events.display()))?;
            let copied = folder::create(&to).and_then(|mut to| io::copy(&mut events, &mut to));
            copied.map_err(model::CannotWrite::at(to.display()))?;
        }
        let path = file(&request.folder, play);
        make(path.parent())?;
        let text = serde_json::to_string(&kept)?;
        output::write_whole(&path, (text + "\n").as_bytes())?;
        interrupt::made(1);
        Ok(())
    }
}

fn make(folder: Option<&Path>) -> anyhow::Result<()> {
    folder.map_or(Ok(()), output::make_folder)
}

fn file(folder: &Path, play: &Play) -> PathBuf {
    folder.join(PLAYS).join(format!("{}.json", play.id))
}

/// Where the events of a play are kept, if they are.
pub fn events_file(folder: &Path, play: &Play) -> PathBuf {
    folder.join(EVENTS).join(events_name(play))
}

/// How the file of a play's events is called.
pub fn events_name(play: &Play) -> String {
    format!("{}.jsonl", play.id)
}

#[cfg(test)]
mod tests {
    use folder::OwnFolder;
    use model::Nanos;
    use model::Profile;

    use std::fs;

    use super::*;
    use crate::computer::COMPUTER;
    use crate::fidelity::asked::Wanted;
    use crate::fidelity::simulated;
    use crate::look::LookOptions;
    use crate::report::{Format, Results, Shape, TableName, World};
    use crate::runner::Runner;
    use crate::workload_arg::Written;

    fn request(folder: &Path) -> Request {
        let wanted = Wanted {
            machine: "vm",
            kernel: "6.18".to_owned(),
            cpus: 2,
            duration: Nanos::from_millis(200),
            seed: 1,
            events: true,
            policies: vec!["fifo:slice_ns=5ms".to_owned()],
        };
        let text = "[workload]\nname = \"load\"\n[task.hog]\ncount = 3\ndo = \"run(inf)\"\n\
                    [task.short]\ndo = \"loop(inf)[ run(1ms), sleep(7ms) ]\"\n";
        let load = Written {
            file: "load.toml".to_owned(),
            text: text.to_owned(),
        };
        Request::new(wanted, &[("load".to_owned(), load)], folder).unwrap()
    }

    /// What a play of the same would print: the figures are those of a simulation.
    fn document(request: &Request, play: &Play) -> String {
        let machine = MachineSpec {
            cpus: 2,
            hz: 1000,
            ..MachineSpec::default()
        };
        let nothing = MachineRun {
            load: String::new(),
            policy: String::new(),
            seed: 0,
            before_ns: 0,
            elapsed_ns: 0,
            switches: 0,
            groups: Vec::new(),
        };
        let kept = Kept {
            machine: machine.clone(),
            run: nothing,
        };
        let spec = simulated::spec(request, play, &kept, &Profile::default()).unwrap();
        let (mut outcome, metrics) = Runner::new(&spec, &COMPUTER).measure().unwrap();
        outcome.compared = Some(MachineRun::new(&metrics.report(), &metrics.waits()));
        let results = Results {
            world: World::Played,
            workload: "load".to_owned(),
            machine,
            seed: play.seed,
            outcomes: vec![outcome],
        };
        let shape = Shape {
            format: Format::Json,
            table: TableName::Groups,
            look: LookOptions::default(),
        };
        let mut text = Vec::new();
        crate::report::write(&results, shape, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn what_a_play_prints_is_kept_and_read_as_it_was() {
        let folder = OwnFolder::new().unwrap();
        let request = request(folder.path());
        let play = &request.plays()[0];
        assert_eq!(Kept::read(&request, play).unwrap(), None);
        let brought = Brought {
            id: play.id.clone(),
            printed: Ok(document(&request, play)),
        };
        let from = OwnFolder::new().unwrap();
        fs::write(from.join(&events_name(play)), "events\n").unwrap();
        Kept::keep(&brought, &request, play, from.path()).unwrap();
        let kept = Kept::read(&request, play).unwrap().unwrap();
        assert_eq!((kept.machine.cpus, kept.machine.hz), (2, 1000));
        assert_eq!(kept.run.policy, "fifo:slice_ns=5ms");
        let hog = &kept.run.groups[0];
        assert!(hog.runs > 10 && hog.waits != stats::compare::machines::Waits::default());
        let events = events_file(folder.path(), play);
        assert_eq!(fs::read_to_string(events).unwrap(), "events\n");
        // The same run is exact, group by group.
        let again = simulated::run(&request, play, &kept, &Profile::default());
        assert_eq!(again.unwrap().unwrap(), kept.run);
    }

    #[test]
    fn what_failed_was_ejected_or_is_another_play_is_not_kept() {
        let folder = OwnFolder::new().unwrap();
        let request = request(folder.path());
        let plays = request.plays();
        let good = document(&request, &plays[0]);
        let keep = |printed: Result<String, String>| {
            let id = plays[0].id.clone();
            let brought = Brought { id, printed };
            let kept = Kept::keep(&brought, &request, &plays[0], Path::new("/nowhere"));
            kept.unwrap_err().to_string()
        };
        assert_eq!(
            keep(Err("exit status: 1; no".to_owned())),
            "exit status: 1; no"
        );
        assert_eq!(keep(Ok("nothing".to_owned())), "no JSON was printed");
        assert!(keep(Ok(good.replace("compared", "other"))).contains("`compared`"));
        let ejected = good.replace("\"kind\": 64", "\"kind\": 1026");
        assert_ne!(ejected, good);
        assert!(keep(Ok(ejected)).contains("was ejected"));
        assert_eq!(Kept::read(&request, &plays[0]).unwrap(), None);
        // A file under another play's name.
        let brought = Brought {
            id: plays[0].id.clone(),
            printed: Ok(good),
        };
        Kept::keep(&brought, &request, &plays[0], Path::new("/nowhere")).unwrap();
        fs::rename(
            file(folder.path(), &plays[0]),
            file(folder.path(), &plays[1]),
        )
        .unwrap();
        Kept::read(&request, &plays[1]).unwrap_err();
    }
}
