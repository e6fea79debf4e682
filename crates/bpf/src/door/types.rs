//! `BPF_BTF_LOAD`.

use std::sync::Arc;

use model::user_space::BpfAnswer;

use super::objects::{Object, Types};
use super::{CallError, Door};
use crate::btf::{Btf, BtfKind};
use crate::host::Host;
use crate::image::OwnType;
use crate::link::ValueFields;
use crate::{Errno, Instance};

/// Bytes of one BTF (`BTF_MAX_SIZE`, kernel 6.18, include/linux/btf.h), and of all that live.
const MOST_BYTES: usize = 16 << 20;
const MOST_BYTES_OF_ALL: u64 = 256 << 20;

/// Greatest size of a type that programs can allocate, see `link/types.rs`.
const MOST_ALLOCATED: u32 = 4096;

impl<H: Host> Door<H> {
    pub(super) fn load_types(&mut self, bytes: &[u8]) -> Result<BpfAnswer, CallError> {
        if bytes.len() > MOST_BYTES {
            return Err(Errno::E2BIG.into());
        }
        let held = self.type_bytes + bytes.len() as u64;
        if held > MOST_BYTES_OF_ALL {
            return Err(Errno::ENOMEM.into());
        }
        let btf = Btf::parse(bytes)
            .map_err(|error| CallError::with_log(Errno::EINVAL, format!("{error}\n")))?;
        self.type_bytes = held;
        let id = self.objects.add(Object::Types(Types {
            btf: Arc::new(btf),
            bytes: bytes.len() as u64,
            offered: false,
            is_open: true,
        }))?;
        Ok(BpfAnswer::Created(id))
    }

    /// A program that allocates objects has these types: it names them by their numbers.
    pub(super) fn offer_types(&mut self, vm: &mut Instance<H>, id: u32) {
        let Some(Object::Types(types)) = self.objects.get_mut(id) else {
            return;
        };
        if std::mem::replace(&mut types.offered, true) {
            return;
        }
        let btf = Arc::clone(&types.btf);
        let own = btf.iter().filter_map(|(ty, entry)| {
            let BtfKind::Struct(composite) = &entry.kind else {
                return None;
            };
            let size = composite.size;
            let fits = size > 0 && size <= MOST_ALLOCATED;
            let fields = ValueFields::find(&btf, ty).filter(|_| fits)?;
            Some(OwnType {
                source: id,
                id: ty.0,
                size,
                kptrs_at: fields.kptrs_at,
            })
        });
        vm.image_mut().types.extend(own);
    }
}
