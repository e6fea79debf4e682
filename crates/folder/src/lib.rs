//! Folders in which nobody else can have put a file or a link: one for the files of one run, and
//! one that is gone on with. Files that take their place as a whole, and files that a user names.

mod named;

mod emptied;

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use model::Advised;
use rustix::fs::{AtFlags, statat, unlinkat};
use rustix::path::Arg;

pub use named::{append, check_file, check_way, create, create_new, make_folders};

/// A new folder of mode 0700 with a name that cannot be guessed. Dropping it deletes it with all
/// that is in it; links in it are deleted, not followed. What somebody has put in its place stays,
/// and so does what a name leads to that stood for one of its folders.
///
/// Loads run programs as root on what lies in their folder (`make` on a `Makefile`). In a folder of
/// a fixed name below `/tmp`, another user could have put a file or a link there before.
#[derive(Debug)]
pub struct OwnFolder {
    path: PathBuf,
    /// The folder itself, whatever its name is by now.
    folder: File,
    /// The folder in which it was made.
    parent: File,
}

impl OwnFolder {
    /// Makes a folder below the system's folder for temporary files (`TMPDIR`, else `/tmp`).
    ///
    /// # Errors
    /// See [`OwnFolder::below`].
    pub fn new() -> io::Result<Self> {
        Self::below(&std::env::temp_dir())
    }

    /// Makes a folder below `parent`, which is made if it is not there.
    ///
    /// # Errors
    /// When another user could replace the new folder: `parent` or a folder above it belongs to
    /// another user than root and this process's, or others may write into it and it is not
    /// sticky. When the system refuses. The error names the folder.
    pub fn below(parent: &Path) -> io::Result<Self> {
        let made = Self::make(parent);
        made.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", parent.display())))
    }

    fn make(parent: &Path) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        // The links of the way are followed once, here; nobody can change what is checked below.
        let parent = parent.canonicalize()?;
        let own = rustix::process::geteuid().as_raw();
        for folder in parent.ancestors() {
            check(folder, &folder.metadata()?, &[own], OTHERS_WRITE)?;
        }
        let folder = tempfile::Builder::new()
            .prefix("runslice-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&parent)?;
        let parent = File::open(parent)?;
        let opened = File::open(folder.path())?;
        // From here on it is deleted by its descriptor: see `Drop`.
        let path = folder.keep();
        Ok(Self {
            path,
            folder: opened,
            parent,
        })
    }

    /// Lets every user read what is in the folder: for what a server shows that gives up root.
    /// Nobody but the owner can write.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn show_to_all(&self) -> io::Result<()> {
        fs::set_permissions(self.path(), Permissions::from_mode(0o755))
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder in which it was made.
    #[must_use]
    pub fn parent(&self) -> BorrowedFd<'_> {
        self.parent.as_fd()
    }

    /// The path of `name` in the folder.
    #[must_use]
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

impl AsFd for OwnFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        let name = self.path.file_name().unwrap_or_default();
        if !delete(self.folder.as_fd(), self.parent.as_fd(), name) {
            self.remove_where_it_is();
        }
    }
}

impl OwnFolder {
    /// Removes the empty folder after somebody has moved it.
    fn remove_where_it_is(&self) {
        use std::os::fd::AsRawFd as _;
        let link = format!("/proc/self/fd/{}", self.folder.as_raw_fd());
        let now = fs::read_link(link).unwrap_or_default();
        if let (Some(parent), Some(name)) = (now.parent(), now.file_name())
            && let Ok(parent) = File::open(parent)
        {
            remove_if_same(parent.as_fd(), name, self.folder.as_fd());
        }
    }
}

/// Deletes all that is in `folder`, and then itself if `parent` still has it by that name: whether
/// it is gone. What somebody has put in its place stays.
///
/// On Linux this allocates nothing if `name` is short, and starts no program: a child that was
/// forked off a process with threads may call it.
pub fn delete(folder: BorrowedFd<'_>, parent: BorrowedFd<'_>, name: impl Arg + Copy) -> bool {
    // Nobody can be told; what is left lies in a folder for temporary files.
    let _ = emptied::empty(folder);
    remove_if_same(parent, name, folder)
}

