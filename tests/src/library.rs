//! What a loader's library does with an object: the calls of bpf(2) that load and attach it.

use bpf::{Function, Image, Insn, MapDef, MapKind, MemberValue, StructOps, Target};
use model::user_space::{BpfAnswer, BpfCall, BpfId, Fds, MapCreate, ProgLoad};

/// How a call is made; what is refused comes as text.
pub type Caller<'a> = &'a mut dyn FnMut(BpfCall) -> Result<BpfAnswer, String>;

/// The number that file descriptors of objects begin behind.
const FDS: u32 = 500;

/// Kind, name, and size or type of each type in raw BTF, by number.
fn types(btf: &[u8]) -> Vec<(u32, String, u32)> {
    let word = |at: usize| u32::from_le_bytes(btf[at..at + 4].try_into().unwrap());
    let header = word(4) as usize;
    let (start, len) = (header + word(8) as usize, word(12) as usize);
    let strings = &btf[header + word(16) as usize..];
    let mut all = vec![(0, String::new(), 0)];
    let mut at = start;
    while at < start + len {
        let (name, info, size) = (word(at) as usize, word(at + 4), word(at + 8));
        let (kind, count) = (info >> 24 & 31, (info & 0xffff) as usize);
        let name = strings[name..].split(|byte| *byte == 0).next().unwrap();
        all.push((kind, String::from_utf8_lossy(name).into_owned(), size));
        at += 12
            + match kind {
                1 | 14 | 17 => 4,
                3 => 12,
                4 | 5 | 15 | 19 => 12 * count,
                6 | 13 => 8 * count,
                _ => 0,
            };
    }
    all
}

/// An object of which maps and programs are loaded.
#[derive(Debug)]
pub struct Library {
    image: Image,
    target: Target,
    kernel: Vec<(u32, String, u32)>,
    own: Vec<(u32, String, u32)>,
    btf: BpfId,
    /// Of each map of the image.
    pub maps: Vec<BpfId>,
    /// Of each program of the image.
    pub programs: Vec<BpfId>,
}

impl Library {
    /// Loads everything that `image`, made of the object `file` for `target`, has.
    ///
    /// # Panics
    /// If something is refused.
    pub fn load(file: &[u8], image: Image, target: &Target, call: Caller<'_>) -> Self {
        // Any object with types can be read as a kernel.
        let own = Target::new("object", (0, 0, 0), file).expect("an object with types");
        let mut library = Self {
            kernel: types(target.btf()),
            own: types(own.btf()),
            target: target.clone(),
            btf: BpfId(0),
            maps: Vec::new(),
            programs: Vec::new(),
            image,
        };
        let bytes = own.btf().to_vec();
        library.btf = created(call, BpfCall::BtfLoad { bytes });
        for map in &library.image.maps.clone() {
            let id = library.map(call, map);
            library.maps.push(id);
        }
        for program in 0..library.image.programs.len() {
            let id = library.program(call, program);
            library.programs.push(id);
        }
        library
    }

    /// The object.
    #[must_use]
    pub const fn image(&self) -> &Image {
        &self.image
    }

