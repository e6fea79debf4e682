//! Both front doors give the same: what the linker makes of an object, and what a loader's calls
//! make of it that were made by hand here, as its library makes them.

use std::path::Path;

use bpf::{
    CallError, Config, Door, Function, Host, Image, Insn, Instance, MapDef, MapKind, Member,
    Memory, Object, Stop, Target,
};
use model::user_space::{BpfAnswer, BpfCall, BpfId, Fds, MapCreate, ProgLoad};

/// Nobody runs anything here.
#[derive(Debug)]
struct Nobody;

impl Host for Nobody {
    fn cpu(&self) -> u32 {
        0
    }
    fn now_ns(&self) -> u64 {
        0
    }
    fn random_u32(&mut self) -> u32 {
        0
    }
    fn current_task(&self) -> u64 {
        0
    }
    fn current_pid_tgid(&self) -> u64 {
        0
    }
    fn store_protected(&mut self, _: &mut Memory, at: u64, size: u8, _: u64) -> Result<(), Stop> {
        Err(Stop::WildStore { address: at, size })
    }
    fn timer_start(&mut self, _: u64, _: u64, _: bool, _: bool) {}
    fn timer_cancel(&mut self, _: u64) -> bool {
        false
    }
    fn release(&mut self, _: &mut Memory, _: u64) {}
    fn print(&mut self, _: &str) {}
}

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

struct Loader<'a> {
    image: &'a Image,
    target: Target,
    kernel: Vec<(u32, String, u32)>,
    own: Vec<(u32, String, u32)>,
    door: Door<Nobody>,
    vm: Instance<Nobody>,
    btf: BpfId,
    maps: Vec<BpfId>,
    programs: Vec<BpfId>,
}

impl<'a> Loader<'a> {
    fn new(file: &[u8], image: &'a Image, target: &Target) -> Self {
        let (door, vm) = Door::open(target.clone(), Vec::new(), Config::default()).unwrap();
        // Any object with types can be read as a kernel.
        let own = Target::new("object", (0, 0, 0), file).unwrap();
        let mut loader = Self {
            image,
            kernel: types(target.btf()),
            own: types(own.btf()),
            target: target.clone(),
            door,
            vm,
            btf: BpfId(0),
            maps: Vec::new(),
            programs: Vec::new(),
        };
        let bytes = own.btf().to_vec();
        loader.btf = loader.created(BpfCall::BtfLoad { bytes });
        for map in &image.maps {
            let id = loader.map(map);
            loader.maps.push(id);
        }
        for program in &image.programs {
            let id = loader.program(program.function);
            loader.programs.push(id);
        }
        loader
    }

    fn call(&mut self, call: BpfCall) -> Result<BpfAnswer, CallError> {
        self.door.call(&mut self.vm, &mut Nobody, call)
    }

    fn created(&mut self, call: BpfCall) -> BpfId {
        let shown = format!("{call:?}");
        match self.call(call) {
            Ok(BpfAnswer::Created(id)) => id,
            other => panic!("{other:?} for {}", &shown[..shown.len().min(300)]),
        }
    }

    fn number(&self, kinds: &[u32], name: &str) -> u32 {
        let fits = |(kind, other, _): &(u32, String, u32)| kinds.contains(kind) && other == name;
        self.kernel
            .iter()
            .position(fits)
            .expect("the kernel has it") as u32
    }