/// Removes an empty folder if its name still leads to it.
fn remove_if_same(parent: BorrowedFd<'_>, name: impl Arg + Copy, folder: BorrowedFd<'_>) -> bool {
    let named = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    let is_same = match (named, rustix::fs::fstat(folder)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    };
    // A folder that takes its place just now is not lost: only an empty one goes.
    is_same && unlinkat(parent, name, AtFlags::REMOVEDIR).is_ok()
}

/// Makes the folder at `path`, with those above it, for files that are written over or gone on with
/// in later runs. Refuses one in which another user can have put a link or a file: root would write
/// where the link leads, or go on with results that are not its own.
///
/// As with `git`, a folder of the user who called `sudo` (`SUDO_UID`) is root's own, too. A folder
/// of one's own that its group may write is taken: many systems give each user a group.
///
/// # Errors
/// When root would come to it by another user's link. When the folder, or one above it, belongs to
/// another user than root and this process's, or everybody may write into it, unless it is above
/// the folder and sticky, as `/tmp`. When the system refuses. The error names the folder.
pub fn make_kept(path: &Path) -> io::Result<()> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    make_kept_of(path, &own_users()).map_err(named)
}

/// Whose files are this process's own: its user's, and those of the user who called `sudo`.
fn own_users() -> Vec<u32> {
    let own = rustix::process::geteuid().as_raw();
    let sudo = std::env::var("SUDO_UID")
        .ok()
        .and_then(|it| it.parse().ok());
    // Only root can be called by `sudo`; others set the variable as they like.
    match sudo {
        Some(user) if own == 0 => vec![own, user],
        _ => vec![own],
    }
}

fn make_kept_of(path: &Path, users: &[u32]) -> io::Result<()> {
    let part = |part: &Path| {
        let here = part.as_os_str().is_empty();
        PathBuf::from(if here { Path::new(".") } else { part })
    };
    // Nothing is made where another user leads.
    if let Some(there) = path.ancestors().map(part).find(|it| it.exists()) {
        check_kept(&there, users, there == path)?;
    }
    if rustix::process::geteuid().is_root() {
        named::make_guarded(path, users)?;
    } else {
        fs::create_dir_all(path)?;
    }
    check_kept(path, users, true)
}

/// Checks a folder that is there and those above it. `is_it`: the files are to lie in the folder
/// itself, so that nobody else may add to it; whoever can write into a sticky folder can.
fn check_kept(path: &Path, users: &[u32], is_it: bool) -> io::Result<()> {
    let path = path.canonicalize()?;
    let facts = path.metadata()?;
    let sticky = if is_it { STICKY } else { 0 };
    let mode = facts.mode() & !sticky;
    check_facts(&path, facts.uid(), mode, users, EVERYBODY_WRITES)?;
    for folder in path.ancestors().skip(1) {
        check(folder, &folder.metadata()?, users, EVERYBODY_WRITES)?;
    }
    Ok(())
}

/// A file that is written beside a path and then takes its place: it is there as a whole or not at
/// all. A link at the path is replaced, not followed. The name beside it cannot be guessed, so that
/// nobody can have put a link there whose target would be written over. What is dropped before its
/// end leaves nothing.
#[derive(Debug)]
pub struct NewFile {
    file: tempfile::NamedTempFile,
    path: PathBuf,
}

impl NewFile {
    /// Begins a file that is to stand at `path`.
    ///
    /// # Errors
    /// When the folder takes no file, or root would come to it by another user's link: see
    /// [`create`].
    pub fn create(path: &Path) -> io::Result<Self> {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        check_way(path)?;
        let file = tempfile::Builder::new()
            .prefix(".runslice-")
            .suffix(".new")
            // As for every new file, the mask of the process takes away what others may not do.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder.unwrap_or(Path::new(".")))?;
        let path = path.to_owned();
        Ok(Self { file, path })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// When a folder is there.
    pub fn put(self) -> io::Result<()> {
        let put = self.file.persist(&self.path);
        put.map(drop).map_err(|failed| failed.error)
    }
}

impl io::Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes `bytes` as a [`NewFile`] at `path`.
///
/// # Errors
/// When the folder takes no file, or `path` is a folder; then nothing is left beside it.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = NewFile::create(path)?;
    new.write_all(bytes)?;
    new.put()
}

