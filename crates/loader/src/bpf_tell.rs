//! `BPF_OBJ_GET_INFO_BY_FD`: what the program itself has said of an object, told back.
//!
//! Offsets are those of `struct bpf_map_info`, `bpf_prog_info`, `bpf_btf_info` and `bpf_link_info`,
//! Linux 6.18, include/uapi/linux/bpf.h.

use model::user_space::BpfId;

use crate::attr::Attr;
use crate::state::{CallContext, Errno, ObjectKind, Reply, u32_at, u64_at};

/// A structure being filled.
struct Structure(Vec<u8>);

impl Structure {
    fn u32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn name(&mut self, at: usize, name: &str) {
        for (to, from) in self.0[at..at + 15].iter_mut().zip(name.bytes()) {
            *to = from;
        }
    }
}

/// The call.
pub fn tell(cx: &mut CallContext<'_>, attr: &Attr) -> Result<Reply, Errno> {
    let (room, at) = (attr.u32(4), attr.u64(8));
    if room > 4096 {
        return Err(Errno(libc::E2BIG));
    }
    let given = cx.read(at, room.into())?;
    let object = cx.object(attr.u32(0).cast_signed());
    let object = object.ok_or(Errno(libc::EBADF))?;
    let (id, kind) = (object.id, object.kind.clone());
    let number = |id: Option<BpfId>| id.map_or(0, |it| it.0);
    let told = match kind {
        ObjectKind::Map(map, _) => {
            let mut told = Structure(vec![0; 104]);
            let head = [map.kind, id.0, map.key_size, map.value_size, map.max_entries, map.flags];
            for (n, value) in head.into_iter().enumerate() {
                told.u32(4 * n, value);
            }
            told.name(24, &map.name);
            told.u32(44, map.kernel_value_type);
            told.u32(64, number(map.btf));
            told.u32(68, map.key_type);
            told.u32(72, map.value_type);
            told.u64(80, map.extra);
            told
        }
        ObjectKind::Program(kind, name, btf, len) => {
            let mut told = Structure(vec![0; 232]);
            told.u32(0, kind);
            told.u32(4, id.0);
            told.u32(20, len);
            told.name(64, &name);
            // gpl_compatible
            told.u32(84, 1);
            told.u32(128, number(btf));
            told
        }
        ObjectKind::Btf(bytes) => return btf(cx, attr, (id, &bytes), &given),
        ObjectKind::Link(target, attach) => {
            /// `BPF_STRUCT_OPS` of the attach types; of links it is type 9, tracing type 2.
            const STRUCT_OPS: u32 = 44;
            let is_table = attach == STRUCT_OPS;
            let mut told = Structure(vec![0; 64]);
            told.u32(0, if is_table { 9 } else { 2 });
            told.u32(4, id.0);
            told.u32(8, if is_table { 0 } else { target.0 });
            told.u32(16, if is_table { target.0 } else { attach });
            told
        }
        ObjectKind::Iter(..) => return Err(Errno(libc::EINVAL)),
    };
    answer(cx, attr, told)
}

/// Types: their bytes too, if the program has given room for them.
fn btf(
    cx: &CallContext<'_>,
    attr: &Attr,
    (id, bytes): (BpfId, &[u8]),
    given: &[u8],
) -> Result<Reply, Errno> {
    let (to, room) = (u64_at(given, 0), u32_at(given, 8));
    let mut told = Structure(vec![0; 32]);
    told.u64(0, to);
    told.u32(8, bytes.len() as u32);
    told.u32(12, id.0);
    if to != 0 {
        cx.write(to, &bytes[..bytes.len().min(room as usize)])?;
    }
    answer(cx, attr, told)
}

fn answer(cx: &CallContext<'_>, attr: &Attr, mut told: Structure) -> Result<Reply, Errno> {
    told.0.truncate(attr.u32(4) as usize);
    cx.write(attr.u64(8), &told.0)?;
    cx.write(attr.at.wrapping_add(4), &(told.0.len() as u32).to_le_bytes())?;
    Ok(Reply::Value(0))
}
