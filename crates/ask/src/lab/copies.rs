//! Policies that have the code of another one.

use std::collections::BTreeMap;

use bpf::Image;
use model::{Fnv1a, PolicySpec};

use super::image;

/// The code of a policy, whatever its functions and variables are called and in which order they
/// stand; `None` if it cannot be loaded.
#[must_use]
pub fn fingerprint(policy: &PolicySpec) -> Option<u64> {
    image(policy).ok().map(|image| of_image(&image))
}

fn of_image(image: &Image) -> u64 {
    let mut functions: Vec<u64> = image
        .functions
        .iter()
        .map(|it| {
            let code = &image.code[it.start as usize..(it.start + it.len) as usize];
            let mut hash = Fnv1a::new();
            for insn in code {
                // Calls say where another function stands, which the order changes.
                let imm = if insn.code == CALL { 0 } else { insn.imm };
                hash.write(&[insn.code, insn.dst, insn.src]);
                hash.write(&insn.off.to_le_bytes());
                hash.write(&imm.to_le_bytes());
            }
            hash.value()
        })
        .collect();
    functions.sort_unstable();
    let mut hash = Fnv1a::new();
    for function in functions {
        hash.write(&function.to_le_bytes());
    }
    hash.value()
}

/// `BPF_JMP | BPF_CALL`.
const CALL: u8 = 0x85;

/// The shipped policies, by their code.
#[must_use]
pub fn shipped() -> BTreeMap<u64, String> {
    let all = policies::ALL.iter().chain(policies::LESSONS);
    let coded = all.filter_map(|it| {
        let policy = crate::policy::of_shipped(it);
        Some((fingerprint(&policy)?, it.name.to_owned()))
    });
    coded.collect()
}
