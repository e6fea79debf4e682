//! A policy in the kernel: loaded, attached, watched and detached.

use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use libbpf_rs::{Link, MapCore, MapFlags, Object};

use crate::ending::{Note, PolicyEnding, text_of};
use crate::kernel_log::KernelLog;
use crate::pins::{self, Pins};
use crate::variables::{self, Variable};
use crate::{ClassState, Error, SchedExt, libbpf_log};

/// Detaching waits for tasks to leave the policy, which a loaded machine does slowly.
const DETACH_PATIENCE: Duration = Duration::from_secs(30);
/// The policy's counters (report.bpf.h).
const COUNTERS: &str = "runslice_counters";
/// Bytes of a counter's name in the object (`RUNSLICE_NAME_LEN`).
const NAME_SIZE: usize = 32;

/// What an object's type information says of it.
#[derive(Debug, Default)]
pub struct Parts {
    /// Where it notes its end.
    pub note: Option<Note>,
    /// The names of its counters.
    pub counter_names: Option<Variable>,
    /// The sections of its variables.
    pub sections: Vec<String>,
}

/// An object whose programs the verifier has accepted and that schedules nothing yet.
#[derive(Debug)]
pub struct Loaded {
    pub(crate) name: String,
    pub(crate) table: String,
    pub(crate) parts: Parts,
    /// How often CPUs had come or gone when the object was loaded.
    pub(crate) hotplug_seq: Option<u64>,
    pub(crate) object: Object,
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
        let mut log_from_now = KernelLog::from_now();
        let mut maps = self.object.maps_mut();
        let mut map = maps
            .find(|map| *map.name() == *table)
            .expect("a table that was found when the object was opened");
        let (link, log) = libbpf_log::listen(|| map.attach_struct_ops());
        drop(maps);
        let link = link.map_err(|source| {
            let said = log_from_now.ending().map(|ending| {
                let PolicyEnding {
                    reason, message, ..
                } = ending;
                format!("{log}\nthe kernel says: {reason}: {message}")
            });
            Error::Attach {
                policy: self.name.clone(),
                source,
                log: said.unwrap_or(log),
            }
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
    fn ending(&self) -> Result<Option<PolicyEnding>, Error> {
        let Some(note) = &self.parts.note else {
            return Ok(None);
        };
        let bytes = self.global(Some(&note.variable))?;
        Ok(bytes.as_deref().and_then(|bytes| note.read(bytes)))
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

    /// The names of the policy's counters, in its order.
    fn counter_names(&self) -> Result<Vec<String>, Error> {
        let names = self.global(self.parts.counter_names.as_ref())?;
        let names = names.unwrap_or_default();
        Ok(names.chunks(NAME_SIZE).map(text_of).collect())
    }

    /// The policy's own counters, summed over the CPUs, in its order.
    fn counters(&self) -> Result<Vec<(String, u64)>, Error> {
        let names = self.counter_names()?;
        let Some(map) = self.object.maps().find(|map| *map.name() == *COUNTERS) else {
            return Ok(Vec::new());
        };
        let mut counters = Vec::new();
        for (index, name) in (0_u32..).zip(names) {
            let sum = pins::sum(&map, index);
            counters.push((
                name,
                sum.map_err(|source| self.map_error(COUNTERS, source))?,
            ));
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
        self.kernel.state() == Some(ClassState::Enabled)
            && self.kernel.enable_seq() == self.sequence
    }

    /// Whether the kernel has taken the policy away. Somebody else's may be there already.
    fn is_gone(&self) -> bool {
        self.kernel.state() == Some(ClassState::Disabled)
            || self.kernel.enable_seq() != self.sequence
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

    /// The names of the policy's own counters, in the order of their map.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn counter_names(&self) -> Result<Vec<String>, Error> {
        self.loaded.counter_names()
    }

    /// The kernel's number of this attachment.
    #[must_use]
    pub fn sequence(&self) -> Option<u64> {
        self.sequence
    }

    /// Makes the policy's variables and counters reachable for other processes below `folder`,
    /// which lies on a BPF file system. The policy's link is never pinned.
    ///
    /// # Errors
    /// When the folder cannot be made, or a map not pinned there.
    pub fn pin(&mut self, folder: &Path) -> Result<Pins, Error> {
        let pins = Pins::below(folder)?;
        let sections = &self.loaded.parts.sections;
        for mut map in self.loaded.object.maps_mut() {
            let called = map.name().to_string_lossy().into_owned();
            let section = sections
                .iter()
                .find(|section| variables::is_section_map(&called, section));
            let name = match section {
                Some(section) => pins::name(section),
                None if called == COUNTERS => pins::COUNTERS.to_owned(),
                None => continue,
            };
            let path = folder.join(name);
            map.pin(&path)
                .map_err(|source| Error::Pin { path, source })?;
        }
        Ok(pins)
    }

    /// Detaches and waits until the kernel's own scheduler has all tasks. Returns how the policy
    /// ended: 64 is a normal end (`SCX_EXIT_UNREG`, kernel 6.18), 1024 and above an ejection.
    ///
    /// # Errors
    /// When the kernel does not come to rest within 30 s, or the policy's own note cannot be read.
    pub fn detach(mut self) -> Result<Option<PolicyEnding>, Error> {
        let link = self.link.take();
        // The call comes back when the policy is gone, which may be never. So a thread of its own
        // makes it, and this one can say so.
        let call = thread::Builder::new().spawn(move || drop(link)).ok();
        let end = Instant::now() + DETACH_PATIENCE;
        while !(self.is_gone() && call.as_ref().is_none_or(JoinHandle::is_finished)) {
            if Instant::now() > end {
                return Err(Error::StillThere {
                    state: format!("{:?}", self.kernel.state()),
                    seconds: DETACH_PATIENCE.as_secs(),
                });
            }
            thread::sleep(Duration::from_millis(10));
        }
        // Whoever forks next relies on there being one thread. Its end is all that is asked for.
        let _ = call.map(JoinHandle::join);
        // The policy's own note has the code; one that leaves none is still in the kernel's log.
        let ending = self.loaded.ending()?.or_else(|| self.log.ending());
        let cpus_changed = self.kernel.hotplug_seq() != self.loaded.hotplug_seq;
        Ok(ending.map(|mut ending| {
            ending.complete(cpus_changed);
            ending
        }))
    }
}
