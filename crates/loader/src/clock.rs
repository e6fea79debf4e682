//! The clocks that the program reads: the simulated machine's uptime, plus what its turn has cost
//! so far.

use model::Nanos;

/// Costs of a program's turns. No price may be 0: a program that polls the clock would never see
/// the moment that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// A system call that the supervisor answers. Chosen, not measured.
    pub call: Nanos,
    /// A turn, whatever it does. Chosen, not measured.
    pub turn: Nanos,
    /// Calls of one turn, after which another begins; 1 or more.
    pub calls_max: u32,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            // Chosen, not measured. Neither may be zero: a program that polls a clock until a
            // moment has come would never get there.
            call: Nanos::new(200),
            turn: Nanos::new(5_000),
            calls_max: 1_000,
        }
    }
}

/// The wall clock when the machine was booted: 2025-01-01 00:00 UTC.
pub const EPOCH: Nanos = Nanos::new(1_735_689_600_000_000_000);

/// The time within a turn.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Nanos,
    charged: Nanos,
}

impl Clock {
    /// A turn begins.
    #[must_use]
    pub const fn new(now: Nanos) -> Self {
        Self {
            began: now,
            charged: Nanos::new(0),
        }
    }

    /// The turn costs so much more.
    pub fn charge(&mut self, price: Nanos) {
        self.charged += price;
    }

    /// Cost of the turn.
    #[must_use]
    pub const fn charged(&self) -> Nanos {
        self.charged
    }

    /// The uptime as the program sees it.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.began + self.charged
    }
}
