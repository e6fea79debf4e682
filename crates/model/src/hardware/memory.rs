//! How long memory takes for tasks that use more than a cache has.

use super::Hardware;

/// A factor of one, in 1/1024.
const ONE: u64 = 1024;

impl Hardware {
    /// How much longer waits for memory take for a task that uses `footprint` bytes behind a
    /// last-level cache of `cache` bytes, in 1/1024, on a CPU of `node` with its memory in `home`.
    /// What fits into the cache takes no longer.
    #[must_use]
    pub fn memory_time(&self, (footprint, cache): (u64, u64), (home, node): (u16, u16)) -> u64 {
        let Some(penalty) = self.penalty.filter(|_| footprint > cache) else {
            return ONE;
        };
        let missed = (u128::from(footprint - cache) << 20) / u128::from(footprint);
        let places = self.places.as_ref();
        let row = places.and_then(|it| it.remote.get(usize::from(home)));
        let remote = row.and_then(|row| row.get(usize::from(node)));
        let longer = u64::from(penalty) * remote.map_or(ONE, |it| u64::from(*it)) / ONE;
        ONE + ((missed * u128::from(longer.saturating_sub(ONE))) >> 20) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HardwarePlaces;

    const MIB: u64 = 1 << 20;

    /// 48 MiB behind 32 MiB: a third misses, and memory takes 11.9 times as long.
    #[test]
    fn only_what_a_cache_has_no_room_for_takes_longer() {
        let hardware = Hardware {
            penalty: Some(12_185),
            ..Hardware::default()
        };
        let time = |mib, cache| hardware.memory_time((mib * MIB, cache * MIB), (0, 0));
        assert_eq!(
            (time(48, 32), time(48, 96), time(16, 32)),
            (4_744, ONE, ONE)
        );
        assert_eq!(Hardware::default().memory_time((48, 32), (0, 0)), ONE);
    }

    #[test]
    fn memory_of_another_node_takes_longer_for_who_misses_the_cache() {
        let remote = vec![vec![1024, 2048], vec![2048, 1024]];
        let hardware = Hardware {
            penalty: Some(4096),
            places: Some(HardwarePlaces {
                remote,
                ..HardwarePlaces::default()
            }),
            ..Hardware::default()
        };
        let time = |footprint, node| hardware.memory_time((footprint, MIB), (0, node));
        assert_eq!((time(2 * MIB, 0), time(2 * MIB, 1)), (2_560, 4_608));
        assert_eq!(time(MIB, 1), ONE);
    }
}
