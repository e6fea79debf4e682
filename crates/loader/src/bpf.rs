//! bpf(2): its arguments out of the program's memory, its answers back into it.
//!
//! Every object is a file in memory, so that the program can close, duplicate, inherit and map it
//! as it could the kernel's. Offsets are those of `union bpf_attr`, Linux 6.18,
//! include/uapi/linux/bpf.h.

use std::os::fd::OwnedFd;

use model::Kernel;
use model::user_space::{
    BpfAnswer, BpfCall, BpfId, Fds, MapCreate, Mappable, ProgLoad, Refused,
};

use crate::attr::Attr;
use crate::batch;
use crate::bpf_tell;
use crate::pins;
use crate::state::{CallContext, Errno, ObjectKind, BpfObject, Reply, u32_at};
use crate::sys::{self, InterceptedCall};

type Answer = Result<Reply, Errno>;

/// `BPF_MAP_TYPE_ARENA`.
pub const ARENA: u32 = 33;
/// `BPF_MAP_TYPE_STRUCT_OPS`.
const STRUCT_OPS: u32 = 26;
/// `BPF_PROG_TYPE_STRUCT_OPS`: its table is the one that it is a member of.
const CALLBACKS: u32 = 27;
/// Bytes of `union bpf_attr` that are known; what lies behind must be 0.
const ATTR: usize = 168;
/// `BPF_MAP_TYPE_*` whose values hold descriptors.
const HOLDS_FDS: [u32; 4] = [3, 12, 13, STRUCT_OPS];
/// `BPF_MAP_TYPE_*` with a value for each CPU.
const PER_CPU: [u32; 4] = [5, 6, 10, 21];

/// `BPF_LINK_CREATE`.
const LINK_CREATE: i32 = 28;

/// Whether the call attaches something.
pub const fn attaches(call: &InterceptedCall) -> bool {
    call.nr == libc::SYS_bpf && call.args[0] as i32 == LINK_CREATE
}

/// A call of bpf(2).
pub fn call(cx: &mut CallContext<'_>) -> Answer {
    let size = cx.arg(2) as u32;
    if size > 4096 {
        return Err(Errno(libc::E2BIG));
    }
    let mut bytes = cx.read(cx.arg(1), size.into())?;
    if bytes.iter().skip(ATTR).any(|it| *it != 0) {
        return Err(Errno(libc::E2BIG));
    }
    bytes.resize(ATTR, 0);
    let attr = Attr::new(bytes, cx.arg(1));
    let command = cx.int(0);
    match command {
        0 => map_create(cx, &attr),
        1 => lookup(cx, &attr, false),
        2 => update(cx, &attr),
        3 => delete(cx, &attr),
        4 => next_key(cx, &attr),
        5 => prog_load(cx, &attr),
        6 => pins::pin(cx, &attr),
        7 => pins::get(cx, &attr),
        10 => test_run(cx, &attr),
        // The next number of a program, a map, a type, a link: there are none but the program's.
        11 | 12 | 23 | 31 => Err(Errno(libc::ENOENT)),
        13 | 14 | 19 | 30 => by_number(cx, &attr),
        15 => bpf_tell::tell(cx, &attr),
        17 => raw_tracepoint(cx, &attr),
        18 => btf_load(cx, &attr),
        21 => lookup(cx, &attr, true),
        22 => freeze(cx, &attr),
        24 => batch::lookup(cx, &attr, false),
        25 => batch::lookup(cx, &attr, true),
        26 => batch::update(cx, &attr),
        27 => batch::delete(cx, &attr),
        LINK_CREATE => link_create(cx, &attr),
        33 => iter_create(cx, &attr),
        34 => link_detach(cx, &attr),
        35 => {
            cx.object_id(attr.u32(0))?;
            cx.object_id(attr.u32(4))?;
            Ok(Reply::Value(0))
        }
        36 => Err(Errno(libc::EINVAL)),
        37 => stream_read(cx, &attr),
        38 if cx.state.settings.shown.machine.kernel >= Kernel::V7_0 => associate(cx, &attr),
        _ => {
            let text = format!("bpf command {command} is not known; the program was told EINVAL");
            cx.state.note(text);
            Err(Errno(libc::EINVAL))
        }
    }
}

