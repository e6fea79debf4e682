//! Nanoseconds of a callback: native code with all its checks and counts, the same C compiled by
//! `gcc -O2`, and the interpreter. Asserts nothing; compare figures of one run only. With
//! `--instructions` it counts the processor's instructions instead, which noise does not reach.
//!
//! What is measured is the machine, so the host's functions do next to nothing on both sides; but
//! they are called: gcc's through pointers in another file, ours through the pointers of the
//! host's table. Neither compiler can see what is behind one. A look-up in a per-CPU array is in
//! line in our native code, as it is in a kernel's. So gcc's column is there twice: with a look-up
//! that is called, as in a kernel module, and with one in line.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bpf::{
    Backend, CallCtx, Config, Direct, Execution, HostFunction, Image, Instance, Object, Stop,
    Target,
};
use runslice_tests::nobody::Nobody;
use runslice_tests::usage::cpu_time;

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
const CALLS: u32 = 3_000_000;

/// Calls before the clock starts.
const WARM_UP: u32 = 100_000;

/// Calls that `--instructions` counts.
const COUNTED: u32 = 20_000;

/// The fastest round counts: everything that disturbs one makes it slower.
const ROUNDS: u32 = 7;

/// Over the columns of a table.
const HEADER: &str = "                  gcc   inline      jit  interpreter";

type Times = [f64; PROGRAMS.len()];

/// The policy writes virtual times, as in the kernel.
const HOST: Nobody = Nobody { takes_words: true };

fn table(target: &Target) -> Vec<HostFunction<Nobody>> {
    let function = |name, body, direct| HostFunction {
        name,
        prototype: target.prototype(name).expect("the kernel has it").leak(),
        cost_ps: 0,
        body: Some(body),
        direct: Some(direct),
    };
    vec![
        function("host_select_cpu", select_cpu, Direct::of(select_cpu)),
        function("host_insert", nothing, Direct::of(nothing)),
        function("host_insert_vtime", nothing, Direct::of(nothing)),
        function("host_move_to_local", nothing, Direct::of(nothing)),
    ]
}

fn nothing(_: &mut CallCtx<'_, Nobody>, _: [u64; 5]) -> Result<u64, Stop> {
    Ok(0)
}

/// Compiled into the entry that native code calls, as short functions of the simulator are.
#[inline]
fn select_cpu(ctx: &mut CallCtx<'_, Nobody>, args: [u64; 5]) -> Result<u64, Stop> {
    ctx.vm.deliver(args[3], &[1])?;
    Ok(args[1])
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/callbacks")
}

/// Element by element the lesser.
fn lesser(least: &mut Times, times: Times) {
    for (least, time) in least.iter_mut().zip(times) {
        *least = least.min(time);
    }
}

/// The policy in an instance of its own, with a task.
struct Ready {
    vm: Instance<Nobody>,
    task: u64,
}

impl Ready {
    fn new(image: &Arc<Image>, table: &[HostFunction<Nobody>], backend: Backend) -> Self {
        let config = Config {
            cpus: 4,
            backend,
            ..Config::default()
        };
        let mut vm = Instance::new(Arc::clone(image), table, config).expect("the policy is good");
        let task = vm.memory().alloc_kernel(24, 8).expect("a little memory");
        // The slice and the virtual time are the policy's to write, as in the kernel.
        vm.memory().open_word(task);
        vm.memory().open_word(task + 8);
        vm.memory().poke_u64(task, 5_000_000);
        vm.memory().poke_u32(task + 16, 100);
        Self { vm, task }
    }

    /// Calls a program so many times.
    #[inline(never)]
    fn call(&mut self, name: &str, calls: u32) {
        let programs = &self.vm.image().programs;
        let program = programs.iter().find(|program| program.name == name);
        let function = program.expect("the policy has it").function;
        for _ in 0..calls {
            let args = [self.task, 1, 2];
            let result = self.vm.call_program(function, &args, &mut { HOST });
            std::hint::black_box(result.expect("the policy makes no mistake"));
        }
    }
}

fn measure(image: &Arc<Image>, table: &[HostFunction<Nobody>], backend: Backend) -> Times {
    let mut ready = Ready::new(image, table, backend);
    PROGRAMS.map(|name| {
        ready.call(name, WARM_UP);
        let start = cpu_time();
        ready.call(name, CALLS);
        (cpu_time() - start).as_nanos() as f64 / f64::from(CALLS)
    })
}

/// Instructions of the processor that a call takes, as valgrind counts them: the difference
/// between a process with more calls and one with fewer. `None` without valgrind.
fn instructions(program: &Path, more: impl Fn(u32) -> Vec<String>) -> Option<f64> {
    let count = |calls: u32| {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        let output = valgrind.arg(program).args(more(calls)).output().ok()?;
        let text = String::from_utf8(output.stderr).ok()?;
        let (_, count) = text.split_once("Collected :")?;
        count.split_whitespace().next()?.parse::<f64>().ok()
    };
    Some((count(COUNTED * 2)? - count(COUNTED)?) / f64::from(COUNTED))
}

