//! Playing back.

use std::collections::BTreeSet;

use model::Nanos;
use model::user_space::{
    BpfCall, Kernel, ProgramEnd, Refused, ThreadId, Turn, UserSpace, UserSpaceError,
};

use super::code::Recording;
use super::{Act, After, Record, hash, hash_done, hash_numbers};

/// A recording in place of the program.
#[derive(Debug)]
pub struct Replay {
    recording: Recording,
    next: usize,
    asked: u64,
    after: After,
    lives: BTreeSet<ThreadId>,
}

impl Replay {
    /// Plays a recording from its beginning.
    #[must_use]
    pub fn new(recording: Recording) -> Self {
        Self {
            recording,
            next: 0,
            asked: 0,
            after: After::default(),
            lives: BTreeSet::from([ThreadId(0)]),
        }
    }

    /// The next record, done with.
    fn step(&mut self, after: After) {
        self.next += 1;
        self.asked = 0;
        self.after = after;
    }

    fn differs(&self, now: Nanos, what: &str) -> UserSpaceError {
        let seconds = now.get() / 1_000_000_000;
        let tenth = now.get() / 100_000_000 % 10;
        let text = format!(
            "replay: record {} at {seconds}.{tenth} s: {what}",
            self.next
        );
        UserSpaceError(text)
    }
}

/// What a call is, for messages.
fn name(call: &BpfCall) -> &'static str {
    match call {
        BpfCall::BtfLoad { .. } => "BTF_LOAD",
        BpfCall::MapCreate(_) => "MAP_CREATE",
        BpfCall::Lookup { .. } => "MAP_LOOKUP_ELEM",
        BpfCall::Update { .. } => "MAP_UPDATE_ELEM",
        BpfCall::Delete { .. } => "MAP_DELETE_ELEM",
        BpfCall::NextKey { .. } => "MAP_GET_NEXT_KEY",
        BpfCall::Freeze { .. } => "MAP_FREEZE",
        BpfCall::ProgLoad(_) => "PROG_LOAD",
        BpfCall::LinkCreate { .. } => "LINK_CREATE",
        BpfCall::LinkDetach { .. } => "LINK_DETACH",
        BpfCall::TestRun { .. } => "PROG_TEST_RUN",
        BpfCall::IterRead { .. } => "read() of an iterator",
        BpfCall::StreamRead { .. } => "PROG_STREAM_READ",
        BpfCall::Close { .. } => "close()",
    }
}

/// Does an act again: what differs, if anything.
fn act(act: &Act, thread: ThreadId, kernel: &mut dyn Kernel) -> Option<String> {
    let told = |what: &str, is_same: bool| {
        let text = format!("{what} was answered otherwise than when it was recorded");
        (!is_same).then_some(text)
    };
    let errno = |it: Result<(), Refused>| it.err().map(|it| it.errno);
    match act {
        Act::Bpf(call, recorded) => {
            let answer = kernel.bpf(thread, call.clone());
            let is_same = hash(&answer) == *recorded;
            match (&answer, is_same) {
                (Err(refused), false) => {
                    let what = name(call);
                    Some(format!(
                        "{what} was refused (errno {}), unlike then",
                        refused.errno
                    ))
                }
                _ => told(name(call), is_same),
            }
        }
        Act::Spawn(thread, name, recorded) => {
            let numbers = kernel.spawn(*thread, name);
            told("a new thread", hash_numbers(numbers) == *recorded)
        }
        Act::SetSched(thread, change, recorded) => {
            let answer = kernel.set_sched(*thread, change.clone());
            told("a change of scheduling", hash_done(&answer) == *recorded)
        }
        Act::ArenaAt(map, address, recorded) => {
            let answer = kernel.arena_at(*map, *address);
            told("mmap() of an arena", hash_done(&answer) == *recorded)
        }
        Act::Store(map, offset, bytes) => {
            let errno = errno(kernel.store(*map, *offset, bytes))?;
            let map = map.0;
            Some(format!(
                "a store into map {map} at {offset} was refused (errno {errno})"
            ))
        }
    }
}

impl UserSpace for Replay {
    fn turn(
        &mut self,
        thread: ThreadId,
        now: Nanos,
        kernel: &mut dyn Kernel,
    ) -> Result<Turn, UserSpaceError> {
        let (acts, turn, after) = match self.recording.records.get(self.next) {
            Some(Record::Turn {
                thread: recorded,
                now: then,
                acts,
                turn,
                after,
            }) if (*recorded, *then) == (thread, now) => (acts, turn.clone(), after.clone()),
            Some(Record::Turn {
                thread: recorded,
                now: then,
                ..
            }) => {
                let (number, recorded) = (thread.0, recorded.0);
                let text =
                    format!("thread {number} has a turn; recorded is thread {recorded} at {then}");
                return Err(self.differs(now, &text));
            }
            Some(_) => return Err(self.differs(now, "a turn where none was recorded")),
            None => return Err(self.differs(now, "the recording ends before the run")),
        };
        if let Some(text) = acts.iter().find_map(|it| act(it, thread, kernel)) {
            return Err(self.differs(now, &text));
        }
        for act in acts {
            if let Act::Spawn(thread, ..) = act {
                self.lives.insert(*thread);
            }
        }
        if turn.stop == model::user_space::Stop::Exit {
            self.lives.remove(&thread);
        }
        self.step(after);
        Ok(turn)
    }

    fn woken(&mut self, _kernel: &dyn Kernel) -> Result<Vec<ThreadId>, UserSpaceError> {
        if let Some(Record::Woken(asked, woken, after)) = self.recording.records.get(self.next)
            && *asked == self.asked
        {
            let (woken, after) = (woken.clone(), after.clone());
            self.step(after);
            return Ok(woken);
        }
        self.asked += 1;
        Ok(Vec::new())
    }

    fn is_waiting_for_files(&self) -> bool {
        self.after.waits_for_files
    }

    fn interrupt(&mut self) -> Result<Vec<ThreadId>, UserSpaceError> {
        let Some(Record::Interrupt(woken, after)) = self.recording.records.get(self.next) else {
            let text = "an interrupt where none was recorded";
            let next = self.next;
            return Err(UserSpaceError(format!("replay: record {next}: {text}")));
        };
        let (woken, after) = (woken.clone(), after.clone());
        self.step(after);
        Ok(woken)
    }

    fn waits(&self) -> Vec<String> {
        let each = self.lives.iter();
        each.map(|it| format!("thread {} of the recording waits", it.0))
            .collect()
    }

    fn end(&self) -> Option<ProgramEnd> {
        self.after.end.clone()
    }
}
