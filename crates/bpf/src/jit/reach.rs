//! Which functions can be reached.

use std::collections::BTreeSet;

use crate::{Image, Insn, Member};

/// The functions that a kernel loads, what they call, and callbacks whose address they take. With
/// no programs, as in tests, all.
pub(super) fn reachable(image: &Image) -> BTreeSet<u32> {
    let of_program = |program: u32| image.programs.get(program as usize).map(|p| p.function);
    let members = image.struct_ops.iter().flat_map(|table| &table.members);
    let mut pending: Vec<u32> = members
        .filter_map(|(_, member)| match member {
            Member::Program(program) => of_program(*program),
            _ => None,
        })
        .collect();
    let loaded = image.programs.iter().filter(|program| program.autoload);
    pending.extend(loaded.map(|program| program.function));
    if image.programs.is_empty() {
        pending.extend(0..image.functions.len() as u32);
    }
    let mut found = BTreeSet::new();
    while let Some(function) = pending.pop() {
        if found.insert(function) {
            pending.extend(mentioned(image, function));
        }
    }
    found
}

/// The functions that `function` calls or takes the address of. Every slot is looked at, so the
/// second slot of a constant may name one too many, which does no harm.
pub(super) fn mentioned(image: &Image, function: u32) -> impl Iterator<Item = u32> + '_ {
    const CALL: u8 = 0x85;
    const LD_IMM64: u8 = 0x18;
    let range = &image.functions[function as usize];
    let code = &image.code[range.start as usize..][..range.len as usize];
    let mentions = |insn: &&Insn| matches!((insn.code, insn.src), (CALL, 1) | (LD_IMM64, 4));
    let known = |function: &u32| (*function as usize) < image.functions.len();
    code.iter()
        .filter(mentions)
        .map(|insn| insn.imm as u32)
        .filter(known)
}
