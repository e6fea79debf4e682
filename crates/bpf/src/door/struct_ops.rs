//! `struct_ops` maps: tables of callbacks, in the layout of the kernel's types.

use model::user_space::{BpfAnswer, BpfId, MapCreate};

use super::create::flag;
use super::elements::{Change, found};
use super::objects::{Declared, Object, Table, UserMap};
use super::{CallError, Door, EBADF, ENOTSUPP};
use crate::btf::BtfKind;
use crate::bytes;
use crate::host::Host;
use crate::image::{MemberValue, StructOps};
use crate::map::index_of;
use crate::{Errno, Instance};

/// `BPF_STRUCT_OPS_STATE_READY` (kernel 6.18, include/linux/bpf.h).
const READY: u32 = 3;

/// The name of a value's type begins with it, and ends with that of the structure in it.
const PREFIX: &str = "bpf_struct_ops_";

impl<H: Host> Door<H> {
    pub(super) fn create_struct_ops(&mut self, asked: &MapCreate) -> Result<BpfAnswer, CallError> {
        let flags = asked.flags & !(flag::LINK | flag::VALUE_TYPE_FD);
        let typed = asked.kernel_value_type != 0;
        if asked.key_size != 4 || asked.max_entries != 1 || flags != 0 || !typed {
            return Err(Errno::EINVAL.into());
        }
        if asked.flags & flag::LINK == 0 {
            // Registered by an update, as before links: no scheduler is loaded in this way.
            return Err(Errno::EOPNOTSUPP.into());
        }
        let table = self.table(asked)?;
        if table.value.len() != asked.value_size as usize {
            return Err(Errno::EINVAL.into());
        }
        let id = self.objects.add(Object::Map(Box::new(UserMap {
            index: None,
            shape: Declared {
                kind: asked.kind,
                key_size: 4,
                value_size: asked.value_size,
                max_entries: 1,
                flags: asked.flags,
                has_fields: false,
                has_lock: false,
            },
            is_frozen: false,
            inner: None,
            entries: std::collections::BTreeMap::new(),
            table: Some(table),
            address: None,
            is_open: true,
        })))?;
        Ok(BpfAnswer::Created(id))
    }

    fn table(&self, asked: &MapCreate) -> Result<Table, CallError> {
        let btf = &self.target.btf;
        let value = btf.id(asked.kernel_value_type).ok_or(ENOTSUPP)?;
        let BtfKind::Struct(composite) = &btf.get(value).kind else {
            return Err(ENOTSUPP.into());
        };
        let structure = btf.name(value).strip_prefix(PREFIX).ok_or(ENOTSUPP)?;
        let name = self.target.name();
        let field = |path: &str| {
            let field = self.target.field(btf.name(value), path);
            field.map_err(|_| CallError::with_log(ENOTSUPP, format!("{name} lacks {path}\n")))
        };
        Ok(Table {
            name: asked.name.clone(),
            structure: self.target.structure(structure).ok_or(ENOTSUPP)?,
            data_at: field("data")?.offset,
            state_at: field("common.state")?.offset,
            value: vec![0; composite.size as usize],
            programs: Vec::new(),
            set: None,
        })
    }

    /// Sets the table: file descriptors of programs stand where the kernel has pointers.
    pub(super) fn set_table(
        &mut self,
        vm: &Instance<H>,
        id: BpfId,
        change: &Change<'_>,
    ) -> Result<BpfAnswer, CallError> {
        let map = self.objects.map(id)?;
        let table = map.table.as_ref().ok_or(Errno::EINVAL)?;
        if change.flags != 0 || change.value.len() != table.value.len() {
            return Err(Errno::EINVAL.into());
        }
        if index_of(change.key) != Some(0) {
            return Err(Errno::E2BIG.into());
        }
        if table.set.is_some() {
            return Err(Errno::EBUSY.into());
        }
        let common = &change.value[..table.data_at as usize];
        if common.iter().any(|byte| *byte != 0) {
            return Err(Errno::EINVAL.into());
        }
        let (members, programs) = self.members(vm, table, change)?;
        let ops = StructOps {
            name: table.name.clone(),
            type_name: self.target.btf.name(table.structure).to_owned(),
            autoload: true,
            members,
            numbers: Vec::new(),
        };
        let mut value = change.value.to_vec();
        let at = table.state_at as usize;
        value[at..at + 4].copy_from_slice(&READY.to_le_bytes());
        if let Some(table) = &mut self.objects.map_mut(id)?.table {
            (table.value, table.programs, table.set) = (value, programs, Some(ops));
        }
        Ok(BpfAnswer::Done)
    }

    #[expect(
        clippy::type_complexity,
        reason = "members and the programs among them"
    )]
    fn members(
        &self,
        vm: &Instance<H>,
        table: &Table,
        change: &Change<'_>,
    ) -> Result<(Vec<(String, MemberValue)>, Vec<BpfId>), CallError> {
        let btf = &self.target.btf;
        let composite = btf.composite(table.structure).ok_or(Errno::EINVAL)?;
        let (mut members, mut programs) = (Vec::new(), Vec::new());
        for (number, member) in (0..).zip(&composite.members) {
            let size = btf.size(member.ty).ok_or(Errno::EINVAL)?;
            let at = u64::from(table.data_at) + u64::from(member.bit_offset / 8);
            let bytes = bytes::slice(change.value, at, size.into()).ok_or(Errno::EINVAL)?;
            let Some(last) = bytes.iter().rposition(|byte| *byte != 0) else {
                continue;
            };
            let name = btf.text(member.name).to_owned();
            let value = match btf.stripped(member.ty) {
                BtfKind::Ptr(to) if matches!(btf.stripped(*to), BtfKind::FuncProto { .. }) => {
                    let fd = index_of(bytes).ok_or(Errno::EINVAL)?;
                    let id = found(change.fds, fd).ok_or(EBADF)?;
                    let program = self.objects.program(id)?;
                    if !program.is_callback(table.structure, number) {
                        return Err(Errno::EINVAL.into());
                    }
                    programs.push(id);
                    debug_assert!((program.index as usize) < vm.image().programs.len());
                    MemberValue::Program(program.index)
                }
                // A pointer of user space means nothing to a kernel.
                BtfKind::Ptr(_) => return Err(Errno::EINVAL.into()),
                BtfKind::Int(_) | BtfKind::Enum(_) => {
                    MemberValue::Int(bytes::number(bytes).ok_or(Errno::EINVAL)?)
                }
                _ => MemberValue::Bytes(bytes[..=last].to_vec()),
            };
            members.push((name, value));
        }
        Ok((members, programs))
    }
}
