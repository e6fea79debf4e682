//! Records that `perf record -z` packed: one stream of zstd through all packed records.

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::foreign::error::Error;
use crate::foreign::unpack::{Allowance, Blocks, decoder_for};

/// Most bytes that one packed record may become: perf packs its buffers, of at most 512 MiB, in
/// parts.
const MOST: u64 = 64 << 20;

/// What was unpacked and not taken.
#[derive(Default)]
pub struct Unpacked {
    frames: Option<FrameDecoder>,
    blocks: Blocks,
    allowance: Allowance,
    bytes: Vec<u8>,
    at: usize,
    spare: Vec<u8>,
}

impl Unpacked {
    /// Unpacks more.
    pub fn add(&mut self, mut packed: &[u8], offset: u64) -> Result<(), Error> {
        self.bytes.drain(..self.at);
        self.at = 0;
        let damaged = || Error::Malformed {
            offset,
            what: "a packed record is damaged",
        };
        self.blocks.check(packed).ok_or_else(damaged)?;
        let long = packed.len();
        let most = self.allowance.for_part(long, MOST);
        while !packed.is_empty() {
            if self.frames.is_none() {
                self.frames = Some(decoder_for(packed).ok_or_else(damaged)?);
                let frames = self.frames.as_mut().expect("it was just put there");
                frames.reset(&mut packed).map_err(|_| damaged())?;
                continue;
            }
            let frames = self.frames.as_mut().expect("there is one");
            if frames.is_finished() {
                frames.reset(&mut packed).map_err(|_| damaged())?;
            }
            let one = BlockDecodingStrategy::UptoBlocks(1);
            frames
                .decode_blocks(&mut packed, one)
                .map_err(|_| damaged())?;
            let before = self.bytes.len();
            self.bytes.extend(frames.collect().into_iter().flatten());
            self.allowance.take((self.bytes.len() - before) as u64);
            if self.bytes.len() as u64 > most {
                return Err(Error::Bomb {
                    offset,
                    what: "a packed record",
                    packed: long as u64,
                    most,
                });
            }
        }
        Ok(())
    }

    /// Gives out what the window of the last frame still holds: perf never ends a frame.
    pub fn finish(&mut self, offset: u64) -> Result<(), Error> {
        // An empty last block, and room for a checksum, which is not looked at.
        const LAST: &[u8] = &[1, 0, 0, 0, 0, 0, 0];
        if self
            .frames
            .as_ref()
            .is_some_and(|frames| !frames.is_finished())
        {
            let frames = self.frames.as_mut().expect("there is one");
            let all = BlockDecodingStrategy::All;
            frames
                .decode_blocks(LAST, all)
                .map_err(|_| Error::Malformed {
                    offset,
                    what: "a packed record is damaged",
                })?;
            self.bytes.extend(frames.collect().into_iter().flatten());
        }
        Ok(())
    }

    /// The next `long` bytes, if there are so many.
    pub fn peek(&self, long: usize) -> Option<&[u8]> {
        self.bytes.get(self.at..self.at + long)
    }

    /// Takes the next `long` bytes.
    pub fn take(&mut self, long: usize) -> Option<Vec<u8>> {
        let mut taken = std::mem::take(&mut self.spare);
        let Some(bytes) = self.bytes.get(self.at..self.at + long) else {
            self.spare = taken;
            return None;
        };
        taken.clear();
        taken.extend_from_slice(bytes);
        self.at += long;
        Some(taken)
    }

    /// Gives memory back that [`Unpacked::take`] gave.
    pub fn give_back(&mut self, taken: Vec<u8>) {
        self.spare = taken;
    }
}
