//! The second front door: an instance is filled by calls of bpf(2), as a loader makes them.
//!
//! The loader's library has relocated its programs against [`Target::btf`]; it creates maps, sets
//! them, loads programs one by one and attaches them. All that it says is untrusted. No verifier
//! looks at the programs: the structure of their code is checked, and what they do is checked
//! while they run.
//!
//! Errors are those of Linux 6.18, kernel/bpf/syscall.c and the file of each kind of map.

mod code;
mod create;
mod elements;
mod error;
mod links;
mod objects;
mod program;
mod share;
mod struct_ops;
mod types;

use std::collections::{BTreeMap, BTreeSet};

use model::user_space::{BpfAnswer, BpfCall, BpfId};

pub use error::CallError;
pub use links::Attached;
pub use objects::Attachment;

use crate::btf::BtfKind;
use crate::builtin;
use crate::config::Config;
use crate::host::{Host, HostFunction};
use crate::image::{FieldRead, Image, Variable};
use crate::instance_error::InstanceError;
use crate::{Errno, Instance, Target};
use objects::Objects;

/// The kernel's answer to a call that it does not know for a kind of object.
const ENOTSUPP: Errno = Errno(524);
const EBADF: Errno = Errno(9);
const EACCES: Errno = Errno(13);
const ERANGE: Errno = Errno(34);

/// Loads programs and maps into one instance, as bpf(2) does: has the kernel's types and functions,
/// and everything that the loader has made so far. Every call goes to the instance that came with
/// it.
#[derive(Debug)]
pub struct Door<H: Host> {
    target: Target,
    functions: Vec<HostFunction<H>>,
    builtins: Vec<HostFunction<H>>,
    /// Numbers of the kernel's functions that programs may call.
    kfuncs: BTreeSet<u32>,
    /// Numbers of the kernel's variables, and their indices in the image.
    variables: BTreeMap<u32, u32>,
    objects: Objects,
    /// The ring buffers among them; some may be gone.
    rings: Vec<BpfId>,
    /// Functions of the image by a hash of what they are, to find the same again.
    known: BTreeMap<u64, Vec<u32>>,
    /// Bytes of all types that live.
    type_bytes: u64,
}

impl<H: Host> Door<H> {
    /// A kernel without maps and programs, and an instance for them. `functions` are what the host
    /// offers to programs.
    ///
    /// # Errors
    /// [`InstanceError`] if there is no memory for it.
    pub fn open(
        target: Target,
        functions: Vec<HostFunction<H>>,
        config: Config,
    ) -> Result<(Self, Instance<H>), InstanceError> {
        let builtins = builtin::table(&config.builtin_cost_ps);
        let mut image = blank();
        image.reads = structures(&target);
        let mut variables = BTreeMap::new();
        for (id, ty) in target.btf.iter() {
            let BtfKind::Var { ty: value, .. } = ty.kind else {
                continue;
            };
            variables.insert(id.0, image.variables.len() as u32);
            image.variables.push(Variable {
                name: target.btf.name(id).to_owned(),
                size: target.btf.size(value).filter(|&size| size > 0).unwrap_or(8),
                percpu: target.is_percpu(id),
                initial: Vec::new(),
            });
        }
        let instance = Instance::empty(image, config)?;
        let door = Self {
            kfuncs: kfuncs(&target),
            target,
            functions,
            builtins,
            variables,
            objects: Objects::default(),
            rings: Vec::new(),
            known: BTreeMap::new(),
            type_bytes: 0,
        };
        Ok((door, instance))
    }

