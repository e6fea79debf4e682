//! The compiler's time, memory and words have an end.

use std::io::{self, Read};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, kill_process_group, prlimit, waitid,
};

/// The most that one compilation may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    /// Real time. The largest published schedulers take some seconds.
    pub patience: Duration,
    /// CPU time in seconds.
    pub cpu_s: u64,
    /// Address space in bytes. The compiler's libraries take 300 MB of it, a large source as much.
    pub memory: u64,
    /// Bytes of the object.
    pub object: u64,
    /// Bytes of messages that are kept.
    pub said: usize,
}

pub(crate) const MOST: Most = Most {
    patience: Duration::from_secs(120),
    cpu_s: 60,
    memory: 2 << 30,
    object: 64 << 20,
    said: 64 << 10,
};

/// How a compiler ended.
#[derive(Debug)]
pub(crate) struct CompilerEnd {
    /// None if it was stopped because its time was over.
    pub status: Option<ExitStatus>,
    /// Its output, or the first byte too many.
    pub object: Vec<u8>,
    /// What it said.
    pub said: String,
}

/// Waits for `child`, which has a process group of its own and both its outputs as pipes.
///
/// # Errors
/// When the system refuses; the child has ended then.
pub(crate) fn until_end(mut child: Child, most: &Most) -> io::Result<CompilerEnd> {
    let limited = limit(&child, most);
    let (out, err) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let object = scope.spawn(|| beginning(out, most.object));
        let said = scope.spawn(|| words(err, most.said));
        let ended = limited.and_then(|()| wait(&child, most.patience));
        // Whatever it has started ends with it, and so do the pipes.
        let group = Pid::from_child(&child);
        let _ = kill_process_group(group, Signal::KILL);
        let status = child.wait()?;
        let joined = "a reader does not panic";
        let (object, said) = (object.join().expect(joined)?, said.join().expect(joined)?);
        Ok(CompilerEnd {
            status: ended?.then_some(status),
            object,
            said,
        })
    })
}

/// It has no file to write, so that the length of files is 0.
fn limit(child: &Child, most: &Most) -> io::Result<()> {
    let pid = Pid::from_child(child);
    for (resource, limit) in [
        (Resource::As, most.memory),
        (Resource::Cpu, most.cpu_s),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
        (Resource::Nofile, 256),
    ] {
        let own = rustix::process::getrlimit(resource);
        let limit = own.maximum.map_or(limit, |maximum| maximum.min(limit));
        let both = Rlimit {
            current: Some(limit),
            maximum: Some(limit),
        };
        match prlimit(Some(pid), resource, both) {
            // It has ended already.
            Ok(_) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether the child ends within `patience`. It stays a zombie, so that its group is still its own.
fn wait(child: &Child, patience: Duration) -> io::Result<bool> {
    let began = Instant::now();
    let id = WaitId::Pid(Pid::from_child(child));
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    while waitid(id.clone(), options)?.is_none() {
        if began.elapsed() >= patience {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}

/// At most `most` bytes and one more. Then the pipe is closed, which ends its writer.
fn beginning(from: Option<impl Read>, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(most + 1).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The first `most` bytes; the rest is read, so that its writer goes on, and counted.
fn words(from: Option<impl Read>, most: usize) -> io::Result<String> {
    let Some(mut from) = from else {
        return Ok(String::new());
    };
    let mut kept = Vec::new();
    (&mut from).take(most as u64).read_to_end(&mut kept)?;
    let more = io::copy(&mut from, &mut io::sink())?;
    let text = String::from_utf8_lossy(&kept);
    Ok(match more {
        0 => text.into_owned(),
        _ => format!("{text}\n({more} more bytes of messages are left out)\n"),
    })
}
