//! Policies by name: those that only tests run, and those that the project ships.

use std::sync::Arc;

/// Test policies with their objects; `build.rs` writes the table.
pub const TESTED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/policies.rs"));

/// The object of the policy `name`.
///
/// # Errors
/// If there is none; the message lists the test policies.
pub fn object(name: &str) -> Result<Arc<[u8]>, String> {
    let tested = TESTED
        .iter()
        .find(|(own, _)| *own == name)
        .map(|(_, object)| *object);
    let shipped = || policies::find(name).map(|policy| policy.object);
    tested.or_else(shipped).map(Arc::from).ok_or_else(|| {
        let names: Vec<_> = TESTED.iter().map(|(name, _)| name).collect();
        format!("no policy is called `{name}`; test policies are {names:?}")
    })
}
