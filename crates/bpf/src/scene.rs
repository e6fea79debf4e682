//! For tests: a host that records what it is told, and objects written by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{
    Backend, Config, Function, Host, HostFunction, Image, Import, Insn, Instance, MapDef, MapKind,
    Memory, OwnType, Stop,
};

/// A host whose answers a test sets, and that keeps what it hears.
#[derive(Debug, Default)]
pub(crate) struct SceneWorld {
    pub(crate) cpu: u32,
    /// Address of the current task's name.
    pub(crate) comm: u64,
    pub(crate) armed: Vec<(u64, u64, bool, bool)>,
    pub(crate) released: Vec<u64>,
    pub(crate) printed: String,
    /// What an iterator visits.
    pub(crate) visited: Vec<u64>,
    pub(crate) protected: Vec<(u64, u8, u64)>,
    /// Its copies of the words of kernel objects that programs have written.
    pub(crate) words: BTreeMap<u64, u64>,
}

impl Host for SceneWorld {
    fn cpu(&self) -> u32 {
        self.cpu
    }

    fn now_ns(&self) -> u64 {
        1234
    }

    fn random_u32(&mut self) -> u32 {
        4
    }

    fn current_task(&self) -> u64 {
        0
    }

    fn current_comm(&self) -> u64 {
        self.comm
    }

    fn node(&self) -> u32 {
        7
    }

    fn current_pid_tgid(&self) -> u64 {
        0x7_0000_0008
    }

    fn store_protected(
        &mut self,
        memory: &mut Memory,
        address: u64,
        size: u8,
        value: u64,
    ) -> Result<(), Stop> {
        self.protected.push((address, size, value));
        if size == 8 {
            memory.poke_u64(address, value);
            self.words.insert(address, value);
            return Ok(());
        }
        Err(Stop::WildStore { address, size })
    }

    fn word_stored(&mut self, memory: &mut Memory, address: u64) {
        self.words.insert(address, memory.load_u64(address));
    }

    fn timer_start(&mut self, timer: u64, expires_ns: u64, absolute: bool, pinned: bool) {
        self.armed.push((timer, expires_ns, absolute, pinned));
    }

    fn timer_cancel(&mut self, timer: u64) -> bool {
        let before = self.armed.len();
        self.armed.retain(|armed| armed.0 != timer);
        self.armed.len() < before
    }

    fn release(&mut self, _: &mut Memory, address: u64) {
        self.released.push(address);
    }

    fn visited(&self, _: &str) -> Vec<u64> {
        self.visited.clone()
    }

    fn print(&mut self, text: &str) {
        self.printed.push_str(text);
    }
}

/// Instructions by hand. Registers are numbers; `off` and `imm` as in the ISA.
pub(crate) mod insn {
    use crate::Insn;

