//! The body of a sample. What it has, and in which order, its event's description says.

use crate::foreign::cursor::Endian;

/// Bits of `sample_type`, in the order of the fields in the body (`enum perf_event_sample_format`).
pub const IDENTIFIER: u64 = 1 << 16;
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const ID: u64 = 1 << 6;
const STREAM_ID: u64 = 1 << 9;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const RAW: u64 = 1 << 10;

/// Bits of `read_format`.
const TOTALS: [u64; 2] = [1, 2];
const READ_ID: u64 = 4;
const READ_GROUP: u64 = 8;
const READ_LOST: u64 = 16;

/// Which fields the samples of an event have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub sample_type: u64,
    pub read_format: u64,
}

/// What is needed of a sample.
#[derive(Clone, Copy, Debug)]
pub struct PerfSample<'a> {
    pub time: u64,
    pub cpu: u32,
    /// The tracepoint's record.
    pub raw: &'a [u8],
}

impl<'a> PerfSample<'a> {
    /// Takes a body apart.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(body: &'a [u8], layout: Layout, endian: Endian) -> Result<Self, &'static str> {
        let Layout { sample_type, .. } = layout;
        let has = |bit: u64| sample_type & bit != 0;
        if !(has(TIME) && has(CPU) && has(RAW)) {
            return Err("samples lack the time, the CPU or the record; record tracepoints with -a");
        }
        let mut fields = Fields { body, endian };
        let mut time = 0;
        for bit in [IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID] {
            if has(bit) {
                let word = fields.word()?;
                time = if bit == TIME { word } else { time };
            }
        }
        let cpu = endian.number(fields.bytes(8)?.get(..4).unwrap_or(&[]));
        if has(PERIOD) {
            fields.word()?;
        }
        if has(READ) {
            fields.read(layout.read_format)?;
        }
        if has(CALLCHAIN) {
            let calls = fields.word()?;
            fields.words(calls)?;
        }
        let size = endian.number(fields.bytes(4)?);
        let raw = fields.bytes(usize::try_from(size).unwrap_or(usize::MAX))?;
        Ok(Self {
            time,
            cpu: u32::try_from(cpu).expect("four bytes"),
            raw,
        })
    }
}

struct Fields<'a> {
    body: &'a [u8],
    endian: Endian,
}

impl<'a> Fields<'a> {
    fn bytes(&mut self, long: usize) -> Result<&'a [u8], &'static str> {
        let split = self.body.split_at_checked(long);
        let (bytes, rest) = split.ok_or("a sample is shorter than its event's description says")?;
        self.body = rest;
        Ok(bytes)
    }

    fn word(&mut self) -> Result<u64, &'static str> {
        Ok(self.endian.number(self.bytes(8)?))
    }

    fn words(&mut self, many: u64) -> Result<(), &'static str> {
        let long = usize::try_from(many)
            .ok()
            .and_then(|many| many.checked_mul(8));
        self.bytes(long.unwrap_or(usize::MAX)).map(|_| ())
    }

    fn read(&mut self, format: u64) -> Result<(), &'static str> {
        let has = |bit: u64| u64::from(format & bit != 0);
        let totals: u64 = TOTALS.iter().map(|bit| has(*bit)).sum();
        let each = 1 + has(READ_ID) + has(READ_LOST);
        if has(READ_GROUP) == 0 {
            return self.words(each + totals);
        }
        let members = self.word()?;
        self.words(totals)?;
        self.words(members.saturating_mul(each))
    }
}
