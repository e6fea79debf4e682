//! Links: what is attached, and to what. Who calls the programs is the host's affair.

use model::user_space::{BpfAnswer, BpfId};

use super::create::STRUCT_OPS;
use super::objects::{Attachment, Link, Object};
use super::program::{ENTRY, EXIT, ITERATOR, RAW_TRACEPOINT};
use super::{CallError, Door, EBADF};
use crate::host::Host;
use crate::image::StructOps;
use crate::{Errno, Instance};

/// `BPF_STRUCT_OPS` and `BPF_PERF_EVENT` of `enum bpf_attach_type`.
const ATTACH_STRUCT_OPS: u32 = 44;
const ATTACH_PERF_EVENT: u32 = 41;

/// A link that is attached.
#[derive(Clone, Copy, Debug)]
pub struct Attached<'a> {
    /// Its number.
    pub link: BpfId,
    /// Its target.
    pub to: &'a Attachment,
    /// The function to call; `None` for a table.
    pub function: Option<u32>,
}

impl<H: Host> Door<H> {
    /// Attachments that exist now, by the number of the link.
    pub fn attached(&self) -> impl Iterator<Item = Attached<'_>> {
        self.objects.iter().filter_map(|(link, object)| {
            let Object::Link(found) = object else {
                return None;
            };
            let program = self.objects.program(found.target).ok();
            found.is_attached.then_some(Attached {
                link,
                to: &found.attachment,
                function: program.map(|program| program.function),
            })
        })
    }

    /// The table that the loader has set in the map `map`, attached or not.
    #[must_use]
    pub fn table_of(&self, map: BpfId) -> Option<&StructOps> {
        self.objects.map(map).ok()?.table.as_ref()?.members()
    }

    pub(super) fn create_link(
        &mut self,
        vm: &mut Instance<H>,
        target: BpfId,
        attach_type: u32,
        (name, flags): (&str, u32),
    ) -> Result<BpfAnswer, CallError> {
        if flags != 0 {
            return Err(Errno::EINVAL.into());
        }
        let attachment = match self.objects.map(target) {
            Ok(map) => {
                let table = map.table.as_ref().and_then(|table| table.members());
                let fits = map.shape.kind == STRUCT_OPS && attach_type == ATTACH_STRUCT_OPS;
                let table = table.filter(|_| fits).ok_or(Errno::EINVAL)?;
                Attachment::StructOps(table.name.clone())
            }
            Err(_) => self.program_attachment(target, attach_type, name)?,
        };
        let id = self.objects.add(Object::Link(Link {
            target,
            attachment,
            is_attached: true,
            is_open: true,
        }))?;
        self.list_tables(vm);
        Ok(BpfAnswer::Created(id))
    }

    fn program_attachment(
        &self,
        id: BpfId,
        attach_type: u32,
        name: &str,
    ) -> Result<Attachment, CallError> {
        let program = self.objects.program(id)?;
        if attach_type == ATTACH_PERF_EVENT {
            // There is no event to attach to; libbpf asks with the file descriptor -1.
            return Err(EBADF.into());
        }
        if program.is_raw_tracepoint() && attach_type == RAW_TRACEPOINT && !name.is_empty() {
            return Ok(Attachment::Tracepoint(name.to_owned()));
        }
        // An old way to open a link says 23 for all of them.
        let fits = [program.attach_type, RAW_TRACEPOINT].contains(&attach_type);
        if !program.is_tracing() || !fits {
            return Err(Errno::EINVAL.into());
        }
        let target = program.target.clone();
        Ok(match program.attach_type {
            RAW_TRACEPOINT => Attachment::Tracepoint(target),
            ENTRY => Attachment::Entry(target),
            EXIT => Attachment::Exit(target),
            ITERATOR => Attachment::Iterator(target),
            _ => return Err(Errno::EINVAL.into()),
        })
    }

    pub(super) fn detach(
        &mut self,
        vm: &mut Instance<H>,
        id: BpfId,
    ) -> Result<BpfAnswer, CallError> {
        self.objects.link_mut(id)?.is_attached = false;
        self.list_tables(vm);
        Ok(BpfAnswer::Done)
    }

    /// The image has the tables that are attached.
    pub(super) fn list_tables(&self, vm: &mut Instance<H>) {
        let links = self.objects.iter().filter_map(|(_, object)| match object {
            Object::Link(link) if link.is_attached => self.table_of(link.target),
            _ => None,
        });
        let tables: Vec<StructOps> = links.cloned().collect();
        if vm.image().struct_ops != tables {
            vm.set_tables(tables);
        }
    }

    /// Runs the program of an iterator over all that it visits, and gives what it has written.
    pub(super) fn read_iterator(
        &mut self,
        vm: &mut Instance<H>,
        host: &mut H,
        id: BpfId,
    ) -> Result<BpfAnswer, CallError> {
        let link = self.objects.link_mut(id)?;
        let Attachment::Iterator(what) = link.attachment.clone() else {
            return Err(Errno::EINVAL.into());
        };
        let program = link.target;
        let function = self.objects.program(program)?.function;
        self.user_ran(vm)?;
        // `struct bpf_iter_meta`: the file, the session, and how many were visited; behind it the
        // file, of which programs read nothing.
        let meta = vm.memory().alloc_object(32, 8)?;
        vm.streams.iterator = Some(Vec::new());
        // The last call is without an object.
        let visited = host.visited(&what).into_iter().chain([0]);
        let mut failed = None;
        for (number, object) in (0_u64..).zip(visited) {
            vm.memory()
                .put_words(meta, &[meta + 24, id.0.into(), number, 0]);
            if let Err(fault) = vm.call_program(function, &[meta, object], host) {
                failed = Some(CallError::Fault(fault));
                break;
            }
        }
        let text = vm.streams.iterator.take().unwrap_or_default();
        vm.memory().free_object(meta, 32);
        match failed {
            Some(error) => Err(error),
            None => Ok(BpfAnswer::Bytes(text)),
        }
    }
}
