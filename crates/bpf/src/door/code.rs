//! A program's instructions: numbers of file descriptors and types become indices of the image.
//!
//! Every program comes with copies of the functions that it calls. Equal functions are kept once.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use model::user_space::{BpfId, ProgLoad};

use super::elements::found;
use super::program::Info;
use super::{CallError, Door, EACCES, EBADF};
use crate::btf::BtfKind;
use crate::helper_names::helper_name;
use crate::host::Host;
use crate::image::Import;
use crate::instance::Piece;
use crate::isa::{CALL, CALL_LOCAL, LD_IMM64, ld_imm64};
use crate::link::KERNEL_TEXT;
use crate::{Errno, Insn, Instance, MapKind};

/// `src` of a call of a kernel function (`BPF_PSEUDO_KFUNC_CALL`).
const CALL_KERNEL: u8 = 2;
/// `src` of a 64-bit load of a kernel variable (`BPF_PSEUDO_BTF_ID`).
const BTF_ID: u8 = 3;

/// Functions of one program (`BPF_MAX_SUBPROGS`, kernel 6.18, `include/linux/bpf_verifier.h`).
const MOST_FUNCTIONS: usize = 256;
/// No offset into a map's value is greater (`BPF_MAX_VAR_OFF`).
const MOST_OFFSET: u32 = 1 << 29;

/// Numbers of helpers that libbpf calls where nothing can be called (tools/lib/bpf/libbpf.c and
/// `relo_core.c`, 6.18): a map that was not created, a weak function that the kernel lacks, a
/// relocation that failed.
const NO_MAP: u32 = 2_001_000_000;
const NO_FUNCTION: u32 = 2_002_000_000;
const NO_RELOCATION: u32 = 195_896_080;

/// Kernel functions that get an argument from the kernel itself, which argument, and what it is.
const STREAM: &str = "bpf_stream_vprintk_impl";
const NEW_OBJECT: &str = "bpf_obj_new_impl";

/// A program on its way into the image.
pub(super) struct Code<'a, H: Host> {
    pub(super) door: &'a mut Door<H>,
    pub(super) vm: &'a mut Instance<H>,
    pub(super) asked: &'a ProgLoad,
    pub(super) info: &'a Info,
    pub(super) id: BpfId,
}

/// What a pass over the functions knows.
struct Pass {
    insns: Vec<Insn>,
    /// Where each function begins, and the end of all.
    starts: Vec<u32>,
    /// Indices in the image, as far as they are known.
    indices: Vec<Option<u32>>,
    /// New functions in the order of their indices, and what was made of them.
    fresh: Vec<usize>,
    made: HashMap<usize, Vec<Insn>>,
    /// Functions that are being worked at or are done.
    seen: Vec<bool>,
    maps: BTreeSet<BpfId>,
}

type Refuse<T> = Result<T, CallError>;

fn refuse<T>(errno: Errno, log: impl Into<String>) -> Refuse<T> {
    Err(CallError::with_log(errno, log.into() + "\n"))
}

