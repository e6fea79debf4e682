//! Nanoseconds of a callback: native code with all its checks and counts, the same C compiled by
//! `gcc -O2`, and the interpreter. The host's functions do nothing, so that what is measured is the
//! machine. Asserts nothing; compare figures of one run only.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bpf::{
    Backend, Body, CallCtx, Config, Execution, Host, HostFunction, Image, Instance, Memory, Object,
    Stop, Target,
};

/// The callbacks of the policy; before them one that does nothing, to know what a call costs.
const PROGRAMS: [&str; 7] = [
    "empty",
    "select_cpu",
    "enqueue",
    "dispatch",
    "running",
    "stopping",
    "enable",
];

/// Calls of each callback in a round.
const CALLS: u32 = 10_000_000;

/// The fastest round counts: everything that disturbs one makes it slower.
const ROUNDS: u32 = 3;

type Times = [f64; PROGRAMS.len()];

/// A host that knows nothing.
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

    /// The policy may write virtual times, as in the kernel.
    fn store_protected(
        &mut self,
        memory: &mut Memory,
        address: u64,
        size: u8,
        value: u64,
    ) -> Result<(), Stop> {
        if size != 8 {
            return Err(Stop::WildStore { address, size });
        }
        memory.poke_u64(address, value);
        Ok(())
    }

    fn timer_start(&mut self, _: u64, _: u64, _: bool, _: bool) {}

    fn timer_cancel(&mut self, _: u64) -> bool {
        false
    }

    fn release(&mut self, _: &mut Memory, _: u64) {}

    fn print(&mut self, _: &str) {}
}

fn table(target: &Target) -> Vec<HostFunction<Nobody>> {
    let bodies: [(&'static str, Body<Nobody>); 4] = [
        ("host_select_cpu", select_cpu),
        ("host_insert", |_, _| Ok(0)),
        ("host_insert_vtime", |_, _| Ok(0)),
        ("host_move_to_local", |_, _| Ok(0)),
    ];
    let function = |(name, body)| HostFunction {
        name,
        prototype: target.prototype(name).expect("the kernel has it").leak(),
        cost_ps: 0,
        body: Some(body),
    };
    bodies.into_iter().map(function).collect()
}

fn select_cpu(ctx: &mut CallCtx<'_, Nobody>, args: [u64; 5]) -> Result<u64, Stop> {
    ctx.vm.memory().write(args[3], &[1]);
    Ok(args[1])
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/callbacks")
}

/// CPU time that this thread has used, nanoseconds.
fn cpu_time() -> f64 {
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).expect("a kernel with CONFIG_SCHED_INFO");
    let ran = text.split(' ').next().and_then(|field| field.parse().ok());
    ran.expect("the first field is the time on a CPU in nanoseconds")
}

/// Element by element the least of some rounds.
fn least(round: impl Fn() -> Times) -> Times {
    (0..ROUNDS)
        .map(|_| round())
        .fold([f64::MAX; PROGRAMS.len()], |least, times| {
            std::array::from_fn(|at| least[at].min(times[at]))
        })
}

fn measure(image: &Arc<Image>, table: &[HostFunction<Nobody>], backend: Backend) -> Times {
    let config = Config {
        cpus: 4,
        backend,
        ..Config::default()
    };
    let mut vm = Instance::new(Arc::clone(image), table, config).expect("the policy is good");
    let task = vm.memory().alloc_kernel(24, 8).expect("a little memory");
    vm.memory().poke_u64(task, 5_000_000);
    vm.memory().poke_u32(task + 16, 100);
    PROGRAMS.map(|name| {
        let program = image.programs.iter().find(|program| program.name == name);
        let function = program.expect("the policy has it").function;
        let start = cpu_time();
        for _ in 0..CALLS {
            let result = vm.call_program(function, &[task, 1, 2], &mut Nobody);
            std::hint::black_box(result).expect("the policy makes no mistake");
        }
        (cpu_time() - start) / f64::from(CALLS)
    })
}

