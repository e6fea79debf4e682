//! Packed parts of files. A few bytes can claim to become gigabytes, so there are limits on what
//! one part becomes, and on what all parts of a file become together.

mod zstd;

use std::io::Read;

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

pub use zstd::Blocks;

/// Bytes that the packed parts of every file may become.
const FREE: u64 = 16 << 20;

/// So many bytes each packed byte may become besides: pages that are mostly empty shrink to a
/// hundredth.
const TIMES: u64 = 256;

/// What the packed parts of a file may still become.
#[derive(Clone, Copy, Debug)]
pub struct Allowance(u64);

impl Default for Allowance {
    fn default() -> Self {
        Self(FREE)
    }
}

impl Allowance {
    /// Limit for unpacking so many packed bytes; never more than `most`.
    pub fn for_part(&mut self, packed: usize, most: u64) -> u64 {
        let more = TIMES.saturating_mul(packed as u64);
        self.0 = self.0.saturating_add(more);
        self.0.min(most)
    }

    /// What a part has become.
    pub const fn take(&mut self, unpacked: u64) {
        self.0 = self.0.saturating_sub(unpacked);
    }
}

/// Unpacks one zstd frame or one zlib stream into at most `most` bytes; `None` if it is damaged or
/// longer.
pub fn unpack(how: Packing, packed: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let reader = reader(how, packed)?.take(most as u64 + 1);
    let got = { reader }.read_to_end(&mut bytes).ok()?;
    (got <= most).then_some(bytes)
}

/// Unpacks one zstd frame or one zlib stream as it is read; `None` if its begin is damaged. It has
/// no more memory than the stream's window, of at most 100 MiB.
pub fn reader(how: Packing, packed: &[u8]) -> Option<Box<dyn Read + '_>> {
    Some(match how {
        Packing::Zstd => {
            let decoder = decoder_for(packed)?;
            Blocks::default().check(packed)?;
            Box::new(StreamingDecoder::new_with_decoder(packed, decoder).ok()?)
        }
        Packing::Zlib => Box::new(flate2::read::ZlibDecoder::new(packed)),
        Packing::Deflate => Box::new(flate2::read::DeflateDecoder::new(packed)),
    })
}

/// How something is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Zstd,
    Zlib,
    /// As zlib, without a header.
    Deflate,
}

/// A decoder for the frame that begins here. The first frame of a decoder may have a window of any
/// length, which is kept in memory; a second one may not, so it reads this header twice.
pub fn decoder_for(packed: &[u8]) -> Option<FrameDecoder> {
    let mut decoder = FrameDecoder::new();
    decoder.init(packed).ok()?;
    decoder.reset(packed).ok()?;
    Some(decoder)
}
