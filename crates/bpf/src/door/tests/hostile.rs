//! A loader that says anything: errors, but no panic and no endless work.

use super::*;

/// A generator of test cases; any sequence that is the same every time will do.
struct Cases(u64);

impl Cases {
    fn next(&mut self) -> u64 {
        // Source: Marsaglia (2003), "Xorshift RNGs", the triple 13, 7, 17.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    /// A number that is often small, and sometimes one that breaks arithmetic.
    fn number(&mut self) -> u32 {
        match self.below(8) {
            0 => u32::MAX,
            1 => 1 << self.below(32),
            2 => self.next() as u32,
            3 => 4096,
            4 => 4,
            _ => self.below(12) as u32,
        }
    }

    fn id(&mut self) -> BpfId {
        BpfId(self.below(60) as u32)
    }

    fn some_id(&mut self) -> Option<BpfId> {
        (self.below(3) == 0).then(|| self.id())
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = match self.below(8) {
            0 => self.below(600),
            1 => 512,
            2 => 0,
            3 => 8,
            _ => 4,
        };
        let small = self.below(2) == 0;
        (0..len)
            .map(|at| {
                if small {
                    u8::from(at % 4 == 0) * self.below(4) as u8
                } else {
                    self.next() as u8
                }
            })
            .collect()
    }

    fn map(&mut self, kernel: u32) -> MapCreate {
        let kinds = [
            1, 2, 2, 2, 4, 5, 6, 9, 12, 13, 22, 23, 26, 27, 29, 31, 33, 3,
        ];
        let kind = kinds[self.below(kinds.len() as u64) as usize];
        let no_key = matches!(kind, 22 | 23 | 27 | 31 | 33);
        let mut asked = MapCreate {
            kind,
            key_size: if no_key { 0 } else { 4 },
            value_size: self.number(),
            max_entries: self.number(),
            flags: [0, 0, 1, 1 << 7, 1 << 10, 1 << 13][self.below(6) as usize],
            name: String::new(),
            inner: self.some_id(),
            btf: self.some_id(),
            key_type: self.below(3) as u32,
            value_type: self.number(),
            kernel_value_type: 0,
            extra: 0,
        };
        match kind {
            26 => {
                asked.value_size = 512;
                asked.max_entries = 1;
                asked.kernel_value_type = kernel;
            }
            27 | 31 => asked.value_size = 0,
            33 => {
                asked.value_size = 0;
                asked.extra = self.next() & !0xfff;
            }
            _ => {}
        }
        asked
    }

    fn program(&mut self, good: &[Vec<u8>]) -> ProgLoad {
        let mut code = good[self.below(good.len() as u64) as usize].clone();
        for _ in 0..self.below(4) {
            let at = self.below(code.len() as u64) as usize;
            code[at] = self.next() as u8;
        }
        ProgLoad {
            kind: [31, 31, 31, 27, 26, 1, 77][self.below(7) as usize],
            attach_type: self.number(),
            code,
            btf: self.some_id(),
            functions: (self.bytes(), self.number()),
            lines: (self.bytes(), 16),
            attach_to: self.number(),
            fds: fds(),
            ..ProgLoad::default()
        }
    }

    fn call(&mut self, kernel: u32, good: &[Vec<u8>], types: &[u8]) -> BpfCall {
        match self.below(16) {
            0 => {
                let mut bytes = types.to_vec();
                for _ in 0..self.below(3) {
                    let at = self.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << self.below(8);
                }
                BpfCall::BtfLoad { bytes }
            }
            1..=3 => BpfCall::MapCreate(self.map(kernel)),
            4 => BpfCall::Lookup {
                map: self.id(),
                key: self.bytes(),
                flags: self.below(6),
                delete: self.below(2) == 0,
            },
            5 | 6 => BpfCall::Update {
                map: self.id(),
                key: self.bytes(),
                value: self.bytes(),
                flags: self.below(6),
                fds: (0..60).map(|id| (id, BpfId(id))).collect(),
            },
            7 => BpfCall::Delete {
                map: self.id(),
                key: self.bytes(),
            },
            8 => BpfCall::NextKey {
                map: self.id(),
                key: (self.below(2) == 0).then(|| self.bytes()),
            },
            9 => BpfCall::Freeze { map: self.id() },
            10 | 11 => BpfCall::ProgLoad(Box::new(self.program(good))),
            12 => BpfCall::LinkCreate {
                target: self.id(),
                attach_type: [23, 24, 28, 44][self.below(4) as usize],
                name: String::new(),
                flags: 0,
            },
            13 => BpfCall::TestRun {
                program: self.id(),
                context: self.bytes(),
                flags: 0,
                cpu: 0,
            },
            14 => BpfCall::StreamRead {
                program: self.id(),
                stream: self.number(),
                len: self.number(),
            },
            _ => BpfCall::Close { object: self.id() },
        }
    }
}

#[test]
fn whatever_a_loader_says_nothing_panics() {
    for (backend, rounds) in BACKENDS.into_iter().zip([12_u64, 2]) {
        let mut done = 0;
        for seed in 1..=rounds {
            let mut cases = Cases(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut loader = Loader::new(backend);
            let types = loader.door.target.btf().to_vec();
            let kernel = loader.kernel("bpf_struct_ops_sched_ext_ops");
            let [a, b] = map_of(1, BpfId(1), None);
            let good = [
                encode(&[&adder(BpfId(2))]),
                encode(&[&[a, b, insn::mov(0, 0), insn::EXIT]]),
                encode(&[&[
                    insn(0x85, 0, 1, 0, 1),
                    insn::EXIT,
                    insn::mov(0, 3),
                    insn::EXIT,
                ]]),
            ];
            for _ in 0..400 {
                let call = cases.call(kernel, &good, &types);
                let shown = format!("{call:?}");
                let answer = loader.call(call);
                done += u32::from(answer.is_ok());
                if let Err(CallError::Refused(refused)) = answer {
                    assert!(refused.errno > 0, "seed {seed}: {shown}");
                }
            }
            loader
                .vm
                .image()
                .check()
                .expect("what was loaded keeps the rules");
        }
        assert!(done > 20, "some calls must be good: {done}");
    }
}
