//! Pages of a map that are those of a file in memory, which a process of user space maps, too.
//!
//! That process must not run while a program does or while anybody looks at this memory: to Rust
//! its stores are changes from outside, between two uses. The loader keeps it so: a thread of the
//! process runs only in its turn, which is over when it stands at a system call again, and the
//! simulated machine answers that call while all threads stand.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fstat, seek};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};

use super::{Memory, Pages};

/// What is shared.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Pages that are a file's: address and bytes.
    ranges: Vec<(u64, u64)>,
    /// The file that the arena's pages are.
    pub(super) arena: Option<File>,
}

impl Shared {
    /// Whether no page is a file's.
    pub(super) const fn is_unused(&self) -> bool {
        self.ranges.is_empty() && self.arena.is_none()
    }
}

impl Memory {
    /// From now on the `len` bytes at `address`, whole pages of [`Memory::alloc_pages`] or of the
    /// arena, are the first ones of `file`. What is there is copied into the file first.
    ///
    /// # Errors
    /// If the file is shorter, or cannot be written or mapped. Then nothing has changed here.
    pub(crate) fn share(&mut self, address: u64, len: u64, file: &File) -> io::Result<()> {
        self.share_written(address, len, (file, len))
    }

    /// As [`Memory::share`], where only the first `written` bytes can be other than zero: to look
    /// at a page takes memory for it.
    fn share_written(
        &mut self,
        address: u64,
        len: u64,
        (file, written): (&File, u64),
    ) -> io::Result<()> {
        let page = rustix::param::page_size() as u64;
        let whole = address.is_multiple_of(page) && len.is_multiple_of(page) && len > 0;
        if !whole || Pages::SIZE != page {
            let why = "maps can be shared where a page has 4096 bytes";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        if u64::try_from(fstat(file)?.st_size).unwrap_or(0) < len {
            let why = "the file is shorter than the map";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let outside = || io::Error::from(io::ErrorKind::InvalidInput);
        let bytes = self.bytes(address, len.min(written)).ok_or_else(outside)?;
        for (at, page) in (0..).zip(bytes.chunks(Pages::SIZE as usize)) {
            // A page that nobody has written to takes no memory in the file either.
            if page.iter().any(|byte| *byte != 0) {
                file.write_all_at(page, at * Pages::SIZE)?;
            }
        }
        let place = ptr::with_exposed_provenance_mut(self.host_address(address) as usize);
        let (prot, flags) = (
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE,
        );
        // SAFETY: The pages lie in the region, which this value has mapped and unmaps as a whole;
        // no reference into it outlives this borrow. The file is long enough.
        unsafe { mmap(place, len as usize, prot, flags, file, 0) }?;
        self.shared.ranges.push((address, len));
        Ok(())
    }

    /// The arena's pages are those of `file`, which stays open for them.
    ///
    /// # Errors
    /// The errors of [`Memory::share`], and if there is no arena.
    pub(crate) fn share_arena(&mut self, file: File) -> io::Result<()> {
        let outside = || io::Error::from(io::ErrorKind::InvalidInput);
        let pages = self.arena.as_ref().ok_or_else(outside)?;
        let (first, bytes) = (pages.first(), pages.bytes());
        let written = pages.touched() * Pages::SIZE;
        self.share_written(first, bytes, (&file, written))?;
        self.shared.arena = Some(file);
        Ok(())
    }

    /// Pages of the arena that user space has touched count as allocated from now on, as those are
    /// for which a kernel has handled a fault.
    ///
    /// # Errors
    /// If the file does not say which they are.
    pub(crate) fn adopt_touched(&mut self) -> io::Result<()> {
        let (Some(file), Some(pages)) = (&self.shared.arena, &mut self.arena) else {
            return Ok(());
        };
        let mut at = 0;
        while at < pages.bytes() {
            let data = match seek(file, SeekFrom::Data(at)) {
                Ok(data) => data,
                // No more data.
                Err(rustix::io::Errno::NXIO) => break,
                Err(error) => return Err(error.into()),
            };
            let hole = seek(file, SeekFrom::Hole(data))?;
            pages.adopt(data / Pages::SIZE..hole.div_ceil(Pages::SIZE));
            at = hole.max(data + 1);
        }
        Ok(())
    }

    /// Takes a page of the arena from its file, so that it reads as zero on both sides. False if
    /// the arena has no file.
    pub(super) fn punch(&self, page: u64) -> bool {
        let (Some(file), Some(pages)) = (&self.shared.arena, &self.arena) else {
            return false;
        };
        let at = page.wrapping_sub(pages.first());
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // A file that has no holes is zeroed through the mapping.
        fallocate(file, flags, at, Pages::SIZE).is_ok()
    }

    /// Pages are a file's no more; they are zero.
    ///
    /// # Errors
    /// If the process may not map them.
    pub(super) fn unshare(&mut self, address: u64, len: u64) -> io::Result<()> {
        let ranges = &mut self.shared.ranges;
        let Some(at) = ranges.iter().position(|range| *range == (address, len)) else {
            return Ok(());
        };
        ranges.swap_remove(at);
        let place = ptr::with_exposed_provenance_mut(self.host_address(address) as usize);
        let (prot, flags) = (
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE,
        );
        // SAFETY: As in `share`.
        unsafe { mmap_anonymous(place, len as usize, prot, flags) }?;
        Ok(())
    }
}
