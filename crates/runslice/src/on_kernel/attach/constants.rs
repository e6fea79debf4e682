//! Constants of the running kernel that an object asks for by variables of their names.

use std::fs;

use bpf::{Object, Target};
use model::PolicySpec;

/// Where a kernel describes its own types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The variables of `spec`'s object that its loader would fill, and their values as they lie in
/// memory. None for an object without such variables, and on a kernel that does not describe
/// itself.
pub fn constants(spec: &PolicySpec) -> Vec<(String, Vec<u8>)> {
    let Ok(object) = Object::parse(&spec.object) else {
        // Whoever loads it says what is wrong with it.
        return Vec::new();
    };
    let types = fs::read(TYPES).unwrap_or_default();
    let Ok(target) = Target::new("running", (0, 0, 0), &types) else {
        return Vec::new();
    };
    of(&object, &target)
}

fn of(object: &Object, target: &Target) -> Vec<(String, Vec<u8>)> {
    let values = object.constants(target);
    values
        .map(|(name, value)| (name.to_owned(), value.to_ne_bytes().to_vec()))
        .collect()
}
