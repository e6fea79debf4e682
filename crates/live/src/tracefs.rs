//! Records the scheduler's events through tracefs, which every kernel from 4.19 on has, and writes
//! them as a `trace.dat`.
//!
//! [`TraceRecorder::start`] makes a trace buffer of its own (an *instance*), which leaves all other
//! tracing of the machine alone. Its pages go from the kernel to files as they are; nothing looks
//! at single events. [`EndedRecording::write`] puts these files together as trace-cmd would.

mod anonymous;
mod cost;
mod events;
mod facts;
mod formats;
mod instance;
mod pages;
mod probe;
mod recorder;
mod trace_dat;

pub use anonymous::AnonymousCounts;
pub use events::WantedEvents;
pub use facts::{TraceFacts, obstacles};
pub use recorder::{EndedRecording, RecorderEnd, TraceOptions, TraceRecorder};

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads at most `most` bytes of a file whose length nobody says; more is an error.
fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_in_large_parts(File::open(path)?, most)
}

/// Some files of the kernel have an end after the first read, however short that was
/// (`show_header()` in `kernel/trace/trace_events.c`, 6.18): so that it must ask for all.
fn read_in_large_parts(mut from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut part = vec![0; 1 << 16];
    let mut bytes = Vec::new();
    loop {
        match from.read(&mut part) {
            Ok(0) => return Ok(bytes),
            Ok(got) => bytes.extend_from_slice(&part[..got]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if bytes.len() as u64 > most {
            let text = format!("it is longer than {most} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives as much as is asked for, once.
    struct Once(Option<Vec<u8>>);

    impl Read for Once {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let bytes = self.0.take().unwrap_or_default();
            let long = bytes.len().min(to.len());
            to[..long].copy_from_slice(&bytes[..long]);
            Ok(long)
        }
    }

    #[test]
    fn a_file_that_ends_after_one_read_is_read_whole_and_a_long_one_refused() {
        let bytes = vec![7; 300];
        let read = read_in_large_parts(Once(Some(bytes.clone())), 300).unwrap();
        assert_eq!(read, bytes);
        let error = read_in_large_parts(Once(Some(bytes)), 299).unwrap_err();
        assert!(error.to_string().contains("longer than 299"), "{error}");
    }
}
