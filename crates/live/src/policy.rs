//! From an object's bytes to the machine's scheduler and back: one type a phase.

use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::btf::Btf;
use libbpf_rs::{Link, MapCore, MapFlags, MapType, Object, ObjectBuilder, OpenObject};

use crate::kernel_log::KernelLog;
use crate::variables::{self, Variable};
use crate::{Error, SchedExt, State, libbpf_log};

/// Detaching waits for tasks to leave the policy, which a loaded machine does slowly.
const DETACH_PATIENCE: Duration = Duration::from_secs(30);
/// Policies that report by report.bpf.h leave how they ended here.
const EXIT_VARIABLE: &str = "runslice_exit";
/// And their counters, with the names beside them.
const COUNTERS: &str = "runslice_counters";
const COUNTER_NAMES: &str = "runslice_counter_names";
/// Bytes of a counter's name in the object (`RUNSLICE_NAME_LEN`).
const NAME_SIZE: usize = 32;

/// An object that libbpf has read and no kernel has seen.
#[derive(Debug)]
pub struct Policy {
    name: String,
    bytes: Vec<u8>,
    table: String,
    object: OpenObject,
}

/// An object whose programs the verifier has accepted and that schedules nothing yet.
#[derive(Debug)]
pub struct Loaded {
    name: String,
    table: String,
    exit: Option<Variable>,
    counter_names: Option<Variable>,
    object: Object,
}

/// A policy that is the machine's scheduler until this value is dropped or the kernel ejects it.
#[derive(Debug)]
pub struct Attached {
    /// Dropped first: it detaches.
    link: Option<Link>,
    loaded: Loaded,
    kernel: SchedExt,
    /// From the moment before it was attached.
    log: KernelLog,
    /// The kernel's number of this attachment.
    sequence: Option<u64>,
}

/// How the kernel says that a policy ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// `enum scx_exit_kind`; 0 when the policy does not report it.
    pub kind: i64,
    /// Of `scx_bpf_exit()`, or the kernel's own.
    pub code: i64,
    /// The kind in the kernel's words.
    pub reason: String,
    /// The kernel's message, or the policy's.
    pub message: String,
}

impl Policy {
    /// Reads an object. `name` is what messages call it; `table` chooses one of several tables of
    /// callbacks.
    ///
    /// # Errors
    /// When libbpf does not understand the object, or the table is not there or not the only one.
    pub fn open(name: &str, bytes: &[u8], table: Option<&str>) -> Result<Self, Error> {
        let read = || {
            ObjectBuilder::default()
                .name("runslice")?
                .open_memory(bytes)
        };
        let (object, log) = libbpf_log::listen(read);
        let object = object.map_err(|source| Error::Open {
            policy: name.to_owned(),
            source,
            log,
        })?;
        let mut tables: Vec<String> = object
            .maps()
            .filter(|map| map.map_type() == MapType::StructOps)
            .map(|map| map.name().to_string_lossy().into_owned())
            .collect();
        tables.retain(|found| table.is_none_or(|wanted| wanted == found));
        let [only] = tables.as_slice() else {
            return Err(Error::Table {
                policy: name.to_owned(),
                tables,
            });
        };
        Ok(Self {
            name: name.to_owned(),
            bytes: bytes.to_vec(),
            table: only.clone(),
            object,
        })
    }

    /// Sets the initial value of a global variable, given as it lies in memory.
    ///
    /// # Errors
    /// When there is no such variable of `value`'s size.
    pub fn set_global(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        let error = || Error::Variable {
            policy: self.name.clone(),
            name: name.to_owned(),
            size: value.len(),
        };
        let variable = self
            .variable(name)
            .filter(|found| found.size == value.len());
        let Variable {
            section,
            offset,
            size,
        } = variable.ok_or_else(error)?;
        let mut maps = self.object.maps_mut();
        let mut map = maps
            .find(|map| variables::is_section_map(&map.name().to_string_lossy(), &section))
            .ok_or_else(error)?;
        let place = map
            .initial_value_mut()
            .and_then(|bytes| bytes.get_mut(offset..offset + size));
        place.ok_or_else(error)?.copy_from_slice(value);
        Ok(())
    }