    /// The kernel that the loader sees.
    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// A call of the loader.
    ///
    /// # Errors
    /// As a kernel refuses it; or the fault of a program that it ran.
    pub fn call(
        &mut self,
        vm: &mut Instance<H>,
        host: &mut H,
        call: BpfCall,
    ) -> Result<BpfAnswer, CallError> {
        match call {
            BpfCall::BtfLoad { bytes } => self.load_types(&bytes),
            BpfCall::MapCreate(asked) => self.create_map(vm, &asked),
            BpfCall::Lookup {
                map,
                key,
                flags,
                delete,
            } => self.lookup((vm, host), map, &key, (flags, delete)),
            BpfCall::Update {
                map,
                key,
                value,
                flags,
                fds,
            } => {
                let change = elements::Change {
                    key: &key,
                    value: &value,
                    flags,
                    fds: &fds,
                };
                self.update(vm, host, map, &change)
            }
            BpfCall::Delete { map, key } => self.delete(vm, host, map, &key),
            BpfCall::NextKey { map, key } => self.next_key(vm, map, key.as_deref()),
            BpfCall::Freeze { map } => self.freeze(vm, map),
            BpfCall::ProgLoad(asked) => self.load_program(vm, &asked),
            BpfCall::LinkCreate {
                target,
                attach_type,
                name,
                flags,
            } => self.create_link(vm, target, attach_type, (&name, flags)),
            BpfCall::LinkDetach { link } => self.detach(vm, link),
            BpfCall::TestRun {
                program,
                context,
                flags,
                cpu,
            } => self.test_run((vm, host), program, context, (flags, cpu)),
            BpfCall::IterRead { link } => self.read_iterator(vm, host, link),
            BpfCall::StreamRead {
                program,
                stream,
                len,
            } => self.read_stream(vm, program, stream, len),
            BpfCall::Close { object } => self.close(vm, host, object),
        }
    }

    /// Greatest context of a syscall program (`U16_MAX`, Linux 6.18, `net/bpf/test_run.c`).
    const MOST_CONTEXT: usize = 0xffff;

    fn test_run(
        &mut self,
        (vm, host): (&mut Instance<H>, &mut H),
        id: BpfId,
        mut context: Vec<u8>,
        (flags, cpu): (u32, u32),
    ) -> Result<BpfAnswer, CallError> {
        let program = self.objects.program(id)?;
        if program.kind != program::SYSCALL {
            return Err(ENOTSUPP.into());
        }
        if flags != 0 || cpu != 0 || context.len() > Self::MOST_CONTEXT {
            return Err(Errno::EINVAL.into());
        }
        self.user_ran(vm)?;
        let result = vm.run_syscall(program.function, &mut context, host);
        Ok(BpfAnswer::Ran {
            result: result.map_err(CallError::Fault)? as u32,
            context,
        })
    }

    fn read_stream(
        &self,
        vm: &mut Instance<H>,
        program: BpfId,
        stream: u32,
        len: u32,
    ) -> Result<BpfAnswer, CallError> {
        self.objects.program(program)?;
        let text = vm
            .streams
            .read(program.0.into(), stream.into(), len as usize)?;
        Ok(BpfAnswer::Bytes(text))
    }
}

/// An image of nothing.
fn blank() -> Image {
    Image {
        code: Vec::new(),
        functions: Vec::new(),
        programs: Vec::new(),
        maps: Vec::new(),
        imports: Vec::new(),
        variables: Vec::new(),
        poisons: Vec::new(),
        struct_ops: Vec::new(),
        symbols: Vec::new(),
        knobs: Vec::new(),
        types: Vec::new(),
        lines: Vec::new(),
        reads: Vec::new(),
        license: String::new(),
    }
}

/// Programs that somebody else has relocated may read any field.
fn structures(target: &Target) -> Vec<FieldRead> {
    let all = target.btf.iter();
    let structures = all.filter(|(_, ty)| matches!(ty.kind, BtfKind::Struct(_)));
    let names = structures.map(|(id, _)| target.btf.name(id));
    let names = names.filter(|name| !name.is_empty());
    names
        .map(|name| FieldRead {
            structure: name.to_owned(),
            at: 0,
            len: u32::MAX,
        })
        .collect()
}

/// The functions that the kernel's types tag as callable.
fn kfuncs(target: &Target) -> BTreeSet<u32> {
    let all = target.btf.iter();
    all.filter(|(id, _)| target.btf.name(*id) == "bpf_kfunc")
        .filter_map(|(_, ty)| match ty.kind {
            BtfKind::DeclTag { target, .. } => Some(target.0),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests;
