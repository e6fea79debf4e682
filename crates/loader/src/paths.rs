//! Paths as the program knows them, and where they are on the host.
//!
//! Each part of a path is looked at by itself, so that no link of the host leads into the host's
//! own `/proc` or `/sys`, and no link of the program's out of the tree. The path in the end has no
//! link in it, and goes from a descriptor: one that somebody puts there later is not followed.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};

use crate::anchor::Anchor;
use crate::state::{CallContext, Errno, LoaderState};
use crate::tree::{OWN, SCRATCH};
use crate::work;

/// Owner of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOwner {
    /// The tree's: it may be written.
    Tree,
    /// In the folder that the user has given: it may be written.
    Given,
    /// A device without an effect: it may be written.
    Null,
    /// The host's: it may be read.
    Host,
    /// Below `/proc/self`: it may be read.
    Process,
    /// The supervisor's, beside the tree: it may be read.
    Beside,
}

/// A path, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// As the program would name it.
    pub shown: PathBuf,
    /// Where it is, from the folder of its place: see [`LoaderState::anchor`].
    pub below: PathBuf,
    /// Whose it is.
    pub place: PathOwner,
}

impl Resolved {
    /// Refuses what may not be written.
    pub const fn writable(&self) -> Result<(), Errno> {
        match self.place {
            PathOwner::Tree | PathOwner::Given | PathOwner::Null => Ok(()),
            PathOwner::Host | PathOwner::Process | PathOwner::Beside => Err(Errno(libc::EACCES)),
        }
    }

    /// Refuses what may not be made, renamed or deleted. The folder that the user gave stays: the
    /// program may write below it.
    pub fn changeable(&self) -> Result<(), Errno> {
        self.writable()?;
        if self.place == PathOwner::Null || self.below.as_os_str().is_empty() {
            return Err(Errno(libc::EACCES));
        }
        Ok(())
    }

    /// Opens it.
    ///
    /// # Errors
    /// `ELOOP` of a link.
    pub fn open(&self, state: &LoaderState, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        Ok(state.anchor(self.place).open(&self.below, flags, mode)?)
    }

    /// Looks up its attributes; of a link, those of the link itself.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn stat(&self, state: &LoaderState) -> Result<Stat, Errno> {
        Ok(state.anchor(self.place).stat(&self.below)?)
    }

    /// Whether it is there.
    pub fn exists(&self, state: &LoaderState) -> bool {
        state.anchor(self.place).has(&self.below)
    }

    /// Where it leads, if it is a link.
    ///
    /// # Errors
    /// `EINVAL` of what is no link.
    pub fn read_link(&self, state: &LoaderState) -> Result<PathBuf, Errno> {
        Ok(state.anchor(self.place).read_link(&self.below)?)
    }

    /// The folder that it is in, and its name there, to make, rename or delete it.
    ///
    /// # Errors
    /// As [`Resolved::changeable`]. As the kernel refuses it.
    pub fn folder(&self, state: &LoaderState) -> Result<(OwnedFd, &std::ffi::OsStr), Errno> {
        self.changeable()?;
        Ok(state.anchor(self.place).folder_of(&self.below)?)
    }
}

impl LoaderState {
    /// The folder from which the paths of a place go.
    pub fn anchor(&self, place: PathOwner) -> &Anchor {
        match (place, &self.given) {
            (PathOwner::Tree, _) => self.tree.anchor(),
            (PathOwner::Beside, _) => &self.beside,
            (PathOwner::Given, Some((_, anchor))) => anchor,
            (
                PathOwner::Given | PathOwner::Null | PathOwner::Host | PathOwner::Process,
                _,
            ) => &self.host,
        }
    }
}

const LINKS_MAX: u32 = 40;
/// Folders below one another. Each part is looked up from the folder of its place, so that a path
/// takes time by the square of its depth.
const DEPTH_MAX: usize = 100;
/// Parts of a path, with those of the links on its way.
const PARTS_MAX: usize = 1000;

