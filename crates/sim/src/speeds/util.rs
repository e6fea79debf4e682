//! How busy a task keeps a CPU: the kernel's `util_avg`, for results only.
//!
//! It grows while the task executes, the slower the slower its CPU is, and decays by half in 32 ms
//! while it does not. It knows neither threads that share a core nor memory.
//!
//! Source: `kernel/sched/pelt.c`, kernel 6.18. What a task lacks there from its group and from
//! being new is left out: it begins with nothing.

/// y^n in 1/2^32, where y^32 is a half.
const DECAY: [u32; 32] = [
    0xffff_ffff,
    0xfa83_b2da,
    0xf525_7d14,
    0xefe4_b99a,
    0xeac0_c6e6,
    0xe5b9_06e6,
    0xe0cc_deeb,
    0xdbfb_b796,
    0xd744_fcc9,
    0xd2a8_1d91,
    0xce24_8c14,
    0xc9b9_bd85,
    0xc567_2a10,
    0xc12c_4cc9,
    0xbd08_a39e,
    0xb8fb_af46,
    0xb504_f333,
    0xb123_f581,
    0xad58_3ee9,
    0xa9a1_5ab4,
    0xa5fe_d6a9,
    0xa270_4302,
    0x9ef5_325f,
    0x9b8d_39b9,
    0x9837_f050,
    0x94f4_efa8,
    0x91c3_d373,
    0x8ea4_398a,
    0x8b95_c1e3,
    0x8898_0e80,
    0x85aa_c367,
    0x82cd_8698,
];

/// `LOAD_AVG_MAX`: the sum of a task that always executes.
const MOST: u64 = 47_742;
/// Units of a period; a unit is 1024 ns.
const PERIOD: u64 = 1024;
/// Nanoseconds of a period.
pub(crate) const PERIOD_NS: u64 = PERIOD << 10;

/// `decay_load()`.
fn decayed(sum: u64, periods: u64) -> u64 {
    if periods > 32 * 63 {
        return 0;
    }
    let halved = sum >> (periods / 32);
    ((u128::from(halved) * u128::from(DECAY[(periods % 32) as usize])) >> 32) as u64
}

/// The utilisation of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Util {
    sum: u32,
    /// Units of the period that has begun.
    begun: u16,
    /// Nanoseconds of the unit that has begun.
    rest: u16,
}

impl Util {
    /// `span` nanoseconds of the clock of work have passed, in which the task executed or not.
    ///
    /// Source: `accumulate_sum()`.
    pub fn pass(&mut self, span: u64, executes: bool) {
        let span = span.saturating_add(self.rest.into());
        self.rest = (span & 1023) as u16;
        let begun = u64::from(self.begun);
        let units = (span >> 10) + begun;
        let (periods, now) = (units / PERIOD, units % PERIOD);
        let mut sum = u64::from(self.sum);
        let mut more = span >> 10;
        if periods > 0 {
            sum = decayed(sum, periods);
            more = decayed(PERIOD - begun, periods) + MOST - decayed(MOST, periods) - PERIOD + now;
        }
        self.begun = now as u16;
        self.sum = (sum + if executes { more } else { 0 }) as u32;
    }

    /// 1024: it always executes on the biggest CPU.
    pub fn value(self) -> u64 {
        let most = MOST - PERIOD + u64::from(self.begun);
        (u64::from(self.sum) << 10) / most
    }

    /// Whether it is too much for a CPU of `capacity`.
    ///
    /// Source: `fits_capacity()`, kernel/sched/fair.c, kernel 6.18.
    pub fn exceeds(self, capacity: u16) -> bool {
        self.value() * 1280 >= u64::from(capacity) * 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_task_that_always_executes_comes_near_to_all_and_loses_half_in_32_periods() {
        let mut util = Util::default();
        util.pass(32 * PERIOD_NS, true);
        assert!((505..=519).contains(&util.value()), "{}", util.value());
        util.pass(1000 * MS, true);
        assert!((1020..=1024).contains(&util.value()), "{}", util.value());
        util.pass(32 * PERIOD_NS, false);
        assert!((510..=514).contains(&util.value()), "{}", util.value());
        util.pass(u64::MAX, false);
        assert_eq!(util.value(), 0);
    }

    #[test]
    fn it_does_not_matter_into_how_many_parts_a_span_is_cut() {
        let (mut whole, mut parts) = (Util::default(), Util::default());
        whole.pass(40 * MS, true);
        (0..400).for_each(|_| parts.pass(MS / 10, true));
        assert!(
            whole.value().abs_diff(parts.value()) <= 4,
            "{whole:?} {parts:?}"
        );
    }

    #[test]
    fn a_fifth_must_be_to_spare() {
        let mut util = Util::default();
        util.pass(1000 * MS, true);
        assert!(util.exceeds(1024) && util.exceeds(160) && !util.exceeds(1300));
    }
}
