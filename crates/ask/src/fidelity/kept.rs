//! Plays in a folder: what a kernel made of a workload, kept for every later comparison.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use model::{ExitKind, MachineSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stats::compare::machines::MachineRun;

use super::asked::{Play, PlaysRequest};
use crate::input;
use crate::services::Services;

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
    pub fn read(
        services: &Services<'_>,
        request: &PlaysRequest,
        play: &Play,
    ) -> anyhow::Result<Option<Self>> {
        let path = file(&request.folder, play);
        if services.kind(&path).is_none() {
            return Ok(None);
        }
        let text = input::text(services, &path, input::WRITTEN)?;
        let kept: Self = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let named = (
            &request.asked.workloads[play.workload],
            request.label(services, play),
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
    pub fn of_document(
        services: &Services<'_>,
        text: &str,
        (request, play): (&PlaysRequest, &Play),
    ) -> anyhow::Result<Self> {
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
                policy: request.label(services, play),
                seed: play.seed,
                ..compared
            },
        })
    }
}

/// Where what is kept of a play stands.
#[must_use]
pub fn file(folder: &Path, play: &Play) -> PathBuf {
    folder.join(PLAYS).join(format!("{}.json", play.id))
}

/// Where the events of a play are kept, if they are.
#[must_use]
pub fn events_file(folder: &Path, play: &Play) -> PathBuf {
    folder.join(EVENTS).join(events_name(play))
}

/// How the file of a play's events is called.
#[must_use]
pub fn events_name(play: &Play) -> String {
    format!("{}.jsonl", play.id)
}