/// Asks the simulated machine.
pub fn ask(cx: &mut CallContext<'_>, call: BpfCall) -> Result<BpfAnswer, Refused> {
    let thread = cx.id();
    cx.kernel.bpf(thread, call)
}

/// Asks what answers with nothing but an error.
fn ask_done(cx: &mut CallContext<'_>, call: BpfCall) -> Result<(), Errno> {
    ask(cx, call).map(drop).map_err(|it| Errno(it.errno))
}

/// Asks what answers with bytes, so many of them.
pub fn ask_bytes(cx: &mut CallContext<'_>, call: BpfCall) -> Result<Vec<u8>, Errno> {
    match ask(cx, call) {
        Ok(BpfAnswer::Bytes(bytes)) => Ok(bytes),
        Ok(_) => Err(Errno(libc::EINVAL)),
        Err(refused) => Err(Errno(refused.errno)),
    }
}

/// The description of a map behind a descriptor.
pub fn map(cx: &CallContext<'_>, fd: u32) -> Result<(BpfId, MapCreate), Errno> {
    let object = cx.object(fd.cast_signed()).ok_or(Errno(libc::EBADF))?;
    match &object.kind {
        ObjectKind::Map(map, _) => Ok((object.id, (**map).clone())),
        _ => Err(Errno(libc::EINVAL)),
    }
}

/// Bytes of a value as the program has it.
pub fn value_len(cx: &CallContext<'_>, map: &MapCreate) -> u64 {
    let cpus = cx.state.settings.shown.machine.cpus;
    match map.kind {
        // Inside is a descriptor, or a number.
        3 | 12 | 13 => 4,
        kind if PER_CPU.contains(&kind) => {
            u64::from(map.value_size).next_multiple_of(8) * u64::from(cpus)
        }
        _ => map.value_size.into(),
    }
}

/// The descriptors that stand in a value.
pub fn fds_of(cx: &CallContext<'_>, map: &MapCreate) -> Fds {
    if HOLDS_FDS.contains(&map.kind) {
        cx.state.object_fds(cx.call.tid)
    } else {
        Fds::new()
    }
}

/// Makes the descriptor of a new object.
fn hand_out(cx: &mut CallContext<'_>, id: BpfId, kind: ObjectKind) -> Answer {
    let is_object = !matches!(kind, ObjectKind::Iter(..));
    let handed = describe(cx, id, kind);
    if handed.is_err() && is_object {
        // Nobody has a descriptor of it, and nobody ever will.
        let _ = ask(cx, BpfCall::Close { object: id });
    }
    handed
}

fn describe(cx: &mut CallContext<'_>, id: BpfId, kind: ObjectKind) -> Answer {
    let file = sys::memory_file(&format!("runslice-bpf-{}", id.0))?;
    let mappable = match kind {
        ObjectKind::Map(..) => cx.kernel.mappable(id),
        _ => None,
    };
    let is_arena = matches!(&kind, ObjectKind::Map(map, _) if map.kind == ARENA);
    let fixed = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    if let Some(Mappable { len, address }) = mappable {
        file.set_len(len)?;
        // Should the program shorten it, the simulator's own mapping would be cut.
        sys::seal(&file, fixed)?;
        // An arena of no address has no pages until it gets one.
        if address.is_some() || !is_arena {
            cx.kernel.share(id, file.try_clone()?)?;
        }
    } else if !matches!(kind, ObjectKind::Iter(..)) {
        sys::seal(&file, fixed | libc::F_SEAL_WRITE | libc::F_SEAL_SEAL)?;
    }
    let fd = OwnedFd::from(file.try_clone()?);
    let stat = rustix::fs::fstat(&file)?;
    let object = BpfObject { id, file, kind };
    cx.state.objects.insert((stat.st_dev, stat.st_ino), object);
    Ok(Reply::Fd(fd, true))
}

