//! The pages of the kernel's ring buffer.
//!
//! Source: kernel 6.18, `include/linux/ring_buffer.h` and `kernel/trace/ring_buffer.c`.

use std::io::{BufReader, Read, Seek};

use super::meta::{CpuData, Meta, PageHeader, Tsc};
use crate::foreign::cursor::{Cursor, Endian, seek};
use crate::foreign::error::Error;
use crate::foreign::record::Record;
use crate::foreign::unpack::{Allowance, Packing, unpack};

/// Bytes that all CPUs together may have unpacked at a time.
pub const UNPACKED: u64 = 256 << 20;
/// Most bytes of one packed portion, unpacked.
const PORTION: u64 = 4 << 20;
/// Bytes of a CPU's pages that are read at once.
const AHEAD: u64 = 64 << 10;
/// Greatest size of a page.
const PAGE: u32 = 1 << 20;

/// In the word `commit`: records were lost before this page; their number stands behind the data.
const MISSED: u64 = 1 << 31;
const STORED: u64 = 1 << 30;
const LENGTH: u64 = (1 << 20) - 1;

/// What a page has next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageItem {
    /// A record, which [`Pages::data`] has.
    Data,
    /// So many records were lost.
    Lost(u64),
}

/// What the CPUs may have unpacked: at a time, and all in all.
pub struct Budget {
    pub left: u64,
    pub allowance: Allowance,
}

/// The records of one CPU.
pub struct Pages {
    pub cpu: u32,
    /// The record that the merge has seen and not taken.
    pub found: Option<Record>,
    endian: Endian,
    header: PageHeader,
    tsc: Option<Tsc>,
    /// Where the next page or packed portion is, and where the last one ends.
    offset: u64,
    end: u64,
    packing: Option<Packing>,
    /// Packed portions to come.
    portions: Option<u32>,
    /// Pages that were read, of which those before `taken` were used.
    portion_offset: u64,
    unpacked: Vec<u8>,
    taken: usize,
    size: usize,
    page: Vec<u8>,
    /// Where the page stands in the file, for errors.
    page_offset: u64,
    /// Where in the page the next event is, and where they end.
    at: usize,
    until: usize,
    time: u64,
    data: (usize, usize),
    lost: Option<u64>,
}

impl Pages {
    pub fn new(data: CpuData, meta: &Meta, page: u32) -> Result<Self, Error> {
        let offset = data.offset;
        if page > PAGE || (page as usize) < meta.page_header.data + 8 {
            let what = "the size of a page cannot be";
            return Err(Error::Malformed { offset, what });
        }
        let Some(end) = data.offset.checked_add(data.size) else {
            let what = "the records of a CPU end beyond any file";
            return Err(Error::Malformed { offset, what });
        };
        Ok(Self {
            cpu: data.cpu,
            found: None,
            endian: meta.endian,
            header: meta.page_header,
            tsc: meta.tsc,
            offset,
            end,
            packing: data.packing,
            portions: None,
            portion_offset: offset,
            unpacked: Vec::new(),
            taken: 0,
            size: page as usize,
            page: Vec::new(),
            page_offset: offset,
            at: 0,
            until: 0,
            time: 0,
            data: (0, 0),
            lost: None,
        })
    }

    /// The bytes of the record that was found last.
    pub fn data(&self) -> &[u8] {
        &self.page[self.data.0..self.data.1]
    }

    /// The next record and its time; `None` after the last.
    pub fn next<R: Read + Seek>(
        &mut self,
        input: &mut BufReader<R>,
        budget: &mut Budget,
    ) -> Result<Option<(u64, PageItem)>, Error> {
        loop {
            if let Some(lost) = self.lost.take() {
                return Ok(Some((self.nanos(), PageItem::Lost(lost))));
            }
            if self.at < self.until {
                if self.event()? {
                    return Ok(Some((self.nanos(), PageItem::Data)));
                }
            } else if !self.load(input, budget)? {
                return Ok(None);
            }
        }
    }

    fn nanos(&self) -> u64 {
        let Some(tsc) = self.tsc else {
            return self.time;
        };
        let product = u128::from(self.time) * u128::from(tsc.multiply);
        let nanos = product >> tsc.shift.min(127);
        u64::try_from(nanos)
            .unwrap_or(u64::MAX)
            .saturating_add(tsc.offset)
    }

    fn word(&self, at: usize, long: usize) -> Option<u64> {
        let bytes = self.page.get(at..at.checked_add(long)?)?;
        Some(self.endian.number(bytes))
    }

