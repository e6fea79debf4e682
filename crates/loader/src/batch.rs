//! Calls of bpf(2) for many elements: done one by one.

use model::user_space::{BpfCall, BpfId, MapCreate};

use crate::attr::Attr;
use crate::bpf;
use crate::state::{CallContext, Errno, Reply};
use crate::work;

type Answer = Result<Reply, Errno>;

/// Elements of one call. A kernel does 2^32 of them, for hours, where the keys are there; nobody
/// could interrupt the supervisor meanwhile.
const ELEMENTS_MAX: u64 = 1 << 20;
/// Bytes of the keys and values of one call.
const BYTES_MAX: u64 = 256 << 20;

/// A batch: of `union bpf_attr` its `batch`.
struct Batch {
    id: BpfId,
    map: MapCreate,
    keys: u64,
    values: u64,
    count: u32,
    /// Bytes of a key and of a value.
    len: (u64, u64),
    /// The most elements that are done at once.
    most: u32,
}

fn batch(cx: &CallContext<'_>, attr: &Attr) -> Result<Batch, Errno> {
    let (id, map) = bpf::map(cx, attr.u32(36))?;
    let len = (u64::from(map.key_size), bpf::value_len(cx, &map));
    let fit = BYTES_MAX / len.0.saturating_add(len.1).max(1);
    Ok(Batch {
        id,
        map,
        keys: attr.u64(16),
        values: attr.u64(24),
        count: attr.u32(32),
        len,
        most: fit.clamp(1, ELEMENTS_MAX) as u32,
    })
}

/// A batch that changes the map: all of it is done, or nothing if that would be too much.
fn changes(cx: &mut CallContext<'_>, attr: &Attr) -> Result<Batch, Errno> {
    let batch = batch(cx, attr)?;
    if batch.count <= batch.most {
        return Ok(batch);
    }
    count(cx, attr, 0)?;
    cx.state.note(format!(
        "a batch of more than {} elements of a map with {} bytes each is too much; the program was \
         told E2BIG",
        batch.most,
        batch.len.0.saturating_add(batch.len.1)
    ));
    Err(Errno(libc::E2BIG))
}

fn nth(base: u64, n: u32, size: u64) -> u64 {
    base.wrapping_add(u64::from(n).wrapping_mul(size))
}

/// Tells how many elements were done.
fn count(cx: &CallContext<'_>, attr: &Attr, done: u32) -> Result<(), Errno> {
    cx.write(attr.at.wrapping_add(32), &done.to_le_bytes())
}

/// `BPF_MAP_LOOKUP_BATCH` and `BPF_MAP_LOOKUP_AND_DELETE_BATCH`. The place to go on from is the
/// last key; when elements are deleted, the first that is left. Fewer elements than there is room
/// for are no error: the program asks for the rest.
pub fn lookup(cx: &mut CallContext<'_>, attr: &Attr, delete: bool) -> Answer {
    let batch = batch(cx, attr)?;
    let (key_len, value_len) = batch.len;
    let mut key = match attr.u64(0) {
        0 => None,
        _ if delete => None,
        at => Some(cx.read(at, key_len)?),
    };
    let mut done = 0;
    let mut ended = false;
    while done < batch.count.min(batch.most) {
        cx.state.work.add(work::ELEMENT);
        let next = BpfCall::NextKey {
            map: batch.id,
            key: key.clone(),
        };
        let next = match bpf::ask_bytes(cx, next) {
            Err(Errno(libc::ENOENT)) => {
                ended = true;
                break;
            }
            next => next?,
        };
        let call = BpfCall::Lookup {
            map: batch.id,
            key: next.clone(),
            flags: attr.u64(40),
            delete: false,
        };
        let value = bpf::ask_bytes(cx, call)?;
        if value.len() as u64 != value_len || next.len() as u64 != key_len {
            return Err(Errno(libc::EIO));
        }
        cx.write(nth(batch.keys, done, key_len), &next)?;
        cx.write(nth(batch.values, done, value_len), &value)?;
        if delete {
            let call = BpfCall::Delete {
                map: batch.id,
                key: next.clone(),
            };
            bpf::ask(cx, call).map_err(|it| Errno(it.errno))?;
        } else {
            key = Some(next.clone());
        }
        cx.write(attr.u64(8), &next)?;
        done += 1;
    }
    count(cx, attr, done)?;
    if ended {
        return Err(Errno(libc::ENOENT));
    }
    Ok(Reply::Value(0))
}

/// `BPF_MAP_UPDATE_BATCH`.
pub fn update(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    let batch = changes(cx, attr)?;
    let (key_len, value_len) = batch.len;
    let fds = bpf::fds_of(cx, &batch.map);
    each(cx, attr, batch.count, |cx, n| {
        Ok(BpfCall::Update {
            map: batch.id,
            key: cx.read(nth(batch.keys, n, key_len), key_len)?,
            value: cx.read(nth(batch.values, n, value_len), value_len)?,
            flags: attr.u64(40),
            fds: fds.clone(),
        })
    })
}

/// `BPF_MAP_DELETE_BATCH`.
pub fn delete(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    let batch = changes(cx, attr)?;
    let key_len = batch.len.0;
    each(cx, attr, batch.count, |cx, n| {
        Ok(BpfCall::Delete {
            map: batch.id,
            key: cx.read(nth(batch.keys, n, key_len), key_len)?,
        })
    })
}

/// Makes so many calls, up to the first that is refused.
fn each(
    cx: &mut CallContext<'_>,
    attr: &Attr,
    calls: u32,
    call: impl Fn(&CallContext<'_>, u32) -> Result<BpfCall, Errno>,
) -> Answer {
    for n in 0..calls {
        cx.state.work.add(work::ELEMENT);
        let done = call(cx, n);
        let done = done.and_then(|it| bpf::ask(cx, it).map_err(|it| Errno(it.errno)));
        if let Err(error) = done {
            count(cx, attr, n)?;
            return Err(error);
        }
    }
    count(cx, attr, calls)?;
    Ok(Reply::Value(0))
}
