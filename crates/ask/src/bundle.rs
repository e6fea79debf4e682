//! Bundles: a policy's object with everything that was decided about it, in one file.
//!
//! A line that says what it is, a line of JSON, and behind it the object, byte for byte. A bundle
//! of version 2 has the recording of a scheduler's own program in the place of the object, packed
//! by gzip. One of version 3, a capsule, has an object and the run that it is to make: workload,
//! machine, seed and length. Objects of schedulers below the policy stand behind its own.
//!
//! No archive, because an object must stay byte for byte, and an archive's library has more to go
//! wrong.

mod subs;

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use model::plain::shown;
use model::{Advised, MachineSpec, PolicySpec, Program, Recorded, SetUp, SetUpTime};
use serde::{Deserialize, Serialize};

use crate::note::Topic;
use crate::services::Services;
use crate::workload_arg::Written;
use subs::SubHeader;

/// What a bundle of an object begins with. The number is the format's version.
const MAGIC: &[u8] = b"runslice bundle 1\n";
/// What a bundle of a program's recording begins with.
const MAGIC_2: &[u8] = b"runslice bundle 2\n";
/// What a capsule begins with: an object with the run that shows something.
const MAGIC_3: &[u8] = b"runslice bundle 3\n";
/// What bundles of every version begin with.
const ANY: &[u8] = b"runslice bundle ";

/// Most bytes of a recording.
const MOST_RECORDING: usize = 1 << 30;
/// Bytes that any recording may become when it is unpacked, however short it is packed.
const UNPACKED: usize = 16 << 20;
/// Bytes that each packed byte may become beyond that. Deflate reaches 1,032.
const UNPACKED_EACH: usize = 64;

/// Most bytes that so many packed ones may become.
fn most_of(packed: usize) -> usize {
    let most = packed.saturating_mul(UNPACKED_EACH);
    most.saturating_add(UNPACKED).min(MOST_RECORDING)
}

/// Greatest length of the line of JSON.
const MOST_JSON: usize = 16 << 20;

/// A policy, and the machine that its variables were set for.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The policy.
    pub policy: PolicySpec,
    /// The machine.
    pub machine: MachineSpec,
    /// The run that a recording is of, or that a capsule repeats.
    pub bound: Option<Bound>,
}

/// The run that a program was recorded in: a recording fits no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// The workload.
    pub workload: Written,
    /// The parameters of it that were set.
    pub scale: Vec<(String, i64)>,
    /// The seed.
    pub seed: u64,
    /// When the run ended at the latest.
    pub duration_ns: Option<u64>,
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    subs: Vec<SubHeader>,
}

/// The line of JSON of a capsule.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderOfCapsule {
    name: String,
    table: Option<String>,
    set: Vec<(String, String)>,
    setup: Vec<Run>,
    machine: MachineSpec,
    run: Bound,
    /// Version of the program that wrote it: another one may simulate the run differently.
    runslice: String,
    /// Bytes of the object.
    object_bytes: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    subs: Vec<SubHeader>,
}

/// The line of JSON of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderOfRecording {
    name: String,
    command: Vec<String>,
    /// Whether the program's threads took no CPU.
    free: bool,
    setup_only: bool,
    machine: MachineSpec,
    run: Option<Bound>,
    /// Bytes of the recording.
    recording_bytes: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    program: String,
    args: String,
    /// Before the policy is attached, or as soon as it is.
    attached: bool,
}

impl From<&SetUp> for Run {
    fn from(run: &SetUp) -> Self {
        Self {
            program: run.program.clone(),
            args: run.args.clone(),
            attached: run.when == SetUpTime::Attached,
        }
    }
}

impl From<Run> for SetUp {
    fn from(run: Run) -> Self {
        Self {
            program: run.program,
            args: run.args,
            when: if run.attached {
                SetUpTime::Attached
            } else {
                SetUpTime::Loaded
            },
        }
    }
}

/// Refuses an object that is not as long as the header says.
fn check_length(object: &[u8], wanted: usize) -> anyhow::Result<()> {
    let len = object.len();
    ensure!(
        wanted == len,
        "the bundle's object should have {wanted} bytes and has {len}"
    );
    Ok(())
}

/// Whether a file claims to be a bundle, of whatever version.
#[must_use]
pub fn is_bundle(file: &[u8]) -> bool {
    file.starts_with(ANY)
}

