//! Policies that only tests run, as compiled objects: `policies/*.bpf.c` beside this crate.

/// Name (the source's without `.bpf.c`) and object of each, by name.
pub const ALL: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/policies.rs"));

/// The object of the policy called `name`.
///
/// # Panics
/// If there is none: the test has a typing error.
#[must_use]
pub fn object(name: &str) -> &'static [u8] {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found
        .unwrap_or_else(|| panic!("no test policy is called `{name}`"))
        .1
}
