//! What the loaded programs reach; only their calls need a host.

use std::collections::BTreeSet;

use crate::image::{Image, Insn, MemberValue};
use crate::isa::CALL;
use crate::reach;

/// Drops imports that only programs which are not loaded would call; those calls trap.
pub(super) fn prune(image: &mut Image) {
    autoload_callbacks(image);
    let live = live_functions(image);
    let mut is_called = vec![false; image.imports.len()];
    for (function, _) in image
        .functions
        .iter()
        .zip(&live)
        .filter(|(_, is_live)| **is_live)
    {
        let range = function.start as usize..(function.start + function.len) as usize;
        for insn in image.code[range].iter().filter(|insn| is_import(**insn)) {
            is_called[insn.imm as usize] = true;
        }
    }
    let mut indices = Vec::with_capacity(is_called.len());
    let mut kept = 0;
    for (import, &is_called) in image.imports.iter().zip(&is_called) {
        if is_called {
            indices.push(Ok(kept));
            kept += 1;
        } else {
            let name = &import.name;
            let reason = format!("`{name}` is called by programs only that are not loaded");
            indices.push(Err(image.poisons.len() as i32));
            image.poisons.push(reason);
        }
    }
    for insn in image.code.iter_mut().filter(|insn| is_import(**insn)) {
        (insn.src, insn.imm) = match indices[insn.imm as usize] {
            Ok(index) => (0, index),
            Err(poison) => (Insn::POISON, poison),
        };
    }
    let mut is_called = is_called.into_iter();
    image.imports.retain(|_| is_called.next().unwrap_or(false));
    let functions = image.functions.iter().zip(&live);
    let live_names: BTreeSet<_> = functions
        .filter(|(_, is_live)| **is_live)
        .map(|(function, _)| &function.name)
        .collect();
    for import in &mut image.imports {
        import.callers.retain(|caller| live_names.contains(caller));
    }
}

/// A second half of a 64-bit load has the code 0 and never passes for a call.
fn is_import(insn: Insn) -> bool {
    insn.code == CALL && insn.src == 0
}

/// A program that a loaded table names is loaded, whatever its section says.
fn autoload_callbacks(image: &mut Image) {
    for table in image.struct_ops.iter().filter(|table| table.autoload) {
        for (_, member) in &table.members {
            if let MemberValue::Program(program) = member {
                image.programs[*program as usize].autoload = true;
            }
        }
    }
}

/// Functions that the loaded programs reach.
fn live_functions(image: &Image) -> Vec<bool> {
    let roots = image.programs.iter().filter(|program| program.autoload);
    let live = reach::from(image, roots.map(|program| program.function));
    let all = 0..image.functions.len() as u32;
    all.map(|function| live.contains(&function)).collect()
}
