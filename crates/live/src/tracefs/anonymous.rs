//! Takes names, paths and numbers of threads out of a recording, and puts codes in their places,
//! the same one for the same thing. What else an event has stays, so that the load stays the same.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::fs::FileExt as _;

use model::Snapshot;
use model::snapshot::Moment;

use super::formats::{Formats, declared};
use super::recorder::EndedRecording;

/// The length in a page's word `commit`; flags stand above it.
const LENGTH: u64 = (1 << 20) - 1;
/// Numbers of threads that every kernel has: the idle ones, init, and the parent of its own.
const KNOWN: u32 = 2;

/// How many things became codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnonymousCounts {
    /// Names of threads.
    pub names: usize,
    /// Paths of programs.
    pub paths: usize,
    /// Parts of paths of groups of processes.
    pub groups: usize,
    /// Numbers of threads.
    pub threads: usize,
}

/// What a field of an event has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// The number of a thread.
    Pid,
    /// A name, and zeros behind it.
    Name,
    /// A path, and zeros behind it.
    Path,
    /// What tells where the kernel or a program has something.
    Address,
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    Here,
    /// The field says where, seen from the begin of the event.
    Far,
    /// Likewise, seen from the end of the field.
    Near,
}

#[derive(Clone, Copy, Debug)]
struct SecretField {
    offset: usize,
    size: usize,
    holds: Holds,
    stands: Stands,
}

/// Where secrets are in the events of a kernel, by the numbers of these.
#[derive(Debug, Default)]
struct SecretPlaces(HashMap<u16, Vec<SecretField>>);

/// Codes of one kind, which begin with its letter.
#[derive(Debug)]
struct CodeTable {
    letter: char,
    seen: Vec<Vec<u8>>,
    codes: HashMap<Vec<u8>, String>,
}

/// All that is replaced, and by what.
#[derive(Debug)]
struct Codes {
    /// Names that stay: those of the kernel's own threads.
    kept: HashSet<Vec<u8>>,
    names: CodeTable,
    paths: CodeTable,
    groups: CodeTable,
    pids: HashMap<u32, u32>,
}

impl EndedRecording {
    /// Replaces the names of threads but the kernel's own, paths, groups and numbers of threads,
    /// here and in `snapshot`, and removes addresses. Returns how many of each.
    ///
    /// # Errors
    /// When the pages that were recorded cannot be read or written.
    pub fn anonymise(&mut self, snapshot: &mut Snapshot) -> io::Result<AnonymousCounts> {
        let places = SecretPlaces::of(&self.formats);
        let mut codes = Codes::keeping(snapshot);
        for (pid, name) in &self.names {
            codes.see_pid(*pid);
            codes.see(Holds::Name, name);
        }
        // Every name must be known before the first one is replaced: short ones get short codes.
        self.each_page(false, &mut |record| {
            places.each(record, &mut |holds, bytes| codes.see(holds, bytes));
        })?;
        codes.see_snapshot(snapshot);
        codes.number();
        self.each_page(true, &mut |record| {
            places.each(record, &mut |holds, bytes| codes.put(holds, bytes));
        })?;
        let names = std::mem::take(&mut self.names).into_iter();
        self.names = names
            .map(|(pid, name)| (codes.pid(pid), codes.name(&name)))
            .collect();
        codes.put_snapshot(snapshot);
        // Our own probe has the number of the recorder in the name of its system.
        let systems = self.formats.systems.iter_mut().map(|(system, _)| system);
        for system in systems.filter(|it| it.starts_with("runslice")) {
            "runslice".clone_into(system);
        }
        Ok(AnonymousCounts {
            names: codes.names.seen.len(),
            paths: codes.paths.seen.len(),
            groups: codes.groups.seen.len(),
            threads: codes.pids.len(),
        })
    }

    /// Hands out each record of each page, and writes the pages back if that `changes` them.
    fn each_page(&self, changes: bool, of: &mut dyn FnMut(&mut [u8])) -> io::Result<()> {
        let mut page = vec![0; self.formats.page];
        let head = (self.formats.data, usize::from(self.formats.long));
        for cpu in &self.pages {
            for offset in (0..cpu.bytes).step_by(page.len()) {
                cpu.to.read_exact_at(&mut page, offset)?;
                each_record(&mut page, head, of);
                if changes {
                    cpu.to.write_all_at(&page, offset)?;
                }
            }
        }
        Ok(())
    }
}

