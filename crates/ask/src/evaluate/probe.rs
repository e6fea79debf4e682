//! A load that has somebody of every kind whom a policy may starve, on a machine that has too
//! little for all: tasks that never sleep, light ones, bound ones, late ones, batch work, threads
//! of the kernel, and a stream of short turns that alone would fill the machine.

use std::fmt::Write as _;

use model::{Kernel, MachineSpec, Nanos, Rng};

/// How long it runs.
pub const LENGTH: Nanos = Nanos::from_secs(3);

/// A machine and the text of a load for it, called `name`. A large one has more CPUs than those
/// that a policy is likely to have been tried on.
#[must_use]
pub fn probe(
    name: &str,
    kernels: &[Kernel],
    is_large: bool,
    rng: &mut Rng,
) -> (MachineSpec, String) {
    let cpus = rng.below(4) + if is_large { 5 } else { 1 };
    let machine = MachineSpec {
        cpus: cpus as u16,
        hz: [250, 1000][rng.below(2) as usize],
        kernel: match kernels.len() as u64 {
            0 => Kernel::default(),
            count => kernels[rng.below(count) as usize],
        },
        ..MachineSpec::default()
    };
    let mut span = |from: u64, to: u64| format!("{}us", from + rng.below(to - from));
    let (run, sleep) = (span(1_500, 4_000), span(800, 1_600));
    let (turn, pause, late) = (
        span(5_000, 30_000),
        span(500, 2_000),
        span(200_000, 900_000),
    );
    let (work, rest) = (span(100, 400), span(5_000, 20_000));
    let bound = rng.below(cpus);
    let mut text = format!("[workload]\nname = \"{name}\"\n");
    let mut add = |name: &str, count: u64, keys: &str, does: &str| {
        let _ = write!(
            text,
            "[task.{name}]\ncount = {count}\n{keys}do = \"{does}\"\n"
        );
    };
    let stream = format!("loop(inf)[ run({run}), sleep({sleep}) ]");
    add("stream", cpus * 2 + 1, "", &stream);
    add("hog", 1 + cpus, "", "run(inf)");
    add("light", 2, "nice = 5\n", "run(inf)");
    add("bound", 1, &format!("cpus = \"{bound}\"\n"), "run(inf)");
    add("late", 1, "", &format!("sleep({late}), run(inf)"));
    add("batch", 1, "policy = \"batch\"\n", "run(inf)");
    add(
        "turns",
        2,
        "",
        &format!("loop(inf)[ run({turn}), sleep({pause}) ]"),
    );
    let thread = format!("loop(inf)[ run({work}), sleep({rest}) ]");
    add("thread", 1, "kind = \"kernel\"\n", &thread);
    (machine, text)
}

#[cfg(test)]
mod tests {
    use workload::Workload;

    use super::*;

    #[test]
    fn each_probe_is_a_load_with_every_kind_of_task() {
        for seed in 0..50 {
            let is_large = seed % 2 == 1;
            let (machine, text) = probe("p", &[Kernel::V7_2], is_large, &mut Rng::new(seed, 0));
            assert_eq!(machine.cpus > 4, is_large);
            let load = Workload::parse(&text, "p.toml");
            let load = load.unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!((load.groups.len(), machine.kernel), (8, Kernel::V7_2));
        }
    }
}
