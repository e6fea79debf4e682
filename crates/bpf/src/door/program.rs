//! `BPF_PROG_LOAD`.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::user_space::{BpfAnswer, ProgLoad};

use super::code::Code;
use super::create::is_name;
use super::objects::{Object, UserProgram};
use super::{CallError, Door};
use crate::btf::{Btf, BtfKind, TypeId};
use crate::bytes::ByteReader;
use crate::host::Host;
use crate::image::EntryPoint;
use crate::isa::SLOT;
use crate::{Errno, Insn, Instance};

/// `BPF_PROG_TYPE_*` (include/uapi/linux/bpf.h).
const TRACING: u32 = 26;
pub(super) const STRUCT_OPS: u32 = 27;
pub(super) const SYSCALL: u32 = 31;
/// What libraries load to find out what a kernel can: socket filters, kprobes, traffic control,
/// tracepoints, control group sockets, raw tracepoints.
const PROBES: [u32; 6] = [1, 2, 3, 5, 9, 17];

/// `enum bpf_attach_type`.
pub(super) const RAW_TRACEPOINT: u32 = 23;
pub(super) const ENTRY: u32 = 24;
pub(super) const EXIT: u32 = 25;
pub(super) const ITERATOR: u32 = 28;

/// Instructions of one program (`BPF_COMPLEXITY_LIMIT_INSNS`), and of all that were ever loaded.
const MOST_INSNS: usize = 1_000_000;
const MOST_INSNS_OF_ALL: usize = 1 << 22;

/// A program may sleep (`BPF_F_SLEEPABLE`).
const SLEEPABLE: u32 = 1 << 4;

/// A record of `func_info`: the function's first instruction, and its type.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionInfo {
    pub(super) start: u32,
    pub(super) ty: TypeId,
}

/// A record of `line_info`.
#[derive(Clone, Debug)]
pub(super) struct LineInfo {
    pub(super) insn: u32,
    pub(super) file: Arc<str>,
    pub(super) line: u32,
}

/// What the types of a program tell.
#[derive(Debug, Default)]
pub(super) struct Info {
    pub(super) btf: Option<Arc<Btf>>,
    pub(super) functions: Vec<FunctionInfo>,
    /// By instruction.
    pub(super) lines: Vec<LineInfo>,
}

