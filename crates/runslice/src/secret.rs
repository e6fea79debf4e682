//! Keys of draws, which whoever writes candidates does not know: docs/evaluate.md.

use std::fs::File;
use std::io::Read as _;
use std::ops::RangeInclusive;

use model::Advised;
use sha2::{Digest as _, Sha256};

use crate::exit::UsageError;

/// Fewest and most bytes of a key.
const KEY_BYTES: RangeInclusive<usize> = 16..=4096;

/// The SHA-256 of a key, in hexadecimal, as `sha256sum` gives it.
#[must_use]
pub fn sha256(key: &[u8]) -> String {
    hex(&Sha256::digest(key))
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the descriptor is open for reading. The way through `/proc` opens a pipe's other end.
fn is_readable(number: u32) -> bool {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"));
    let info = info.unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|it| u32::from_str_radix(it.trim(), 8).ok());
    // `O_ACCMODE` is 3, `O_WRONLY` 1 (open(2)).
    flags.is_some_and(|flags| flags & 3 != 1)
}

/// Reads the key from an open file descriptor. A line's end is none of it.
///
/// # Errors
/// When it is not open, or has too few or too many bytes.
pub fn read(number: u32) -> anyhow::Result<Vec<u8>> {
    let path = format!("/proc/self/fd/{number}");
    let mut key = Vec::new();
    let file = File::open(&path).ok().filter(|_| is_readable(number));
    let file = file.ok_or_else(|| {
        UsageError::new(Advised::new(
            format!("`--secret {number}`: no such file descriptor is open for reading"),
            format!("open it: write `{number}< key` behind the words of the command"),
        ))
    })?;
    let most = *KEY_BYTES.end() as u64 + 2;
    file.take(most)
        .read_to_end(&mut key)
        .map_err(model::CannotRead::at(path))?;
    while key.last().is_some_and(|byte| b"\r\n".contains(byte)) {
        key.pop();
    }
    if KEY_BYTES.contains(&key.len()) {
        return Ok(key);
    }
    let (least, most) = KEY_BYTES.into_inner();
    let message = Advised::new(
        format!("the key has {} bytes", key.len()),
        format!("it has {least} to {most}: head -c 32 /dev/urandom | base64 > key"),
    );
    Err(UsageError::new(message).into())
}
