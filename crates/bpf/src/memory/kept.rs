//! Mappings of regions that are gone, for the regions to come.
//!
//! A short run takes less time than to map its region, to wait for each page of it, and to give
//! all back. So a mapping is used again, with zeros where something was written: no region can
//! tell which one it got.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use memmap2::{MmapMut, MmapOptions};

use super::{Memory, Pages};

/// Mappings that nobody uses. Each takes at most three times [`LITTLE`] of memory.
const MOST: usize = 8;

/// Bytes of each part that are zeroed in place, bytes. To get pages anew takes longer than that;
/// what lies behind them is given back to the system.
const LITTLE: usize = 256 << 10;

/// They are zero.
static KEPT: Mutex<Vec<MmapMut>> = Mutex::new(Vec::new());

/// A mapping of `len` bytes, all zero.
///
/// # Errors
/// If the address space is refused.
pub(super) fn take(len: usize) -> std::io::Result<MmapMut> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = kept.iter().rposition(|map| map.len() == len);
    if let Some(at) = fits {
        return Ok(kept.swap_remove(at));
    }
    let reserve = || MmapOptions::new().len(len).no_reserve_swap().map_anon();
    // Addresses may be limited, and nobody needs those of the others.
    reserve().or_else(|_| {
        kept.clear();
        reserve()
    })
}

/// Takes a mapping back that is zero but for the `used` bytes.
pub(super) fn give(mut map: MmapMut, used: [Range<usize>; 3]) {
    let is_zero = used.into_iter().all(|range| clear(&mut map, range));
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if is_zero && kept.len() < MOST {
        kept.push(map);
    }
}

/// Zeroes a part. False if that takes longer than another mapping.
fn clear(map: &mut MmapMut, used: Range<usize>) -> bool {
    let little = used.end.min(used.start.saturating_add(LITTLE));
    let little = little.next_multiple_of(PAGE).min(map.len());
    map[used.start..little].fill(0);
    used.end <= little || give_back(map, little..used.end)
}

/// Bytes of the smallest page. Where pages are larger, one that is zeroed in part is given back as
/// a whole.
const PAGE: usize = 4096;

/// The pages of `range` are those that nobody has written to.
#[cfg(target_os = "linux")]
fn give_back(map: &MmapMut, range: Range<usize>) -> bool {
    let advice = memmap2::UncheckedAdvice::DontNeed;
    // SAFETY: The mapping is anonymous and private, so its pages read as zero from now on, and
    // nobody has a reference into it.
    unsafe { map.unchecked_advise_range(advice, range.start, range.len()) }.is_ok()
}

#[cfg(not(target_os = "linux"))]
const fn give_back(_map: &MmapMut, _range: Range<usize>) -> bool {
    false
}

impl Drop for Memory {
    /// What was written lies in the two heaps and in the arena, as far as pages of it were ever
    /// allocated. Where user space says where the arena lies, or has a file there, the mapping is
    /// for nobody else.
    fn drop(&mut self) {
        let is_plain = self.arena.as_ref().is_none_or(Pages::is_unmoved) && self.shared.is_unused();
        if is_plain && !std::thread::panicking() {
            let used = self.used();
            self.region.keep(used);
        }
    }
}
