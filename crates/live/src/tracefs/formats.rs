//! The kernel's descriptions of its events and pages, as a `trace.dat` has them.

use std::fs;
use std::path::Path;

use super::events::Event;
use super::read_up_to;
use crate::Error;

/// Most bytes of one description.
const TEXT: u64 = 1 << 20;
/// Most of ftrace's own events; kernels have about twenty.
const FTRACE: usize = 256;
/// The sizes that a page of a trace buffer may have.
const PAGES: std::ops::RangeInclusive<usize> = 4096..=1 << 20;

/// The descriptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Formats {
    pub header_page: Vec<u8>,
    pub header_event: Vec<u8>,
    /// Of ftrace's own events.
    pub ftrace: Vec<Vec<u8>>,
    /// By system.
    pub systems: Vec<(String, Vec<Vec<u8>>)>,
    /// Bytes of a page.
    pub page: usize,
    /// Where a page's records begin.
    pub data: usize,
    /// Bytes of the kernel's `long`.
    pub long: u8,
}

impl Formats {
    /// Reads those of `events`, and those that every trace has.
    ///
    /// # Errors
    /// When one cannot be read, or the kernel's pages are not as they can be.
    pub fn read(tracefs: &Path, events: &[Event]) -> Result<Self, Error> {
        let read = |path: &Path| read_up_to(path, TEXT).map_err(Error::file(path));
        let all = tracefs.join("events");
        let header = all.join("header_page");
        let header_page = read(&header)?;
        let (page, data, long) = page_of(&header_page).ok_or_else(|| Error::TracePage {
            path: header.clone(),
        })?;
        let mut systems: Vec<(String, Vec<Vec<u8>>)> = Vec::new();
        for event in events {
            let text = read(&event.folder(tracefs).join("format"))?;
            match systems.iter_mut().find(|(name, _)| *name == event.system) {
                Some((_, formats)) => formats.push(text),
                None => systems.push((event.system.clone(), vec![text])),
            }
        }
        // They may not be read everywhere, and no event of ours needs them.
        let mut ftrace = Vec::new();
        let entries = fs::read_dir(all.join("ftrace")).into_iter().flatten();
        for entry in entries.flatten().take(FTRACE) {
            ftrace.extend(read_up_to(&entry.path().join("format"), TEXT).ok());
        }
        ftrace.sort();
        Ok(Self {
            header_page,
            header_event: read(&all.join("header_event"))?,
            ftrace,
            systems,
            page,
            data,
            long,
        })
    }
}

/// What a line of a description declares: in words, and where it stands and how long it is.
pub fn declared(line: &str) -> Option<(&str, usize, usize)> {
    let (declaration, places) = line.trim().strip_prefix("field:")?.split_once(';')?;
    let number = |key: &str| {
        let part = places.split(';').find_map(|it| it.trim().strip_prefix(key));
        part?.parse().ok()
    };
    Some((declaration.trim(), number("offset:")?, number("size:")?))
}

/// The size of a page, where its records begin, and the size of a `long`, from the places of a
/// page's parts.
fn page_of(header: &[u8]) -> Option<(usize, usize, u8)> {
    let header = String::from_utf8_lossy(header);
    let place = |field: &str| {
        let (_, offset, size) = header
            .lines()
            .filter_map(declared)
            .find(|(declaration, ..)| declaration.split_whitespace().next_back() == Some(field))?;
        Some((offset, size))
    };
    let (data, size) = place("data")?;
    let page = data.checked_add(size)?;
    let (_, long) = place("commit")?;
    let is_sound = PAGES.contains(&page) && page.is_power_of_two() && matches!(long, 4 | 8);
    is_sound.then_some((page, data, u8::try_from(long).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_page_is_read_from_the_kernels_words() {
        let header = |size: usize| {
            format!(
                "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                 \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                 \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                 \tfield: char data;\toffset:16;\tsize:{size};\tsigned:0;\n"
            )
        };
        assert_eq!(page_of(header(4080).as_bytes()), Some((4096, 16, 8)));
        assert_eq!(page_of(header(65520).as_bytes()), Some((65536, 16, 8)));
        for bad in [0, 4079, 1 << 40, usize::MAX] {
            assert_eq!(page_of(header(bad).as_bytes()), None, "{bad}");
        }
        assert_eq!(page_of(b"\xff\xfe"), None);
        assert_eq!(page_of(b""), None);
    }
}
