//! Maps, programs, types and links that the loader has, by their numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::user_space::{BpfAnswer, BpfId};

use super::{CallError, Door, EBADF};
use crate::btf::{Btf, TypeId};
use crate::host::Host;
use crate::image::StructOps;
use crate::{Errno, Instance};

/// Objects that may live at a time.
const MOST_OBJECTS: usize = 1 << 16;

/// What a number stands for.
#[derive(Debug)]
pub(super) enum Object {
    Types(Types),
    Map(Box<UserMap>),
    Program(UserProgram),
    Link(Link),
}

/// Types of the loader.
#[derive(Debug)]
pub(super) struct Types {
    pub(super) btf: Arc<Btf>,
    pub(super) bytes: u64,
    /// The image has those that programs can allocate.
    pub(super) offered: bool,
    pub(super) is_open: bool,
}

/// A map as user space sees it.
#[derive(Debug)]
pub(super) struct UserMap {
    /// Index in the image; `None` for `struct_ops`.
    pub(super) index: Option<u32>,
    pub(super) shape: Declared,
    /// User space sets no values any more.
    pub(super) is_frozen: bool,
    /// What a map of maps takes.
    pub(super) inner: Option<Declared>,
    /// What stands in a map of maps, by key.
    pub(super) entries: BTreeMap<Vec<u8>, BpfId>,
    pub(super) table: Option<Table>,
    /// Where the loader sees an arena.
    pub(super) address: Option<u64>,
    pub(super) is_open: bool,
}

/// What a map was created with, as far as two maps are compared by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) kind: u32,
    pub(super) key_size: u32,
    pub(super) value_size: u32,
    pub(super) max_entries: u32,
    pub(super) flags: u32,
    /// Its values have timers, locks or kernel pointers.
    pub(super) has_fields: bool,
    /// One of them is a lock.
    pub(super) has_lock: bool,
}

/// A program.
#[derive(Debug)]
pub(super) struct UserProgram {
    pub(super) kind: u32,
    pub(super) attach_type: u32,
    /// Index in the image's programs.
    pub(super) index: u32,
    /// Index in the image's functions.
    pub(super) function: u32,
    /// Number in the kernel's types, and the name there, of what it attaches to.
    pub(super) attach_to: u32,
    pub(super) target: String,
    pub(super) maps: BTreeSet<BpfId>,
    pub(super) is_open: bool,
}

/// A link: it lives as long as it is open.
#[derive(Debug)]
pub(super) struct Link {
    /// A map of a `struct_ops` link, else a program.
    pub(super) target: BpfId,
    pub(super) attachment: Attachment,
    pub(super) is_attached: bool,
    pub(super) is_open: bool,
}

/// Target that a program or table is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// A table, which [`Image::struct_ops`](crate::Image::struct_ops) holds while it is attached:
    /// its name.
    StructOps(String),
    /// A tracepoint: its name. The program's arguments are the tracepoint's.
    Tracepoint(String),
    /// The entry of a kernel function. The program's arguments are the function's.
    Entry(String),
    /// The exit of a kernel function. Behind the arguments is the result.
    Exit(String),
    /// An iterator, which runs when it is read.
    Iterator(String),
}

/// A table that user space makes.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    /// The kernel's structure of callbacks.
    pub(super) structure: TypeId,
    /// Where it lies in the value.
    pub(super) data_at: u32,
    /// Where the state lies in the value.
    pub(super) state_at: u32,
    pub(super) value: Vec<u8>,
    pub(super) programs: Vec<BpfId>,
    /// What was set.
    pub(super) set: Option<StructOps>,
}

impl Table {
    /// The value as user space reads it.
    pub(super) fn value(&self) -> &[u8] {
        &self.value
    }

    /// The programs that it needs.
    pub(super) fn programs(&self) -> impl Iterator<Item = BpfId> {
        self.programs.iter().copied()
    }

    /// The table, once its value was set.
    pub(super) const fn members(&self) -> Option<&StructOps> {
        self.set.as_ref()
    }
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    all: BTreeMap<u32, Object>,
    /// The number that was given last.
    last: u32,
}

impl Objects {
    pub(super) fn add(&mut self, object: Object) -> Result<BpfId, Errno> {
        if self.all.len() >= MOST_OBJECTS {
            return Err(Errno::ENOMEM);
        }
        self.last = self.last.checked_add(1).ok_or(Errno::ENOMEM)?;
        self.all.insert(self.last, object);
        Ok(BpfId(self.last))
    }