    const fn new(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> Insn {
        Insn {
            code,
            dst,
            src,
            off,
            imm,
        }
    }

    pub(crate) const EXIT: Insn = new(0x95, 0, 0, 0, 0);

    pub(crate) const fn mov(dst: u8, imm: i32) -> Insn {
        new(0xb7, dst, 0, 0, imm)
    }

    pub(crate) const fn copy(dst: u8, src: u8) -> Insn {
        new(0xbf, dst, src, 0, 0)
    }

    /// `r[dst] = addr_space_cast(r[src])`, to where the arena lies in the kernel.
    pub(crate) const fn cast(dst: u8, src: u8) -> Insn {
        new(0xbf, dst, src, 1, 1)
    }

    pub(crate) const fn add(dst: u8, imm: i32) -> Insn {
        new(0x07, dst, 0, 0, imm)
    }

    pub(crate) const fn add_register(dst: u8, src: u8) -> Insn {
        new(0x0f, dst, src, 0, 0)
    }

    pub(crate) const fn load(dst: u8, src: u8, off: i16) -> Insn {
        new(0x79, dst, src, off, 0)
    }

    pub(crate) const fn store(dst: u8, off: i16, src: u8) -> Insn {
        new(0x7b, dst, src, off, 0)
    }

    pub(crate) const fn store_u32(dst: u8, off: i16, imm: i32) -> Insn {
        new(0x62, dst, 0, off, imm)
    }

    pub(crate) const fn call(import: i32) -> Insn {
        new(0x85, 0, 0, 0, import)
    }

    pub(crate) const fn call_local(function: i32) -> Insn {
        new(0x85, 0, 1, 0, function)
    }

    /// Skips the next instruction if the register is 0.
    pub(crate) const fn jump_if_zero(register: u8) -> Insn {
        new(0x15, register, 0, 1, 0)
    }

    pub(crate) const fn ja(off: i16) -> Insn {
        new(0x05, 0, 0, off, 0)
    }

    pub(crate) const fn may_goto(off: i16) -> Insn {
        new(0xe5, 0, 0, off, 0)
    }

    /// `LD_IMM64` with a meaning: 1 map, 2 map value, 4 function.
    pub(crate) const fn address(dst: u8, meaning: u8, index: i32) -> [Insn; 2] {
        [new(0x18, dst, meaning, 0, index), new(0, 0, 0, 0, 0)]
    }
}

/// An object under construction.
#[derive(Default)]
pub(crate) struct SceneObject {
    pub(crate) code: Vec<Insn>,
    functions: Vec<Function>,
    maps: Vec<MapDef>,
    imports: Vec<Import>,
    types: Vec<OwnType>,
}

impl SceneObject {
    pub(crate) fn function(mut self, parts: &[&[Insn]]) -> Self {
        let code = parts.concat();
        self.functions.push(Function {
            name: format!("function{}", self.functions.len()),
            start: self.code.len() as u32,
            len: code.len() as u32,
        });
        self.code.extend(code);
        self
    }

    pub(crate) fn map(
        mut self,
        kind: MapKind,
        key_size: u32,
        value_size: u32,
        max_entries: u32,
    ) -> Self {
        self.maps.push(MapDef {
            name: format!("map{}", self.maps.len()),
            kind,
            key_size,
            value_size,
            value: None,
            max_entries,
            flags: 0,
            initial: None,
            frozen: false,
            timer_at: None,
            lock_at: None,
            kptrs_at: Vec::new(),
            inner: None,
        });
        self
    }

    pub(crate) fn last_map(mut self, change: impl FnOnce(&mut MapDef)) -> Self {
        change(self.maps.last_mut().expect("a map"));
        self
    }

    pub(crate) fn import(mut self, name: &str, prototype: &str) -> Self {
        self.imports.push(Import {
            name: name.into(),
            prototype: prototype.into(),
            helper: prototype.is_empty().then_some(1),
            callers: vec!["function0".into()],
        });
        self
    }

    /// A type that programs may allocate, of so many bytes.
    pub(crate) fn own_type(mut self, id: u32, size: u32, kptrs_at: &[u32]) -> Self {
        self.types.push(OwnType {
            source: 0,
            id,
            size,
            kptrs_at: kptrs_at.to_vec(),
        });
        self
    }

    pub(crate) fn image(self) -> Arc<Image> {
        Arc::new(Image {
            code: self.code,
            functions: self.functions,
            programs: Vec::new(),
            maps: self.maps,
            imports: self.imports,
            variables: Vec::new(),
            poisons: Vec::new(),
            reads: Vec::new(),
            struct_ops: Vec::new(),
            symbols: Vec::new(),
            knobs: Vec::new(),
            types: self.types,
            lines: Vec::new(),
            license: "MIT".into(),
        })
    }

    /// Makes it ready to run on 4 CPUs.
    pub(crate) fn instance(self, backend: Backend) -> Instance<SceneWorld> {
        self.with(
            backend,
            &[],
            Config {
                cpus: 4,
                ..Config::default()
            },
        )
    }

    pub(crate) fn with(
        self,
        backend: Backend,
        table: &[HostFunction<SceneWorld>],
        mut config: Config,
    ) -> Instance<SceneWorld> {
        config.backend = backend;
        Instance::new(self.image(), table, config).expect("a good object")
    }
}