/// The same table in instructions, which noise does not reach.
fn count_all(native: [&Path; 2]) {
    let own = std::env::current_exe().expect("a program has a path");
    let by = |backend: &str, name: &str| {
        instructions(&own, |calls| {
            ["loop", backend, name, &calls.to_string()]
                .map(String::from)
                .to_vec()
        })
    };
    println!("instructions of the processor a call");
    println!("{HEADER}");
    for name in PROGRAMS {
        let gcc = |program| instructions(program, |calls| vec![calls.to_string(), name.into()]);
        let [called, inline] = native.map(gcc);
        let counts = [called, inline, by("jit", name), by("interpreter", name)];
        let [called, inline, jit, interpreter] =
            counts.map(|count| count.map_or("-".into(), |count| format!("{count:.0}")));
        println!("{name:<12} {called:>8} {inline:>8} {jit:>8} {interpreter:>12}");
    }
}

fn backend_by_name(name: &str) -> Backend {
    match name {
        "jit" => Backend::Jit,
        "interpreter" => Backend::Interpreter,
        _ => panic!("a back end is `jit` or `interpreter`, not `{name}`"),
    }
}

/// Compiles the policy natively, with `define`; `None` without gcc.
fn build_native(define: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("native{define}"));
    let folder = folder();
    let sources = ["policy.c", "native/host.c", "native/main.c"].map(|name| folder.join(name));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-fno-strict-aliasing", define, "-I"])
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

    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, backend, name, calls] = &args[..]
        && word == "loop"
    {
        let calls = calls.parse().expect("a number of calls");
        return Ready::new(&image, &table, backend_by_name(backend)).call(name, calls);
    }
    if args.iter().any(|arg| arg == "--translation") {
        return translation();
    }
    let native = ["-DLOOKUP_CALLED", "-DLOOKUP_INLINE"].map(build_native);
    let [Some(called), Some(inline)] = native else {
        println!("no gcc: nothing to compare with");
        return;
    };
    if args.iter().any(|arg| arg == "--instructions") {
        return count_all([&called, &inline]);
    }
    let mut least = [[f64::MAX; PROGRAMS.len()]; 4];
    // In turn, so that what disturbs a round disturbs all.
    for _ in 0..ROUNDS {
        lesser(&mut least[0], measure_native(&called));
        lesser(&mut least[1], measure_native(&inline));
        lesser(&mut least[2], measure(&image, &table, Backend::Jit));
        lesser(&mut least[3], measure(&image, &table, Backend::Interpreter));
    }
    print(&least);
    translation();
}

fn print(least: &[Times; 4]) {
    println!("ns a call, least of {ROUNDS}");
    println!("{HEADER}");
    for (at, name) in PROGRAMS.iter().enumerate() {
        let [called, inline, jit, interpreter] = least.map(|times| times[at]);
        println!("{name:<12} {called:>8.2} {inline:>8.2} {jit:>8.2} {interpreter:>12.2}");
    }
    let [called, inline, jit, interpreter] = least.map(|times| times[1..].iter().sum::<f64>());
    let sum = "sum of six";
    println!("{sum:<12} {called:>8.2} {inline:>8.2} {jit:>8.2} {interpreter:>12.2}");
    let entering = 6.0 * (least[2][0] - least[0][0]);
    println!(
        "jit / gcc {:.2}, jit / gcc with inlined look-ups {:.2}; \
         without what entering costs more: {:.2}, {:.2}",
        jit / called,
        jit / inline,
        (jit - entering) / called,
        (jit - entering) / inline,
    );
}

/// How long translation takes, and how long an instance takes to find what another was given.
fn translation() {
    for name in ["mlfq", "o1", "staircase"] {
        let policy = policies::find(name).expect("a shipped policy");
        let object = Object::parse(policy.object).expect("a shipped policy parses");
        let target = sim::target(&model::MachineSpec::default());
        let image = Arc::new(object.link(&target).expect("a shipped policy links"));
        let table = sim::host_functions();
        let usual = Config::default();
        let new = |backend, stack_bytes| {
            let config = Config {
                backend,
                stack_bytes,
                ..usual.clone()
            };
            let start = cpu_time();
            let vm = Instance::new(Arc::clone(&image), &table, config);
            let vm = vm.expect("a shipped policy is good");
            ((cpu_time() - start).as_nanos() as f64, vm.execution())
        };
        let mut least = [f64::MAX; 2];
        let mut size = (0, 0);
        for round in 0..ROUNDS {
            // With another stack all addresses differ, so that nothing is shared between rounds.
            let stack_bytes = usual.stack_bytes + 16 * round;
            let (without, _) = new(Backend::Interpreter, stack_bytes);
            let (with, execution) = new(Backend::Jit, stack_bytes);
            let (again, _) = new(Backend::Jit, stack_bytes);
            least[0] = least[0].min(with - without);
            least[1] = least[1].min(again - without);
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
            "translation of {name}: {:.1} ms for {} instructions, {:.1} ms per 1,000; {} bytes; \
             when it is shared: {:.2} ms",
            least[0] / 1e6,
            size.0,
            least[0] / 1e3 / f64::from(size.0.max(1)),
            size.1,
            least[1] / 1e6,
        );
    }
}
