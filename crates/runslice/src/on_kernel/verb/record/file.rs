//! The file of a recording, which is there as a whole or not at all.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use model::Advised;

use crate::output;

/// Where a recording goes.
#[derive(Debug)]
pub struct ResultFile {
    path: PathBuf,
    folder: PathBuf,
}

impl ResultFile {
    /// Looks whether `path` can be written, before the work for it is done.
    ///
    /// # Errors
    /// When it cannot.
    pub fn at(path: &Path) -> anyhow::Result<Self> {
        if output::is_standard(path) {
            bail!(Advised::new(
                "a recording takes the place of a file, which standard output is not",
                "name a file with -o",
            ));
        }
        let cannot = || format!("cannot write {}", path.display());
        if path.file_name().is_none() {
            bail!("{}: that is no name of a file", cannot());
        }
        if fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
            bail!("{}: it is there and no file", cannot());
        }
        let folder = match path.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
            Some(folder) => folder,
            None => Path::new("/"),
        };
        let file = Self {
            path: path.to_owned(),
            folder: folder.to_owned(),
        };
        let beside = file.beside();
        let cannot = model::CannotWrite::at(path.display());
        create(&beside).map_err(&cannot)?;
        fs::remove_file(&beside).map_err(&cannot)?;
        Ok(file)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that it is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn beside(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.folder
            .join(format!(".{name}.{}.new", std::process::id()))
    }

    /// Writes it with `write`, which returns how many bytes it has. What could not be written to
    /// its end does not stay, and what was there before does.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(self, write: impl FnOnce(&mut File) -> io::Result<u64>) -> anyhow::Result<u64> {
        let beside = self.beside();
        let whole = || {
            let mut file = create(&beside)?;
            let bytes = write(&mut file)?;
            give_to_user(&file);
            drop(file);
            fs::rename(&beside, &self.path)?;
            Ok(bytes)
        };
        let written: io::Result<u64> = whole();
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        Ok(written.map_err(model::CannotWrite::at(self.path.display()))?)
    }
}

/// A new file that only its owner reads: the kernel's addresses are in it.
fn create(path: &Path) -> io::Result<File> {
    folder::check_way(path)?;
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Whoever became root for the recording alone wants to simulate it without.
fn give_to_user(file: &File) {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    if let (Some(user), Some(group)) = (number("SUDO_UID"), number("SUDO_GID")) {
        // Where it cannot be given away it stays root's.
        let _ = std::os::unix::fs::fchown(file, Some(user), Some(group));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_is_whole_or_what_it_was() {
        let folder = folder::OwnFolder::new().unwrap();
        let path = folder.join("t.dat");
        fs::write(&path, "before").unwrap();
        let broken = ResultFile::at(&path).unwrap().write(|to| {
            to.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        let error = format!("{:#}", broken.unwrap_err());
        assert!(error.contains("t.dat"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        let written = ResultFile::at(&path).unwrap().write(|to| {
            to.write_all(b"whole")?;
            Ok(5)
        });
        assert_eq!(written.unwrap(), 5);
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing beside it"
        );
    }

    #[test]
    fn what_cannot_be_written_is_said_before_the_work() {
        let folder = folder::OwnFolder::new().unwrap();
        for (path, want) in [
            (folder.path().to_owned(), "no file"),
            (PathBuf::from("/dev/null"), "no file"),
            (folder.join("nowhere/t.dat"), "nowhere/t.dat"),
            (PathBuf::from("/"), "no name"),
        ] {
            let error = format!("{:#}", ResultFile::at(&path).unwrap_err());
            assert!(error.contains(want), "{error}");
        }
    }
}
