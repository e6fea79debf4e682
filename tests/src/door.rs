//! Calls of bpf(2) in any order with any arguments, against the front door of loaders.

use std::sync::LazyLock;

use bpf::{CallError, Config, Door, Instance, Target};
use model::MachineSpec;
use model::user_space::{BpfAnswer, BpfCall, BpfId, Fds, MapCreate, ProgLoad};

use crate::choices::Choices;
use crate::nobody::Nobody;
use crate::policy;

/// Calls of one script.
const CALLS: usize = 40;
/// Bytes that a script may make the process take.
const MEMORY: u64 = 8 << 20;
/// Instructions of one run of a program.
const BUDGET: u64 = 20_000;

static KERNEL: LazyLock<Target> = LazyLock::new(|| sim::target(&MachineSpec::default()));

/// The types of an object, as a loader hands them on.
static TYPES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let object = policy::object("mlfq").expect("shipped");
    // Any object with types can be read as a kernel.
    let types = Target::new("object", (0, 0, 0), &object).expect("it has types");
    types.btf().to_vec()
});

/// What came of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Calls that made an object.
    pub created: u32,
    /// Other calls that were obeyed.
    pub obeyed: u32,
    /// Calls that were refused.
    pub refused: u32,
    /// Programs that ran into a fault.
    pub faults: u32,
}

/// Makes the calls that `choices` decide on. What is loaded at the end is well formed, whatever
/// was asked for.
///
/// # Panics
/// If it is not.
pub fn play(choices: &mut Choices<'_>) -> Answers {
    let config = Config {
        cpus: 2,
        budget: BUDGET,
        memory_bytes: MEMORY,
        ..Config::default()
    };
    let (mut door, mut vm) =
        Door::open(KERNEL.clone(), Vec::new(), config).expect("an empty kernel");
    let mut script = Script {
        choices,
        made: Vec::new(),
    };
    let mut answers = Answers::default();
    for _ in 0..CALLS {
        let call = script.call();
        match door.call(&mut vm, &mut Nobody::default(), call) {
            Ok(BpfAnswer::Created(id)) => {
                answers.created += 1;
                script.made.push(id);
            }
            Ok(_) => answers.obeyed += 1,
            Err(CallError::Refused(refused)) => {
                assert!(refused.errno > 0, "{refused:?}");
                answers.refused += 1;
            }
            Err(CallError::Fault(fault)) => {
                let _ = fault.to_string();
                answers.faults += 1;
            }
        }
    }
    check(&vm);
    answers
}

fn check(vm: &Instance<Nobody>) {
    let image = vm.image();
    image.check().expect("only well-formed code is loaded");
}

struct Script<'a, 'b> {
    choices: &'a mut Choices<'b>,
    made: Vec<BpfId>,
}

impl Script<'_, '_> {
    fn below(&mut self, bound: u64) -> u32 {
        self.choices.below(bound) as u32
    }

    /// An object that was made, or now and then any.
    fn id(&mut self) -> BpfId {
        match self.below(8) {
            0 => BpfId(self.below(64)),
            _ if self.made.is_empty() => BpfId(1),
            _ => self.choices.pick(&self.made),
        }
    }

    fn maybe_id(&mut self) -> Option<BpfId> {
        (self.below(3) == 0).then(|| self.id())
    }

    /// As programs and tables refer to objects: by descriptors.
    fn fds(&self) -> Fds {
        self.made.iter().map(|id| (id.0 + 500, *id)).collect()
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = self.choices.pick(&[0, 1, 4, 8, 8, 16, 64, 256, 4096]);
        let fill = self.below(256) as u8;
        let mut bytes = vec![fill; len];
        for byte in bytes.iter_mut().take(8) {
            *byte = self.choices.below(256) as u8;
        }
        if self.below(2) == 0 {
            bytes.iter_mut().for_each(|byte| *byte &= 3);
        }
        bytes
    }

    fn name(&mut self) -> String {
        self.choices
            .pick(&["a", ".rodata", "x-y", "", "a_long_name_of_16"])[..]
            .to_owned()
    }

    fn flags(&mut self) -> u32 {
        match self.below(3) {
            0 => 1 << self.below(20),
            1 => 1 << self.below(20) | 1 << self.below(20),
            _ => 0,
        }
    }

