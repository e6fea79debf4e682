//! Files below a folder that is known by its descriptor.
//!
//! A program may rename folders of the tree and put links in their place. So each path goes from a
//! descriptor, and the kernel follows no link on the way and no `..` above the folder. Links are
//! followed by `paths::resolve` alone, a part at a time.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, fstat, mkdirat, openat2};
use rustix::io::{Errno, Result};

/// A folder, whatever its name is by now.
#[derive(Debug)]
pub struct Anchor(OwnedFd);

const STAYS: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// To name a file without opening it.
const NAMED: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW);

/// The flags of open(2) that openat2(2) takes; it refuses others, which open(2) ignores.
/// `VALID_OPEN_FLAGS`, Linux 6.18, include/linux/fcntl.h.
const FLAGS: OFlags = OFlags::from_bits_retain(0o37_777_703);
/// Those that it takes beside `O_PATH`.
const PATH_FLAGS: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::PATH)
    .union(OFlags::CLOEXEC);

impl Anchor {
    /// The folder at a path of the supervisor's own, whose links are followed.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn at(path: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(CWD, path, flags, Mode::empty())?))
    }

    /// Opens the file at `path`.
    ///
    /// # Errors
    /// `ELOOP` of a link. As the kernel refuses it.
    pub fn open(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        let known = if flags.contains(OFlags::PATH) { PATH_FLAGS } else { FLAGS };
        let flags = flags & known | OFlags::CLOEXEC;
        let makes = flags.contains(OFlags::CREATE) || flags.contains(OFlags::TMPFILE);
        let mode = if makes { mode } else { Mode::empty() };
        openat2(&self.0, or_itself(path), flags, mode, STAYS)
    }

    /// Names a file without opening it; a link is named itself.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn name(&self, path: &Path) -> Result<OwnedFd> {
        self.open(path, NAMED, Mode::empty())
    }

    /// Looks up a file's attributes; of a link, those of the link itself.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn stat(&self, path: &Path) -> Result<Stat> {
        fstat(self.name(path)?)
    }

    /// Whether something has that name.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        self.name(path).is_ok()
    }

    /// Whether a folder has that name.
    #[must_use]
    pub fn has_folder(&self, path: &Path) -> bool {
        self.open(path, NAMED | OFlags::DIRECTORY, Mode::empty()).is_ok()
    }

    /// Where a link leads.
    ///
    /// # Errors
    /// `EINVAL` of what is no link. As the kernel refuses it.
    pub fn read_link(&self, path: &Path) -> Result<PathBuf> {
        let link = self.name(path)?;
        // An empty path of what is no link is said to be missing.
        let target = rustix::fs::readlinkat(link, "", Vec::new()).map_err(|it| match it {
            Errno::NOENT => Errno::INVAL,
            other => other,
        })?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// The folder in which a name is, and its last part, which must be changed there by calls that
    /// follow no link.
    ///
    /// # Errors
    /// `EBUSY` of the folder itself. As the kernel refuses it.
    pub fn folder_of<'a>(&self, path: &'a Path) -> Result<(OwnedFd, &'a OsStr)> {
        let last = path.file_name().ok_or(Errno::BUSY)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let flags = NAMED | OFlags::DIRECTORY;
        Ok((self.open(folder, flags, Mode::empty())?, last))
    }

    /// Makes a folder, with those above it.
    ///
    /// # Errors
    /// `ELOOP` or `ENOTDIR` if something else is in the way. As the kernel refuses it.
    pub fn make_folders(&self, path: &Path) -> Result<Self> {
        let mut at = Self(self.open(Path::new(""), NAMED | OFlags::DIRECTORY, Mode::empty())?);
        for part in path.components() {
            let Component::Normal(part) = part else {
                return Err(Errno::INVAL);
            };
            match mkdirat(&at.0, part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            let flags = NAMED | OFlags::DIRECTORY;
            at = Self(at.open(Path::new(part), flags, Mode::empty())?);
        }
        Ok(at)
    }

    /// Writes a file, and makes the folders above it. What has its name and is no file that can be
    /// written, such as a link, is replaced.
    ///
    /// # Errors
    /// `EISDIR` of a folder. As the kernel refuses it.
    pub fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let last = Path::new(path.file_name().ok_or(Errno::ISDIR)?);
        let folder = self.make_folders(path.parent().unwrap_or(Path::new("")))?;
        // A pipe or a socket must not be waited for.
        let write = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let found = folder.open(last, write, Mode::empty());
        let is_file = |it: &OwnedFd| {
            let mode = fstat(it).map(|it| it.st_mode);
            mode.is_ok_and(|it| rustix::fs::FileType::from_raw_mode(it).is_file())
        };
        let (file, before) = match found.ok().filter(is_file) {
            // Kept, so that whoever has it open reads what is true now.
            Some(file) => {
                let before = u64::try_from(fstat(&file)?.st_size).unwrap_or(0);
                (file, before)
            }
            None => {
                match rustix::fs::unlinkat(&folder.0, last, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(error) => return Err(error.into()),
                }
                let new = write | OFlags::CREATE | OFlags::EXCL;
                (folder.open(last, new, Mode::from_raw_mode(0o644))?, 0)
            }
        };
        let mut file = std::fs::File::from(file);
        file.write_all(content)?;
        // Emptied first, a file gives back a block that it takes again at once: on a file system
        // that tells its disk of each one, who does that waits for the disk.
        let len = content.len() as u64;
        if before > len {
            rustix::fs::ftruncate(&file, len)?;
        }
        Ok(())
    }

    /// Removes a file, or an empty folder; what is not there is no error.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn remove(&self, path: &Path, flags: AtFlags) -> Result<()> {
        let removed = self
            .folder_of(path)
            .and_then(|(folder, last)| rustix::fs::unlinkat(folder, last, flags));
        match removed {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    /// The path of the folder as it is now.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        path_of(self.0.as_fd()).unwrap_or_default()
    }
}

