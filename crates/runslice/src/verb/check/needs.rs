//! What an object needs besides functions: variables that its loader sets, and somebody at the
//! other end of its ring buffers.

use std::io::Write;

use bpf::{Image, MapKind, Reached, Symbol, Type};

/// Words in the names of variables for which 0 is no answer: numbers of something that a machine
/// has.
const COUNTED: [&str; 18] = [
    "nr", "num", "ids", "cpu", "cpus", "core", "cores", "node", "nodes", "dom", "doms", "domains",
    "llc", "llcs", "socket", "sockets", "capacity", "span",
];

/// The reasons why instructions cannot run: those that the callbacks can reach, and the others.
pub fn sort(image: &Image, reached: &Reached) -> (Vec<String>, Vec<String>) {
    let (mut ends, mut idle) = (Vec::new(), Vec::new());
    for (index, reason) in image.poisons.iter().enumerate() {
        if reached.poisons.contains(&index) {
            ends.push(reason.clone());
        } else {
            idle.push(reason.clone());
        }
    }
    (ends, idle)
}

/// Warns of variables that stay 0 and of ring buffers that nobody serves.
///
/// # Errors
/// When `to` cannot be written.
pub fn warn(image: &Image, reached: &Reached, to: &mut dyn Write) -> std::io::Result<()> {
    let unset = unset(image, reached);
    if !unset.is_empty() {
        writeln!(
            to,
            "\nread, 0, and set by no program: a loader may set them (give --set NAME=VALUE)"
        )?;
    }
    unset.iter().try_for_each(|it| writeln!(to, "  {it}"))?;
    for map in &image.maps {
        let (name, bytes) = (&map.name, map.max_entries);
        match map.kind {
            MapKind::Ringbuf => writeln!(
                to,
                "\nring buffer `{name}`: nobody reads it; when its {bytes} bytes are full, \
                 programs get no more"
            )?,
            MapKind::UserRingbuf => writeln!(
                to,
                "\nring buffer `{name}`: nobody fills it; programs find nothing in it"
            )?,
            _ => {}
        }
    }
    Ok(())
}

/// Variables that programs read, that are 0 and that only a loader could set. Of read-only
/// variables those for which 0 hardly can be meant: tables, and numbers of what a machine has.
fn unset(image: &Image, reached: &Reached) -> Vec<String> {
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
