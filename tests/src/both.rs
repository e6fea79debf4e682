//! One object on both back ends, call by call, with everything compared that anybody can see.

use std::sync::Arc;

use bpf::{
    BASE, Backend, CallCtx, Config, Direct, Fault, Host, HostFunction, Image, Instance,
    InstanceError, Memory, Refusal, Stop,
};

/// What a host keeps of what it hears.
const MOST_HEARD: usize = 10_000;

/// A host that keeps what it hears, as far as that is reasonable, and counts the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Player {
    cpu: u32,
    random: u32,
    log: Vec<Heard>,
    heard: u64,
}

impl Player {
    fn hear(&mut self, what: Heard) {
        self.heard += 1;
        if self.log.len() < MOST_HEARD {
            self.log.push(what);
        }
    }
}

/// What a host heard.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Heard {
    Note {
        args: [u64; 5],
        retired: u64,
        charged: u64,
    },
    Store {
        address: u64,
        size: u8,
        value: u64,
    },
    Text(String),
}

impl Host for Player {
    fn cpu(&self) -> u32 {
        self.cpu
    }

    fn now_ns(&self) -> u64 {
        1_000_000 + u64::from(self.cpu)
    }

    fn clock_functions() -> &'static [&'static str] {
        &["host_clock"]
    }

    fn random_u32(&mut self) -> u32 {
        self.random = self.random.wrapping_mul(0x915f_77f5).wrapping_add(1);
        self.random
    }

    fn current_task(&self) -> u64 {
        BASE
    }

    fn current_pid_tgid(&self) -> u64 {
        0
    }

    fn store_protected(
        &mut self,
        memory: &mut Memory,
        address: u64,
        size: u8,
        value: u64,
    ) -> Result<(), Stop> {
        self.hear(Heard::Store {
            address,
            size,
            value,
        });
        if size != 4 {
            return Err(Stop::WildStore { address, size });
        }
        memory.poke_u32(address, value as u32 ^ 1);
        Ok(())
    }

    fn timer_start(&mut self, _: u64, _: u64, _: bool, _: bool) {}

    fn timer_cancel(&mut self, _: u64) -> bool {
        false
    }

    fn release(&mut self, _: &mut Memory, _: u64) {}

    fn print(&mut self, text: &str) {
        self.hear(Heard::Text(text.into()));
    }
}

/// The functions of [`Player`].
#[must_use]
pub fn table() -> [HostFunction<Player>; 3] {
    let function = |name, prototype, cost_ps, body, direct| HostFunction {
        name,
        prototype,
        cost_ps,
        body: Some(body),
        direct,
    };
    let note_prototype = "u64(u64,u64,u64,u64,u64)";
    // Native code calls some of them directly and others not.
    [
        function(
            "host_clock",
            "u64()",
            30,
            |ctx, _| Ok(ctx.host.now_ns()),
            None,
        ),
        function(
            "host_note",
            note_prototype,
            700,
            note,
            Some(Direct::of(note)),
        ),
        function("host_nest", "u64(u64,u64)", 0, nest, Some(Direct::of(nest))),
    ]
}

fn note(ctx: &mut CallCtx<'_, Player>, args: [u64; 5]) -> Result<u64, Stop> {
    let (retired, charged) = (ctx.vm.retired(), ctx.vm.charged());
    ctx.host.hear(Heard::Note {
        args,
        retired,
        charged,
    });
    if args[0] == u64::MAX {
        return Err(Stop::Refused("noted".into()));
    }
    Ok(args[0].wrapping_mul(3) ^ args[4])
}

/// Calls a program, on another CPU.
fn nest(ctx: &mut CallCtx<'_, Player>, args: [u64; 5]) -> Result<u64, Stop> {
    let function = args[0] % ctx.vm.image().functions.len() as u64;
    let cpu = std::mem::replace(&mut ctx.host.cpu, (args[1] % 5) as u32);
    let result = ctx.vm.call_program(function as u32, &args, ctx.host);
    ctx.host.cpu = cpu;
    Ok(result?)
}

