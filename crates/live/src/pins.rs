//! The data of an attached policy where other processes reach it: pinned maps, never the link.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::Error;

/// What the map of the policy's own counters is called below the folder.
pub const COUNTERS: &str = "counters";

/// The pins of one policy. They go away with this value; the maps live on as long as the policy.
#[derive(Debug)]
pub struct Pins {
    folder: PathBuf,
}

/// A data section of an attached policy, shared with its programs.
#[derive(Debug)]
pub struct Section {
    place: NonNull<u8>,
    size: usize,
    path: PathBuf,
}

impl Pins {
    /// The pins below `folder`, which is made and readable for the administrator only.
    pub(crate) fn below(folder: &Path) -> Result<Self, Error> {
        use std::os::unix::fs::DirBuilderExt as _;

        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(Error::file(folder))?;
        Ok(Self {
            folder: folder.to_path_buf(),
        })
    }

    /// Removes what a killed process left below `folder`. Returns whether there was something.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_left(folder: &Path) -> io::Result<bool> {
        match fs::remove_dir_all(folder) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        // The next command finds what could not be removed, and tries again.
        let _ = Self::remove_left(&self.folder);
    }
}

/// What the map of `section` is called; a BPF file system has no dots in its names.
#[must_use]
pub fn name(section: &str) -> String {
    section.trim_start_matches('.').replace('.', "_")
}

/// The policy's own counters, summed over the CPUs, of which there are `count`.
///
/// # Errors
/// When the map is not there, or this process may not read it.
pub fn counters(folder: &Path, count: usize) -> Result<Vec<u64>, Error> {
    let each = counters_by_cpu(folder, count)?.into_iter();
    Ok(each.map(|values| values.into_iter().sum()).collect())
}

/// The policy's own counters, of which there are `count`, each with its value on every CPU.
///
/// # Errors
/// The errors of [`counters`].
pub fn counters_by_cpu(folder: &Path, count: usize) -> Result<Vec<Vec<u64>>, Error> {
    let path = folder.join(COUNTERS);
    let error = |source| Error::Pin {
        path: path.clone(),
        source,
    };
    let map = MapHandle::from_pinned_path(&path).map_err(error)?;
    let count = u32::try_from(count)
        .unwrap_or(u32::MAX)
        .min(map.max_entries());
    (0..count)
        .map(|index| by_cpu(&map, index).map_err(error))
        .collect()
}

/// One counter over all CPUs.
///
/// # Errors
/// When the map cannot be read.
pub fn sum(map: &impl MapCore, index: u32) -> Result<u64, libbpf_rs::Error> {
    Ok(by_cpu(map, index)?.into_iter().sum())
}

/// One counter on every CPU.
fn by_cpu(map: &impl MapCore, index: u32) -> Result<Vec<u64>, libbpf_rs::Error> {
    let values = map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)?;
    let numbers = values.into_iter().flatten().map(|bytes| {
        let bytes = bytes.first_chunk::<8>().copied().unwrap_or_default();
        u64::from_ne_bytes(bytes)
    });
    Ok(numbers.collect())
}

