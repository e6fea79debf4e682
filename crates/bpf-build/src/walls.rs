//! The walls around the compiler: Landlock says which files it reaches, seccomp which system calls
//! it has.
//!
//! Both hold a thread and all that comes of it, for ever. So a thread of its own puts them on
//! itself, starts the compiler and ends; the rest of this process stays free.

use std::path::Path;
use std::process::{Child, Command};
use std::{io, thread};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};

use crate::filter::filter;
use crate::place::PreparedSource;
use crate::runtime::Runtime;

/// The newest rules of Landlock that are known here. Older kernels have some of them; those about
/// files are the first.
const RULES: ABI = ABI::V6;

/// A compiler that was started.
#[derive(Debug)]
pub(crate) struct Started {
    pub child: Child,
    /// Whether the kernel holds it to the files that it may read.
    pub is_walled: bool,
}

/// Starts `command` inside of the walls. Where the kernel has none, it is not started if
/// `is_needed`.
///
/// # Errors
/// `None` when there are no walls; else what the system says.
pub(crate) fn start(
    command: &mut Command,
    reach: &Reach,
    is_needed: bool,
) -> Result<Started, Option<io::Error>> {
    let inside = || {
        let is_walled = enter(reach)?;
        if is_needed && !is_walled {
            return Err(None);
        }
        let child = command.spawn().map_err(Some)?;
        Ok(Started { child, is_walled })
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, inside);
        let done = thread.map_err(Some)?.join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// What a compiler reaches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach<'a> {
    pub runtime: &'a Runtime,
    pub place: &'a PreparedSource,
    /// The list of files that the compiler sees.
    pub view: Option<&'a Path>,
}

/// Puts the walls on this thread; false where the kernel lacks one of them.
fn enter(reach: &Reach) -> Result<bool, Option<io::Error>> {
    let rules = rules(reach).map_err(|error| Some(io::Error::other(error)))?;
    let status = rules.restrict_self();
    let status = status.map_err(|error| Some(io::Error::other(error)))?;
    // A filter may be made for few kinds of machines, and a kernel may be built without filters.
    let filtered = filter().is_ok_and(|it| seccompiler::apply_filter(&it).is_ok());
    Ok(filtered && status.ruleset != RulesetStatus::NotEnforced)
}

fn rules(reach: &Reach) -> Result<RulesetCreated, RulesetError> {
    // What is handled and not allowed below is forbidden: all writing, all of the network.
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(RULES))?
        .handle_access(AccessNet::from_all(RULES))?
        .scope(Scope::from_all(RULES))?
        .create()?;
    let runs = AccessFs::Execute | AccessFs::ReadFile;
    rules = allow(rules, &reach.runtime.program, runs)?;
    for library in &reach.runtime.libraries {
        // The loader is one of them; the kernel starts it as it starts a program.
        rules = allow(rules, library, runs)?;
    }
    if let Some(view) = reach.view {
        rules = allow(rules, view, AccessFs::ReadFile.into())?;
    }
    rules = allow(rules, &reach.place.source, AccessFs::ReadFile.into())?;
    let folder = AccessFs::ReadFile | AccessFs::ReadDir;
    for path in reach.place.readable() {
        rules = allow(rules, path, folder)?;
    }
    Ok(rules)
}

/// Allows this with a file, or with all below a folder. What has gone meanwhile stays forbidden.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(opened) => rules.add_rule(PathBeneath::new(opened, access)),
        Err(_) => Ok(rules),
    }
}
