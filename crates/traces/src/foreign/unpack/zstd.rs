//! How long the blocks of a zstd frame become, before they are unpacked.
//!
//! No block may become more than 128 KiB (RFC 8878, section 3.1.1.2.4). `ruzstd` does not look: one
//! block of 100 KB becomes gigabytes there. So the sequences of each block are decoded here first,
//! as far as the lengths of their matches need it.

/// Most bytes that a block becomes.
const BLOCK: u64 = 128 << 10;

/// The last entries of RFC 8878, table 16: baselines and extra bits of match codes from 32 on. A
/// smaller code is a match of 3 bytes more, without extra bits.
const MATCHES: [(u64, u32); 21] = [
    (35, 1),
    (37, 1),
    (39, 1),
    (41, 1),
    (43, 2),
    (47, 2),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 5),
    (131, 7),
    (259, 8),
    (515, 9),
    (1027, 10),
    (2051, 11),
    (4099, 12),
    (8195, 13),
    (16387, 14),
    (32771, 15),
    (65539, 16),
];

/// Extra bits of the codes of literals' lengths (RFC 8878, table 15) from 16 on; smaller codes have
/// none.
const LITERALS: [u32; 20] = [
    1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
];

/// What the codes of a table mean, with the greatest accuracy and the distribution that need not be
/// in the file (RFC 8878, section 3.1.1.3.2.2).
struct Codes {
    log_max: u32,
    usual_log: u32,
    usual: &'static [i32],
}

const LITERAL_CODES: Codes = Codes {
    log_max: 9,
    usual_log: 6,
    usual: &[
        4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1,
        1, 1, -1, -1, -1, -1,
    ],
};

const OFFSET_CODES: Codes = Codes {
    log_max: 8,
    usual_log: 5,
    usual: &[
        1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1,
    ],
};

const MATCH_CODES: Codes = Codes {
    log_max: 9,
    usual_log: 6,
    usual: &[
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
    ],
};

/// One state of a table: the code, and how the next state is found.
#[derive(Clone, Copy, Debug, Default)]
struct TableState {
    code: u8,
    bits: u32,
    base: u64,
}

/// A table of finite state entropy; empty: there is none yet.
#[derive(Clone, Debug, Default)]
struct Table {
    log: u32,
    states: Vec<TableState>,
}

impl Table {
    /// The table of a distribution (RFC 8878, section 4.1.1).
    fn of(log: u32, counts: &[i32]) -> Option<Self> {
        let size = 1_usize << log;
        let mut states = vec![TableState::default(); size];
        let mut high = size;
        let mut next = Vec::new();
        for (code, count) in (0..).zip(counts) {
            next.push(count.unsigned_abs());
            if *count == -1 {
                high = high.checked_sub(1)?;
                states[high].code = code;
            }
        }
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (code, count) in (0..).zip(counts) {
            for _ in 0..(*count).max(0) {
                states.get_mut(at).filter(|_| at < high)?.code = code;
                loop {
                    at = (at + step) & (size - 1);
                    if at < high || high == 0 {
                        break;
                    }
                }
            }
        }
        for state in &mut states {
            let number = next.get_mut(usize::from(state.code))?;
            state.bits = log.checked_sub(number.checked_ilog2()?)?;
            state.base = (u64::from(*number) << state.bits).checked_sub(size as u64)?;
            *number += 1;
        }
        (at == 0).then_some(Self { log, states })
    }

    /// Reads the form that a block says, and takes it off the front of `bytes`.
    fn read(&mut self, form: u8, codes: &Codes, bytes: &mut &[u8]) -> Option<()> {
        match form & 3 {
            0 => *self = Self::of(codes.usual_log, codes.usual)?,
            1 => {
                let (code, rest) = bytes.split_first()?;
                *bytes = rest;
                let state = TableState {
                    code: *code,
                    ..TableState::default()
                };
                *self = Self {
                    log: 0,
                    states: vec![state],
                };
            }
            2 => *self = Self::described(codes, bytes)?,
            // That of the block before.
            _ => {}
        }
        (!self.states.is_empty()).then_some(())
    }

