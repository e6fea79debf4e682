//! What crossed the border between a program and the simulated machine: written down while the
//! program runs, and played back without it, on any platform.
//!
//! Of each turn there are its calls, what the program stored into pages that it shares with maps,
//! how it stopped and what it cost. Answers are not kept but hashed: a replay compares each, and
//! stops at the first that differs. A recording is not trusted when it is read.

mod code;
mod record;
mod replay;

pub use code::{Damaged, Recording};
pub use record::Recorder;
pub use replay::Replay;

use model::user_space::{
    BpfAnswer, BpfCall, BpfId, ProgramEnd, Refused, SetSched, ThreadId, ThreadTurn,
};
use model::{Fnv1a, Nanos};

/// Something that a thread did within its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Act {
    /// A call of bpf(2), and the hash of its answer.
    Bpf(BpfCall, u64),
    /// A thread began with that name; the hash of its numbers.
    Spawn(ThreadId, String, u64),
    /// A change of scheduling, and the hash of the answer.
    SetSched(ThreadId, SetSched, u64),
    /// An arena was mapped there.
    ArenaAt(BpfId, u64, u64),
    /// The program stored bytes into a map's pages.
    Store(BpfId, u64, Vec<u8>),
}

/// What [`model::user_space::UserSpace`] was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Record {
    /// A turn of a thread at that uptime.
    Turn {
        thread: ThreadId,
        now: Nanos,
        acts: Vec<Act>,
        turn: ThreadTurn,
        after: After,
    },
    /// `woken()` named threads, after so many calls of it that named none since the record before.
    Woken(u64, Vec<ThreadId>, After),
    /// `interrupt()`.
    Interrupt(Vec<ThreadId>, After),
}

impl Default for Record {
    fn default() -> Self {
        Self::Interrupt(Vec::new(), After::default())
    }
}

/// What the program's state was afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct After {
    waits_for_files: bool,
    end: Option<ProgramEnd>,
}

/// The hash of an answer.
fn hash(answer: &Result<BpfAnswer, Refused>) -> u64 {
    let mut hash = Fnv1a::new();
    match answer {
        Ok(BpfAnswer::Done) => hash.write(&[0]),
        Ok(BpfAnswer::Created(id)) => {
            hash.write(&[1]);
            hash.write(&id.0.to_le_bytes());
        }
        Ok(BpfAnswer::Bytes(bytes)) => {
            hash.write(&[2]);
            hash.write(bytes);
        }
        Ok(BpfAnswer::Ran { result, context }) => {
            hash.write(&[3]);
            hash.write(&result.to_le_bytes());
            hash.write(context);
        }
        Err(refused) => {
            hash.write(&[4]);
            hash.write(&refused.errno.to_le_bytes());
            hash.write(refused.log.as_bytes());
        }
    }
    hash.value()
}

/// The hash of an answer without a value.
fn hash_done(answer: &Result<(), Refused>) -> u64 {
    hash(&answer.clone().map(|()| BpfAnswer::Done))
}

/// The hash of the numbers of a process and of its thread.
fn hash_numbers(numbers: (u32, u32)) -> u64 {
    let mut hash = Fnv1a::new();
    hash.write(&numbers.0.to_le_bytes());
    hash.write(&numbers.1.to_le_bytes());
    hash.value()
}