    /// The map called `name`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn map_called(&self, name: &str) -> BpfId {
        let found = self.image.maps.iter().position(|map| map.name == name);
        self.maps[found.expect("the object has the map")]
    }

    /// Attaches every program that is no callback, in the order of the object: a link each.
    ///
    /// # Panics
    /// If one is refused.
    pub fn attach_programs(&self, call: Caller<'_>) -> Vec<BpfId> {
        let programs = self.image.programs.iter().zip(&self.programs);
        let links = programs.filter_map(|(program, &target)| {
            let Hook {
                attach_type, name, ..
            } = Hook::of(&program.section)?;
            let link = BpfCall::LinkCreate {
                target,
                attach_type,
                name: name.to_owned(),
                flags: 0,
            };
            Some(created(call, link))
        });
        links.collect()
    }

    fn number(&self, kinds: &[u32], name: &str) -> u32 {
        let fits = |(kind, other, _): &(u32, String, u32)| kinds.contains(kind) && other == name;
        let found = self.kernel.iter().position(fits);
        found.unwrap_or_else(|| panic!("the kernel has no {name}")) as u32
    }

    fn map(&self, call: Caller<'_>, map: &MapDef) -> BpfId {
        let sized = |(kind, _, size): &(u32, String, u32)| *kind == 4 && *size == map.value_size;
        let value = self.own.iter().position(sized).unwrap_or(0) as u32;
        let key = self
            .own
            .iter()
            .position(|(kind, _, size)| (*kind, *size) == (1, 4));
        let typed = value != 0 && map.key_size == 4;
        let is_arena = map.kind == MapKind::Arena;
        let create = BpfCall::MapCreate(MapCreate {
            kind: map.kind as u32,
            key_size: map.key_size,
            value_size: if is_arena { 0 } else { map.value_size },
            max_entries: map.max_entries,
            flags: map.flags | if is_arena { 1 << 10 } else { 0 },
            name: map.name.chars().filter(|c| *c != '-').take(15).collect(),
            inner: map
                .inner
                .as_ref()
                .map(|(inner, _)| self.maps[*inner as usize]),
            btf: typed.then_some(self.btf),
            key_type: if typed { key.unwrap() as u32 } else { 0 },
            value_type: if typed { value } else { 0 },
            kernel_value_type: 0,
            extra: if is_arena { 1 << 44 } else { 0 },
        });
        let id = created(call, create);
        if let (Some(value), MapKind::Array) =
            (map.initial_bytes(0, map.value_size as usize), map.kind)
        {
            let (key, fds) = (vec![0; 4], Fds::new());
            let update = BpfCall::Update {
                map: id,
                key,
                value,
                flags: 0,
                fds,
            };
            call(update).expect("a data section is set");
        }
        id
    }

    /// The functions that `function` needs, itself first, one behind the other.
    fn needed(&self, function: u32) -> Vec<u32> {
        let mut order = vec![function];
        let mut at = 0;
        while let Some(&next) = order.get(at) {
            for insn in code(&self.image, next) {
                let named = matches!((insn.code, insn.src), (0x85, 1) | (0x18, 4));
                let callee = insn.imm as u32;
                if named && !order.contains(&callee) {
                    order.push(callee);
                }
            }
            at += 1;
        }
        order
    }

    fn program(&self, call: Caller<'_>, number: usize) -> BpfId {
        let program = &self.image.programs[number];
        let function = program.function;
        let order = self.needed(function);
        let mut bytes = Vec::new();
        let mut functions = Vec::new();
        for &function in &order {
            let start = (bytes.len() / 8) as u32;
            let name = &self.image.functions[function as usize].name;
            let ty = self
                .own
                .iter()
                .position(|(kind, other, _)| *kind == 12 && other == name);
            functions.extend([start, ty.expect("a function has a type") as u32]);
            let insns = code(&self.image, function);
            for (slot, insn) in insns.iter().enumerate() {
                let here = start + slot as u32;
                let second = slot > 0 && insns[slot - 1].code == 0x18;
                let insn = if second {
                    self.second(insns[slot - 1], *insn)
                } else {
                    self.unlinked(*insn, here, &order)
                };
                let [a, b] = insn.off.to_le_bytes();
                bytes.extend([insn.code, insn.dst | insn.src << 4, a, b]);
                bytes.extend(insn.imm.to_le_bytes());
            }
        }
        let words = functions.iter().flat_map(|word: &u32| word.to_le_bytes());
        let (kind, attach_type, attach_to) = self.kind_of(number);
        let load = BpfCall::ProgLoad(Box::new(ProgLoad {
            kind,
            attach_type,
            attach_to,
            name: program.name.chars().take(15).collect(),
            code: bytes,
            btf: Some(self.btf),
            functions: (words.collect(), 8),
            fds: self.fds(),
            ..ProgLoad::default()
        }));
        created(call, load)
    }

    /// Type of a program, type of its attachment, and what of the kernel's types it attaches to.
    fn kind_of(&self, number: usize) -> (u32, u32, u32) {
        let tables = &self.image.struct_ops;
        let members = tables.iter().flat_map(|table| &table.members);
        let mut callbacks = members.filter_map(|(name, member)| match member {
            MemberValue::Program(program) => (*program as usize == number).then_some(name),
            _ => None,
        });
        if let Some(member) = callbacks.next() {
            let at = self
                .target
                .field("sched_ext_ops", member)
                .expect("a member")
                .offset
                / 8;
            return (27, at, self.number(&[4], "sched_ext_ops"));
        }
        match Hook::of(&self.image.programs[number].section) {
            Some(Hook {
                kernel: Some((prefix, kind)),
                attach_type,
                name,
            }) => (
                26,
                attach_type,
                self.number(&[kind], &format!("{prefix}{name}")),
            ),
            Some(Hook { kernel: None, .. }) => (17, 0, 0),
            None => (31, 0, 0),
        }
    }

    fn fds(&self) -> Fds {
        let all = self.maps.iter().chain(&self.programs);
        all.map(|id| (id.0 + FDS, *id)).collect()
    }

    fn second(&self, first: Insn, second: Insn) -> Insn {
        // Of a variable the loader knows the number only.
        match first.src {
            3 => Insn { imm: 0, ..second },
            _ => second,
        }
    }

    /// An instruction as libbpf hands it on.
    fn unlinked(&self, insn: Insn, here: u32, order: &[u32]) -> Insn {
        let distance = || {
            let before = order.iter().take_while(|other| **other != insn.imm as u32);
            let start: u32 = before
                .map(|other| self.image.functions[*other as usize].len)
                .sum();
            start as i32 - here as i32 - 1
        };
        let imm = match (insn.code, insn.src) {
            (0x18, 1 | 2) => (self.maps[insn.imm as usize].0 + FDS) as i32,
            (0x18, 3) => self.number(&[14], &self.image.variables[insn.imm as usize].name) as i32,
            (0x18, 4) | (0x85, 1) => distance(),
            (0x85, 15) => {
                return Insn {
                    src: 0,
                    imm: 195_896_080,
                    ..insn
                };
            }
            (0x85, 0) => {
                let import = &self.image.imports[insn.imm as usize];
                let Some(helper) = import.helper else {
                    let imm = self.number(&[12], &import.name) as i32;
                    return Insn {
                        src: 2,
                        imm,
                        ..insn
                    };
                };
                helper as i32
            }
            _ => insn.imm,
        };
        Insn { imm, ..insn }
    }

    /// Sets and attaches a table of the object.
    ///
    /// # Panics
    /// If it is refused.
    pub fn attach(&self, call: Caller<'_>, table: &StructOps) -> BpfId {
        let link = self.link(call, table);
        created(call, link)
    }

    /// The call that attaches a table, which is made and set.
    ///
    /// # Panics
    /// If that is refused.
    pub fn link(&self, call: Caller<'_>, table: &StructOps) -> BpfCall {
        let value_type = format!("bpf_struct_ops_{}", table.type_name);
        let size = self.target.size_of(&value_type).unwrap();
        let mut value = vec![0; size as usize];
        for (name, member) in &table.members {
            let at = self
                .target
                .field(&value_type, &format!("data.{name}"))
                .unwrap()
                .offset as usize;
            let bytes = match member {
                MemberValue::Program(program) => {
                    u64::from(self.programs[*program as usize].0 + FDS)
                        .to_le_bytes()
                        .to_vec()
                }
                MemberValue::Int(number) => {
                    let size = self
                        .target
                        .field(&value_type, &format!("data.{name}"))
                        .unwrap()
                        .size;
                    number.to_le_bytes()[..size as usize].to_vec()
                }
                MemberValue::Bytes(bytes) => bytes.clone(),
            };
            value[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        let create = BpfCall::MapCreate(MapCreate {
            kind: 26,
            key_size: 4,
            value_size: size,
            max_entries: 1,
            flags: 1 << 13,
            name: table.name.chars().take(15).collect(),
            kernel_value_type: self.number(&[4], &value_type),
            ..MapCreate::default()
        });
        let target = created(call, create);
        let update = BpfCall::Update {
            map: target,
            key: vec![0; 4],
            value,
            flags: 0,
            fds: self.fds(),
        };
        call(update).expect("the table is set");
        BpfCall::LinkCreate {
            target,
            attach_type: 44,
            name: String::new(),
            flags: 0,
        }
    }
}

/// What a program is attached to, by the name of its section.
struct Hook<'a> {
    /// How the kernel's type is called, but for the name, and its kind; `None`: a raw tracepoint.
    kernel: Option<(&'static str, u32)>,
    attach_type: u32,
    name: &'a str,
}

impl<'a> Hook<'a> {
    fn of(section: &'a str) -> Option<Self> {
        let (kind, name) = section.split_once('/')?;
        let (kernel, attach_type) = match kind {
            "tp_btf" => (Some(("btf_trace_", 8)), 23),
            "fentry" => (Some(("", 12)), 24),
            "fexit" => (Some(("", 12)), 25),
            "iter" => (Some(("bpf_iter_", 12)), 28),
            "raw_tp" => (None, 23),
            _ => return None,
        };
        Some(Self {
            kernel,
            attach_type,
            name,
        })
    }
}

fn created(call: Caller<'_>, what: BpfCall) -> BpfId {
    let shown = format!("{what:?}");
    match call(what) {
        Ok(BpfAnswer::Created(id)) => id,
        other => panic!("{other:?} for {}", &shown[..shown.len().min(300)]),
    }
}

/// The instructions of a function.
#[must_use]
pub fn code(image: &Image, function: u32) -> &[Insn] {
    let Function { start, len, .. } = image.functions[function as usize];
    &image.code[start as usize..][..len as usize]
}
