//! From an object's bytes to the machine's scheduler and back: one type a phase.

use std::time::Duration;

use libbpf_rs::btf::Btf;
use libbpf_rs::{MapType, ObjectBuilder, OpenObject};

use crate::attached::{Loaded, Parts};
use crate::ending::Note;
use crate::variables::{self, Variable};
use crate::{Error, SchedExt, libbpf_log};

/// The names of the policy's counters (report.bpf.h).
const COUNTER_NAMES: &str = "runslice_counter_names";
/// `SCX_OPS_SWITCH_PARTIAL` (`kernel/sched/ext_internal.h`, 6.18; the same in 7.2).
const SWITCH_PARTIAL: u64 = 1 << 3;

/// An object that libbpf has read and no kernel has seen.
#[derive(Debug)]
pub struct Policy {
    name: String,
    bytes: Vec<u8>,
    table: String,
    object: OpenObject,
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
        self.change_table("timeout_ms", |bytes: [u8; 4]| {
            match u32::from_ne_bytes(bytes) {
                own_ms if own_ms != 0 && own_ms < limit_ms => own_ms,
                _ => limit_ms,
            }
            .to_ne_bytes()
        })
    }

    /// Leaves all tasks to the kernel's own scheduler but those that ask for `SCHED_EXT`.
    ///
    /// # Errors
    /// When the table of callbacks has no field for it.
    pub fn switch_partial(&mut self) -> Result<(), Error> {
        self.change_table("flags", |bytes: [u8; 8]| {
            (u64::from_ne_bytes(bytes) | SWITCH_PARTIAL).to_ne_bytes()
        })
    }

    /// Changes a field of `N` bytes in the table of callbacks.
    fn change_table<const N: usize>(
        &mut self,
        field: &str,
        change: impl FnOnce([u8; N]) -> [u8; N],
    ) -> Result<(), Error> {
        let missing = || Error::Variable {
            policy: self.name.clone(),
            name: format!("sched_ext_ops.{field}"),
            size: N,
        };
        let btf = Btf::from_raw("runslice", &self.bytes).ok().flatten();
        let offset = btf.and_then(|btf| variables::member(&btf, "sched_ext_ops", field));
        let offset = offset.ok_or_else(missing)?;
        let mut maps = self.object.maps_mut();
        let mut map = maps
            .find(|map| *map.name() == *self.table)
            .ok_or_else(missing)?;
        let bytes = map
            .initial_value_mut()
            .and_then(|bytes| bytes.get_mut(offset..));
        let place: &mut [u8; N] = bytes
            .and_then(|bytes| bytes.first_chunk_mut())
            .ok_or_else(missing)?;
        *place = change(*place);
        Ok(())
    }

    /// Gives the object to the kernel, whose verifier looks at every program.
    ///
    /// # Errors
    /// When the kernel refuses it; the message has the verifier's log.
    pub fn load(mut self) -> Result<Loaded, Error> {
        let parts = {
            let btf = Btf::from_raw("runslice", &self.bytes).ok().flatten();
            btf.map_or_else(Parts::default, |btf| Parts {
                note: Note::find(&btf),
                counter_names: variables::find(&btf, COUNTER_NAMES),
                sections: variables::writable_sections(&btf),
            })
        };
        // CPUs that come or go from here on end the policy with the request to load it again.
        let hotplug_seq = SchedExt::of_this_kernel().hotplug_seq();
        if let Some(number) = hotplug_seq {
            // An object whose table lacks the field is told of later changes only.
            let _ = self.change_table("hotplug_seq", |_: [u8; 8]| number.to_ne_bytes());
        }
        let Self {
            name,
            table,
            object,
            ..
        } = self;
        let (object, log) = libbpf_log::listen(|| object.load());
        let object = object.map_err(|source| Error::Refused {
            policy: name.clone(),
            source,
            log,
        })?;
        Ok(Loaded {
            name,
            table,
            parts,
            hotplug_seq,
            object,
        })
    }

    fn variable(&self, name: &str) -> Option<Variable> {
        let btf = Btf::from_raw("runslice", &self.bytes).ok()??;
        variables::find(&btf, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            u32::from_ne_bytes(table_field(policy, "timeout_ms", 4).try_into().unwrap())
        };
        for (limit_s, want_ms) in [(5, 5_000), (7, 5_000), (2, 2_000)] {
            policy.limit_watchdog(Duration::from_secs(limit_s)).unwrap();
            assert_eq!(timeout(&policy), want_ms);
        }
    }

    /// A field of the policy's table as it will be given to the kernel.
    fn table_field(policy: &Policy, field: &str, size: usize) -> Vec<u8> {
        let table = &*policy.table;
        let map = policy
            .object
            .maps()
            .find(|map| *map.name() == *table)
            .unwrap();
        let btf = Btf::from_raw("policy", &policy.bytes).unwrap().unwrap();
        let at = variables::member(&btf, "sched_ext_ops", field).unwrap();
        map.initial_value().unwrap()[at..at + size].to_vec()
    }

    #[test]
    fn only_the_flag_for_partial_switching_is_added() {
        let fifo = policies::find("fifo").unwrap();
        let mut policy = Policy::open("fifo", fifo.object, None).unwrap();
        let flags = |policy: &Policy| {
            u64::from_ne_bytes(table_field(policy, "flags", 8).try_into().unwrap())
        };
        let before = flags(&policy);
        assert_eq!(before & SWITCH_PARTIAL, 0);
        policy.switch_partial().unwrap();
        assert_eq!(flags(&policy), before | 8);
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