impl AsFd for Anchor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The name of what is open here.
///
/// # Errors
/// Without `/proc`.
pub fn path_of(fd: BorrowedFd<'_>) -> io::Result<PathBuf> {
    std::fs::read_link(link_to(fd))
}

/// A path that leads to what is open here, without a look at any name.
#[must_use]
pub fn link_to(fd: BorrowedFd<'_>) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    format!("/proc/self/fd/{}", fd.as_raw_fd()).into()
}

fn or_itself(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::FileExt as _;
    use std::os::unix::fs::symlink;

    /// One that leads outside is refused too, but by `RESOLVE_BENEATH`.
    #[test]
    fn a_link_on_the_way_is_refused_also_where_it_leads_below() {
        let folder = folder::OwnFolder::new().unwrap();
        fs::create_dir(folder.join("real")).unwrap();
        fs::write(folder.join("real/file"), "kept").unwrap();
        symlink("real", folder.join("link")).unwrap();
        symlink("real/file", folder.join("named")).unwrap();
        let anchor = Anchor::at(folder.path()).unwrap();
        let way = Path::new("link/file");
        let looped = Some(Errno::LOOP);
        assert_eq!(anchor.open(way, OFlags::RDONLY, Mode::empty()).err(), looped);
        assert_eq!(anchor.name(way).err(), looped);
        assert_eq!(anchor.stat(way).err(), looped);
        assert!(!anchor.has(way) && !anchor.has_folder(Path::new("link")));
        assert_eq!(anchor.read_link(way).err(), looped);
        // What must be a folder is not one.
        assert_eq!(anchor.folder_of(way).err(), Some(Errno::NOTDIR));
        assert_eq!(anchor.folder_of(Path::new("link/x/y")).err(), looped);
        assert_eq!(anchor.make_folders(Path::new("link/new")).err(), Some(Errno::NOTDIR));
        assert_eq!(anchor.remove(way, AtFlags::empty()), Err(Errno::NOTDIR));
        anchor.write(way, b"lost").unwrap_err();
        // In the last place a link is a file of its own.
        assert_eq!(anchor.open(Path::new("named"), OFlags::RDONLY, Mode::empty()).err(), looped);
        assert_eq!(anchor.read_link(Path::new("named")).unwrap(), Path::new("real/file"));
        anchor.write(Path::new("named"), b"new").unwrap();
        assert!(!folder.join("named").is_symlink());
        assert_eq!(fs::read_to_string(folder.join("real/file")).unwrap(), "kept");
        assert_eq!(fs::read_dir(folder.join("real")).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_written_again_has_the_new_content_alone_for_who_has_it_open_too() {
        let folder = folder::OwnFolder::new().unwrap();
        let anchor = Anchor::at(folder.path()).unwrap();
        let name = Path::new("stat");
        anchor.write(name, b"first").unwrap();
        let open = fs::File::open(folder.join("stat")).unwrap();
        for content in ["second, which is longer", "third", "", "fourth"] {
            anchor.write(name, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(folder.join("stat")).unwrap(), content);
            let mut seen = [0; 64];
            let len = open.read_at(&mut seen, 0).unwrap();
            assert_eq!(&seen[..len], content.as_bytes());
        }
    }
}