/// Where a path leads from the folder `base`, which is one that the program knows; the last part
/// may be missing. A link in the last place is followed if `follow`.
///
/// # Errors
/// `ENOENT`, `ELOOP`, `ENOTDIR`; `ENAMETOOLONG` beyond [`DEPTH_MAX`] and [`PARTS_MAX`].
pub fn resolve(
    state: &LoaderState,
    tid: i32,
    base: &Path,
    path: &[u8],
    follow: bool,
) -> Result<Resolved, Errno> {
    if path.is_empty() {
        return Err(Errno(libc::ENOENT));
    }
    let is_folder = path.ends_with(b"/");
    let path = PathBuf::from(OsString::from_vec(path.to_vec()));
    let mut left: VecDeque<OsString> = parts(&base.join(path));
    let mut at = PathBuf::from("/");
    let (mut links, mut depth, mut seen) = (0, 0, 0);
    while let Some(part) = left.pop_front() {
        seen += 1;
        state.work.add(work::PART);
        if seen > PARTS_MAX || depth >= DEPTH_MAX && part != ".." {
            return Err(Errno(libc::ENAMETOOLONG));
        }
        if part == ".." {
            at.pop();
            depth = depth.saturating_sub(1);
            continue;
        }
        let next = at.join(&part);
        let found = locate(state, tid, &next);
        let is_last = left.is_empty();
        let facts = found.stat(state);
        let kind = facts.as_ref().map(|it| FileType::from_raw_mode(it.st_mode));
        let is_link = kind.is_ok_and(FileType::is_symlink);
        if is_link && (!is_last || follow || is_folder) {
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno(libc::ELOOP));
            }
            let target = state.shown_path(&found.read_link(state)?);
            // What has no path of its own: a pipe, a deleted file.
            if found.place == PathOwner::Process && !target.is_absolute() && is_last {
                return Ok(found);
            }
            if target.is_absolute() {
                (at, depth) = (PathBuf::from("/"), 0);
            }
            for part in parts(&target).into_iter().rev() {
                left.push_front(part);
            }
            continue;
        }
        if !is_last {
            match kind {
                Ok(kind) if !kind.is_dir() => return Err(Errno(libc::ENOTDIR)),
                Ok(_) => {}
                Err(error) => return Err(*error),
            }
        }
        (at, depth) = (next, depth + 1);
    }
    Ok(locate(state, tid, &at))
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let each = path.components().filter_map(|it| match it {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    each.collect()
}

/// Where a path without links is on the host.
fn locate(state: &LoaderState, tid: i32, shown: &Path) -> Resolved {
    let at = |below: &Path, place| Resolved {
        shown: shown.to_owned(),
        below: below.to_owned(),
        place,
    };
    if let Some((given, _)) = &state.given
        && let Ok(below) = shown.strip_prefix(given)
    {
        return at(below, PathOwner::Given);
    }
    let host = shown.strip_prefix("/").unwrap_or(shown);
    let tree = match host.strip_prefix("var/run") {
        Ok(rest) => Path::new("run").join(rest),
        Err(_) => host.to_owned(),
    };
    if let Ok(rest) = tree.strip_prefix("proc")
        && let Some((process, below)) = own(state, tid, rest)
    {
        let stands_for = Path::new("proc/self").join(below);
        return if state.tree.anchor().has(&stands_for) {
            at(&stands_for, PathOwner::Tree)
        } else {
            at(&process, PathOwner::Process)
        };
    }
    if OWN.iter().any(|it| tree.starts_with(it)) {
        return at(&tree, PathOwner::Tree);
    }
    if SCRATCH.iter().any(|it| tree.starts_with(it)) {
        let is_hosts = !state.tree.anchor().has(&tree) && state.host.has(host);
        // A new file below a folder of the host's is the host's, too.
        let parent = tree.parent().is_some_and(|it| state.tree.anchor().has_folder(it));
        return if is_hosts || !parent {
            at(host, PathOwner::Host)
        } else {
            at(&tree, PathOwner::Tree)
        };
    }
    // A computer of few files may have no such folder, and programs make `/var/run/scx`.
    if tree == Path::new("var") && !state.host.has(host) {
        return at(&tree, PathOwner::Tree);
    }
    match device(&tree) {
        (place, Some(name)) => at(Path::new(name), place),
        (place, None) => at(host, place),
    }
}

/// Whose a file outside of the program's folders is, and its name if it has another one.
fn device(path: &Path) -> (PathOwner, Option<&'static str>) {
    match path.to_str() {
        Some("dev/null" | "dev/zero" | "dev/full") => (PathOwner::Null, None),
        Some("dev/urandom" | "dev/random") => (PathOwner::Beside, Some("random")),
        // The link to the program's own descriptors.
        Some("dev" | "dev/fd" | "dev/stdin" | "dev/stdout" | "dev/stderr") => {
            (PathOwner::Host, None)
        }
        // No other device is there.
        _ if path.starts_with("dev") => (PathOwner::Beside, Some("no-device")),
        _ => (PathOwner::Host, None),
    }
}

/// The host's path of a thread of the program, from the root, and the path below its process.
fn own(state: &LoaderState, tid: i32, rest: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut parts = rest.components();
    let first = parts.next()?.as_os_str().to_str()?;
    let mut below = parts.as_path().to_owned();
    let real = match first {
        "self" | "thread-self" => tid,
        number => {
            let shown: u32 = number.parse().ok()?;
            let found = state.processes.iter().find(|it| it.lives && it.shown == shown);
            found.map(|it| it.real)?
        }
    };
    // Threads too are named by the numbers of the simulated machine.
    let mut named = below.components();
    if let (Some(Component::Normal(task)), Some(Component::Normal(number))) =
        (named.next(), named.next())
        && task == "task"
        && let Some(at) = number.to_str().and_then(|it| it.parse().ok())
        && let Some(at) = state.find_thread(at)
    {
        below = Path::new("task")
            .join(state.threads[at].tid.to_string())
            .join(named.as_path());
    }
    let host = Path::new("proc").join(real.to_string()).join(&below);
    Some((host, below))
}

/// Bytes of a path, with its end (`PATH_MAX`, Linux 6.18, include/uapi/linux/limits.h).
pub const PATH_MAX: usize = 4096;

/// The folder from which a path goes: of `AT_FDCWD` the current one.
fn base(cx: &mut CallContext<'_>, fd: i32) -> Result<PathBuf, Errno> {
    if fd == libc::AT_FDCWD {
        return Ok(cx.process().cwd.clone());
    }
    path_of(cx, fd)
}

/// The path of an open file, as the program knows it.
///
/// # Errors
/// `EBADF` if it is not open.
pub fn path_of(cx: &CallContext<'_>, fd: i32) -> Result<PathBuf, Errno> {
    let link = fs::read_link(format!("/proc/{}/fd/{fd}", cx.call.tid));
    let path = link.map_err(|_| Errno(libc::EBADF))?;
    Ok(cx.state.shown_path(&path))
}

/// Resolves the path at `at`, from the folder `fd`.
///
/// # Errors
/// What the program gets as `errno`.
pub fn path(
    cx: &mut CallContext<'_>,
    fd: i32,
    at: u64,
    follow: bool,
) -> Result<Resolved, Errno> {
    let name = cx.read_string(at, PATH_MAX)?;
    let base = match name.first() {
        Some(b'/') => PathBuf::from("/"),
        _ => base(cx, fd)?,
    };
    refresh(cx, &name);
    resolve(cx.state, cx.call.tid, &base, &name, follow)
}

/// Brings files up to date that tell of the machine as it is now, and notes one that is missed.
fn refresh(cx: &mut CallContext<'_>, name: &[u8]) {
    // They are looked at seldom; a failure shows as an old content.
    let has = |part: &[u8]| name.windows(part.len()).any(|it| it == part);
    if has(b"stat") || has(b"uptime") {
        let times = cx.kernel.cpu_times();
        cx.state.work.add(2 * work::FILE + times.len() as u64);
        let _ = cx.state.tree.show_times(&times, cx.now());
    }
    if has(b"scaling_cur_freq") {
        let frequencies = cx.kernel.cpu_frequencies();
        cx.state.work.add(frequencies.len() as u64 * work::FILE);
        let _ = cx.state.tree.show_frequencies(&frequencies);
    }
    let model = Path::new("sys/kernel/debug/energy_model");
    if cx.state.asks_energy && has(b"energy_model") && !cx.state.tree.anchor().has_folder(model) {
        cx.state.note("it looked for an energy model; this machine has none".into());
    }
    if has(b"sched_ext") {
        cx.state.work.add(6 * work::FILE);
        let _ = cx.state.tree.show_sched_ext(&cx.kernel.sched_ext());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: PathOwner, below: &str) -> Resolved {
        Resolved {
            shown: "/x".into(),
            below: below.into(),
            place,
        }
    }

    /// Root is told the same: it is decided here, and not by the kernel's permissions.
    #[test]
    fn no_device_and_no_file_of_the_computer_is_made_renamed_or_deleted() {
        let refused = Err(Errno(libc::EACCES));
        let devices = ["null", "zero", "full", "random", "urandom", "tty", "kmsg", "sda", "fd/x"];
        for name in devices {
            let place = device(&Path::new("dev").join(name)).0;
            assert_ne!(place, PathOwner::Tree, "{name}");
            assert_eq!(at(place, name).changeable(), refused, "{name}");
        }
        for path in ["dev", "dev/stdin", "etc/passwd", "home"] {
            assert_eq!(device(Path::new(path)), (PathOwner::Host, None), "{path}");
        }
        for place in [PathOwner::Null, PathOwner::Host, PathOwner::Process, PathOwner::Beside] {
            assert_eq!(at(place, "x").changeable(), refused, "{place:?}");
        }
        for place in [PathOwner::Host, PathOwner::Process, PathOwner::Beside] {
            assert_eq!(at(place, "x").writable(), refused, "{place:?}");
        }
        assert_eq!(at(PathOwner::Null, "dev/null").writable(), Ok(()));
        for place in [PathOwner::Tree, PathOwner::Given] {
            assert_eq!(at(place, "x").changeable(), Ok(()));
            assert_eq!(at(place, "").changeable(), refused, "the folder itself stays");
        }
    }
}
