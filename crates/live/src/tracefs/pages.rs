//! The way of a CPU's pages from the kernel to a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// Bytes that a pipe between two files holds, if the system allows it.
const PIPE: usize = 1 << 20;

/// The pages of one CPU.
#[derive(Debug)]
pub struct CpuPages {
    /// Its number.
    pub cpu: u32,
    /// `None`: all was taken.
    from: Option<File>,
    /// A file without a name, which goes away with the process.
    pub to: File,
    /// Bytes in it.
    pub bytes: u64,
    /// Bytes of a page.
    page: usize,
}

/// Moves pages without looking at them.
#[derive(Debug)]
pub struct Mover {
    out_of: OwnedFd,
    into: OwnedFd,
    /// Bytes that are asked for at once: whole pages.
    portion: usize,
    /// The kernel does not splice these files.
    reads: bool,
    buffer: Vec<u8>,
}

impl CpuPages {
    /// Opens the raw pages at `path`, for a file in `folder`.
    pub fn open(cpu: u32, path: &Path, folder: &Path, page: usize) -> io::Result<Self> {
        let flags = libc::O_NONBLOCK;
        let from = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        Ok(Self {
            cpu,
            from: Some(from),
            to: tempfile::tempfile_in(folder)?,
            bytes: 0,
            page,
        })
    }
}

impl CpuPages {
    /// Closes what was read: as long as it is open, the kernel does not remove the buffer.
    pub fn close(&mut self) {
        self.from = None;
    }
}

impl Mover {
    /// For pages of so many bytes.
    pub fn new(page: usize) -> io::Result<Self> {
        let (out_of, into) = pipe_with(PipeFlags::CLOEXEC)?;
        // Whoever may not have a large one has one of the usual size.
        let size = fcntl_setpipe_size(&into, PIPE).unwrap_or(1 << 16);
        Ok(Self {
            out_of,
            into,
            portion: (size / page).max(1) * page,
            reads: size < page,
            buffer: vec![0; page],
        })
    }

    /// Moves what is there: whole pages only, unless `all`.
    ///
    /// # Errors
    /// When a file cannot be read or written. [`io::ErrorKind::StorageFull`]: the pages that were
    /// under way are lost.
    pub fn take(&mut self, pages: &mut CpuPages, all: bool) -> io::Result<()> {
        if !self.reads {
            self.splice_whole(pages)?;
        }
        if self.reads || all {
            self.read_rest(pages)?;
        }
        Ok(())
    }

    fn splice_whole(&mut self, pages: &mut CpuPages) -> io::Result<()> {
        let Some(from) = &pages.from else {
            return Ok(());
        };
        loop {
            let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
            let got = match splice(from, None, &self.into, None, self.portion, flags) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                Ok(got) => got,
                Err(Errno::INTR) => continue,
                Err(Errno::INVAL | Errno::NOSYS) if pages.bytes == 0 => {
                    self.reads = true;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            let mut left = got;
            while left > 0 {
                match splice(&self.out_of, None, &pages.to, None, left, SpliceFlags::MOVE) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(moved) => left -= moved,
                    Err(Errno::INTR) => {}
                    Err(error) => {
                        // What cannot be written must not come out for the next CPU.
                        let _ = io::copy(
                            &mut (&File::from(self.out_of.try_clone()?)).take(left as u64),
                            &mut io::sink(),
                        );
                        return Err(error.into());
                    }
                }
            }
            pages.bytes += got as u64;
        }
    }

    /// Reads a page at a time, the last one too, which is not full.
    fn read_rest(&mut self, pages: &mut CpuPages) -> io::Result<()> {
        let Some(mut from) = pages.from.as_ref() else {
            return Ok(());
        };
        loop {
            self.buffer.fill(0);
            match from.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            // Whole pages, whatever came: readers count on it.
            (&pages.to).write_all(&self.buffer)?;
            pages.bytes += pages.page as u64;
        }
    }
}