fn created(asked: Result<BpfAnswer, Refused>) -> Result<BpfId, Errno> {
    match asked {
        Ok(BpfAnswer::Created(id)) => Ok(id),
        Ok(_) => Err(Errno(libc::EINVAL)),
        Err(refused) => Err(Errno(refused.errno)),
    }
}

/// An object that is named by its descriptor, 0 for none.
fn optional(cx: &CallContext<'_>, fd: u32) -> Result<Option<BpfId>, Errno> {
    match fd {
        0 => Ok(None),
        fd => cx.object_id(fd).map(Some),
    }
}

fn map_create(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    let kind = attr.u32(0);
    let is_nested = matches!(kind, 12 | 13);
    let map = MapCreate {
        kind,
        key_size: attr.u32(4),
        value_size: attr.u32(8),
        max_entries: attr.u32(12),
        flags: attr.u32(16),
        name: attr.name(28),
        inner: if is_nested { Some(cx.object_id(attr.u32(20))?) } else { None },
        btf: optional(cx, attr.u32(48))?,
        key_type: attr.u32(52),
        value_type: attr.u32(56),
        kernel_value_type: attr.u32(60),
        extra: attr.u64(64),
    };
    let id = created(ask(cx, BpfCall::MapCreate(map.clone())))?;
    hand_out(cx, id, ObjectKind::Map(Box::new(map), false))
}

fn key(cx: &CallContext<'_>, map: &MapCreate, at: u64) -> Result<Vec<u8>, Errno> {
    cx.read(at, map.key_size.into())
}

fn lookup(cx: &mut CallContext<'_>, attr: &Attr, delete: bool) -> Answer {
    let (id, map) = map(cx, attr.u32(0))?;
    let len = value_len(cx, &map);
    let call = BpfCall::Lookup {
        map: id,
        key: key(cx, &map, attr.u64(8))?,
        flags: attr.u64(24),
        delete,
    };
    let value = ask_bytes(cx, call)?;
    if value.len() as u64 != len {
        return Err(Errno(libc::EIO));
    }
    cx.write(attr.u64(16), &value)?;
    Ok(Reply::Value(0))
}

fn update(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    let (id, map) = map(cx, attr.u32(0))?;
    let call = BpfCall::Update {
        map: id,
        key: key(cx, &map, attr.u64(8))?,
        value: cx.read(attr.u64(16), value_len(cx, &map))?,
        flags: attr.u64(24),
        fds: fds_of(cx, &map),
    };
    ask_done(cx, call)?;
    Ok(Reply::Value(0))
}

fn delete(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    let (id, map) = map(cx, attr.u32(0))?;
    let key = key(cx, &map, attr.u64(8))?;
    ask_done(cx, BpfCall::Delete { map: id, key })?;
    Ok(Reply::Value(0))
}

fn next_key(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    let (id, map) = map(cx, attr.u32(0))?;
    let key = match attr.u64(8) {
        0 => None,
        at => Some(key(cx, &map, at)?),
    };
    let next = ask_bytes(cx, BpfCall::NextKey { map: id, key })?;
    if next.len() as u64 != u64::from(map.key_size) {
        return Err(Errno(libc::EIO));
    }
    cx.write(attr.u64(16), &next)?;
    Ok(Reply::Value(0))
}

/// Whether a process of the program has the file mapped for writing.
fn is_mapped_writable(cx: &CallContext<'_>, inode: u64) -> bool {
    let lives = cx.state.processes.iter().filter(|it| it.lives);
    let paths = lives.map(|it| format!("/proc/{}/maps", it.real));
    let maps = paths.filter_map(|path| std::fs::read_to_string(path).ok());
    let inode = inode.to_string();
    maps.into_iter().any(|text| {
        text.lines().any(|line| {
            let mut words = line.split_ascii_whitespace().skip(1);
            let rights = words.next().unwrap_or("");
            rights.starts_with("rw") && rights.ends_with('s') && words.nth(2) == Some(&inode)
        })
    })
}