/// Bytes at the beginning of each half of memory that are compared.
const COMPARED: u64 = 96 << 10;

/// What there is to see of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    /// Result or fault of each call.
    pub results: Vec<Result<u64, Fault>>,
    /// Retired instructions after each call.
    pub retired: Vec<u64>,
    /// What host functions cost until the end of each call, picoseconds.
    charged: Vec<u64>,
    host: Player,
    memory: Vec<u8>,
}

/// Calls every function of `image` in turn, twice.
///
/// # Errors
/// If the object cannot be made ready to run.
///
/// # Panics
/// If the region is smaller than what is compared.
pub fn run(image: &Arc<Image>, backend: Backend, budget: u64) -> Result<Seen, InstanceError> {
    let config = Config {
        cpus: 4,
        budget,
        memory_bytes: 1 << 20,
        backend,
        ..Config::default()
    };
    let mut vm = Instance::new(Arc::clone(image), &table(), config)?;
    let mut seen = Seen {
        results: Vec::new(),
        retired: Vec::new(),
        charged: Vec::new(),
        host: Player::default(),
        memory: Vec::new(),
    };
    let functions = image.functions.len() as u32;
    for call in 0..2 * functions {
        seen.host.cpu = call % 5;
        let args = [u64::from(call), BASE, u64::MAX, 0x1234_5678_9abc_def0, 7];
        let result = vm.call_program(call % functions, &args, &mut seen.host);
        seen.results.push(result);
        seen.retired.push(vm.retired());
        seen.charged.push(vm.charged());
    }
    let half = if image.maps.iter().any(|map| map.kind == bpf::MapKind::Arena) {
        8 << 30
    } else {
        2 << 30
    };
    for start in [
        BASE,
        BASE + (64 << 10),
        BASE + half,
        BASE + 2 * half - (4 << 30),
    ] {
        let bytes = vm.memory().bytes(start, COMPARED);
        seen.memory.extend(bytes.expect("the region is larger"));
    }
    Ok(seen)
}

/// Runs `image` on both back ends; `Err` says what differs. `None` if neither takes the object, or
/// it is one of those that are only interpreted because native code would need too large a frame.
///
/// # Errors
/// A description of the first difference.
pub fn compare(image: &Arc<Image>, budget: u64) -> Result<Option<Seen>, String> {
    let interpreted = run(image, Backend::Interpreter, budget);
    let native = run(image, Backend::Jit, budget);
    let (interpreted, native) = match (interpreted, native) {
        (Ok(interpreted), Ok(native)) => (interpreted, native),
        (Ok(_), Err(InstanceError::Native(Refusal::Frame { .. }))) => return Ok(None),
        (Err(a), Err(b)) if a.to_string() == b.to_string() => return Ok(None),
        (a, b) => {
            let [a, b] = [a, b].map(|result| result.err().map(|error| error.to_string()));
            return Err(format!("refused with {a:?} and natively with {b:?}"));
        }
    };
    for (call, results) in interpreted.results.iter().zip(&native.results).enumerate() {
        if results.0 != results.1 {
            return Err(format!(
                "call {call}: {:x?} and natively {:x?}",
                results.0, results.1
            ));
        }
        let counts = (interpreted.retired[call], native.retired[call]);
        if counts.0 != counts.1 {
            return Err(format!("call {call}: counts {counts:?} ({:x?})", results.0));
        }
    }
    if interpreted.host != native.host {
        return Err(format!(
            "heard {:x?} and {:x?}",
            interpreted.host, native.host
        ));
    }
    if interpreted.charged != native.charged {
        return Err(format!(
            "charged {:?} and {:?}",
            interpreted.charged, native.charged
        ));
    }
    let bytes = interpreted.memory.iter().zip(&native.memory);
    if let Some(at) = bytes.clone().position(|(a, b)| a != b) {
        return Err(format!("memory differs at {at:#x} of the compared ranges"));
    }
    Ok(Some(native))
}
