//! What an object lacks without its loader: variables that nobody set, and programs that were to
//! run before it is attached.

use bpf::{Image, Reached, Symbol, Type};
use model::{MachineSpec, PolicySpec};
use workload::RunSpec;

use crate::note::Topic;
use crate::right;
use crate::services::Services;

/// Words in the names of variables for which 0 is no answer: numbers of something that a machine
/// has.
const COUNTED: [&str; 18] = [
    "nr", "num", "ids", "cpu", "cpus", "core", "cores", "node", "nodes", "dom", "doms", "domains",
    "llc", "llcs", "socket", "sockets", "capacity", "span",
];
/// Names that a note tells one by one.
const NAMED: usize = 4;

/// Says of an object that it runs without its loader's settings, as far as that can be read off
/// it: then its faults may be those of the settings.
pub fn say(services: &Services<'_>, spec: &RunSpec) {
    say_of(services, &spec.policy, &spec.machine);
}

/// As [`say`], of a policy on a machine.
pub fn say_of(services: &Services<'_>, policy: &PolicySpec, machine: &MachineSpec) {
    if policy.program.is_some() {
        return;
    }
    right::say_misspelt(services, policy);
    // Whatever is wrong with the object, the run says so.
    let Ok(image) = sim::image(policy, machine) else {
        return;
    };
    let unset = variables(&image, &image.reached());
    let idle = match policy.setup.as_slice() {
        [] => programs(&image),
        _ => Vec::new(),
    };
    let lacks = [
        listed(&idle, "set-up programs that did not run"),
        listed(&unset, "variables that are 0 and that no program sets"),
    ];
    let lacks: Vec<_> = lacks.into_iter().flatten().collect();
    if !lacks.is_empty() {
        services.note(
            Topic::Run,
            format!(
                "{} runs without its loader's settings: it has {}. What is wrong may be due to \
                 that: give --run or --set, or run its program with --scheduler",
                policy.name,
                lacks.join(", and ")
            ),
        );
    }
}

fn listed(names: &[String], what: &str) -> Option<String> {
    let first = names
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len() {
        0 => None,
        1..=NAMED => Some(format!("{what} ({first})")),
        all => Some(format!("{what} ({first} and {} more)", all - NAMED)),
    }
}

/// Programs that a loader runs by hand.
fn programs(image: &Image) -> Vec<String> {
    let is_run = |section: &str| section.trim_start_matches('?') == "syscall";
    let run = image.programs.iter().filter(|it| is_run(&it.section));
    run.map(|program| program.name.clone()).collect()
}

/// Variables that programs read, that are 0 and that only a loader could set. Of read-only
/// variables those for which 0 hardly can be meant: tables, and numbers of what a machine has.
#[must_use]
pub fn variables(image: &Image, reached: &Reached) -> Vec<String> {
    let symbols = reached.only_read.iter().map(|&index| &image.symbols[index]);
    let unset = symbols.filter(|symbol| {
        let Some(map) = image.maps.get(symbol.map as usize) else {
            return false;
        };
        let value = map.initial_bytes(symbol.offset as usize, symbol.size as usize);
        let is_zero = value.is_some_and(|value| value.iter().all(|byte| *byte == 0));
        let is_knob = image.knobs.iter().any(|knob| knob.name == symbol.name);
        // The loader's library fills those from the kernel's types.
        let is_kernels = symbol.name.starts_with("__");
        is_zero && !is_knob && !is_kernels && (!map.frozen || counts(symbol))
    });
    let mut names: Vec<String> = unset.map(|symbol| symbol.name.clone()).collect();
    names.sort();
    names
}

fn counts(symbol: &Symbol) -> bool {
    let is_table = matches!(symbol.ty.as_deref(), Some(Type::Array { .. }));
    let mut words = symbol.name.split('_');
    let is_flag = matches!(symbol.scalar, Some(bpf::Scalar::Bool));
    is_table || (!is_flag && words.any(|word| COUNTED.contains(&word)))
}