fn freeze(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    let (id, _) = map(cx, attr.u32(0))?;
    let stat = {
        let object = cx.object(attr.u32(0).cast_signed());
        rustix::fs::fstat(&object.ok_or(Errno(libc::EBADF))?.file)?
    };
    let mappable = cx.kernel.mappable(id).is_some();
    if mappable && is_mapped_writable(cx, stat.st_ino) {
        return Err(Errno(libc::EBUSY));
    }
    let object = cx.state.objects.get_mut(&(stat.st_dev, stat.st_ino));
    let Some(BpfObject { file, kind: ObjectKind::Map(_, frozen), .. }) = object else {
        return Err(Errno(libc::EBADF));
    };
    if *frozen {
        return Err(Errno(libc::EBUSY));
    }
    *frozen = true;
    if mappable {
        sys::seal(file, libc::F_SEAL_FUTURE_WRITE | libc::F_SEAL_SEAL)?;
    }
    ask_done(cx, BpfCall::Freeze { map: id })?;
    Ok(Reply::Value(0))
}

/// Writes a log as the program asked for it: where, and into how many bytes.
fn write_log(cx: &CallContext<'_>, (at, size): (u64, u32), log: &str) -> Result<(), Errno> {
    if at == 0 || size == 0 {
        return Ok(());
    }
    let mut bytes = log.as_bytes().to_vec();
    bytes.truncate(size as usize - 1);
    bytes.push(0);
    cx.write(at, &bytes)
}

/// The instructions, with descriptors in place of indexes into `fd_array`, and what they are.
fn instructions(cx: &CallContext<'_>, attr: &Attr) -> Result<(Vec<u8>, Fds), Errno> {
    /// Instructions of a program of a privileged user.
    const COUNT_MAX: u32 = 1_000_000;
    const LOAD_IMM64: u8 = 0x18;
    let count = attr.u32(4);
    if count == 0 || count > COUNT_MAX {
        return Err(Errno(libc::E2BIG));
    }
    let mut code = cx.read(attr.u64(8), u64::from(count) * 8)?;
    let mut fds = Fds::new();
    for step in code.chunks_exact_mut(8) {
        // 1 and 2: a map and its value by descriptor; 5 and 6: by index.
        let source = step[1] >> 4;
        if step[0] != LOAD_IMM64 || !matches!(source, 1 | 2 | 5 | 6) {
            continue;
        }
        let mut fd = u32_at(step, 4);
        if source >= 5 {
            let place = attr.u64(120).wrapping_add(u64::from(fd) * 4);
            fd = cx.read_u32(place)?;
            step[1] = step[1] & 15 | (source - 4) << 4;
            step[4..].copy_from_slice(&fd.to_le_bytes());
        }
        if !fds.iter().any(|it| it.0 == fd) {
            fds.push((fd, cx.object_id(fd)?));
        }
    }
    Ok((code, fds))
}

