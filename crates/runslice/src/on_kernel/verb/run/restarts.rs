//! How often a policy that asks for it may be loaded again.

use std::time::{Duration, Instant};

/// So many restarts are allowed in [`WINDOW`].
pub const MOST: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);

/// The restarts so far.
#[derive(Debug, Default)]
pub struct Restarts {
    count: u32,
    /// Those of the last minute, oldest first.
    recent: Vec<Instant>,
}

impl Restarts {
    /// Whether one more is allowed at `now`; if so it is counted.
    pub fn allow(&mut self, now: Instant) -> bool {
        self.recent
            .retain(|then| now.saturating_duration_since(*then) < WINDOW);
        if self.recent.len() >= MOST {
            return false;
        }
        self.recent.push(now);
        self.count += 1;
        true
    }

    /// How many there were.
    pub fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_in_a_minute_and_the_sixth_when_the_first_is_a_minute_old() {
        let mut restarts = Restarts::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        for seconds in 0..5 {
            assert!(restarts.allow(at(seconds)), "{seconds}");
        }
        assert!(!restarts.allow(at(59)));
        assert!(restarts.allow(at(60)));
        assert!(!restarts.allow(at(60)));
        assert_eq!(restarts.count(), 6);
    }
}
