//! The names that a file gives to things, before and while its operations are read.

use model::file::Problem;

/// Names and how many instances each has.
pub(super) type Instances = Vec<(String, u32)>;

/// Everything that operations and expressions may name.
#[derive(Default)]
pub(super) struct Names {
    /// Parameters and their values.
    pub scale: Vec<(String, i64)>,
    /// Cgroups: names and paths.
    pub cgroups: Vec<(String, String)>,
    /// Channels.
    pub channels: Instances,
    /// Locks.
    pub locks: Instances,
    /// Which of the locks are keyed.
    pub keyed: Vec<bool>,
    /// Barriers.
    pub barriers: Instances,
    /// Semaphores.
    pub semaphores: Instances,
    /// Condition variables.
    pub conditions: Instances,
    /// Listening sockets.
    pub listeners: Instances,
    /// Disks.
    pub disks: Vec<String>,
    /// Whether memory is limited.
    pub has_memory: bool,
    /// Requests from outside.
    pub requests: Vec<String>,
    /// Deadlines.
    pub deadlines: Vec<String>,
    /// Groups of tasks.
    pub groups: Vec<String>,
    /// Spans, found by their use.
    pub spans: Vec<String>,
    /// Counters, found by their use.
    pub counters: Vec<String>,
    /// Phases, found by their use.
    pub phases: Vec<String>,
    /// Groups that some operation forks.
    pub forked: Vec<u32>,
}

/// The index of `name` among `names`.
pub(super) fn find<'a>(
    what: &'static str,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<u32, Problem> {
    let index = names.clone().position(|known| known == name);
    index
        .map(number)
        .ok_or_else(|| Problem::unknown(what, name, names))
}

/// The index of `name`, which is added if it is new.
pub(super) fn intern(name: &str, names: &mut Vec<String>) -> u32 {
    let index = names
        .iter()
        .position(|known| known == name)
        .unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
    number(index)
}

/// A position in a list as the tree stores it.
pub(super) fn number(index: usize) -> u32 {
    u32::try_from(index).expect("a file has fewer than 2^32 names")
}