/// In a sticky folder, entries can be replaced by their owners only.
const STICKY: u32 = 0o1000;
/// The group may write, or everybody.
const OTHERS_WRITE: u32 = 0o022;
const EVERYBODY_WRITES: u32 = 0o002;

/// Refuses a folder in which another user could replace an entry of one of `users`. `writers` are
/// the bits of the mode that let others write.
fn check(folder: &Path, facts: &Metadata, users: &[u32], writers: u32) -> io::Result<()> {
    check_facts(folder, facts.uid(), facts.mode(), users, writers)
}

fn check_facts(
    folder: &Path,
    owner: u32,
    mode: u32,
    users: &[u32],
    writers: u32,
) -> io::Result<()> {
    let why = if owner != 0 && !users.contains(&owner) {
        format!("belongs to user {owner}")
    } else if mode & writers != 0 && mode & STICKY == 0 {
        format!("can be written by others (mode {:o})", mode & 0o7777)
    } else {
        return Ok(());
    };
    let what = format!(
        "{} {why}, who could replace the files of this run",
        folder.display()
    );
    let refused = Advised::new(what, "name another folder");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, refused))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o7777
    }

    #[test]
    fn each_folder_is_new_and_only_its_owner_may_read_it() {
        let (one, two) = (OwnFolder::new().unwrap(), OwnFolder::new().unwrap());
        assert_ne!(one.path(), two.path());
        assert_eq!((mode(one.path()), mode(two.path())), (0o700, 0o700));
        let path = one.path().to_owned();
        fs::write(one.join("file"), "x").unwrap();
        drop(one);
        assert!(!path.exists());
    }

    #[test]
    fn a_link_in_the_folder_is_deleted_and_what_it_points_to_stays() {
        let kept = OwnFolder::new().unwrap();
        fs::write(kept.join("file"), "kept").unwrap();
        let gone = OwnFolder::new().unwrap();
        symlink(kept.path(), gone.join("link")).unwrap();
        drop(gone);
        assert_eq!(fs::read_to_string(kept.join("file")).unwrap(), "kept");
    }

    #[test]
    fn what_was_put_in_the_place_of_a_folder_stays() {
        let parent = OwnFolder::new().unwrap();
        let gone = OwnFolder::below(parent.path()).unwrap();
        let (path, moved) = (gone.path().to_owned(), parent.join("moved"));
        fs::write(gone.join("file"), "x").unwrap();
        fs::rename(&path, &moved).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("kept"), "kept").unwrap();
        drop(gone);
        assert_eq!(fs::read_to_string(path.join("kept")).unwrap(), "kept");
        assert!(!moved.exists(), "it is deleted where it was moved to");

        let gone = OwnFolder::below(parent.path()).unwrap();
        let link = gone.path().to_owned();
        fs::rename(&link, &moved).unwrap();
        symlink(&path, &link).unwrap();
        drop(gone);
        assert_eq!(fs::read_to_string(link.join("kept")).unwrap(), "kept");
        assert!(!moved.exists());
    }

    #[test]
    fn folders_of_any_depth_number_and_mode_are_deleted() {
        let parent = OwnFolder::new().unwrap();
        let gone = OwnFolder::below(parent.path()).unwrap();
        // Deeper than a path may be long, and than descriptors there are.
        let mut at = File::open(gone.path()).unwrap();
        for _ in 0..1100 {
            let mode = rustix::fs::Mode::from_raw_mode(0o700);
            rustix::fs::mkdirat(&at, "deep", mode).unwrap();
            let flags = rustix::fs::OFlags::RDONLY;
            at = rustix::fs::openat(&at, "deep", flags, rustix::fs::Mode::empty())
                .unwrap()
                .into();
        }
        for n in 0..5000 {
            fs::write(gone.join(&format!("file {n}")), "").unwrap();
        }
        for mode in [0o000, 0o500, 0o300] {
            let closed = gone.join(&format!("{mode:o}"));
            fs::create_dir_all(closed.join("below")).unwrap();
            fs::write(closed.join("below/file"), "x").unwrap();
            fs::set_permissions(closed.join("below"), Permissions::from_mode(mode)).unwrap();
            fs::set_permissions(&closed, Permissions::from_mode(mode)).unwrap();
        }
        drop(gone);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused_unless_it_is_sticky() {
        let parent = OwnFolder::new().unwrap();
        let shared = parent.join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
        let below = shared.join("below");
        for asked in [&shared, &below] {
            let error = OwnFolder::below(asked).unwrap_err().to_string();
            assert!(
                error.contains("can be written by others (mode 777)"),
                "{error}"
            );
            assert!(error.contains(&shared.display().to_string()), "{error}");
        }
        fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(mode(OwnFolder::below(&below).unwrap().path()), 0o700);
    }

    #[test]
    fn a_folder_behind_a_link_is_checked_where_the_link_leads() {
        let parent = OwnFolder::new().unwrap();
        let shared = parent.join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
        symlink(&shared, parent.join("link")).unwrap();
        let error = OwnFolder::below(&parent.join("link")).unwrap_err();
        assert!(
            error.to_string().contains("/shared can be written"),
            "{error}"
        );
    }

    #[test]
    fn only_folders_of_root_and_of_this_user_are_trusted() {
        let of = |owner, mode| check_facts(Path::new("/x"), owner, mode, &[1000], OTHERS_WRITE);
        assert!(of(0, 0o755).is_ok() && of(1000, 0o700).is_ok() && of(0, 0o1777).is_ok());
        let error = of(1001, 0o755).unwrap_err().to_string();
        assert!(error.contains("/x belongs to user 1001"), "{error}");
        assert!(of(1000, 0o775).is_err() && of(1000, 0o757).is_err());
    }

    #[test]
    fn a_folder_that_somebody_else_prepared_is_not_gone_on_with() {
        let parent = OwnFolder::new().unwrap();
        let planted = parent.join("results");
        make_kept(&planted.join("new")).unwrap();
        for (mode, taken) in [
            (0o755, true),
            (0o775, true),
            (0o777, false),
            (0o1777, false),
        ] {
            fs::set_permissions(&planted, Permissions::from_mode(mode)).unwrap();
            assert_eq!(make_kept(&planted).is_ok(), taken, "{mode:o}");
        }
        // Below a sticky folder it can have been made by nobody else than its owner.
        make_kept(&planted.join("new")).unwrap();
        fs::set_permissions(&planted, Permissions::from_mode(0o777)).unwrap();
        for name in ["new", "newer/runs"] {
            let error = make_kept(&planted.join(name)).unwrap_err().to_string();
            assert!(
                error.contains("results can be written by others (mode 777)"),
                "{error}"
            );
        }
        assert!(!planted.join("newer").exists(), "nothing is made there");

        let of = |owner, users: &[u32]| {
            check_facts(Path::new("/x"), owner, 0o755, users, EVERYBODY_WRITES)
        };
        assert!(of(0, &[1000]).is_ok() && of(1000, &[0, 1000]).is_ok());
        let error = of(1001, &[0, 1000]).unwrap_err().to_string();
        assert!(error.contains("/x belongs to user 1001"), "{error}");
    }

    #[test]
    fn a_file_takes_its_place_whole_and_no_link_is_followed() {
        let folder = OwnFolder::new().unwrap();
        let victim = folder.join("victim");
        fs::write(&victim, "kept").unwrap();
        let path = folder.join("results");
        symlink(&victim, &path).unwrap();
        write_whole(&path, b"results").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        assert_eq!(fs::read_to_string(&path).unwrap(), "results");
        // Whoever may read other new files may read this one.
        fs::write(folder.join("plain"), "").unwrap();
        assert_eq!(mode(&path), mode(&folder.join("plain")));

        fs::create_dir(folder.join("taken")).unwrap();
        write_whole(&folder.join("taken"), b"results").unwrap_err();
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 4);
    }
}
