//! Writing down.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use model::user_space::{
    BpfAnswer, BpfCall, BpfId, Mappable, ProgramEnd, Refused, SchedExt, SetSched, ThreadId,
    ThreadKernel, ThreadTurn, UserSpace, UserSpaceError,
};
use model::{Nanos, SimTime};

use super::code::Recording;
use super::{Act, After, Record, hash, hash_done, hash_numbers};

const PAGE: u64 = 4096;

/// A program that is written down while it runs.
#[derive(Debug)]
pub struct Recorder<U> {
    user: U,
    pages: BTreeMap<BpfId, Pages>,
    records: Vec<Record>,
    asked: u64,
}

/// Pages that a map shares with the program, and what was in them when they were looked at last.
#[derive(Debug)]
struct Pages {
    file: File,
    known: BTreeMap<u64, Box<[u8]>>,
}

impl Pages {
    /// Looks at all pages that hold something: what has changed, in runs of bytes. A page that is
    /// new and zero has one: it was touched, which allocates it in an arena.
    fn look(&mut self) -> io::Result<Vec<(u64, Vec<u8>)>> {
        let len = self.file.metadata()?.len();
        let mut changes = Vec::new();
        let mut before = std::mem::take(&mut self.known);
        let mut page = vec![0; PAGE as usize];
        let mut at = 0;
        while let Some(from) = next_page(&self.file, at, len)? {
            let used = PAGE.min(len - from) as usize;
            read_at(&self.file, &mut page[..used], from)?;
            // What is not there any more was freed, and is forgotten.
            let mut known = before.remove(&from).unwrap_or_else(|| {
                if page[..used].iter().all(|byte| *byte == 0) {
                    changes.push((from, vec![0]));
                }
                vec![0; used].into()
            });
            if *known != page[..used] {
                runs(&known, &page[..used], from, &mut changes);
                known.copy_from_slice(&page[..used]);
            }
            self.known.insert(from, known);
            at = from + PAGE;
        }
        Ok(changes)
    }
}

/// The first page from `at` on that holds something.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn next_page(file: &File, at: u64, len: u64) -> io::Result<Option<u64>> {
    use rustix::fs::{SeekFrom, seek};
    if at >= len {
        return Ok(None);
    }
    match seek(file, SeekFrom::Data(at)) {
        Ok(found) => Ok(Some(found / PAGE * PAGE)),
        Err(rustix::io::Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn next_page(_file: &File, at: u64, len: u64) -> io::Result<Option<u64>> {
    Ok((at < len).then_some(at))
}

#[cfg(unix)]
fn read_at(file: &File, to: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, to, at)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, to: &mut [u8], at: u64) -> io::Result<()> {
    use std::io::{Read as _, Seek as _};
    file.seek(io::SeekFrom::Start(at))?;
    file.read_exact(to)
}

/// Where two pages differ; differences of less than 16 bytes apart are one.
fn runs(old: &[u8], new: &[u8], base: u64, to: &mut Vec<(u64, Vec<u8>)>) {
    const GAP: usize = 16;
    let mut open: Option<(usize, usize)> = None;
    for at in (0..new.len()).filter(|at| old[*at] != new[*at]) {
        open = match open {
            Some((from, last)) if at - last < GAP => Some((from, at)),
            Some((from, last)) => {
                to.push((base + from as u64, new[from..=last].to_vec()));
                Some((at, at))
            }
            None => Some((at, at)),
        };
    }
    if let Some((from, last)) = open {
        to.push((base + from as u64, new[from..=last].to_vec()));
    }
}

impl<U: UserSpace> Recorder<U> {
    /// Writes down all that `user` does from now on: it must not have run yet.
    #[must_use]
    pub const fn new(user: U) -> Self {
        Self {
            user,
            pages: BTreeMap::new(),
            records: Vec::new(),
            asked: 0,
        }
    }

    /// The program, to be asked what is no part of its run.
    pub const fn user_mut(&mut self) -> &mut U {
        &mut self.user
    }

    /// Ends the recording and returns it.
    #[must_use]
    pub fn finish(self) -> Recording {
        Recording {
            records: self.records,
        }
    }

    fn after(&self) -> After {
        After {
            waits_for_files: self.user.is_waiting_for_files(),
            end: self.user.end(),
        }
    }
}

fn failed(error: &io::Error) -> UserSpaceError {
    UserSpaceError::from(format!("recording the program's memory: {error}"))
}

/// The simulated machine, with an ear to it.
struct Overheard<'a> {
    kernel: &'a mut dyn ThreadKernel,
    pages: &'a mut BTreeMap<BpfId, Pages>,
    acts: Vec<Act>,
    error: Option<io::Error>,
}

impl Overheard<'_> {
    /// Whether a call reads or writes pages that the program has. To look at all of them is work,
    /// and before the others it makes no difference.
    fn is_about_pages(&self, call: &BpfCall) -> bool {
        match call {
            BpfCall::BtfLoad { .. }
            | BpfCall::MapCreate(_)
            | BpfCall::ProgLoad(_)
            | BpfCall::NextKey { .. } => false,
            // Nothing is stored into it afterwards.
            BpfCall::Freeze { map }
            | BpfCall::Lookup { map, .. }
            | BpfCall::Update { map, .. }
            | BpfCall::Delete { map, .. } => self.pages.contains_key(map),
            // Programs run.
            BpfCall::LinkCreate { .. }
            | BpfCall::LinkDetach { .. }
            | BpfCall::TestRun { .. }
            | BpfCall::IterRead { .. }
            | BpfCall::StreamRead { .. }
            | BpfCall::Close { .. } => true,
        }
    }

    /// Writes down what the program has stored since the last look.
    fn look(&mut self) {
        let acts = &mut self.acts;
        let error = &mut self.error;
        for (map, pages) in &mut *self.pages {
            match pages.look() {
                Ok(changes) => {
                    let each = changes.into_iter();
                    acts.extend(each.map(|(at, bytes)| Act::Store(*map, at, bytes)));
                }
                Err(found) => *error = Some(found),
            }
        }
    }

    /// What the simulated machine has changed is no store of the program's.
    fn refresh(&mut self) {
        for pages in self.pages.values_mut() {
            if let Err(found) = pages.look() {
                self.error = Some(found);
            }
        }
    }
}