impl Section {
    /// Opens `section`, such as `.data.knobs`, of the policy whose pins are below `folder`.
    ///
    /// # Errors
    /// When it is not pinned there, this process may not, or the kernel does not share it.
    pub fn open(folder: &Path, section: &str) -> Result<Self, Error> {
        let path = folder.join(name(section));
        let map = MapHandle::from_pinned_path(&path).map_err(|source| Error::Pin {
            path: path.clone(),
            source,
        })?;
        let size = map.value_size() as usize;
        // SAFETY: a new mapping at an address that the kernel chooses; the file descriptor is
        // open, and the result is checked before it is used.
        #[expect(unsafe_code, reason = "maps are shared through mmap only")]
        let place = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_fd().as_raw_fd(),
                0,
            )
        };
        if place == libc::MAP_FAILED {
            return Err(Error::file(&path)(io::Error::last_os_error()));
        }
        let place = NonNull::new(place.cast()).ok_or_else(|| Error::File {
            path: path.clone(),
            source: io::ErrorKind::InvalidData.into(),
        })?;
        Ok(Self { place, size, path })
    }

    /// The variable of `size` bytes at `offset`, as it lies in memory, read at once.
    ///
    /// # Errors
    /// When it is not in the section, or no number of 1, 2, 4 or 8 bytes at its own multiple.
    pub fn read(&self, offset: usize, size: usize) -> Result<Vec<u8>, Error> {
        let place = self.variable(offset, size)?;
        // SAFETY: `variable` has checked that the bytes lie in the mapping, which lives as long
        // as `self`, and are aligned. Others change them through atomic accesses or through the
        // kernel's programs, so that only atomics may look at them.
        #[expect(unsafe_code, reason = "the memory is shared with the kernel")]
        let bytes = unsafe {
            match size {
                1 => vec![AtomicU8::from_ptr(place).load(Ordering::Relaxed)],
                2 => AtomicU16::from_ptr(place.cast())
                    .load(Ordering::Relaxed)
                    .to_ne_bytes()
                    .to_vec(),
                4 => AtomicU32::from_ptr(place.cast())
                    .load(Ordering::Relaxed)
                    .to_ne_bytes()
                    .to_vec(),
                _ => AtomicU64::from_ptr(place.cast())
                    .load(Ordering::Relaxed)
                    .to_ne_bytes()
                    .to_vec(),
            }
        };
        Ok(bytes)
    }

    /// Writes a variable at once: no program of the policy sees a half of it, and no other
    /// variable of the section is touched.
    ///
    /// # Errors
    /// The errors of [`Section::read`].
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        let place = self.variable(offset, bytes.len())?;
        // SAFETY: as in `read`.
        #[expect(unsafe_code, reason = "the memory is shared with the kernel")]
        unsafe {
            match *bytes {
                [a] => AtomicU8::from_ptr(place).store(a, Ordering::Relaxed),
                [a, b] => AtomicU16::from_ptr(place.cast())
                    .store(u16::from_ne_bytes([a, b]), Ordering::Relaxed),
                [a, b, c, d] => AtomicU32::from_ptr(place.cast())
                    .store(u32::from_ne_bytes([a, b, c, d]), Ordering::Relaxed),
                _ => {
                    let number = bytes.first_chunk().copied().unwrap_or_default();
                    AtomicU64::from_ptr(place.cast())
                        .store(u64::from_ne_bytes(number), Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    /// Where the variable lies, if it lies in the section and can be accessed at once.
    fn variable(&self, offset: usize, size: usize) -> Result<*mut u8, Error> {
        let ends = offset.checked_add(size).filter(|end| *end <= self.size);
        if ends.is_none() || !matches!(size, 1 | 2 | 4 | 8) || !offset.is_multiple_of(size) {
            return Err(Error::Place {
                path: self.path.clone(),
                offset,
                size,
            });
        }
        // SAFETY: the offset was found to lie in the mapping.
        #[expect(unsafe_code, reason = "the memory is shared with the kernel")]
        let place = unsafe { self.place.add(offset) };
        Ok(place.as_ptr())
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this place and size and is used no more.
        #[expect(unsafe_code, reason = "the memory is shared with the kernel")]
        unsafe {
            libc::munmap(self.place.as_ptr().cast(), self.size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_dots() {
        assert_eq!(name(".data.knobs"), "data_knobs");
        assert_eq!(name(".bss"), "bss");
    }

    #[test]
    fn what_is_not_pinned_is_an_error_that_names_the_place() {
        let folder = Path::new("/no/such/runslice");
        let error = Section::open(folder, ".data.knobs")
            .unwrap_err()
            .to_string();
        assert!(error.contains("/no/such/runslice/data_knobs"), "{error}");
        let error = counters(folder, 3).unwrap_err().to_string();
        assert!(error.contains("/no/such/runslice/counters"), "{error}");
        assert!(!Pins::remove_left(folder).unwrap());
    }

    /// Anonymous memory in place of a map: the access is the same.
    fn section(size: usize) -> Section {
        // SAFETY: a new private mapping at an address that the kernel chooses.
        #[expect(unsafe_code, reason = "the test needs a mapping as `Section` has one")]
        let place = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(place, libc::MAP_FAILED);
        Section {
            place: NonNull::new(place.cast()).unwrap(),
            size,
            path: PathBuf::from("map"),
        }
    }

    #[test]
    fn a_variable_is_written_alone_and_read_back() {
        let section = section(32);
        section.write(8, &7_u64.to_ne_bytes()).unwrap();
        section.write(4, &[1, 2, 3, 4]).unwrap();
        section.write(2, &[5, 6]).unwrap();
        section.write(1, &[9]).unwrap();
        assert_eq!(section.read(8, 8).unwrap(), 7_u64.to_ne_bytes());
        assert_eq!(
            section.read(0, 8).unwrap(),
            [0, 9, 5, 6, 1, 2, 3, 4],
            "neighbours stay"
        );
        assert_eq!(section.read(2, 2).unwrap(), [5, 6]);
        assert_eq!(section.read(1, 1).unwrap(), [9]);
    }

    #[test]
    fn a_variable_outside_of_the_section_or_across_a_word_is_refused() {
        let section = section(32);
        for (offset, size) in [(32, 8), (28, 8), (4, 8), (0, 3), (0, 0), (usize::MAX, 1)] {
            let error = section.read(offset, size).unwrap_err().to_string();
            assert!(error.contains(&format!("{size} bytes")), "{error}");
        }
        section.write(1, &[0; 2]).unwrap_err();
    }
}