    fn call(&mut self) -> BpfCall {
        match self.below(16) {
            0 => BpfCall::BtfLoad {
                bytes: self.types(),
            },
            1..=3 => BpfCall::MapCreate(self.map()),
            4..=6 => BpfCall::ProgLoad(Box::new(self.program())),
            7 => BpfCall::Lookup {
                map: self.id(),
                key: self.bytes(),
                flags: self.flags().into(),
                delete: self.below(2) == 0,
            },
            8 => BpfCall::Update {
                map: self.id(),
                key: self.bytes(),
                value: self.bytes(),
                flags: self.below(5).into(),
                fds: self.fds(),
            },
            9 => BpfCall::Delete {
                map: self.id(),
                key: self.bytes(),
            },
            10 => BpfCall::NextKey {
                map: self.id(),
                key: (self.below(2) == 0).then(|| self.bytes()),
            },
            11 => BpfCall::Freeze { map: self.id() },
            12 => BpfCall::LinkCreate {
                target: self.id(),
                attach_type: self.choices.pick(&[0, 23, 24, 25, 28, 44]),
                name: self.name(),
                flags: self.flags(),
            },
            13 => BpfCall::TestRun {
                program: self.id(),
                context: self.bytes(),
                flags: self.below(20) / 19,
                cpu: self.below(20) / 19,
            },
            14 => BpfCall::StreamRead {
                program: self.id(),
                stream: self.below(4),
                len: self.below(4096),
            },
            _ => match self.below(3) {
                0 => BpfCall::LinkDetach { link: self.id() },
                1 => BpfCall::IterRead { link: self.id() },
                _ => BpfCall::Close { object: self.id() },
            },
        }
    }

    /// An object's types, now and then with a byte that is wrong.
    fn types(&mut self) -> Vec<u8> {
        let mut bytes = TYPES.clone();
        if self.below(2) == 0 {
            let at = self.choices.below(bytes.len() as u64) as usize;
            bytes[at] ^= self.choices.below(256) as u8;
        }
        bytes
    }

    fn map(&mut self) -> MapCreate {
        MapCreate {
            kind: self.below(36),
            key_size: self.choices.pick(&[4, 4, 4, 0, 1, 8, 600, u32::MAX]),
            value_size: self.choices.pick(&[8, 8, 4, 0, 1, 64, 4096, u32::MAX]),
            max_entries: self.choices.pick(&[1, 4, 4096, 0, 1 << 20, u32::MAX]),
            flags: self.flags(),
            name: self.name(),
            inner: self.maybe_id(),
            btf: self.maybe_id(),
            key_type: self.below(80),
            value_type: self.below(80),
            kernel_value_type: self.below(20) / 19,
            extra: self.choices.pick(&[0, 0, 1 << 44, 1, u64::MAX]),
        }
    }

    fn program(&mut self) -> ProgLoad {
        let len = 1 + self.below(12);
        let mut code: Vec<u8> = (0..len).flat_map(|_| self.insn()).collect();
        // Most programs come to an end.
        if self.below(8) > 0 {
            code.extend([0xb7, 0, 0, 0, 0, 0, 0, 0]);
            code.extend([0x95, 0, 0, 0, 0, 0, 0, 0]);
        }
        ProgLoad {
            kind: self.choices.pick(&[31, 31, 31, 27, 26, 1, 0]),
            attach_type: self.choices.pick(&[0, 1, 2, 23, 24, 25, 28]),
            name: self.name(),
            code,
            license: "GPL".to_owned(),
            flags: self.flags(),
            btf: self.maybe_id(),
            functions: (self.bytes(), self.choices.pick(&[8, 0, 4, u32::MAX])),
            lines: (self.bytes(), self.choices.pick(&[16, 0, 4, u32::MAX])),
            attach_to: self.choices.below(1 << 16) as u32,
            fds: self.fds(),
        }
    }

    /// An instruction; one that loads 64 bits has two places.
    fn insn(&mut self) -> Vec<u8> {
        let registers = (self.below(11) | self.below(11) << 4) as u8;
        let imm = match self.below(4) {
            0 => self.below(256).to_le_bytes(),
            1 => self.id().0.wrapping_add(500).to_le_bytes(),
            _ => self.below(4).to_le_bytes(),
        };
        let off = (self.below(16) as i16 - 6).to_le_bytes();
        let one = |code: u8, registers: u8| {
            let mut insn = vec![code, registers, off[0], off[1]];
            insn.extend(imm);
            insn
        };
        match self.below(8) {
            // A map, or a value in it, by descriptor.
            0 => {
                let source = self.choices.pick(&[1, 2, 3, 4, 5, 0]);
                let mut pair = one(0x18, registers & 0xf | source << 4);
                pair.extend([0, 0, 0, 0]);
                pair.extend(self.below(64).to_le_bytes());
                pair
            }
            // A call of a helper, a function of its own, or the kernel's.
            1 => one(0x85, self.below(3) as u8 * 16),
            2 => one(self.choices.pick(&[0x61, 0x69, 0x71, 0x79]), registers),
            3 => one(
                self.choices.pick(&[0x63, 0x6b, 0x73, 0x7b, 0x7a, 0xdb]),
                registers,
            ),
            4 => one(
                self.choices.pick(&[0x05, 0x15, 0x1d, 0x55, 0xb5]),
                registers,
            ),
            5 => one(self.below(256) as u8, registers),
            _ => one(
                self.choices.pick(&[0xb7, 0xbf, 0x07, 0x0f, 0x57]),
                registers,
            ),
        }
    }
}