    /// Takes back what [`Objects::add`] has just added.
    pub(super) fn forget(&mut self, id: BpfId) {
        self.all.remove(&id.0);
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Object> {
        self.all.get_mut(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (BpfId, &Object)> {
        self.all.iter().map(|(id, object)| (BpfId(*id), object))
    }

    pub(super) fn types(&self, id: BpfId) -> Result<&Types, Errno> {
        match self.all.get(&id.0) {
            Some(Object::Types(types)) => Ok(types),
            _ => Err(EBADF),
        }
    }

    pub(super) fn map(&self, id: BpfId) -> Result<&UserMap, Errno> {
        match self.all.get(&id.0) {
            Some(Object::Map(map)) => Ok(map),
            _ => Err(EBADF),
        }
    }

    pub(super) fn map_mut(&mut self, id: BpfId) -> Result<&mut UserMap, Errno> {
        match self.all.get_mut(&id.0) {
            Some(Object::Map(map)) => Ok(map),
            _ => Err(EBADF),
        }
    }

    pub(super) fn program(&self, id: BpfId) -> Result<&UserProgram, Errno> {
        match self.all.get(&id.0) {
            Some(Object::Program(program)) => Ok(program),
            _ => Err(EBADF),
        }
    }

    pub(super) fn link_mut(&mut self, id: BpfId) -> Result<&mut Link, Errno> {
        match self.all.get_mut(&id.0) {
            Some(Object::Link(link)) => Ok(link),
            _ => Err(EBADF),
        }
    }

    /// Everything that an open object needs, itself included.
    fn needed(&self) -> BTreeSet<u32> {
        let open = self.iter().filter(|(_, object)| match object {
            Object::Types(types) => types.is_open,
            Object::Map(map) => map.is_open,
            Object::Program(program) => program.is_open,
            Object::Link(link) => link.is_open,
        });
        let mut pending: Vec<u32> = open.map(|(id, _)| id.0).collect();
        let mut needed = BTreeSet::new();
        while let Some(id) = pending.pop() {
            if !needed.insert(id) {
                continue;
            }
            match self.all.get(&id) {
                Some(Object::Map(map)) => {
                    pending.extend(map.entries.values().map(|inner| inner.0));
                    let table = map.table.as_ref().map(Table::programs);
                    pending.extend(table.into_iter().flatten().map(|program| program.0));
                }
                Some(Object::Program(program)) => {
                    pending.extend(program.maps.iter().map(|map| map.0));
                }
                Some(Object::Link(link)) if link.is_attached => pending.push(link.target.0),
                _ => {}
            }
        }
        needed
    }
}

impl<H: Host> Door<H> {
    /// The last file descriptor of an object was closed. It goes when no program, map or link
    /// needs it; a link goes at once.
    pub(super) fn close(
        &mut self,
        vm: &mut Instance<H>,
        host: &mut H,
        id: BpfId,
    ) -> Result<BpfAnswer, CallError> {
        match self.objects.get_mut(id.0).ok_or(EBADF)? {
            Object::Types(types) => types.is_open = false,
            Object::Map(map) => map.is_open = false,
            Object::Program(program) => program.is_open = false,
            Object::Link(link) => link.is_open = false,
        }
        let needed = self.objects.needed();
        let gone: Vec<u32> = self.objects.iter().map(|(id, _)| id.0).collect();
        for id in gone.into_iter().filter(|id| !needed.contains(id)) {
            match self.objects.all.remove(&id) {
                Some(Object::Types(types)) => self.type_bytes -= types.bytes,
                Some(Object::Map(map)) => {
                    if let Some(index) = map.index {
                        vm.remove_map(index, host);
                        // Another map may get its index, and then mean something else in the same
                        // instructions.
                        self.known.clear();
                    }
                }
                Some(Object::Program(program)) => {
                    vm.streams.close(id.into());
                    // Its code stays; nobody can call it, and none is made of it.
                    vm.image_mut().programs[program.index as usize].autoload = false;
                }
                Some(Object::Link(_)) | None => {}
            }
        }
        self.list_tables(vm);
        Ok(BpfAnswer::Done)
    }
}