fn prog_load(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    /// `MAX_FUNCINFO_REC_SIZE` and `MAX_LINEINFO_REC_SIZE`; the kernel reads no more of a record.
    /// Linux 6.18, kernel/bpf/verifier.c.
    const RECORD_MAX: u32 = 252;
    let (code, fds) = instructions(cx, attr)?;
    let steps = code.len() as u64 / 8;
    let records = |count: u32, size: u32, at: u64| {
        // There is at most one for each instruction.
        if size > RECORD_MAX || u64::from(count) > steps {
            return Err(Errno(libc::EINVAL));
        }
        let bytes = cx.read(at, u64::from(count) * u64::from(size))?;
        Ok::<_, Errno>((bytes, size))
    };
    let license = cx.read_string(attr.u64(16), 128)?;
    let program = ProgLoad {
        kind: attr.u32(0),
        attach_type: attr.u32(68),
        name: attr.name(48),
        code,
        license: String::from_utf8_lossy(&license).into_owned(),
        flags: attr.u32(44),
        btf: optional(cx, attr.u32(72))?,
        functions: records(attr.u32(88), attr.u32(76), attr.u64(80))?,
        lines: records(attr.u32(104), attr.u32(92), attr.u64(96))?,
        attach_to: attr.u32(108),
        fds,
    };
    let len = program.code.len() as u32;
    let kind = ObjectKind::Program(program.kind, program.name.clone(), program.btf, len);
    let asked = ask(cx, BpfCall::ProgLoad(Box::new(program)));
    let log = asked.as_ref().err().map_or("", |it| it.log.as_str()).to_owned();
    if attr.u32(24) > 0 || !log.is_empty() {
        write_log(cx, (attr.u64(32), attr.u32(28)), &log)?;
    }
    let id = created(asked)?;
    hand_out(cx, id, kind)
}

fn btf_load(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    /// `BTF_MAX_SIZE`, Linux 6.18, include/linux/btf.h.
    const SIZE_MAX: u32 = 16 << 20;
    if attr.u32(16) > SIZE_MAX {
        return Err(Errno(libc::E2BIG));
    }
    let bytes = cx.read(attr.u64(0), attr.u32(16).into())?;
    let call = BpfCall::BtfLoad {
        bytes: bytes.clone(),
    };
    let asked = ask(cx, call);
    let log = asked.as_ref().err().map_or("", |it| it.log.as_str()).to_owned();
    if attr.u32(24) > 0 || !log.is_empty() {
        write_log(cx, (attr.u64(8), attr.u32(20)), &log)?;
    }
    let id = created(asked)?;
    hand_out(cx, id, ObjectKind::Btf(bytes))
}

fn link(
    cx: &mut CallContext<'_>,
    target: u32,
    (attach, name): (u32, String),
    flags: u32,
) -> Answer {
    let target = cx.object_id(target)?;
    let call = BpfCall::LinkCreate {
        target,
        attach_type: attach,
        name,
        flags,
    };
    let id = created(ask(cx, call))?;
    hand_out(cx, id, ObjectKind::Link(target, attach))
}

fn link_create(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    link(cx, attr.u32(0), (attr.u32(8), String::new()), attr.u32(12))
}

fn raw_tracepoint(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    const RAW_TP: u32 = 23;
    let name = match attr.u64(0) {
        0 => Vec::new(),
        at => cx.read_string(at, 128)?,
    };
    let name = String::from_utf8_lossy(&name).into_owned();
    link(cx, attr.u32(8), (RAW_TP, name), 0)
}

fn link_of(cx: &CallContext<'_>, fd: u32) -> Result<BpfId, Errno> {
    match cx.object(fd.cast_signed()) {
        Some(BpfObject {
            id,
            kind: ObjectKind::Link(..),
            ..
        }) => Ok(*id),
        Some(_) => Err(Errno(libc::EINVAL)),
        None => Err(Errno(libc::EBADF)),
    }
}

fn link_detach(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    let link = link_of(cx, attr.u32(0))?;
    ask_done(cx, BpfCall::LinkDetach { link })?;
    Ok(Reply::Value(0))
}

fn iter_create(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    let link = link_of(cx, attr.u32(0))?;
    hand_out(cx, BpfId(0), ObjectKind::Iter(link, false))
}

fn test_run(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    let (at, len) = (attr.u64(48), attr.u32(40));
    // Packets are another subsystem's.
    if len > 4096 || attr.u32(8) != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let call = BpfCall::TestRun {
        program: cx.object_id(attr.u32(0))?,
        context: cx.read(at, len.into())?,
        flags: attr.u32(64),
        cpu: attr.u32(68),
    };
    match ask(cx, call) {
        Ok(BpfAnswer::Ran { result, mut context }) => {
            context.truncate(len as usize);
            // bpf_prog_test_run_syscall() writes the context back to where it came from.
            cx.write(at, &context)?;
            if attr.u64(56) != 0 && attr.u32(44) != 0 {
                context.truncate(attr.u32(44) as usize);
                cx.write(attr.u64(56), &context)?;
            }
            cx.write(attr.at.wrapping_add(4), &result.to_le_bytes())?;
            Ok(Reply::Value(0))
        }
        Ok(_) => Err(Errno(libc::EINVAL)),
        Err(refused) => Err(Errno(refused.errno)),
    }
}

