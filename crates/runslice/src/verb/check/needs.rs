//! What an object needs besides functions: variables that its loader sets, and somebody at the
//! other end of its ring buffers.

use std::io::Write;

use ask::unset;
use bpf::{Image, MapKind, Reached};

/// The reasons why instructions cannot run: those that the callbacks can reach, and the others.
pub fn sort(image: &Image, reached: &Reached) -> (Vec<String>, Vec<String>) {
    let (mut ends, mut idle) = (Vec::new(), Vec::new());
    for (index, reason) in image.poisons.iter().enumerate() {
        if reached.poisons.contains(&index) {
            ends.push(reason.clone());
        } else {
            idle.push(reason.clone());
        }
    }
    (ends, idle)
}

/// Warns of variables that stay 0 and of ring buffers that nobody serves.
///
/// # Errors
/// When `to` cannot be written.
pub fn warn(image: &Image, reached: &Reached, to: &mut dyn Write) -> std::io::Result<()> {
    let unset = unset::variables(image, reached);
    if !unset.is_empty() {
        writeln!(
            to,
            "\nread, 0, and set by no program: a loader may set them (give --set NAME=VALUE)"
        )?;
    }
    unset.iter().try_for_each(|it| writeln!(to, "  {it}"))?;
    for map in &image.maps {
        let (name, bytes) = (&map.name, map.max_entries);
        match map.kind {
            MapKind::Ringbuf => writeln!(
                to,
                "\nring buffer `{name}`: nobody reads it; when its {bytes} bytes are full, \
                 programs get no more"
            )?,
            MapKind::UserRingbuf => writeln!(
                to,
                "\nring buffer `{name}`: nobody fills it; programs find nothing in it"
            )?,
            _ => {}
        }
    }
    Ok(())
}
