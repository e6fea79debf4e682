//! Files that the user names. Those that are read whole have a greatest length, so that a device
//! without an end is an error.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use model::Advised;

use crate::services::Services;

/// Most bytes of what people write: workloads, plans, profiles.
pub const WRITTEN: u64 = 64 << 20;
/// Most bytes of an object, a bundle, or a scheduler's binary.
pub const OBJECT: u64 = 1 << 30;
/// Most bytes of results that must be read whole, which take up to 20 times their length: those
/// that have not one run in each line.
pub const RESULTS: u64 = 256 << 20;

/// The name of standard input.
pub const STANDARD: &str = "-";

/// What `path` is called in messages and tables.
#[must_use]
pub fn shown(path: &Path) -> String {
    if path == Path::new(STANDARD) {
        return "stdin".to_owned();
    }
    path.display().to_string()
}

/// Reads a file of at most `most` bytes; of a device at most [`WRITTEN`].
///
/// # Errors
/// When it cannot be read or is longer; the message names it.
pub fn bytes(services: &Services<'_>, path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    let cannot = model::CannotRead::at(path.display());
    let file = services.open(path).map_err(&cannot)?;
    let has_end = file.bytes.is_some();
    let most = if has_end { most } else { most.min(WRITTEN) };
    let mut bytes = Vec::new();
    allocator::or_error(|| file.content.take(most + 1).read_to_end(&mut bytes)).map_err(&cannot)?;
    ensure!(
        bytes.len() as u64 <= most,
        "{}: longer than {} MiB, the most that is read",
        path.display(),
        most >> 20
    );
    Ok(bytes)
}

/// Reads a file of at most `most` bytes as text.
///
/// # Errors
/// As [`bytes`], and when it is not UTF-8.
pub fn text(services: &Services<'_>, path: &Path, most: u64) -> anyhow::Result<String> {
    let text = String::from_utf8(bytes(services, path, most)?);
    text.with_context(|| {
        Advised::new(
            format!("cannot read {}: it is no text (UTF-8)", path.display()),
            "name a text file",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::tests::FILES;

    #[test]
    fn a_file_without_an_end_is_an_error_that_names_it() {
        for device in ["/dev/zero", "/dev/urandom"] {
            let error = text(&FILES, Path::new(device), RESULTS)
                .unwrap_err()
                .to_string();
            let want = format!("{device}: longer than 64 MiB, the most that is read");
            assert_eq!(error, want);
        }
        assert_eq!(text(&FILES, Path::new("/dev/null"), 0).unwrap(), "");
        let error = format!("{:#}", bytes(&FILES, Path::new("/no/such"), 1).unwrap_err());
        assert!(
            error.starts_with("cannot read /no/such: No such file"),
            "{error}"
        );
    }
}