    /// Takes the event at `at`. Whether it is a record.
    fn event(&mut self) -> Result<bool, Error> {
        let damaged = |what| Error::Malformed {
            offset: self.page_offset + self.at as u64,
            what,
        };
        let short = || damaged("an event runs over the end of its page");
        let word = self.word(self.at, 4).ok_or_else(short)?;
        let (kind, delta) = match self.endian {
            Endian::Little => (word & 31, word >> 5),
            Endian::Big => (word >> 27, word & ((1 << 27) - 1)),
        };
        let first = self.word(self.at + 4, 4);
        let (begin, long) = match kind {
            // The length stands in the next word, and counts it.
            0 => {
                let long = first.ok_or_else(short)?;
                let long = usize::try_from(long).map_err(|_| short())?;
                let long = long.checked_sub(4).ok_or_else(short)?;
                (self.at + 8, long)
            }
            29 if delta == 0 => {
                // Nothing more comes in this page.
                self.at = self.until;
                return Ok(false);
            }
            29 => (
                self.at + 4,
                usize::try_from(first.ok_or_else(short)?).map_err(|_| short())?,
            ),
            30 | 31 => (self.at + 8, 0),
            words => (self.at + 4, 4 * usize::try_from(words).expect("five bits")),
        };
        let end = begin.checked_add(long).filter(|end| *end <= self.until);
        let end = end.ok_or_else(short)?;
        self.time = match kind {
            30 => {
                let more = first.ok_or_else(short)? << 27;
                self.time.wrapping_add(more).wrapping_add(delta)
            }
            // An absolute time, of which the highest five bits are the page's.
            31 => {
                let low = (first.ok_or_else(short)? << 27 | delta) & ((1 << 59) - 1);
                self.time & !((1 << 59) - 1) | low
            }
            _ => self.time.wrapping_add(delta),
        };
        self.at = end.next_multiple_of(4);
        self.data = (begin, end);
        Ok(kind < 29)
    }

    /// Loads the next page. `false` after the last.
    fn load<R: Read + Seek>(
        &mut self,
        input: &mut BufReader<R>,
        budget: &mut Budget,
    ) -> Result<bool, Error> {
        if self.taken >= self.unpacked.len() && !self.load_portion(input, budget)? {
            return Ok(false);
        }
        let end = (self.taken + self.size).min(self.unpacked.len());
        self.page.clear();
        self.page.extend_from_slice(&self.unpacked[self.taken..end]);
        self.page_offset = match self.packing {
            None => self.portion_offset + self.taken as u64,
            Some(_) => self.portion_offset,
        };
        self.taken = end;
        let damaged = |what| Error::Malformed {
            offset: self.page_offset,
            what,
        };
        let short = || damaged("a page is shorter than its header says");
        self.time = self.word(0, 8).ok_or_else(short)?;
        let commit = self.word(self.header.commit, self.header.commit_size);
        let commit = commit.ok_or_else(short)?;
        let long = usize::try_from(commit & LENGTH).expect("20 bits");
        self.at = self.header.data;
        self.until = self.at + long;
        if self.until > self.page.len() {
            return Err(short());
        }
        if commit & MISSED != 0 {
            let stored = if commit & STORED != 0 {
                self.word(self.until, self.header.commit_size)
            } else {
                None
            };
            self.lost = Some(stored.unwrap_or(0));
        }
        Ok(true)
    }

    /// Loads the next pages, as many as are packed together or as are worth a look at the file.
    fn load_portion<R: Read + Seek>(
        &mut self,
        input: &mut BufReader<R>,
        budget: &mut Budget,
    ) -> Result<bool, Error> {
        budget.left += self.unpacked.len() as u64;
        self.unpacked.clear();
        self.taken = 0;
        match self.packing {
            None => self.load_plain(input),
            Some(how) => self.load_packed(input, how, budget),
        }?;
        budget.left = budget.left.saturating_sub(self.unpacked.len() as u64);
        Ok(!self.unpacked.is_empty())
    }

    fn load_plain<R: Read + Seek>(&mut self, input: &mut BufReader<R>) -> Result<(), Error> {
        let left = self.end.saturating_sub(self.offset);
        let pages = (AHEAD / self.size as u64).max(1) * self.size as u64;
        let long = usize::try_from(left.min(pages)).expect("some pages");
        if long < self.header.data {
            return Ok(());
        }
        let offset = self.offset;
        seek(input, offset)?;
        self.unpacked.resize(long, 0);
        // Past the reader's own buffer, which would be filled anew for each CPU.
        let read = input.get_mut().read_exact(&mut self.unpacked);
        read.map_err(|source| match source.kind() {
            std::io::ErrorKind::UnexpectedEof => Error::Truncated {
                offset,
                what: "a page of records",
            },
            _ => Error::Io { offset, source },
        })?;
        self.portion_offset = offset;
        self.offset += long as u64;
        Ok(())
    }

    fn load_packed<R: Read + Seek>(
        &mut self,
        input: &mut BufReader<R>,
        how: Packing,
        budget: &mut Budget,
    ) -> Result<(), Error> {
        if self.end.saturating_sub(self.offset) < 4 || self.portions == Some(0) {
            return Ok(());
        }
        seek(input, self.offset)?;
        let mut cursor = Cursor::new(&mut *input, self.offset, self.endian);
        let left = match self.portions {
            Some(left) => left,
            None => cursor.u32("the number of packed portions")?,
        };
        if left == 0 {
            return Ok(());
        }
        self.portion_offset = cursor.offset;
        let packed = cursor.u32("the packed length of a portion")?;
        let offset = cursor.offset;
        let found = cursor.u32("the unpacked length of a portion")?;
        let what = "a packed portion";
        let bytes = cursor.bytes(packed.into(), 2 * PORTION, what)?;
        let most = PORTION.min(budget.left);
        let most = budget.allowance.for_part(bytes.len(), most);
        if u64::from(found) > most {
            return Err(Error::Bomb {
                offset,
                what,
                packed: packed.into(),
                most,
            });
        }
        self.offset = cursor.offset;
        let bytes = unpack(how, &bytes, found as usize);
        self.unpacked = bytes.ok_or(Error::Malformed {
            offset,
            what: "a packed portion is damaged",
        })?;
        budget.allowance.take(self.unpacked.len() as u64);
        self.portions = Some(left - 1);
        Ok(())
    }
}