/// Hands out the records of a page of the kernel's ring buffer.
///
/// Source: kernel 6.18, `include/linux/ring_buffer.h`.
fn each_record(page: &mut [u8], (data, long): (usize, usize), of: &mut dyn FnMut(&mut [u8])) {
    let Some(commit) = page.get(8..8 + long).and_then(number) else {
        return;
    };
    let until = page
        .len()
        .min(data + usize::try_from(commit & LENGTH).unwrap_or(0));
    let mut at = data;
    while let Some(head) = word(&page[..until], at) {
        let (kind, delta) = if cfg!(target_endian = "big") {
            (head >> 27, head & ((1 << 27) - 1))
        } else {
            (head & 31, head >> 5)
        };
        let long = |words: u32| words as usize * 4;
        // Its record, and where the next one begins.
        let (record, next) = match kind {
            0 => {
                let array = word(&page[..until], at + 4).map_or(4, |it| it as usize);
                (at + 8..at + 4 + array.max(4), at + 4 + array.max(4))
            }
            1..=28 => (at + 4..at + 4 + long(kind), at + 4 + long(kind)),
            29 if delta == 0 => return,
            29 => {
                let skipped = word(&page[..until], at + 4).map_or(4, |it| it as usize);
                (0..0, at + 4 + skipped.max(4))
            }
            _ => (0..0, at + 8),
        };
        if !record.is_empty()
            && let Some(record) = page[..until].get_mut(record)
        {
            of(record);
        }
        at = next;
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

/// A number of 2, 4 or 8 bytes.
fn number(bytes: &[u8]) -> Option<u64> {
    match bytes.len() {
        2 => bytes
            .try_into()
            .ok()
            .map(|it| u16::from_ne_bytes(it).into()),
        4 => bytes
            .try_into()
            .ok()
            .map(|it| u32::from_ne_bytes(it).into()),
        8 => bytes.try_into().ok().map(u64::from_ne_bytes),
        _ => None,
    }
}

impl SecretPlaces {
    fn of(formats: &Formats) -> Self {
        let texts = formats.systems.iter().flat_map(|(_, texts)| texts);
        let texts = texts.map(|it| String::from_utf8_lossy(it));
        Self(texts.filter_map(|it| secrets(&it)).collect())
    }

    /// Hands out what is secret in a record. Of an event that nobody described all but what every
    /// event has is.
    fn each(&self, record: &mut [u8], of: &mut dyn FnMut(Holds, &mut [u8])) {
        let kind = record.get(..2).and_then(number);
        let kind = kind.and_then(|it| u16::try_from(it).ok());
        let Some(fields) = kind.and_then(|it| self.0.get(&it)) else {
            if let Some(rest) = record.get_mut(4..) {
                of(Holds::Address, rest);
            }
            return;
        };
        for field in fields {
            let end = field.offset + field.size;
            let place = match field.stands {
                Stands::Here => Some(field.offset..end),
                Stands::Far | Stands::Near => word(record, field.offset).map(|it| {
                    let from = if field.stands == Stands::Far { 0 } else { end };
                    let begin = from + (it & 0xffff) as usize;
                    begin..begin + (it >> 16) as usize
                }),
            };
            let Some(place) = place else { continue };
            if let Some(bytes) = record.get_mut(place) {
                of(field.holds, bytes);
            }
        }
    }
}

/// The number of the event that a text of the kernel describes, and its secret fields.
fn secrets(text: &str) -> Option<(u16, Vec<SecretField>)> {
    let after = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.map(str::trim)
    };
    let (event, id) = (after("name:")?, after("ID:")?.parse().ok()?);
    let field = |line: &str| {
        let (declaration, offset, size) = declared(line)?;
        let (holds, stands) = secret(event, declaration)?;
        Some(SecretField {
            offset,
            size,
            holds,
            stands,
        })
    };
    Some((id, text.lines().filter_map(field).collect()))
}

/// What a field that is so declared has, if that is secret. Names of interrupts are those of
/// drivers, and tell a timer from a device.
fn secret(event: &str, declaration: &str) -> Option<(Holds, Stands)> {
    let name = declaration.split_whitespace().next_back()?;
    let name = name.split('[').next()?;
    let holds = |name: &str| {
        if name.ends_with("comm") {
            Holds::Name
        } else {
            Holds::Path
        }
    };
    let stands = match declaration.split_whitespace().next() {
        Some("__data_loc") => Stands::Far,
        Some("__rel_loc") => Stands::Near,
        _ => Stands::Here,
    };
    if stands != Stands::Here || declaration.contains('[') {
        return (!event.starts_with("irq_handler")).then(|| (holds(name), stands));
    }
    let holds = if declaration.contains('*') || name.starts_with("__probe") {
        Holds::Address
    } else if name == "pid" || name.ends_with("_pid") {
        Holds::Pid
    } else {
        return None;
    };
    Some((holds, stands))
}

/// A text up to the first zero.
fn text(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|it| *it == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}

/// A name without the number of a thread at its end, and that number with what stands before it:
/// threads of one name stay so.
fn parts(name: &[u8]) -> (&[u8], &[u8]) {
    let digits = name.iter().rev().take_while(|it| it.is_ascii_digit());
    let digits = digits.count();
    let stem = name.len().saturating_sub(digits + 1);
    let is_numbered = digits > 0 && matches!(name.get(stem), Some(b'-' | b'.')) && stem > 0;
    name.split_at(if is_numbered { stem } else { name.len() })
}

impl CodeTable {
    fn new(letter: char) -> Self {
        Self {
            letter,
            seen: Vec::new(),
            codes: HashMap::new(),
        }
    }

    fn see(&mut self, text: &[u8]) {
        if !text.is_empty() && !self.codes.contains_key(text) {
            self.codes.insert(text.to_vec(), String::new());
            self.seen.push(text.to_vec());
        }
    }

    /// Gives each its code, the shortest to the shortest: some events have no room for more.
    fn number(&mut self) {
        self.seen.sort_by_key(Vec::len);
        for (at, text) in (1_u32..).zip(&self.seen) {
            self.codes
                .insert(text.clone(), format!("{}{at}", self.letter));
        }
    }

    fn code(&self, text: &[u8]) -> &str {
        self.codes.get(text).map_or("", String::as_str)
    }
}

impl Codes {
    fn keeping(snapshot: &Snapshot) -> Self {
        let mut kept: HashSet<Vec<u8>> = HashSet::new();
        let threads = [&snapshot.begin, &snapshot.end].map(|it| it.threads.iter());
        for thread in threads.into_iter().flatten().filter(|it| it.kernel) {
            let name = thread.comm.as_str();
            // What a worker does stands behind its name there, and not in events.
            let worker = name.split(['-', '+']).next();
            let worker = worker.filter(|it| it.starts_with("kworker/"));
            kept.extend([name, worker.unwrap_or(name)].map(|it| it.as_bytes().to_vec()));
        }
        Self {
            kept,
            names: CodeTable::new('n'),
            paths: CodeTable::new('p'),
            groups: CodeTable::new('g'),
            pids: HashMap::new(),
        }
    }

    /// Whether a name stays: the idle task of a CPU, which is no thread of anybody, and those of
    /// the kernel.
    fn keeps(&self, name: &[u8]) -> bool {
        name.starts_with(b"swapper") || self.kept.contains(name)
    }

    fn see(&mut self, holds: Holds, bytes: &[u8]) {
        match holds {
            Holds::Pid => {
                if let Some(pid) = word(bytes, 0) {
                    self.see_pid(pid);
                }
            }
            Holds::Name if !self.keeps(text(bytes)) => self.names.see(parts(text(bytes)).0),
            Holds::Path => self.paths.see(text(bytes)),
            Holds::Name | Holds::Address => {}
        }
    }

    fn see_pid(&mut self, pid: u32) {
        let next = KNOWN + 1 + u32::try_from(self.pids.len()).unwrap_or(u32::MAX - KNOWN - 1);
        if pid > KNOWN {
            self.pids.entry(pid).or_insert(next);
        }
    }

    fn number(&mut self) {
        for table in [&mut self.names, &mut self.paths, &mut self.groups] {
            table.number();
        }
    }

    fn pid(&self, pid: u32) -> u32 {
        self.pids.get(&pid).copied().unwrap_or(pid)
    }

    fn name(&self, name: &[u8]) -> Vec<u8> {
        if self.keeps(name) {
            return name.to_vec();
        }
        let (stem, number) = parts(name);
        [self.names.code(stem).as_bytes(), number].concat()
    }

    /// Puts the code of what stands in these bytes there, as much of it as they hold.
    fn put(&self, holds: Holds, bytes: &mut [u8]) {
        let code = match holds {
            Holds::Pid => {
                word(bytes, 0).map_or_else(Vec::new, |it| self.pid(it).to_ne_bytes().into())
            }
            Holds::Name => self.name(text(bytes)),
            Holds::Path => self.paths.code(text(bytes)).into(),
            Holds::Address => Vec::new(),
        };
        // Behind the end of a text the kernel leaves what was there earlier.
        let room = match holds {
            Holds::Pid => bytes.len(),
            _ => bytes.len().saturating_sub(1),
        };
        let long = code.len().min(room);
        bytes.fill(0);
        bytes[..long].copy_from_slice(&code[..long]);
    }

    fn see_snapshot(&mut self, snapshot: &Snapshot) {
        self.see_pid(snapshot.recorder);
        for Moment { groups, threads } in [&snapshot.begin, &snapshot.end] {
            let paths = groups.iter().map(|it| &it.path);
            for path in paths.chain(threads.iter().map(|it| &it.group)) {
                path.split('/')
                    .for_each(|it| self.groups.see(it.as_bytes()));
            }
            for thread in threads {
                self.see_pid(thread.pid);
                self.see_pid(thread.process);
                self.see(Holds::Name, thread.comm.as_bytes());
            }
        }
    }

    fn put_snapshot(&self, snapshot: &mut Snapshot) {
        snapshot.recorder = self.pid(snapshot.recorder);
        for Moment { groups, threads } in [&mut snapshot.begin, &mut snapshot.end] {
            for group in groups {
                group.path = self.path(&group.path);
            }
            for thread in threads.iter_mut() {
                thread.pid = self.pid(thread.pid);
                thread.process = self.pid(thread.process);
                let name = self.name(thread.comm.as_bytes());
                thread.comm = String::from_utf8_lossy(&name).into_owned();
                thread.group = self.path(&thread.group);
            }
            threads.sort_by_key(|it| it.pid);
        }
    }

    /// A path of groups, part by part: who is below whom stays.
    fn path(&self, path: &str) -> String {
        let parts = path.split('/').map(|it| self.groups.code(it.as_bytes()));
        parts.collect::<Vec<_>>().join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORK: &str = "name: sched_process_fork\nID: 300\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:__data_loc char[] parent_comm;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:pid_t parent_pid;\toffset:12;\tsize:4;\tsigned:1;\n\
        \tfield:__rel_loc char[] filename;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:void * function;\toffset:20;\tsize:8;\tsigned:0;\n\
        \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";

    fn record(pid: u32, name: &[u8; 8], path: &[u8; 8]) -> Vec<u8> {
        let mut bytes = 300_u16.to_ne_bytes().to_vec();
        bytes.extend([1, 2]);
        for word in [pid, 8 << 16 | 32, pid, 8 << 16 | 20] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        bytes.extend([0xff; 8]);
        bytes.extend(120_u32.to_ne_bytes());
        bytes.extend(name);
        bytes.extend(path);
        bytes
    }

    #[test]
    fn threads_whose_names_differ_in_a_number_stay_one_family() {
        let mut codes = Codes::keeping(&Snapshot::default());
        for name in [&b"pool-1"[..], b"pool-22", b"x.3", b"pool7", b"-8"] {
            codes.see(Holds::Name, name);
        }
        codes.number();
        let of = |name: &[u8]| String::from_utf8(codes.name(name)).unwrap();
        assert_eq!([of(b"pool-1"), of(b"pool-22")], ["n3-1", "n3-22"]);
        assert_eq!([of(b"x.3"), of(b"-8"), of(b"pool7")], ["n1.3", "n2", "n4"]);
    }

    #[test]
    fn each_secret_becomes_a_code_wherever_it_stands_and_nothing_else_changes() {
        let places = SecretPlaces([secrets(FORK).unwrap()].into_iter().collect());
        let mut codes = Codes::keeping(&Snapshot::default());
        let mut records = [
            record(4711, b"firefox\0", b"/srv/ab\0"),
            // Behind its end stands the rest of an older name.
            record(4712, b"sh\0efox\0", b"/srv/bc\0"),
            record(0, b"swapper\0", b"/srv/ab\0"),
        ];
        for record in &mut records {
            places.each(record, &mut |holds, bytes| codes.see(holds, bytes));
        }
        codes.number();
        for record in &mut records {
            places.each(record, &mut |holds, bytes| codes.put(holds, bytes));
        }
        let want = [
            (3, *b"n2\0\0\0\0\0\0", *b"p1\0\0\0\0\0\0"),
            (4, *b"n1\0\0\0\0\0\0", *b"p2\0\0\0\0\0\0"),
            (0, *b"swapper\0", *b"p1\0\0\0\0\0\0"),
        ];
        for (found, (pid, name, path)) in records.iter().zip(want) {
            let mut want = record(pid, &name, &path);
            want[20..28].fill(0);
            assert_eq!(*found, want);
        }
        // Of an event that nobody described only the place and the kind are known.
        let mut other = [9_u8, 9, 1, 2, 3, 4, 5, 6];
        places.each(&mut other, &mut |holds, bytes| codes.put(holds, bytes));
        assert_eq!(other, [9, 9, 1, 2, 0, 0, 0, 0]);
    }
}