impl<H: Host> Code<'_, H> {
    /// Adds the program; gives its function and the maps that it uses.
    pub(super) fn load(mut self, insns: Vec<Insn>) -> Refuse<(u32, BTreeSet<BpfId>)> {
        let starts = self.starts(&insns)?;
        let count = starts.len() - 1;
        let mut pass = Pass {
            insns,
            starts,
            indices: vec![None; count],
            fresh: Vec::new(),
            made: HashMap::new(),
            seen: vec![false; count],
            maps: BTreeSet::new(),
        };
        self.function(&mut pass, 0)?;
        let main = self.index(&mut pass, 0);
        let first = self.vm.image().functions.len() as u32;
        let mut pieces = Vec::with_capacity(pass.fresh.len());
        for function in pass.fresh.clone() {
            let code = pass.made.remove(&function).unwrap_or_default();
            pieces.push(self.piece(&pass, function, code));
        }
        let hashes: Vec<u64> = pieces.iter().map(hash_of).collect();
        let appended = self.vm.append(pieces);
        if let Err(error) = appended {
            return refuse(Errno::EINVAL, error.to_string());
        }
        for (index, hash) in (first..).zip(hashes) {
            if index != main {
                self.door.known.entry(hash).or_default().push(index);
            }
        }
        Ok((main, pass.maps))
    }

    /// Where functions begin: at the first instruction, where `func_info` says so, and where
    /// instructions call or name one.
    fn starts(&self, insns: &[Insn]) -> Refuse<Vec<u32>> {
        let mut starts = BTreeSet::from([0]);
        starts.extend(self.info.functions.iter().map(|function| function.start));
        let mut at = 0;
        while at < insns.len() {
            if let Some(start) = callee(insns[at], at) {
                starts.insert(start?);
            }
            at += slots(insns[at]);
        }
        let end = insns.len() as u32;
        if starts.iter().any(|start| *start >= end) {
            return refuse(
                Errno::EINVAL,
                "a function begins behind the last instruction",
            );
        }
        if starts.len() > MOST_FUNCTIONS {
            return refuse(Errno::E2BIG, "too many subprograms");
        }
        Ok(starts.into_iter().chain([end]).collect())
    }

    /// The index of a function; one that has none gets the next.
    fn index(&self, pass: &mut Pass, function: usize) -> u32 {
        if let Some(index) = pass.indices[function] {
            return index;
        }
        let index = (self.vm.image().functions.len() + pass.fresh.len()) as u32;
        pass.fresh.push(function);
        pass.indices[function] = Some(index);
        index
    }

    /// Translates a function and those that it names, and finds it among those that there are.
    fn function(&mut self, pass: &mut Pass, function: usize) -> Refuse<()> {
        pass.seen[function] = true;
        let (start, end) = (
            pass.starts[function] as usize,
            pass.starts[function + 1] as usize,
        );
        let mut code = pass.insns[start..end].to_vec();
        let mut at = 0;
        while at < code.len() {
            let len = slots(code[at]);
            if let Some(target) = callee(pass.insns[start + at], start + at) {
                let target = pass.starts.binary_search(&target?);
                let target = target.map_err(|_| CallError::from(Errno::EINVAL))?;
                if !pass.seen[target] {
                    self.function(pass, target)?;
                }
                code[at].imm = self.index(pass, target).cast_signed();
            } else {
                self.insn(pass, &mut code[at..])?;
            }
            at += len;
        }
        if pass.indices[function].is_none() && function != 0 {
            let piece = self.piece(pass, function, code);
            pass.indices[function] = self.same(&piece);
            code = piece.code;
        }
        if pass.indices[function].is_none_or(|index| index >= self.first()) {
            self.index(pass, function);
            pass.made.insert(function, code);
        }
        Ok(())
    }

    /// The index of the first function that is new.
    fn first(&self) -> u32 {
        self.vm.image().functions.len() as u32
    }

    /// A function of the image that is the same.
    fn same(&self, piece: &Piece) -> Option<u32> {
        let image = self.vm.image();
        let candidates = self.door.known.get(&hash_of(piece))?;
        candidates.iter().copied().find(|index| {
            let function = &image.functions[*index as usize];
            let code = &image.code[function.start as usize..][..function.len as usize];
            function.name == piece.name && code == piece.code
        })
    }

    fn piece(&self, pass: &Pass, function: usize, code: Vec<Insn>) -> Piece {
        let (start, end) = (pass.starts[function], pass.starts[function + 1]);
        let lines = &self.info.lines;
        let first = lines.partition_point(|line| line.insn < start);
        let own = lines[first..].iter().take_while(|line| line.insn < end);
        Piece {
            name: self.name(function, start),
            code,
            lines: own
                .map(|line| (line.insn - start, line.file.clone(), line.line))
                .collect(),
        }
    }

    fn name(&self, function: usize, start: u32) -> String {
        let info = &self.info.functions;
        let named = info.iter().find(|info| info.start == start);
        let btf = self.info.btf.as_ref();
        let name = named
            .zip(btf)
            .map(|(info, btf)| btf.name(info.ty).to_owned());
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| {
            let program = match self.asked.name.as_str() {
                "" => "program",
                name => name,
            };
            match function {
                0 => program.to_owned(),
                _ => format!("{program}.{function}"),
            }
        })
    }

    /// Gives an instruction its meaning in the image. `insns` begins with it.
    fn insn(&mut self, pass: &mut Pass, insns: &mut [Insn]) -> Refuse<()> {
        match (insns[0].code, insns[0].src) {
            (LD_IMM64, src) if src != 0 => self.load_address(pass, insns),
            (CALL, 0) => self.call_helper(&mut insns[0]),
            (CALL, CALL_KERNEL) => self.call_kernel(&mut insns[0]),
            // The image has this for itself.
            (CALL, Insn::POISON) => refuse(Errno::EINVAL, "a call of an unknown kind"),
            _ => Ok(()),
        }
    }

    fn load_address(&mut self, pass: &mut Pass, insns: &mut [Insn]) -> Refuse<()> {
        let Some(second) = insns.get(1).copied() else {
            return refuse(Errno::EINVAL, "invalid bpf_ld_imm64 insn");
        };
        let number = insns[0].imm.cast_unsigned();
        let offset = second.imm.cast_unsigned();
        let (src, low, high) = match insns[0].src {
            src @ (ld_imm64::MAP | ld_imm64::MAP_VALUE) => {
                let id = found(&self.asked.fds, number).ok_or(EBADF)?;
                let map = self.door.objects.map(id)?;
                let index = map.index.ok_or(Errno::EINVAL)?;
                if map.shape.kind == MapKind::Arena as u32 && map.address.is_none() {
                    let why = "arena's user address must be set via map_extra or mmap()";
                    return refuse(Errno::EINVAL, why);
                }
                if src == ld_imm64::MAP_VALUE {
                    self.check_offset(index, offset)?;
                } else if offset != 0 {
                    return refuse(Errno::EINVAL, "unrecognized bpf_ld_imm64 insn");
                }
                pass.maps.insert(id);
                (src, index, offset)
            }
            BTF_ID => self.kernel_symbol(number, offset)?,
            _ => return refuse(Errno::EINVAL, "unrecognized bpf_ld_imm64 insn"),
        };
        insns[0].src = src;
        insns[0].imm = low.cast_signed();
        insns[1].imm = high.cast_signed();
        Ok(())
    }

    fn check_offset(&self, map: u32, offset: u32) -> Refuse<()> {
        if offset >= MOST_OFFSET {
            let why = format!("direct value offset of {offset} is not allowed");
            return refuse(Errno::EINVAL, why);
        }
        let def = &self.vm.image().maps[map as usize];
        let direct = match def.kind {
            MapKind::Array => def.max_entries == 1,
            kind => kind == MapKind::Arena,
        };
        if !direct {
            return refuse(
                Errno::EINVAL,
                "no direct value access support for this map type",
            );
        }
        if offset >= def.value_size {
            let size = def.value_size;
            let why =
                format!("invalid access to map value pointer, value_size={size} off={offset}");
            return refuse(Errno::EINVAL, why);
        }
        Ok(())
    }

    /// A variable or function of the kernel.
    fn kernel_symbol(&self, number: u32, module: u32) -> Refuse<(u8, u32, u32)> {
        let btf = &self.door.target.btf;
        let Some(id) = btf.id(number).filter(|_| module == 0) else {
            let why = format!("ldimm64 insn specifies invalid btf_id {number}.");
            return refuse(Errno::ENOENT, why);
        };
        match (self.door.variables.get(&number), &btf.get(id).kind) {
            (Some(variable), _) => Ok((ld_imm64::VARIABLE, *variable, 0)),
            (None, BtfKind::Func { .. }) => {
                let address = KERNEL_TEXT + u64::from(number) * 16;
                Ok((ld_imm64::CONSTANT, address as u32, (address >> 32) as u32))
            }
            _ => {
                let why = format!("pseudo btf_id {number} in ldimm64 isn't KIND_VAR or KIND_FUNC");
                refuse(Errno::EINVAL, why)
            }
        }
    }

    fn call_helper(&mut self, insn: &mut Insn) -> Refuse<()> {
        let number = insn.imm.cast_unsigned();
        // Number 0 is nobody's.
        if let Some(name) = helper_name(number).filter(|_| number != 0) {
            self.import(insn, (name.to_owned(), String::new(), Some(number)));
            return Ok(());
        }
        let reason = match number {
            NO_RELOCATION => {
                "the kernel lacks a type, field or value that this instruction needs".to_owned()
            }
            NO_FUNCTION.. => "the kernel lacks the function that is called here".to_owned(),
            NO_MAP.. => "the map that is used here was not created".to_owned(),
            _ => format!("no kernel has a helper number {number}"),
        };
        self.poison(insn, reason);
        Ok(())
    }

    /// Makes a call one that ends the run when it is reached.
    fn poison(&mut self, insn: &mut Insn, reason: String) {
        let poisons = &self.vm.image().poisons;
        let known = poisons.iter().position(|poison| *poison == reason);
        let index = known.unwrap_or_else(|| {
            let poisons = &mut self.vm.image_mut().poisons;
            poisons.push(reason);
            poisons.len() - 1
        });
        (insn.src, insn.imm) = (Insn::POISON, index as i32);
    }

    /// Why this program, if it is a callback, may not call `function`. A kernel refuses to load it
    /// if it can get there; here it ends when it gets there.
    fn denial(&self, function: &str) -> Option<String> {
        if self.asked.kind != super::program::STRUCT_OPS {
            return None;
        }
        let target = &self.door.target;
        let structure = target.btf.id(self.asked.attach_to)?;
        target.denial(target.btf.name(structure), function)
    }

    fn call_kernel(&mut self, insn: &mut Insn) -> Refuse<()> {
        let number = insn.imm.cast_unsigned();
        let btf = &self.door.target.btf;
        if insn.off != 0 {
            return refuse(Errno::EINVAL, "no kernel module has functions to call");
        }
        let function = btf
            .id(number)
            .filter(|id| matches!(btf.get(*id).kind, BtfKind::Func { .. }));
        let Some(function) = function else {
            let why = format!("kernel btf_id {number} is not a function");
            return refuse(Errno::EINVAL, why);
        };
        let name = btf.name(function).to_owned();
        if !self.door.kfuncs.contains(&number) {
            let why = format!("calling kernel function {name} is not allowed");
            return refuse(EACCES, why);
        }
        if let Some(denial) = self.denial(&name) {
            self.poison(insn, denial);
            return Ok(());
        }
        let prototype = btf.prototype(function).unwrap_or_default();
        self.import(insn, (name, prototype, None));
        Ok(())
    }

    fn import(&mut self, insn: &mut Insn, import: (String, String, Option<u32>)) {
        let (name, prototype, helper) = import;
        let given = match name.as_str() {
            STREAM => Some((4, u64::from(self.id.0))),
            NEW_OBJECT => self.asked.btf.map(|types| {
                self.door.offer_types(self.vm, types.0);
                (1, u64::from(types.0))
            }),
            _ => None,
        };
        let import = Import {
            name,
            prototype,
            helper,
            callers: Vec::new(),
        };
        let offers = (&*self.door.functions, &*self.door.builtins);
        let index = self.vm.import(import, given, offers);
        (insn.src, insn.imm) = (0, index.cast_signed());
    }
}

const fn slots(insn: Insn) -> usize {
    if insn.code == LD_IMM64 { 2 } else { 1 }
}

/// The instruction that a call or a callback's address at `at` means, if it is one of these.
fn callee(insn: Insn, at: usize) -> Option<Refuse<u32>> {
    let names = matches!(
        (insn.code, insn.src),
        (CALL, CALL_LOCAL) | (LD_IMM64, ld_imm64::FUNCTION)
    );
    // Distances are counted from the next instruction; of a load, too.
    let target = at as i64 + i64::from(insn.imm) + 1;
    names.then(|| match u32::try_from(target) {
        Ok(target) => Ok(target),
        Err(_) => refuse(Errno::EINVAL, "a call of what lies before the program"),
    })
}

fn hash_of(piece: &Piece) -> u64 {
    let mut hasher = DefaultHasher::new();
    piece.name.hash(&mut hasher);
    for insn in &piece.code {
        (insn.code, insn.dst, insn.src, insn.off, insn.imm).hash(&mut hasher);
    }
    hasher.finish()
}