    /// Lets the kernel's watchdog wait at most `limit` for a runnable task to run. A shorter time
    /// that the object asks for itself stays.
    ///
    /// # Errors
    /// When the table of callbacks has no field for it, so that the kernel would wait 30 s.
    pub fn limit_watchdog(&mut self, limit: Duration) -> Result<(), Error> {
        let limit_ms = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        let missing = || Error::Variable {
            policy: self.name.clone(),
            name: "sched_ext_ops.timeout_ms".to_owned(),
            size: size_of::<u32>(),
        };
        let btf = Btf::from_raw("runslice", &self.bytes).ok().flatten();
        let offset = btf.and_then(|btf| variables::member(&btf, "sched_ext_ops", "timeout_ms"));
        let offset = offset.ok_or_else(missing)?;
        let mut maps = self.object.maps_mut();
        let mut map = maps
            .find(|map| *map.name() == *self.table)
            .ok_or_else(missing)?;
        let bytes = map
            .initial_value_mut()
            .and_then(|bytes| bytes.get_mut(offset..));
        let field: &mut [u8; 4] = bytes
            .and_then(|bytes| bytes.first_chunk_mut())
            .ok_or_else(missing)?;
        let own_ms = u32::from_ne_bytes(*field);
        if own_ms == 0 || own_ms > limit_ms {
            *field = limit_ms.to_ne_bytes();
        }
        Ok(())
    }

    /// Gives the object to the kernel, whose verifier looks at every program.
    ///
    /// # Errors
    /// When the kernel refuses it; the message has the verifier's log.
    pub fn load(self) -> Result<Loaded, Error> {
        let exit = self.variable(EXIT_VARIABLE);
        let counter_names = self.variable(COUNTER_NAMES);
        let Self {
            name,
            table,
            object,
            ..
        } = self;
        let (object, log) = libbpf_log::listen(|| object.load());
        match object {
            Ok(object) => Ok(Loaded {
                name,
                table,
                exit,
                counter_names,
                object,
            }),
            Err(source) => Err(Error::Refused {
                policy: name,
                source,
                log,
            }),
        }
    }

    fn variable(&self, name: &str) -> Option<Variable> {
        let btf = Btf::from_raw("runslice", &self.bytes).ok()??;
        variables::find(&btf, name)
    }
}

impl Loaded {
    /// Makes the policy the machine's scheduler.
    ///
    /// # Errors
    /// When the kernel refuses, for example because another policy is attached.
    ///
    /// # Panics
    /// Never: the table was found when the object was opened.
    pub fn attach(mut self) -> Result<Attached, Error> {
        let table = self.table.clone();
        let log_from_now = KernelLog::from_now();
        let mut maps = self.object.maps_mut();
        let mut map = maps
            .find(|map| *map.name() == *table)
            .expect("a table that was found when the object was opened");
        let (link, log) = libbpf_log::listen(|| map.attach_struct_ops());
        drop(maps);
        let link = link.map_err(|source| Error::Attach {
            policy: self.name.clone(),
            source,
            log,
        })?;
        let kernel = SchedExt::of_this_kernel();
        let sequence = kernel.enable_seq();
        Ok(Attached {
            link: Some(link),
            loaded: self,
            kernel,
            log: log_from_now,
            sequence,
        })
    }

    /// How the policy ended, as its exit callback has noted; `None` if it has not ended, or does
    /// not report.
    fn ending(&self) -> Result<Option<Ending>, Error> {
        let bytes = self.global(self.exit.as_ref())?;
        let ending = bytes.as_deref().and_then(Ending::parse);
        Ok(ending.filter(|ending| ending.kind != 0))
    }

    /// A global variable's present bytes; `None` when the object has none.
    fn global(&self, variable: Option<&Variable>) -> Result<Option<Vec<u8>>, Error> {
        let Some(Variable {
            section,
            offset,
            size,
        }) = variable
        else {
            return Ok(None);
        };
        let is_its = |name: &str| variables::is_section_map(name, section);
        let Some(map) = self
            .object
            .maps()
            .find(|map| is_its(&map.name().to_string_lossy()))
        else {
            return Ok(None);
        };
        let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let value = value
            .map_err(|source| self.map_error(section, source))?
            .unwrap_or_default();
        Ok(value.get(*offset..offset + size).map(<[u8]>::to_vec))
    }

    /// The policy's own counters, summed over the CPUs, in its order.
    fn counters(&self) -> Result<Vec<(String, u64)>, Error> {
        let names = self
            .global(self.counter_names.as_ref())?
            .unwrap_or_default();
        let Some(map) = self.object.maps().find(|map| *map.name() == *COUNTERS) else {
            return Ok(Vec::new());
        };
        let mut counters = Vec::new();
        for (index, name) in (0_u32..).zip(names.chunks(NAME_SIZE)) {
            let values = map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY);
            let values = values.map_err(|source| self.map_error(COUNTERS, source))?;
            let numbers = values.into_iter().flatten().map(|bytes| {
                let bytes = bytes.first_chunk::<8>().copied().unwrap_or_default();
                u64::from_ne_bytes(bytes)
            });
            counters.push((text_of(name), numbers.sum()));
        }
        Ok(counters)
    }

    fn map_error(&self, map: &str, source: libbpf_rs::Error) -> Error {
        Error::Map {
            policy: self.name.clone(),
            map: map.to_owned(),
            source,
        }
    }
}