/// `BPF_PROG_ASSOC_STRUCT_OPS`: for which table the functions that a program calls speak. Nothing
/// depends on it here, because there is one scheduler.
fn associate(cx: &CallContext<'_>, attr: &Attr) -> Answer {
    let (_, table) = map(cx, attr.u32(0))?;
    let program = cx.object(attr.u32(4).cast_signed()).ok_or(Errno(libc::EBADF))?;
    let fits = matches!(program.kind, ObjectKind::Program(kind, ..) if kind != CALLBACKS);
    if table.kind != STRUCT_OPS || !fits || attr.u32(8) != 0 {
        return Err(Errno(libc::EINVAL));
    }
    Ok(Reply::Value(0))
}

fn stream_read(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    let len = attr.u32(8).min(1 << 20);
    let call = BpfCall::StreamRead {
        program: cx.object_id(attr.u32(16))?,
        stream: attr.u32(12),
        len,
    };
    let mut bytes = ask_bytes(cx, call)?;
    bytes.truncate(len as usize);
    cx.write(attr.u64(0), &bytes)?;
    Ok(Reply::Value(bytes.len() as i64))
}

/// A second descriptor for an object of the program's own.
fn by_number(cx: &mut CallContext<'_>, attr: &Attr) -> Answer {
    let found = cx.state.object_by_id(BpfId(attr.u32(0)));
    let object = found.filter(|it| it.id.0 != 0).ok_or(Errno(libc::ENOENT))?;
    Ok(Reply::Fd(OwnedFd::from(object.file.try_clone()?), true))
}

/// An arena is mapped: at the address that it has, or at one that it gets now.
pub fn arena_at(cx: &mut CallContext<'_>, id: BpfId, mappable: Mappable) -> Answer {
    /// Arenas of no address of their own begin here, 4 GiB apart: far from what `mmap()` gives
    /// out, and none crosses a border of 4 GiB.
    const FIRST: u64 = 0x1000_0000_0000;
    if cx.arg(1) > mappable.len || cx.arg(5) != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let asked = cx.arg(0);
    let address = match mappable.address {
        Some(address) if asked == address => address,
        Some(_) if asked != 0 => return Err(Errno(libc::EINVAL)),
        Some(address) => address,
        None if asked == 0 => FIRST + (u64::from(id.0) << 32),
        None => asked,
    };
    let last = address.checked_add(mappable.len.max(1) - 1);
    if last.is_none_or(|last| address >> 32 != last >> 32) {
        return Err(Errno(libc::EINVAL));
    }
    let told = cx.kernel.arena_at(id, address);
    told.map_err(|it| Errno(it.errno))?;
    if mappable.address.is_none() {
        let object = cx.state.object_by_id(id).ok_or(Errno(libc::EBADF))?;
        let file = object.file.try_clone()?;
        cx.kernel.share(id, file)?;
    }
    if asked == address {
        Ok(Reply::Continue)
    } else {
        Ok(Reply::Place(address))
    }
}

/// An object has no descriptor any more.
pub fn end(cx: &mut CallContext<'_>, key: (u64, u64)) {
    let Some(object) = cx.state.objects.remove(&key) else {
        return;
    };
    cx.state.rings.remove(&object.id);
    if !matches!(object.kind, ObjectKind::Iter(..)) {
        // The kernel's last word: there is nobody to tell of a refusal.
        let _ = ask(cx, BpfCall::Close { object: object.id });
    }
}