impl Bundle {
    /// The file.
    ///
    /// # Panics
    /// If names and numbers do not become JSON, or memory does not take bytes.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let policy = &self.policy;
        if let Some((program, recorded)) = recorded(policy) {
            return self.write_recording(program, recorded);
        }
        let setup: Vec<_> = policy.setup.iter().map(Run::from).collect();
        if let Some(run) = &self.bound {
            return self.write_capsule(setup, run);
        }
        let header = Header {
            name: policy.name.clone(),
            table: policy.table.clone(),
            set: policy.set.clone(),
            setup,
            machine: self.machine.clone(),
            object_bytes: policy.object.len(),
            subs: subs::headers(policy),
        };
        let json = serde_json::to_string(&header).expect("names and numbers become JSON");
        [MAGIC, json.as_bytes(), b"\n", &subs::objects(policy)].concat()
    }

    fn write_capsule(&self, setup: Vec<Run>, run: &Bound) -> Vec<u8> {
        let policy = &self.policy;
        let header = HeaderOfCapsule {
            name: policy.name.clone(),
            table: policy.table.clone(),
            set: policy.set.clone(),
            setup,
            machine: self.machine.clone(),
            run: run.clone(),
            runslice: env!("CARGO_PKG_VERSION").to_owned(),
            object_bytes: policy.object.len(),
            subs: subs::headers(policy),
        };
        let json = serde_json::to_string(&header).expect("names and numbers become JSON");
        [MAGIC_3, json.as_bytes(), b"\n", &subs::objects(policy)].concat()
    }

    fn write_recording(&self, program: &Program, recorded: &Recorded) -> Vec<u8> {
        let header = HeaderOfRecording {
            name: self.policy.name.clone(),
            command: program.command.clone(),
            free: program.free,
            setup_only: recorded.setup_only,
            machine: self.machine.clone(),
            run: self.bound.clone(),
            recording_bytes: recorded.bytes.len(),
        };
        let json = serde_json::to_string(&header).expect("names and numbers become JSON");
        let file = [MAGIC_2, json.as_bytes(), b"\n"].concat();
        let head = file.len();
        let packed = |compression| {
            let mut file = GzEncoder::new(file.clone(), compression);
            let written = file.write_all(&recorded.bytes);
            written.and_then(|()| file.finish()).expect("to memory")
        };
        let file = packed(Compression::default());
        // The reader takes what packs that well for a bomb.
        if recorded.bytes.len() > most_of(file.len() - head) {
            return packed(Compression::none());
        }
        file
    }

    /// Reads a file for which [`is_bundle`] is true.
    ///
    /// # Errors
    /// When it is of another version, cut off or longer than it says, or its JSON is none.
    pub fn read(services: &Services<'_>, file: &[u8]) -> anyhow::Result<Self> {
        if let Some(rest) = file.strip_prefix(MAGIC_2) {
            return Self::read_recording(rest);
        }
        if let Some(rest) = file.strip_prefix(MAGIC_3) {
            return Self::read_capsule(services, rest);
        }
        let Some(rest) = file.strip_prefix(MAGIC) else {
            let version = file.strip_prefix(ANY).unwrap_or_default();
            let version = version.split(|byte| *byte == b'\n').next();
            let version = String::from_utf8_lossy(version.unwrap_or_default());
            let version: String = version.chars().take(20).collect();
            bail!(Advised::new(
                format!("the bundle has version `{version}`"),
                "this program reads 1 to 3"
            ));
        };
        let (header, object) = split(rest)?;
        Self::of(header, object, None)
    }

    fn of(header: Header, objects: &[u8], bound: Option<Bound>) -> anyhow::Result<Self> {
        let (object, subs) = subs::read(header.subs, header.object_bytes, objects)?;
        let setup = header.setup.into_iter().map(SetUp::from);
        Ok(Self {
            policy: PolicySpec {
                name: shown(header.name),
                object: Arc::from(object),
                table: header.table,
                set: header.set,
                setup: setup.collect(),
                program: None,
                subs,
            },
            machine: header.machine,
            bound,
        })
    }

    fn read_capsule(services: &Services<'_>, rest: &[u8]) -> anyhow::Result<Self> {
        let (header, object): (HeaderOfCapsule, _) = split(rest)?;
        let duration = header.run.duration_ns;
        let plain = Header {
            name: header.name,
            table: header.table,
            set: header.set,
            setup: header.setup,
            machine: header.machine,
            object_bytes: header.object_bytes,
            subs: header.subs,
        };
        let bundle = Self::of(plain, object, Some(header.run))?;
        ensure!(
            duration <= Some(i64::MAX.cast_unsigned()),
            "the bundle's run would last for ever"
        );
        if header.runslice != env!("CARGO_PKG_VERSION") {
            let (made, here) = (&header.runslice, env!("CARGO_PKG_VERSION"));
            let text = format!("made by runslice {made}; {here} may simulate its run differently");
            services.note(Topic::Bundle, text);
        }
        Ok(bundle)
    }

    fn read_recording(rest: &[u8]) -> anyhow::Result<Self> {
        let (header, packed): (HeaderOfRecording, &[u8]) = split(rest)?;
        let len = header.recording_bytes;
        ensure!(
            len <= MOST_RECORDING,
            "the bundle's recording has more than {} MiB",
            MOST_RECORDING >> 20
        );
        let most = most_of(packed.len());
        ensure!(
            len <= most,
            Advised::new(
                format!(
                    "the bundle's recording becomes {len} bytes when it is unpacked, and {} packed \
                     bytes may become {most}: it was not written by runslice",
                    packed.len()
                ),
                "record the program again"
            )
        );
        let mut recording = Vec::new();
        let mut unpacked = GzDecoder::new(packed).take(len as u64 + 1);
        let read = unpacked.read_to_end(&mut recording);
        read.context("the bundle's recording is cut or changed")?;
        ensure!(
            len == recording.len() && unpacked.into_inner().into_inner().is_empty(),
            "the bundle's recording should have {len} bytes, and nothing behind it"
        );
        ensure!(
            header.setup_only != header.run.is_some(),
            "the bundle does not say which run its recording is of"
        );
        let longest = Some(i64::MAX.cast_unsigned());
        let duration = header.run.as_ref().and_then(|run| run.duration_ns);
        ensure!(duration <= longest, "the bundle's run would last for ever");
        let recorded = Recorded {
            bytes: Arc::from(recording),
            setup_only: header.setup_only,
        };
        Ok(Self {
            policy: PolicySpec {
                name: shown(header.name),
                object: Arc::from([]),
                table: None,
                set: Vec::new(),
                setup: Vec::new(),
                program: Some(Program {
                    command: header.command,
                    free: header.free || header.setup_only,
                    recorded: Some(recorded),
                    ..Program::default()
                }),
                subs: Vec::new(),
            },
            machine: header.machine,
            bound: header.run,
        })
    }
}

