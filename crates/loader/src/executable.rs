//! What an `execve()` runs: opened, looked at, and handed over as that very file. The kernel would
//! look up the path again, on the host, where another file may have that name.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat};

use crate::anchor;
use crate::paths::{PATH_MAX, path, resolve};
use crate::state::{CallContext, Errno, LoaderState, u64_at};

/// A file that may be executed. One that the user may not read is refused: no descriptor of it can
/// be handed over.
#[derive(Debug)]
pub struct Executable {
    /// The file; of a script, that of its interpreter.
    pub file: OwnedFd,
    /// Its device and inode.
    pub inode: (u64, u64),
    /// Words that stand for a script's first argument.
    pub words: Vec<Vec<u8>>,
    /// The name of the file that was named.
    pub name: String,
}

impl Executable {
    /// The file that a thread's call names.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn of_call(cx: &mut CallContext<'_>) -> Result<Self, Errno> {
        let by_fd = cx.call.nr == libc::SYS_execveat;
        let (fd, at, flags) = if by_fd {
            (cx.int(0), cx.arg(1), cx.int(4))
        } else {
            (libc::AT_FDCWD, cx.arg(0), 0)
        };
        if flags & !(libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW) != 0 {
            return Err(Errno(libc::EINVAL));
        }
        let name = cx.read_string(at, PATH_MAX)?;
        if name.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            let file = cx.duplicate(fd)?;
            let read = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let file = rustix::fs::open(anchor::link_to(file.as_fd()), read, Mode::empty())?;
            let shown = format!("/proc/self/fd/{fd}");
            return Self::of_file(cx.state, cx.call.tid, file, shown.into_bytes());
        }
        let found = path(cx, fd, at, flags & libc::AT_SYMLINK_NOFOLLOW == 0)?;
        let file = found.open(cx.state, READ, Mode::empty())?;
        // A script is told how it was named, as by the kernel, unless that is not enough.
        let name = match name.first() {
            Some(b'/') => name,
            _ if fd == libc::AT_FDCWD => name,
            _ => found.shown.into_os_string().into_encoded_bytes(),
        };
        Self::of_file(cx.state, cx.call.tid, file, name)
    }

    /// Looks at an open file: a program, or a script whose interpreter is one.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn of_file(
        state: &LoaderState,
        tid: i32,
        mut file: OwnedFd,
        mut named: Vec<u8>,
    ) -> Result<Self, Errno> {
        /// As in the kernel: Linux 6.18, fs/exec.c, `exec_binprm()`.
        const DEPTH_MAX: usize = 5;
        let mut words: Vec<Vec<u8>> = Vec::new();
        let name = Path::new(OsStr::from_bytes(&named)).file_name();
        let name = name.unwrap_or_default().to_string_lossy().into_owned();
        for _ in 0..=DEPTH_MAX {
            let stat = fstat(&file)?;
            let is_file = FileType::from_raw_mode(stat.st_mode).is_file();
            if !is_file || stat.st_mode & 0o111 == 0 {
                return Err(Errno(libc::EACCES));
            }
            let reader = File::from(file);
            let mut begin = [0; 256];
            let len = reader.read_at(&mut begin, 0)?;
            let Some(line) = begin[..len].strip_prefix(b"#!") else {
                return Ok(Self {
                    file: reader.into(),
                    inode: (stat.st_dev, stat.st_ino),
                    words,
                    name,
                });
            };
            let mut first = interpreter(line)?;
            let process = state.living(tid).map_or(0, |it| state.threads[it].process);
            let cwd = &state.processes[process].cwd;
            let found = resolve(state, tid, cwd, &first[0], true)?;
            file = found.open(state, READ, Mode::empty())?;
            let interpreter = first[0].clone();
            // The interpreter's own name was the first word; a script has its name there.
            first.push(named);
            first.extend(words.into_iter().skip(1));
            (words, named) = (first, interpreter);
        }
        Err(Errno(libc::ELOOP))
    }
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW);

/// The interpreter of a line after `#!`, and its argument if there is one. Linux 6.18,
/// `fs/binfmt_script.c`.
fn interpreter(line: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
    /// What the kernel reads of a file, after `#!`.
    const READ: usize = 256 - 2;
    let blank = |it: &u8| matches!(it, b' ' | b'\t');
    let end = line.iter().position(|it| matches!(it, b'\n' | 0));
    let line = &line[..end.unwrap_or(line.len())];
    let from = line.iter().position(|it| !blank(it)).ok_or(Errno(libc::ENOEXEC))?;
    let (name, rest) = match line[from..].iter().position(blank) {
        Some(len) => line[from..].split_at(len),
        // A name that was cut would be another one.
        None if end.is_none() && line.len() >= READ => return Err(Errno(libc::ENOEXEC)),
        None => (&line[from..], &[][..]),
    };
    let mut words = vec![name.to_vec()];
    let rest = rest.trim_ascii();
    if !rest.is_empty() {
        words.push(rest.to_vec());
    }
    Ok(words)
}

/// The arguments of a script: its interpreter's words, and all of the program's but the first. Text
/// and pointers, as they lie in memory at `at`, and where the pointers begin.
///
/// # Errors
/// `EFAULT`, `E2BIG`.
pub fn arguments(
    tid: i32,
    given: u64,
    words: &[Vec<u8>],
    at: u64,
) -> Result<(Vec<u8>, u64), Errno> {
    /// Far more than the kernel takes with strings of one byte.
    const COUNT_MAX: u64 = 1 << 18;
    let (mut bytes, mut pointers) = (Vec::new(), Vec::new());
    for word in words {
        pointers.push(at + bytes.len() as u64);
        bytes.extend_from_slice(word);
        bytes.push(0);
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    for n in 0_u64.. {
        let pointer = match given {
            0 => 0,
            given => u64_at(&crate::state::read(tid, given + 8 * n, 8)?, 0),
        };
        match (pointer, n) {
            (0, _) => break,
            (_, COUNT_MAX..) => return Err(Errno(libc::E2BIG)),
            (_, 0) => {}
            (pointer, _) => pointers.push(pointer),
        }
    }
    pointers.push(0);
    let begin = at + bytes.len() as u64;
    bytes.extend(pointers.into_iter().flat_map(u64::to_le_bytes));
    Ok((bytes, begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_script_is_split_as_the_kernel_splits_it() {
        let words = |line: &[u8]| {
            let words = interpreter(line).map_err(|it| it.0)?;
            Ok(words.into_iter().map(|it| String::from_utf8(it).unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(words(b"/bin/sh\nexit"), Ok(vec!["/bin/sh".into()]));
        assert_eq!(words(b" /bin/sh\t-e  -x \n"), Ok(vec!["/bin/sh".into(), "-e  -x".into()]));
        assert_eq!(words(b"/bin/sh"), Ok(vec!["/bin/sh".into()]));
        assert_eq!(words(b" \t\n/bin/sh"), Err(libc::ENOEXEC));
        assert_eq!(words(&[b'/'; 254]), Err(libc::ENOEXEC));
    }
}