    fn described(codes: &Codes, bytes: &mut &[u8]) -> Option<Self> {
        let mut bits = Forward { bytes, at: 0 };
        let log = bits.take(4)? + 5;
        if log > codes.log_max {
            return None;
        }
        let mut left = 1_u32 << log;
        let mut counts: Vec<i32> = Vec::new();
        while left > 0 {
            let wide = (left + 1).ilog2() + 1;
            let low = bits.peek(wide - 1);
            let spare = (1 << wide) - 1 - (left + 1);
            let value = if low < spare {
                bits.take(wide - 1)?
            } else {
                let value = bits.take(wide)?;
                if value >> (wide - 1) == 0 {
                    value
                } else {
                    value - spare
                }
            };
            let count = i32::try_from(value).ok()? - 1;
            left = left.checked_sub(count.unsigned_abs())?;
            counts.push(count);
            let mut more = if count == 0 { 3 } else { 0 };
            while more == 3 && counts.len() <= 256 {
                more = bits.take(2)?;
                counts.resize(counts.len() + more as usize, 0);
            }
            if counts.len() > 256 {
                return None;
            }
        }
        let used = bits.at.div_ceil(8);
        *bytes = bytes.get(used..)?;
        Self::of(log, &counts)
    }
}

/// Bits from the front on, the lowest of a byte first.
struct Forward<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Forward<'_> {
    /// The next bits; those behind the end are 0.
    fn peek(&self, many: u32) -> u32 {
        let bit = |index: u32| {
            let at = self.at + index as usize;
            let byte = self.bytes.get(at / 8).copied().unwrap_or(0);
            u32::from(byte >> (at % 8) & 1) << index
        };
        (0..many).map(bit).sum()
    }

    fn take(&mut self, many: u32) -> Option<u32> {
        let value = self.peek(many);
        self.at += many as usize;
        (self.at <= 8 * self.bytes.len()).then_some(value)
    }
}

/// Bits from the end on.
struct Backward<'a> {
    bytes: &'a [u8],
    /// So many bits are left.
    left: usize,
}

impl<'a> Backward<'a> {
    /// The highest bit that is set marks the end.
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let mark = bytes.last()?.checked_ilog2()? as usize;
        let left = 8 * (bytes.len() - 1) + mark;
        Some(Self { bytes, left })
    }

    fn take(&mut self, many: u32) -> Option<u64> {
        self.left = self.left.checked_sub(many as usize)?;
        let (from, shift) = (self.left / 8, self.left % 8);
        let bytes = self.bytes.get(from..).unwrap_or_default();
        let word = bytes.iter().take(8).rev();
        let word = word.fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        // At most 31 bits, and 7 before them.
        Some(word >> shift & ((1 << many) - 1))
    }
}

/// Looks at the blocks of a stream of frames.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// Within a frame: whether a checksum follows its last block.
    frame: Option<bool>,
    literals: Table,
    offsets: Table,
    matches: Table,
}

impl Blocks {
    /// Looks at whole blocks, as the stream goes on. `None`: they are damaged, or one becomes too
    /// long.
    pub fn check(&mut self, mut packed: &[u8]) -> Option<()> {
        while !packed.is_empty() {
            let Some(has_checksum) = self.frame else {
                self.frame = Some(frame_header(&mut packed)?);
                continue;
            };
            let header = number(take(&mut packed, 3)?);
            let size = usize::try_from(header >> 3).ok()?;
            match header >> 1 & 3 {
                0 => take(&mut packed, size).map(|_| ())?,
                1 => take(&mut packed, 1).map(|_| ())?,
                2 => self.compressed(take(&mut packed, size)?)?,
                _ => return None,
            }
            if header & 1 == 1 {
                self.frame = None;
                // It is not looked at, and perf's last one is not there.
                let checksum = if has_checksum { 4.min(packed.len()) } else { 0 };
                take(&mut packed, checksum)?;
            }
        }
        Some(())
    }

    /// Looks at the content of a compressed block.
    fn compressed(&mut self, mut block: &[u8]) -> Option<()> {
        let mut long = literals(&mut block)?;
        let (first, rest) = block.split_first()?;
        block = rest;
        let count = match *first {
            few @ 0..128 => u64::from(few),
            high @ 128..255 => u64::from(high - 128) << 8 | number(take(&mut block, 1)?),
            255 => number(take(&mut block, 2)?) + 0x7f00,
        };
        if count > 0 {
            let forms = take(&mut block, 1)?[0];
            self.literals.read(forms >> 6, &LITERAL_CODES, &mut block)?;
            self.offsets.read(forms >> 4, &OFFSET_CODES, &mut block)?;
            self.matches.read(forms >> 2, &MATCH_CODES, &mut block)?;
            long += self.matched(count, block)?;
        }
        (long <= BLOCK).then_some(())
    }

