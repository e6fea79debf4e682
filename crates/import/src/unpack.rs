//! Packed parts of files.

use std::io::Read;

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// Unpacks one zstd frame or one zlib stream into at most `most` bytes; `None` if it is damaged or
/// longer.
pub fn unpack(how: Packing, packed: &[u8], most: usize) -> Option<Vec<u8>> {
    match how {
        Packing::Zstd => {
            let decoder = decoder_for(packed)?;
            let reader = StreamingDecoder::new_with_decoder(packed, decoder).ok()?;
            bounded(reader, most)
        }
        Packing::Zlib => bounded(flate2::read::ZlibDecoder::new(packed), most),
        Packing::Deflate => bounded(flate2::read::DeflateDecoder::new(packed), most),
    }
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

fn bounded(reader: impl Read, most: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let got = reader.take(most as u64 + 1).read_to_end(&mut bytes).ok()?;
    (got <= most).then_some(bytes)
}