impl Attached {
    /// Whether the policy still schedules: the kernel has neither ejected nor replaced it.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.kernel.state() == Some(State::Enabled) && self.kernel.enable_seq() == self.sequence
    }

    /// The kernel's event counters for the policy.
    #[must_use]
    pub fn events(&self) -> Vec<(String, u64)> {
        self.kernel.events()
    }

    /// The policy's own counters; empty when it has none.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn counters(&self) -> Result<Vec<(String, u64)>, Error> {
        self.loaded.counters()
    }

    /// Detaches and waits until the kernel's own scheduler has all tasks. Returns how the policy
    /// ended: 64 is a normal end (`SCX_EXIT_UNREG`, kernel 6.18), 1024 and above an ejection.
    ///
    /// # Errors
    /// When the kernel does not come to rest, or the policy's own note cannot be read.
    pub fn detach(mut self) -> Result<Option<Ending>, Error> {
        drop(self.link.take());
        let end = Instant::now() + DETACH_PATIENCE;
        // Somebody else's policy may be there at once; ours is gone then, too.
        while self.kernel.state() != Some(State::Disabled)
            && self.kernel.enable_seq() == self.sequence
        {
            if Instant::now() > end {
                return Err(Error::StillThere {
                    state: format!("{:?}", self.kernel.state()),
                    seconds: DETACH_PATIENCE.as_secs(),
                });
            }
            thread::sleep(Duration::from_millis(10));
        }
        // The policy's own note has the code; one that leaves none is still in the kernel's log.
        Ok(self.loaded.ending()?.or_else(|| self.log.ending()))
    }
}

impl Ending {
    /// Reads `struct runslice_exit` of report.bpf.h: two numbers of 8 bytes, texts of 128 and 1024.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 8)?;
            Some(i64::from_ne_bytes(bytes.try_into().ok()?))
        };
        let text = |from: usize, to: usize| bytes.get(from..to).map(text_of);
        Some(Self {
            kind: number(0)?,
            code: number(8)?,
            reason: text(16, 144)?,
            message: text(144, 1168)?,
        })
    }
}

/// A C string in a field of fixed size.
fn text_of(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_exit_callback_noted_is_read() {
        let mut bytes = vec![0; 1168];
        bytes[..8].copy_from_slice(&1026_i64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&(-5_i64).to_ne_bytes());
        bytes[16..21].copy_from_slice(b"stall");
        bytes[144..150].copy_from_slice(b"no run");
        let ending = Ending::parse(&bytes).unwrap();
        let want = Ending {
            kind: 1026,
            code: -5,
            reason: "stall".to_owned(),
            message: "no run".to_owned(),
        };
        assert_eq!(ending, want);
        assert_eq!(Ending::parse(&bytes[..1167]), None);
    }

    #[test]
    fn an_object_that_libbpf_does_not_understand_is_refused_with_its_words() {
        let error = Policy::open("broken", b"\x7fELF no", None)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("broken: libbpf cannot read the object"),
            "{error}"
        );
    }

    #[test]
    fn shipped_policies_are_opened_and_their_knobs_set_before_any_kernel_sees_them() {
        for shipped in policies::ALL {
            Policy::open(shipped.name, shipped.object, None).unwrap();
        }
        let fifo = policies::find("fifo").unwrap();
        let mut policy = Policy::open("fifo", fifo.object, Some("fifo_ops")).unwrap();
        policy
            .set_global("slice_ns", &5_000_000_u64.to_ne_bytes())
            .unwrap();
        let size = policy
            .set_global("slice_ns", &[0; 4])
            .unwrap_err()
            .to_string();
        assert_eq!(size, "fifo: no global variable `slice_ns` of 4 bytes");
        policy.set_global("no_such", &[0; 8]).unwrap_err();
    }

    #[test]
    fn the_watchdog_is_shortened_and_never_lengthened() {
        let fifo = policies::find("fifo").unwrap();
        let mut policy = Policy::open("fifo", fifo.object, None).unwrap();
        let timeout = |policy: &Policy| {
            let map = policy
                .object
                .maps()
                .find(|map| *map.name() == *"fifo_ops")
                .unwrap();
            let btf = Btf::from_raw("fifo", fifo.object).unwrap().unwrap();
            let at = variables::member(&btf, "sched_ext_ops", "timeout_ms").unwrap();
            u32::from_ne_bytes(map.initial_value().unwrap()[at..at + 4].try_into().unwrap())
        };
        for (limit_s, want_ms) in [(5, 5_000), (7, 5_000), (2, 2_000)] {
            policy.limit_watchdog(Duration::from_secs(limit_s)).unwrap();
            assert_eq!(timeout(&policy), want_ms);
        }
    }

    #[test]
    fn a_table_that_is_not_there_is_an_error() {
        let fifo = policies::find("fifo").unwrap();
        let error = Policy::open("fifo", fifo.object, Some("other"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("no table of callbacks"), "{error}");
    }
}