impl<H: Host> Door<H> {
    pub(super) fn load_program(
        &mut self,
        vm: &mut Instance<H>,
        asked: &ProgLoad,
    ) -> Result<BpfAnswer, CallError> {
        let known = [TRACING, STRUCT_OPS, SYSCALL].contains(&asked.kind);
        if !is_name(&asked.name) || !known && !PROBES.contains(&asked.kind) {
            return Err(Errno::EINVAL.into());
        }
        if asked.code.len() / SLOT > MOST_INSNS || asked.code.is_empty() {
            return Err(Errno::E2BIG.into());
        }
        let (words, []) = asked.code.as_chunks::<SLOT>() else {
            return Err(Errno::EINVAL.into());
        };
        let insns: Vec<Insn> = words.iter().copied().map(Insn::decode).collect();
        if vm.image().code.len() + insns.len() > MOST_INSNS_OF_ALL {
            return Err(Errno::ENOMEM.into());
        }
        let target = self.target_of(asked)?;
        let info = self.info(asked)?;
        // Its number is what its streams are known by, so it is taken first.
        let id = self.objects.add(Object::Program(UserProgram {
            kind: asked.kind,
            attach_type: asked.attach_type,
            index: vm.image().programs.len() as u32,
            function: 0,
            attach_to: asked.attach_to,
            target,
            maps: BTreeSet::new(),
            is_open: true,
        }))?;
        let code = Code {
            door: self,
            vm,
            asked,
            info: &info,
            id,
        };
        let loaded = code.load(insns);
        let (function, maps) = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                self.objects.forget(id);
                return Err(error);
            }
        };
        let sleeps = asked.flags & SLEEPABLE != 0;
        let name = vm.image().functions[function as usize].name.clone();
        vm.image_mut().programs.push(EntryPoint {
            section: section(asked.kind, sleeps, &name),
            name,
            function,
            autoload: true,
            context: None,
        });
        vm.streams.open(id.0.into(), function);
        if let Some(Object::Program(program)) = self.objects.get_mut(id.0) {
            (program.function, program.maps) = (function, maps);
        }
        Ok(BpfAnswer::Created(id))
    }

    /// The kernel's name of what the program attaches to; empty if it attaches to nothing.
    fn target_of(&self, asked: &ProgLoad) -> Result<String, CallError> {
        let btf = &self.target.btf;
        let refuse = |what: &str| Err(CallError::with_log(Errno::EINVAL, format!("{what}\n")));
        if !matches!(asked.kind, TRACING | STRUCT_OPS) {
            return Ok(String::new());
        }
        let Some(id) = btf.id(asked.attach_to).filter(|id| id.0 != 0) else {
            return refuse("attach_btf_id is not a type of the kernel");
        };
        let name = btf.name(id);
        let kind = &btf.get(id).kind;
        match (asked.kind, asked.attach_type, kind) {
            (STRUCT_OPS, member, BtfKind::Struct(composite)) => {
                let member = composite.members.get(member as usize);
                match member {
                    Some(member) => Ok(btf.text(member.name).to_owned()),
                    None => refuse("attach to invalid member idx of struct"),
                }
            }
            (TRACING, RAW_TRACEPOINT, BtfKind::Typedef(_)) => match name.strip_prefix("btf_trace_")
            {
                Some(name) => Ok(name.to_owned()),
                None => refuse("attach_btf_id points to wrong type name"),
            },
            (TRACING, ENTRY | EXIT, BtfKind::Func { .. }) => Ok(name.to_owned()),
            (TRACING, ITERATOR, BtfKind::Func { .. }) => match name.strip_prefix("bpf_iter_") {
                Some(name) => Ok(name.to_owned()),
                None => refuse("attach_btf_id points to wrong type name"),
            },
            _ => refuse("attach_btf_id does not fit the program's type"),
        }
    }

    /// Reads `func_info` and `line_info`.
    fn info(&self, asked: &ProgLoad) -> Result<Info, CallError> {
        let Some(types) = asked.btf else {
            return if asked.functions.0.is_empty() && asked.lines.0.is_empty() {
                Ok(Info::default())
            } else {
                Err(Errno::EINVAL.into())
            };
        };
        let btf = Arc::clone(&self.objects.types(types)?.btf);
        let functions = records(&asked.functions, 8, |record| {
            let (start, ty) = (record.u32()?, btf.id(record.u32()?)?);
            matches!(btf.get(ty).kind, BtfKind::Func { .. }).then_some(FunctionInfo { start, ty })
        })?;
        let mut files = std::collections::BTreeMap::<u32, Arc<str>>::new();
        let lines = records(&asked.lines, 16, |record| {
            let (insn, file, _text) = (record.u32()?, record.u32()?, record.u32()?);
            // The column is in the low 10 bits.
            let line = record.u32()? >> 10;
            let name = btf.text_at(file)?;
            let file = files.entry(file).or_insert_with(|| name.into());
            Some(LineInfo {
                insn,
                file: Arc::clone(file),
                line,
            })
        })?;
        let ascending = |pair: &[LineInfo]| pair[0].insn < pair[1].insn;
        let rising = |pair: &[FunctionInfo]| pair[0].start < pair[1].start;
        if !lines.windows(2).all(ascending) || !functions.windows(2).all(rising) {
            return Err(CallError::with_log(
                Errno::EINVAL,
                "func_info or line_info is not in the order of instructions\n",
            ));
        }
        Ok(Info {
            btf: Some(btf),
            functions,
            lines,
        })
    }
}

/// Greatest size of a record (`MAX_FUNCINFO_REC_SIZE`).
const MOST_RECORD: u32 = 252;

fn records<T>(
    (bytes, size): &(Vec<u8>, u32),
    least: u32,
    mut one: impl FnMut(&mut ByteReader<'_>) -> Option<T>,
) -> Result<Vec<T>, Errno> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let fits = (least..=MOST_RECORD).contains(size) && size.is_multiple_of(4);
    let size = *size as usize;
    if !fits || !bytes.len().is_multiple_of(size) {
        return Err(Errno::EINVAL);
    }
    let records = bytes.chunks(size);
    let all: Option<Vec<T>> = records
        .map(|record| one(&mut ByteReader::new(record)))
        .collect();
    all.ok_or(Errno::EINVAL)
}

/// The section that an object would have the program in.
fn section(kind: u32, sleeps: bool, name: &str) -> String {
    match (kind, sleeps) {
        (STRUCT_OPS, true) => format!("struct_ops.s/{name}"),
        (STRUCT_OPS, false) => format!("struct_ops/{name}"),
        (SYSCALL, _) => "syscall".to_owned(),
        (TRACING, _) => format!("tracing/{name}"),
        _ => format!("probe/{name}"),
    }
}

impl UserProgram {
    /// Whether it is a callback for the member `member` of the kernel's structure `structure`.
    pub(super) const fn is_callback(&self, structure: TypeId, member: u32) -> bool {
        self.kind == STRUCT_OPS && self.attach_to == structure.0 && self.attach_type == member
    }

    /// Whether it attaches to a tracepoint, a function or an iterator.
    pub(super) const fn is_tracing(&self) -> bool {
        self.kind == TRACING
    }

    /// Whether it attaches to a tracepoint whose name comes with the link.
    pub(super) const fn is_raw_tracepoint(&self) -> bool {
        self.kind == 17
    }
}
