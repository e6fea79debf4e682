//! The score that stands beside a recording: `trace.dat.score.json` of `trace.dat`. `sim --from`
//! only looks for it: to score takes two more simulations, which nobody has asked for.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use model::Fnv1a;
use serde::{Deserialize, Serialize};

use crate::input;
use crate::services::Services;
use crate::words;

/// Version of the document; it grows when a field is removed or changes its meaning.
pub const VERSION: u32 = 1;

/// What `score` calls that which is not to be trusted.
pub const NOT_TRUSTED: &str = "not_trusted";

/// Bytes of the begin and of the end that a recording is recognised by.
const ENDS: u64 = 1 << 16;

/// Which recording a score is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its length in bytes.
    pub bytes: u64,
    /// FNV-1a of its first and its last 64 KiB.
    pub hash: String,
}

impl Identity {
    /// Of the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(services: &Services<'_>, path: &Path) -> io::Result<Self> {
        let opened = services.open(path)?;
        let (mut file, bytes) = (opened.content, opened.bytes.unwrap_or(0));
        let mut ends = Vec::new();
        (&mut file).take(ENDS).read_to_end(&mut ends)?;
        file.seek(SeekFrom::Start(bytes.saturating_sub(ENDS)))?;
        file.take(ENDS).read_to_end(&mut ends)?;
        Ok(Self {
            bytes,
            hash: format!("{:016x}", Fnv1a::of(ends)),
        })
    }
}

/// What is read of a score.
#[derive(Debug, Deserialize)]
struct Scored {
    runslice_score: u32,
    recording: Identity,
    parts: Vec<Part>,
}

#[derive(Debug, Deserialize)]
struct Part {
    part: String,
    verdict: String,
    factors: Option<PartFactors>,
}

#[derive(Debug, Deserialize)]
struct PartFactors {
    simulated: f64,
}

/// Where the score of a recording stands.
#[must_use]
pub fn beside(recording: &Path) -> PathBuf {
    let mut name = recording.as_os_str().to_owned();
    name.push(".score.json");
    PathBuf::from(name)
}

/// What a user of the load must know of its score, in one sentence; `None` if it is good.
#[must_use]
pub fn note(services: &Services<'_>, recording: &Path) -> Option<String> {
    let file = beside(recording);
    let shown = file.display().to_string();
    let name = recording.display().to_string();
    let again = words::command(&["runslice", "score", &name, "-o", &shown]);
    if !services.is_file(&file) {
        return Some(format!(
            "how far to trust this load is not known: `{again}` says it"
        ));
    }
    let own = Identity::of(services, recording).ok();
    match read(services, &file) {
        Some(scored) if Some(&scored.recording) == own.as_ref() => {
            let parts = scored.parts.iter();
            let bad = parts.filter(|it| it.verdict == NOT_TRUSTED);
            let bad: Vec<&str> = bad.map(|it| it.part.as_str()).collect();
            let said = format!(
                "warning: by its score, do not trust this load for {}",
                bad.join(", ")
            );
            (!bad.is_empty()).then(|| format!("{said}: see {shown}"))
        }
        _ => Some(format!(
            "{shown} is no score of this recording: make it anew with `{again}`"
        )),
    }
}

fn read(services: &Services<'_>, file: &Path) -> Option<Scored> {
    let text = input::text(services, file, input::WRITTEN).ok()?;
    let scored: Scored = serde_json::from_str(&text).ok()?;
    Some(scored).filter(|it| it.runslice_score == VERSION)
}

/// By which factor, from 1 on, the simulation of each part of this recording was off, as far as its
/// score says.
#[must_use]
pub fn factors(services: &Services<'_>, recording: &Path) -> Vec<(String, f64)> {
    let file = beside(recording);
    let own = Identity::of(services, recording).ok();
    let scored = if services.is_file(&file) {
        read(services, &file).filter(|it| Some(&it.recording) == own.as_ref())
    } else {
        None
    };
    let parts = scored.map_or_else(Vec::new, |it| it.parts).into_iter();
    let parts = parts.filter_map(|it| Some((it.part, it.factors?.simulated)));
    parts
        .filter(|(_, it)| it.is_finite() && *it >= 1.0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::tests::FILES;

    fn score(identity: &Identity, verdict: &str) -> String {
        serde_json::json!({
            "runslice_score": VERSION,
            "recording": identity,
            "parts": [
                { "part": "wait", "verdict": "trusted", "factors": { "simulated": 1.25 } },
                { "part": "delay", "verdict": verdict },
            ],
        })
        .to_string()
    }

    #[test]
    fn what_a_score_says_of_a_recording_is_told_only_if_it_is_bad_or_missing() {
        let folder = std::env::temp_dir().join(format!("runslice-score-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let recording = folder.join("a.dat");
        std::fs::write(&recording, vec![7; 200_000]).unwrap();
        let identity = Identity::of(&FILES, &recording).unwrap();
        assert_eq!(identity.bytes, 200_000);
        let note = || note(&FILES, &recording).unwrap_or_default();
        assert!(note().contains("`runslice score "), "{}", note());
        let write = |text: &str| std::fs::write(beside(&recording), text).unwrap();
        write(&score(&identity, "trusted"));
        assert_eq!(note(), "");
        assert_eq!(factors(&FILES, &recording), [("wait".to_owned(), 1.25)]);
        write(&score(&identity, NOT_TRUSTED));
        assert!(
            note().contains("do not trust this load for delay: see "),
            "{}",
            note()
        );
        // Another recording of the same length, and what is no score.
        let mut bytes = vec![7; 200_000];
        bytes[199_999] = 8;
        std::fs::write(&recording, bytes).unwrap();
        assert_eq!(factors(&FILES, &recording), []);
        assert!(
            note().contains("is no score of this recording"),
            "{}",
            note()
        );
        write("{}");
        assert!(
            note().contains("is no score of this recording"),
            "{}",
            note()
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