/// Compiles the policy natively; `None` without gcc.
fn build_native() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native-callbacks");
    let folder = folder();
    let sources = ["policy.c", "native/host.c", "native/main.c"].map(|name| folder.join(name));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-fno-strict-aliasing", "-I"])
        .arg(folder.join("native"));
    gcc.args(sources).arg("-o").arg(&program);
    gcc.status()
        .is_ok_and(|status| status.success())
        .then_some(program)
}

fn measure_native(program: &Path) -> Times {
    let output = Command::new(program).arg(CALLS.to_string()).output();
    let output = output.expect("the native program runs");
    let text = String::from_utf8(output.stdout).expect("it prints numbers");
    let mut times = text
        .lines()
        .map(|line| line.parse().expect("a number a line"));
    std::array::from_fn(|_| times.next().expect("a line for each callback"))
}

fn main() {
    let folder = folder();
    let kernel = bpf_build::compile(&folder.join("kernel.h"), &[]).expect("the kernel compiles");
    let target = Target::new("bench", (6, 18, 0), &kernel).expect("the kernel parses");
    let object = bpf_build::compile(&folder.join("policy.c"), &[&folder.join("bpf")]);
    let object = Object::parse(&object.expect("the policy compiles")).expect("it parses");
    let image = Arc::new(object.link(&target).expect("it links"));
    let table = table(&target);

    let jit = least(|| measure(&image, &table, Backend::Jit));
    let interpreter = least(|| measure(&image, &table, Backend::Interpreter));
    let native = build_native().map(|program| least(|| measure_native(&program)));
    let Some(native) = native else {
        println!("no gcc: nothing to compare with");
        return;
    };
    println!(
        "{:<12} {:>8} {:>8} {:>12}   ns a call, least of {ROUNDS}",
        "", "gcc", "jit", "interpreter"
    );
    for (at, name) in PROGRAMS.iter().enumerate() {
        println!(
            "{name:<12} {:>8.2} {:>8.2} {:>12.2}",
            native[at], jit[at], interpreter[at]
        );
    }
    let sum = |times: &Times| times[1..].iter().sum::<f64>();
    let (gcc, ours) = (sum(&native), sum(&jit));
    println!(
        "{:<12} {gcc:>8.2} {ours:>8.2} {:>12.2}",
        "sum of six",
        sum(&interpreter)
    );
    println!("jit / gcc    {:.2}", ours / gcc);
    let entering = 6.0 * (jit[0] - native[0]);
    println!(
        "without what entering costs more, jit / gcc {:.2}",
        (ours - entering) / gcc
    );
    translation();
}

/// How long translation takes.
fn translation() {
    for (name, bytes) in [(
        "mlfq",
        policies::find("mlfq").expect("a shipped policy").object,
    )] {
        let object = Object::parse(bytes).expect("a shipped policy parses");
        let machine = model::MachineSpec::default();
        let target = sim::target(&machine);
        let image = Arc::new(object.link(&target).expect("a shipped policy links"));
        let new = |backend| {
            let table = sim::host_functions();
            let config = Config {
                backend,
                ..Config::default()
            };
            let start = cpu_time();
            let vm = Instance::new(Arc::clone(&image), &table, config);
            let vm = vm.expect("a shipped policy is good");
            (cpu_time() - start, vm.execution())
        };
        let mut least = f64::MAX;
        let mut size = (0, 0);
        for _ in 0..ROUNDS {
            let (without, _) = new(Backend::Interpreter);
            let (with, execution) = new(Backend::Jit);
            least = least.min(with - without);
            if let Execution::Native {
                instructions,
                bytes,
                ..
            } = execution
            {
                size = (instructions, bytes);
            }
        }
        println!(
            "translation of {name}: {:.1} ms for {} instructions, {:.1} ms per 1,000; {} bytes",
            least / 1e6,
            size.0,
            least / 1e3 / f64::from(size.0.max(1)),
            size.1,
        );
    }
}
