//! Which functions can be reached.

use std::collections::BTreeSet;

use crate::image::{Image, Insn, MemberValue};
use crate::isa::{CALL, CALL_LOCAL, LD_IMM64, ld_imm64};

/// The functions that a kernel loads, what they call, and callbacks whose address they take. With
/// no programs, as in tests, all.
pub(crate) fn loaded(image: &Image) -> BTreeSet<u32> {
    if image.programs.is_empty() {
        return (0..image.functions.len() as u32).collect();
    }
    let loaded = image.programs.iter().filter(|program| program.autoload);
    let loaded = loaded.map(|program| program.function);
    from(image, callbacks(image).chain(loaded))
}

/// The functions that a host calls: the callbacks of tables and the programs that a loader runs,
/// and what they reach. All other programs wait for an event (a tracepoint, the entry of a
/// function) or for a reader, and no host has one. With no programs, as in tests, all.
pub(crate) fn called(image: &Image) -> BTreeSet<u32> {
    if image.programs.is_empty() {
        return (0..image.functions.len() as u32).collect();
    }
    from(image, entries(image))
}

/// The callbacks of tables and the programs that a loader runs.
pub(crate) fn entries(image: &Image) -> impl Iterator<Item = u32> + '_ {
    let is_run = |section: &str| section.trim_start_matches('?') == "syscall";
    let run = image.programs.iter().filter(move |p| is_run(&p.section));
    callbacks(image).chain(run.map(|p| p.function))
}

/// The callbacks of all tables.
fn callbacks(image: &Image) -> impl Iterator<Item = u32> + '_ {
    let members = image.struct_ops.iter().flat_map(|table| &table.members);
    members.filter_map(|(_, member)| match member {
        MemberValue::Program(program) => Some(image.programs.get(*program as usize)?.function),
        _ => None,
    })
}

/// These functions, what they call, and callbacks whose address they take.
pub(crate) fn from(image: &Image, functions: impl Iterator<Item = u32>) -> BTreeSet<u32> {
    let mut pending: Vec<u32> = functions.collect();
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
pub(crate) fn mentioned(image: &Image, function: u32) -> impl Iterator<Item = u32> + '_ {
    let range = &image.functions[function as usize];
    let code = &image.code[range.start as usize..][..range.len as usize];
    let mentions = |insn: &&Insn| {
        let what = (insn.code, insn.src);
        matches!(what, (CALL, CALL_LOCAL) | (LD_IMM64, ld_imm64::FUNCTION))
    };
    let known = |function: &u32| (*function as usize) < image.functions.len();
    let mentioned = code.iter().filter(mentions);
    mentioned.map(|insn| insn.imm as u32).filter(known)
}
