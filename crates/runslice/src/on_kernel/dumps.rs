//! The kernel's dumps of ejected policies, as files.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use live::Dump;

use crate::on_kernel::attach::Attaching;
use crate::on_kernel::session;

/// Dumps of one policy that are kept in one folder at most.
const DUMPS: u32 = 1000;

/// Listens for the dump of the policy that is ejected next.
pub fn listen(attaching: &Attaching<'_>) -> Option<Dump> {
    match Dump::listen(attaching.root, session::TRACE) {
        Ok(dump) => Some(dump),
        Err(error) => {
            attaching.say(&format!("an ejection would leave no dump: {error}"));
            None
        }
    }
}

/// Saves the dump of `policy` and says where it is.
pub fn keep(
    attaching: &Attaching<'_>,
    dump: &Dump,
    folder: &Path,
    policy: &str,
) -> Option<PathBuf> {
    let kept = dump.text().map_err(anyhow::Error::from).and_then(|text| {
        if text.is_empty() {
            return Ok(None);
        }
        save(folder, policy, &text).map(Some)
    });
    match kept {
        Ok(Some(path)) => {
            attaching.say(&format!("the kernel's dump is in {}", path.display()));
            Some(path)
        }
        Ok(None) => {
            attaching.say("the kernel gave no dump");
            None
        }
        Err(error) => {
            attaching.say(&format!(
                "the kernel's dump is lost: {}",
                crate::exit::in_full(&error)
            ));
            None
        }
    }
}

/// Takes the trace buffer away; says so if that does not come to an end.
pub fn forget(attaching: &Attaching<'_>, dump: Option<Dump>) {
    if let Some(Err(error)) = dump.map(Dump::remove) {
        attaching.say(&error.to_string());
    }
}

/// Saves a dump of `policy` as a new file in `folder`, or where all may write if it cannot be
/// written there.
fn save(folder: &Path, policy: &str, text: &str) -> anyhow::Result<PathBuf> {
    let name: String = policy
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
            _ => '_',
        })
        .collect();
    let spare = std::env::temp_dir();
    let first = create(folder, &name).or_else(|_| create(&spare, &name));
    let (path, mut file) = first.with_context(|| {
        format!(
            "cannot write into {} or {}",
            folder.display(),
            spare.display()
        )
    })?;
    file.write_all(text.as_bytes())
        .map_err(model::CannotWrite::at(path.display()))?;
    Ok(path)
}

/// Makes a file that was not there: no dump overwrites another, and no link is followed.
fn create(folder: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    for number in 1..=DUMPS {
        let path = folder.join(format!("runslice-{name}-{number}.dump"));
        match folder::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => return Ok((path, file)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_dump_overwrites_another() {
        let name = format!("runslice-dumps-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let first = save(&folder, "a/b:c=1", "one").unwrap();
        let second = save(&folder, "a/b:c=1", "two").unwrap();
        assert_eq!(first.file_name().unwrap(), "runslice-a_b_c_1-1.dump");
        assert_eq!(second.file_name().unwrap(), "runslice-a_b_c_1-2.dump");
        assert_eq!(std::fs::read_to_string(first).unwrap(), "one");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
