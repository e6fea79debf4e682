//! Work that its caller may give up: a library's caller has no process to kill.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Becomes true when nobody waits for the work any more.
pub type Flag = Arc<AtomicBool>;

thread_local! {
    /// The flag of the work that this thread does.
    static FLAG: RefCell<Option<Flag>> = const { RefCell::new(None) };
}

/// Does `work`, which ends in [`ask::error::Cancelled`] soon after `flag` became true. Threads of
/// [`crate::parallel`] that it starts know of it; others are to be told by [`flag`].
pub fn cancellable<T>(flag: Option<Flag>, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<Flag>);
    impl Drop for Restore {
        fn drop(&mut self) {
            FLAG.set(self.0.take());
        }
    }
    let _restore = Restore(FLAG.replace(flag));
    work()
}

/// The flag of the work that this thread does, if it may be given up.
pub fn flag() -> Option<Flag> {
    FLAG.with_borrow(Clone::clone)
}

/// Whether nobody waits any more for the work that this thread does.
pub fn is_cancelled() -> bool {
    FLAG.with_borrow(|flag| is_over(flag.as_ref()))
}

fn is_over(flag: Option<&Flag>) -> bool {
    flag.is_some_and(|it| it.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use model::{Event, EventMask, Header, Nanos, SimTime, Sink};
    use stats::Metrics;
    use workload::RunSpec;

    use super::*;
    use crate::computer::COMPUTER;
    use crate::runner::Runner;
    use ask::error::Cancelled;

    fn hours() -> RunSpec {
        let load = crate::workload_arg::find("desk", &[]).unwrap();
        RunSpec {
            policy: crate::policy::find("fifo").unwrap(),
            machine: load.machine.clone(),
            workload: load.into(),
            seed: 1,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: None,
        }
    }

    /// Gives up after the first portion of events.
    struct Once(Metrics, Flag);

    impl Sink for Once {
        fn wants(&self) -> EventMask {
            self.0.wants()
        }

        fn begin(&mut self, header: &Header) {
            self.0.begin(header);
        }

        fn events(&mut self, events: &[Event]) {
            assert!(!self.1.swap(true, Ordering::Relaxed), "more events came");
            self.0.events(events);
        }

        fn finish(&mut self, _: SimTime) {
            self.1.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_run_that_nobody_waits_for_ends_at_once_on_any_thread() {
        let flag = Flag::default();
        cancellable(Some(Arc::clone(&flag)), || {
            COMPUTER.check().unwrap();
            let two = COMPUTER.map(&[(); 2], 2.try_into().unwrap(), "runs", |()| {
                let mut sink = Once(Metrics::new(), Arc::new(AtomicBool::new(false)));
                super::flag().unwrap().store(true, Ordering::Relaxed);
                Runner::new(&hours(), &COMPUTER)
                    .with_sink(&mut sink)
                    .start()
                    .map(drop)
            });
            assert!(two.unwrap_err().is::<Cancelled>());
        });
        COMPUTER.check().unwrap();
        assert!(flag.load(Ordering::Relaxed));
    }
}
