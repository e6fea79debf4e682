//! Bundles: a policy's object with everything that was decided about it, in one file.
//!
//! A line that says what it is, a line of JSON, and behind it the object, byte for byte.

use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use model::{MachineSpec, PolicySpec, SetUp, SetUpTime};
use serde::{Deserialize, Serialize};

/// What a bundle begins with. The number is the format's version.
const MAGIC: &[u8] = b"runslice bundle 1\n";
/// What bundles of every version begin with.
const ANY: &[u8] = b"runslice bundle ";

/// Greatest length of the line of JSON.
const MOST_JSON: usize = 16 << 20;

/// A policy, and the machine that its variables were set for.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The policy.
    pub policy: PolicySpec,
    /// The machine.
    pub machine: MachineSpec,
}

/// The line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    name: String,
    table: Option<String>,
    set: Vec<(String, String)>,
    setup: Vec<Run>,
    machine: MachineSpec,
    /// Bytes of the object.
    object_bytes: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    program: String,
    args: String,
    /// Before the policy is attached, or as soon as it is.
    attached: bool,
}

/// Whether a file claims to be a bundle, of whatever version.
pub fn is_bundle(file: &[u8]) -> bool {
    file.starts_with(ANY)
}

impl Bundle {
    /// The file.
    pub fn write(&self) -> Vec<u8> {
        let policy = &self.policy;
        let runs = policy.setup.iter().map(|run| Run {
            program: run.program.clone(),
            args: run.args.clone(),
            attached: run.when == SetUpTime::Attached,
        });
        let header = Header {
            name: policy.name.clone(),
            table: policy.table.clone(),
            set: policy.set.clone(),
            setup: runs.collect(),
            machine: self.machine.clone(),
            object_bytes: policy.object.len(),
        };
        let json = serde_json::to_string(&header).expect("names and numbers become JSON");
        [MAGIC, json.as_bytes(), b"\n", &policy.object].concat()
    }

    /// Reads a file for which [`is_bundle`] is true.
    ///
    /// # Errors
    /// When it is of another version, cut off or longer than it says, or its JSON is none.
    pub fn read(file: &[u8]) -> anyhow::Result<Self> {
        let Some(rest) = file.strip_prefix(MAGIC) else {
            let version = file.strip_prefix(ANY).unwrap_or_default();
            let version = version.split(|byte| *byte == b'\n').next();
            let version = String::from_utf8_lossy(version.unwrap_or_default());
            let version: String = version.chars().take(20).collect();
            bail!("the bundle has version `{version}`; this program reads version 1");
        };
        let end = rest.iter().take(MOST_JSON).position(|byte| *byte == b'\n');
        let end = end.context("the bundle is cut off in its header")?;
        let (json, object) = (&rest[..end], &rest[end + 1..]);
        let header: Header = serde_json::from_slice(json).context("the bundle's header")?;
        ensure!(
            header.object_bytes == object.len(),
            "the bundle's object should have {} bytes and has {}",
            header.object_bytes,
            object.len()
        );
        let setup = header.setup.into_iter().map(|run| SetUp {
            program: run.program,
            args: run.args,
            when: if run.attached {
                SetUpTime::Attached
            } else {
                SetUpTime::Loaded
            },
        });
        Ok(Self {
            policy: PolicySpec {
                name: header.name,
                object: Arc::from(object),
                table: header.table,
                set: header.set,
                setup: setup.collect(),
                program: None,
            },
            machine: header.machine,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle() -> Bundle {
        let run = |program: &str, args: &str, when| SetUp {
            program: program.to_owned(),
            args: args.to_owned(),
            when,
        };
        Bundle {
            policy: PolicySpec {
                name: "mine\n\"quoted\"".to_owned(),
                object: Arc::from(&b"\x7fELF and\nmore\0"[..]),
                table: Some("mine_ops".to_owned()),
                set: vec![("weights[*]".to_owned(), "3".to_owned())],
                setup: vec![
                    run("first", "1,2", SetUpTime::Loaded),
                    run("second", "", SetUpTime::Attached),
                ],
                program: None,
            },
            machine: MachineSpec {
                cpus: 48,
                smt: 2,
                llc: 16,
                ..MachineSpec::default()
            },
        }
    }

    #[test]
    fn a_bundle_is_read_as_it_was_written() {
        let (bundle, file) = (bundle(), bundle().write());
        assert!(is_bundle(&file) && !is_bundle(b"\x7fELF"));
        let read = Bundle::read(&file).unwrap();
        assert_eq!(read.machine, bundle.machine);
        let (read, wrote) = (read.policy, bundle.policy);
        assert_eq!(
            (read.name, read.object, read.table, read.set, read.setup),
            (
                wrote.name,
                wrote.object,
                wrote.table,
                wrote.set,
                wrote.setup
            )
        );
    }

    #[test]
    fn a_damaged_bundle_is_refused_with_the_reason() {
        let file = bundle().write();
        let error = |file: &[u8]| format!("{:#}", Bundle::read(file).unwrap_err());
        let cut = error(&file[..file.len() - 1]);
        assert!(cut.ends_with("should have 14 bytes and has 13"), "{cut}");
        assert!(error(&file[..40]).contains("cut off"));
        assert!(error(b"runslice bundle 2\n{}").contains("version `2`"));
        let unknown = error(b"runslice bundle 1\n{\"colour\":1}\n");
        assert!(unknown.contains("colour"), "{unknown}");
        // Whatever is cut off, there is an error and no panic.
        for len in ANY.len()..file.len() {
            Bundle::read(&file[..len]).unwrap_err();
        }
    }
}