/// The recording of a policy that is one.
fn recorded(policy: &PolicySpec) -> Option<(&Program, &Recorded)> {
    let program = policy.program.as_ref()?;
    Some((program, program.recorded.as_ref()?))
}

/// The header, and what stands behind it.
fn split<'a, T: Deserialize<'a>>(rest: &'a [u8]) -> anyhow::Result<(T, &'a [u8])> {
    let end = rest.iter().take(MOST_JSON).position(|byte| *byte == b'\n');
    let end = end.context("the bundle is cut off in its header")?;
    let header = serde_json::from_slice(&rest[..end]).context("the bundle's header")?;
    Ok((header, &rest[end + 1..]))
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
                subs: Vec::new(),
            },
            machine: MachineSpec {
                cpus: 48,
                smt: 2,
                llc: 16,
                ..MachineSpec::default()
            },
            bound: None,
        }
    }

    /// A bundle of a recording of nothing.
    fn recording() -> Bundle {
        let mut bundle = bundle();
        let recorded = Recorded {
            bytes: Arc::from(&b"a recording of nothing"[..]),
            setup_only: false,
        };
        bundle.policy.program = Some(Program {
            command: vec!["scx_mine".to_owned(), "-a b".to_owned()],
            recorded: Some(recorded),
            ..Program::default()
        });
        bundle.bound = Some(Bound {
            workload: Written::find(&Services::default(), "desk").unwrap(),
            scale: vec![("hogs".to_owned(), 2)],
            seed: u64::MAX,
            duration_ns: Some(1_000_000),
        });
        bundle
    }

    #[test]
    fn a_bundle_is_read_as_it_was_written() {
        let (bundle, file) = (bundle(), bundle().write());
        assert!(is_bundle(&file) && !is_bundle(b"\x7fELF"));
        let read = Bundle::read(&Services::default(), &file).unwrap();
        assert_eq!(read.machine, bundle.machine);
        let (read, wrote) = (read.policy, bundle.policy);
        assert_eq!(
            (read.name, read.object, read.table, read.set, read.setup),
            (
                // It stands in tables, whose rows are lines.
                r#"mine\u000a"quoted""#.to_owned(),
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
        let error = |file: &[u8]| {
            format!(
                "{:#}",
                Bundle::read(&Services::default(), file).unwrap_err()
            )
        };
        let cut = error(&file[..file.len() - 1]);
        assert!(cut.ends_with("should have 14 bytes and has 13"), "{cut}");
        assert!(error(&file[..40]).contains("cut off"));
        assert!(error(b"runslice bundle 4\n{}").contains("version `4`"));
        let unknown = error(b"runslice bundle 1\n{\"colour\":1}\n");
        assert!(unknown.contains("colour"), "{unknown}");
        // Whatever is cut off, there is an error and no panic.
        for file in [file, recording().write(), capsule().write()] {
            for len in ANY.len()..file.len() {
                Bundle::read(&Services::default(), &file[..len]).unwrap_err();
            }
        }
    }

    #[test]
    fn a_recording_that_becomes_far_longer_than_it_is_packed_is_refused() {
        let mut zeros = recording();
        let program = zeros.policy.program.as_mut().unwrap();
        program.recorded.as_mut().unwrap().bytes = vec![0_u8; UNPACKED + (4 << 20)].into();
        // Its own writer packs it so that it can be read again.
        let file = zeros.write();
        assert!(file.len() > UNPACKED, "{}", file.len());
        let read = Bundle::read(&Services::default(), &file)
            .unwrap()
            .policy
            .program
            .unwrap();
        assert_eq!(read.recorded.unwrap().bytes.len(), UNPACKED + (4 << 20));
        let (head, _) = split::<HeaderOfRecording>(&file[MAGIC_2.len()..]).unwrap();
        let head = serde_json::to_string(&head).unwrap();
        let mut bomb = GzEncoder::new(
            [MAGIC_2, head.as_bytes(), b"\n"].concat(),
            Compression::best(),
        );
        bomb.write_all(&vec![0_u8; UNPACKED + (4 << 20)]).unwrap();
        let bomb = bomb.finish().unwrap();
        assert!(bomb.len() < 32 << 10, "{}", bomb.len());
        let error = format!(
            "{:#}",
            Bundle::read(&Services::default(), &bomb).unwrap_err()
        );
        assert!(
            error.contains("becomes 20971520 bytes when it is unpacked"),
            "{error}"
        );
        // A header that claims less does not let more be unpacked.
        let (mut head, packed) = split::<HeaderOfRecording>(&bomb[MAGIC_2.len()..]).unwrap();
        head.recording_bytes = 10;
        let head = serde_json::to_string(&head).unwrap();
        let lies = [MAGIC_2, head.as_bytes(), b"\n", packed].concat();
        let error = format!(
            "{:#}",
            Bundle::read(&Services::default(), &lies).unwrap_err()
        );
        assert!(error.contains("should have 10 bytes"), "{error}");
    }

    fn capsule() -> Bundle {
        Bundle {
            bound: recording().bound,
            ..bundle()
        }
    }

    #[test]
    fn a_capsule_is_read_with_its_object_and_its_run() {
        let (capsule, read) = (
            capsule(),
            Bundle::read(&Services::default(), &capsule().write()).unwrap(),
        );
        assert_eq!((read.bound, read.machine), (capsule.bound, capsule.machine));
        assert_eq!(read.policy.object, capsule.policy.object);
        assert_eq!(read.policy.setup, capsule.policy.setup);
    }

    #[test]
    fn a_recording_is_read_with_the_run_that_it_is_of() {
        let bundle = recording();
        let read = Bundle::read(&Services::default(), &bundle.write()).unwrap();
        assert_eq!(read.policy.program, bundle.policy.program);
        assert_eq!((read.bound, read.machine), (bundle.bound, bundle.machine));
    }

    #[test]
    fn a_recording_that_is_not_whole_or_of_no_run_is_refused() {
        let error = |bundle: &Bundle| {
            format!(
                "{:#}",
                Bundle::read(&Services::default(), &bundle.write()).unwrap_err()
            )
        };
        let mut without = recording();
        without.bound = None;
        assert!(error(&without).contains("which run"), "{}", error(&without));
        let mut endless = recording();
        endless.bound.as_mut().unwrap().duration_ns = Some(u64::MAX);
        assert!(error(&endless).contains("for ever"));
        let whole = recording().write();
        let said = |file: &[u8]| {
            format!(
                "{:#}",
                Bundle::read(&Services::default(), file).unwrap_err()
            )
        };
        let mut changed = whole.clone();
        // In the checksum of gzip.
        let at = whole.len() - 6;
        changed[at] ^= 1;
        assert!(
            said(&changed).contains("cut or changed"),
            "{}",
            said(&changed)
        );
        let longer = [&whole[..], b"x"].concat();
        assert!(
            said(&longer).contains("nothing behind it"),
            "{}",
            said(&longer)
        );
        let (from, to) = (b"\"recording_bytes\":22", b"\"recording_bytes\":21");
        let at = whole.windows(from.len()).position(|it| it == from).unwrap();
        let mut shorter = whole;
        shorter[at..at + to.len()].copy_from_slice(to);
        assert!(
            said(&shorter).contains("should have 21 bytes"),
            "{}",
            said(&shorter)
        );
    }
}