    /// The length of all matches together.
    fn matched(&self, count: u64, bytes: &[u8]) -> Option<u64> {
        let mut bits = Backward::of(bytes)?;
        let state = |table: &Table, bits: &mut Backward<'_>| bits.take(table.log);
        let mut literal = state(&self.literals, &mut bits)?;
        let mut offset = state(&self.offsets, &mut bits)?;
        let mut matching = state(&self.matches, &mut bits)?;
        let mut long = 0;
        for number in 1..=count {
            let of = |table: &Table, state: u64| -> Option<TableState> {
                table.states.get(usize::try_from(state).ok()?).copied()
            };
            let literal_state = of(&self.literals, literal)?;
            let offset_state = of(&self.offsets, offset)?;
            let match_state = of(&self.matches, matching)?;
            if offset_state.code > 31 {
                return None;
            }
            bits.take(offset_state.code.into())?;
            long += match match_state.code {
                code @ 0..32 => u64::from(code) + 3,
                code => {
                    let (base, extra) = *MATCHES.get(usize::from(code - 32))?;
                    base + bits.take(extra)?
                }
            };
            if long > BLOCK {
                return None;
            }
            if let Some(code) = literal_state.code.checked_sub(16) {
                bits.take(*LITERALS.get(usize::from(code))?)?;
            }
            if number < count {
                literal = literal_state.base + bits.take(literal_state.bits)?;
                matching = match_state.base + bits.take(match_state.bits)?;
                offset = offset_state.base + bits.take(offset_state.bits)?;
            }
        }
        Some(long)
    }
}

/// Takes a frame's header off the front. Whether the frame ends with a checksum.
fn frame_header(packed: &mut &[u8]) -> Option<bool> {
    if take(packed, 4)? != [0x28, 0xb5, 0x2f, 0xfd] {
        return None;
    }
    let flags = take(packed, 1)?[0];
    let is_single = flags >> 5 & 1 == 1;
    let window = usize::from(!is_single);
    let dictionary = [0, 1, 2, 4][usize::from(flags & 3)];
    let size = match flags >> 6 {
        0 => usize::from(is_single),
        by => 1 << by,
    };
    take(packed, window + dictionary + size)?;
    Some(flags >> 2 & 1 == 1)
}

/// Takes the literals off the front of a block. How many bytes they become.
fn literals(block: &mut &[u8]) -> Option<u64> {
    let first = *block.first()?;
    let (kind, form) = (first & 3, first >> 2 & 3);
    let (header, shift, wide) = match (kind, form) {
        (0 | 1, 0 | 2) => (1, 3, 5),
        (0 | 1, 1) => (2, 4, 12),
        (0 | 1, _) => (3, 4, 20),
        (_, 0 | 1) => (3, 4, 10),
        (_, 2) => (4, 4, 14),
        _ => (5, 4, 18),
    };
    let word = number(take(block, header)?) >> shift;
    let long = word & ((1 << wide) - 1);
    let packed = match kind {
        0 => long,
        1 => 1,
        _ => word >> wide & ((1 << wide) - 1),
    };
    take(block, usize::try_from(packed).ok()?)?;
    Some(long)
}

fn take<'a>(bytes: &mut &'a [u8], many: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(many)?;
    *bytes = rest;
    Some(taken)
}

fn number(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One block whose only match code, of 65,539 bytes and more, stands for all its sequences.
    fn bomb(sequences: u16) -> Vec<u8> {
        let mut block = vec![
            // One literal, as it is; the number of sequences; one code each.
            8, b'x', 255,
        ];
        block.extend((sequences - 0x7f00).to_le_bytes());
        block.extend([0b0101_0100, 1, 0, 52]);
        block.extend(vec![0xff; 2 * usize::from(sequences)]);
        block.push(1);
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
        let header = u32::try_from(block.len()).unwrap() << 3 | 2 << 1 | 1;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend(block);
        frame
    }

    #[test]
    fn a_block_that_becomes_more_than_128_kib_is_refused_before_it_is_unpacked() {
        let packed = bomb(0x7f01);
        assert_eq!(Blocks::default().check(&packed), None, "{}", packed.len());
    }

    #[test]
    fn what_an_encoder_writes_is_no_bomb() {
        use ruzstd::encoding::{CompressionLevel, compress_to_vec};
        let text: Vec<u8> = (0..300_000_u32)
            .flat_map(|at| format!("{} ", (at % 1_000) * (at % 613) % 977).into_bytes())
            .collect();
        for long in [0, 1, 100, 128 << 10, text.len()] {
            let packed = compress_to_vec(&text[..long], CompressionLevel::Fastest);
            let mut blocks = Blocks::default();
            assert_eq!(blocks.check(&packed), Some(()), "{long}");
            assert!(blocks.frame.is_none(), "the frame is over");
        }
    }
}