    fn map(&mut self, map: &MapDef) -> BpfId {
        let sized = |(kind, _, size): &(u32, String, u32)| *kind == 4 && *size == map.value_size;
        let value = self.own.iter().position(sized).unwrap_or(0) as u32;
        let key = self
            .own
            .iter()
            .position(|(kind, _, size)| (*kind, *size) == (1, 4));
        let typed = value != 0 && map.key_size == 4;
        let is_arena = map.kind == MapKind::Arena;
        let id = self.created(BpfCall::MapCreate(MapCreate {
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
        }));
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
            self.call(update).expect("a data section is set");
        }
        id
    }

    /// The functions that `function` needs, itself first, one behind the other.
    fn needed(&self, function: u32) -> Vec<u32> {
        let mut order = vec![function];
        let mut at = 0;
        while let Some(&next) = order.get(at) {
            for insn in code(self.image, next) {
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

    fn program(&mut self, function: u32) -> BpfId {
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
            let insns = code(self.image, function);
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
        let name = &self.image.functions[function as usize].name;
        let table = self
            .image
            .struct_ops
            .iter()
            .flat_map(|table| &table.members);
        let mut member = table.filter_map(|(name, member)| match member {
            Member::Program(program) => {
                let program = &self.image.programs[*program as usize];
                (program.function == function).then_some(name)
            }
            _ => None,
        });
        let (kind, attach_type, attach_to) = match member.next() {
            Some(member) => {
                let at = self.target.field("sched_ext_ops", member).unwrap().offset / 8;
                (27, at, self.number(&[4], "sched_ext_ops"))
            }
            None => (31, 0, 0),
        };
        self.created(BpfCall::ProgLoad(Box::new(ProgLoad {
            kind,
            attach_type,
            attach_to,
            name: name.chars().take(15).collect(),
            code: bytes,
            btf: Some(self.btf),
            functions: (
                functions
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .collect(),
                8,
            ),
            fds: self.fds(),
            ..ProgLoad::default()
        })))
    }

    fn fds(&self) -> Fds {
        let all = self.maps.iter().chain(&self.programs);
        all.map(|id| (id.0 + 500, *id)).collect()
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
            (0x18, 1 | 2) => self.maps[insn.imm as usize].0 as i32 + 500,
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
    fn attach(&mut self, table: &bpf::StructOps) {
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
                Member::Program(program) => u64::from(self.programs[*program as usize].0 + 500)
                    .to_le_bytes()
                    .to_vec(),
                Member::Int(number) => {
                    let size = self
                        .target
                        .field(&value_type, &format!("data.{name}"))
                        .unwrap()
                        .size;
                    number.to_le_bytes()[..size as usize].to_vec()
                }
                Member::Bytes(bytes) => bytes.clone(),
            };
            value[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        let target = self.created(BpfCall::MapCreate(MapCreate {
            kind: 26,
            key_size: 4,
            value_size: size,
            max_entries: 1,
            flags: 1 << 13,
            name: table.name.chars().take(15).collect(),
            kernel_value_type: self.number(&[4], &value_type),
            ..MapCreate::default()
        }));
        let (key, fds) = (vec![0; 4], self.fds());
        let update = BpfCall::Update {
            map: target,
            key,
            value,
            flags: 0,
            fds,
        };
        self.call(update).expect("the table is set");
        let name = String::new();
        self.created(BpfCall::LinkCreate {
            target,
            attach_type: 44,
            name,
            flags: 0,
        });
    }
}

fn code(image: &Image, function: u32) -> &[Insn] {
    let Function { start, len, .. } = image.functions[function as usize];
    &image.code[start as usize..][..len as usize]
}

/// What an instruction is, whatever the indices of its image are.
fn meaning(image: &Image, insn: Insn) -> String {
    let Insn {
        code,
        dst,
        off,
        imm,
        src,
    } = insn;
    let at = imm as usize;
    let what = match (code, src) {
        (0x18, 1 | 2) => format!("map {:.15}", image.maps[at].name),
        (0x18, 3) => format!("variable {}", image.variables[at].name),
        (0x18, 4) | (0x85, 1) => format!("function {}", image.functions[at].name),
        (0x85, 0) => format!(
            "import {} {}",
            image.imports[at].name, image.imports[at].prototype
        ),
        (0x85, 15) => "nothing".to_owned(),
        _ => imm.to_string(),
    };
    format!("{code:#x} {dst} {src} {off} {what}")
}

/// Compares two functions and what they need; gives how many there are.
fn compare(one: &Image, other: &Image, pair: (u32, u32), seen: &mut Vec<(u32, u32)>) {
    if seen.contains(&pair) {
        return;
    }
    seen.push(pair);
    let name = &one.functions[pair.0 as usize].name;
    let (ours, theirs) = (code(one, pair.0), code(other, pair.1));
    assert_eq!(ours.len(), theirs.len(), "{name}");
    for (slot, (a, b)) in ours.iter().zip(theirs).enumerate() {
        if slot > 0 && ours[slot - 1].code == 0x18 {
            assert_eq!(a, b, "{name}+{slot}");
            continue;
        }
        assert_eq!(meaning(one, *a), meaning(other, *b), "{name}+{slot}");
        if matches!((a.code, a.src), (0x85, 1) | (0x18, 4)) {
            compare(one, other, (a.imm as u32, b.imm as u32), seen);
        }
    }
}

#[test]
fn every_shipped_policy_is_the_same_through_both_doors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = root.join("../sim/kernel/6.18.h");
    let types = bpf_build::compile(&header, &[]).expect("the kernel's header compiles");
    let target = Target::new("6.18", (6, 18, 0), &types).unwrap();
    let policies = root.join("../../policies");
    let mut compared = 0;
    for entry in std::fs::read_dir(&policies).expect("the policies") {
        let path = entry.expect("a policy").path();
        if !path.to_string_lossy().ends_with(".bpf.c") {
            continue;
        }
        let file = bpf_build::compile(&path, &[&policies.join("include")]).expect("it compiles");
        let image = Object::parse(&file).unwrap().link(&target).unwrap();
        let mut loader = Loader::new(&file, &image, &target);
        for table in &image.struct_ops {
            loader.attach(table);
        }
        let loaded = loader.vm.image();
        let mut seen = Vec::new();
        for (ours, theirs) in image.programs.iter().zip(&loaded.programs) {
            assert_eq!(ours.name, theirs.name);
            compare(&image, loaded, (ours.function, theirs.function), &mut seen);
        }
        assert!(
            loaded.functions.len() <= image.functions.len(),
            "functions are kept once"
        );
        assert_eq!(loaded.struct_ops.len(), image.struct_ops.len());
        for (ours, theirs) in image.struct_ops.iter().zip(&loaded.struct_ops) {
            let sorted = |members: &[(String, Member)]| {
                let mut members = members.to_vec();
                members.sort_by(|a, b| a.0.cmp(&b.0));
                members
            };
            assert_eq!(
                sorted(&ours.members),
                sorted(&theirs.members),
                "{}",
                path.display()
            );
        }
        for (map, def) in (0..).zip(&image.maps) {
            if let Some(bytes) = def.initial_bytes(0, def.value_size as usize) {
                assert_eq!(
                    loader.vm.map_value(map, &[0; 4], 0),
                    Some(&*bytes),
                    "{}",
                    def.name
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 8, "data sections of all policies");
}