impl ThreadKernel for Overheard<'_> {
    fn bpf(&mut self, thread: ThreadId, call: BpfCall) -> Result<BpfAnswer, Refused> {
        let is_about_pages = self.is_about_pages(&call);
        if is_about_pages {
            self.look();
        }
        let answer = self.kernel.bpf(thread, call.clone());
        if let BpfCall::Close { object } = &call {
            self.pages.remove(object);
        }
        self.acts.push(Act::Bpf(call, hash(&answer)));
        if is_about_pages {
            self.refresh();
        }
        answer
    }

    fn mappable(&self, map: BpfId) -> Option<Mappable> {
        self.kernel.mappable(map)
    }

    fn share(&mut self, map: BpfId, pages: File) -> io::Result<()> {
        let file = pages.try_clone()?;
        self.kernel.share(map, pages)?;
        let known = BTreeMap::new();
        let mut pages = Pages { file, known };
        pages.look()?;
        self.pages.insert(map, pages);
        Ok(())
    }

    fn store(&mut self, map: BpfId, offset: u64, bytes: &[u8]) -> Result<(), Refused> {
        let answer = self.kernel.store(map, offset, bytes);
        self.acts.push(Act::Store(map, offset, bytes.to_vec()));
        answer
    }

    fn arena_at(&mut self, map: BpfId, address: u64) -> Result<(), Refused> {
        let answer = self.kernel.arena_at(map, address);
        self.acts
            .push(Act::ArenaAt(map, address, hash_done(&answer)));
        answer
    }

    fn is_ready(&self, map: BpfId) -> bool {
        self.kernel.is_ready(map)
    }

    fn spawn(&mut self, thread: ThreadId, name: &str) -> (u32, u32) {
        let numbers = self.kernel.spawn(thread, name);
        self.acts
            .push(Act::Spawn(thread, name.to_owned(), hash_numbers(numbers)));
        numbers
    }

    fn set_sched(&mut self, thread: ThreadId, change: SetSched) -> Result<(), Refused> {
        let answer = self.kernel.set_sched(thread, change.clone());
        self.acts
            .push(Act::SetSched(thread, change, hash_done(&answer)));
        answer
    }

    fn cpu(&self) -> Option<u16> {
        self.kernel.cpu()
    }

    fn run_time(&self) -> Option<SimTime> {
        self.kernel.run_time()
    }

    fn cpu_frequencies(&self) -> Vec<u32> {
        self.kernel.cpu_frequencies()
    }

    fn cpu_times(&self) -> Vec<model::CpuTimes> {
        self.kernel.cpu_times()
    }

    fn sched_ext(&self) -> SchedExt {
        self.kernel.sched_ext()
    }
}

impl<U: UserSpace> UserSpace for Recorder<U> {
    fn turn(
        &mut self,
        thread: ThreadId,
        now: Nanos,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<ThreadTurn, UserSpaceError> {
        let mut overheard = Overheard {
            kernel,
            pages: &mut self.pages,
            acts: Vec::new(),
            error: None,
        };
        overheard.refresh();
        let turn = self.user.turn(thread, now, &mut overheard)?;
        overheard.look();
        if let Some(error) = overheard.error {
            return Err(failed(&error));
        }
        let acts = overheard.acts;
        let record = Record::Turn {
            thread,
            now,
            acts,
            turn: turn.clone(),
            after: self.after(),
        };
        self.records.push(record);
        self.asked = 0;
        Ok(turn)
    }

    fn woken(&mut self, kernel: &dyn ThreadKernel) -> Result<Vec<ThreadId>, UserSpaceError> {
        let woken = self.user.woken(kernel)?;
        if woken.is_empty() {
            self.asked += 1;
        } else {
            let record = Record::Woken(self.asked, woken.clone(), self.after());
            self.records.push(record);
            self.asked = 0;
        }
        Ok(woken)
    }

    fn is_waiting_for_files(&self) -> bool {
        self.user.is_waiting_for_files()
    }

    fn interrupt(&mut self) -> Result<Vec<ThreadId>, UserSpaceError> {
        let woken = self.user.interrupt()?;
        self.records
            .push(Record::Interrupt(woken.clone(), self.after()));
        self.asked = 0;
        Ok(woken)
    }

    fn waits(&self) -> Vec<String> {
        self.user.waits()
    }

    fn calls(&self) -> u64 {
        self.user.calls()
    }

    fn end(&self) -> Option<ProgramEnd> {
        self.user.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_joined_when_they_are_near() {
        let old = [0; 100];
        let mut new = old;
        (new[3], new[10], new[60]) = (1, 2, 3);
        let mut found = Vec::new();
        runs(&old, &new, 4096, &mut found);
        let near = vec![1, 0, 0, 0, 0, 0, 0, 2];
        assert_eq!(found, [(4099, near), (4156, vec![3])]);
    }
}
