//! Independent work on all CPUs, with results in the order of the work.

use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use ask::services::{Job, Workers};

use crate::progress::Bar;

/// The threads of this process. A terminal shows how much they have done.
pub struct Threads;

impl Workers for Threads {
    fn usual(&self) -> NonZeroUsize {
        thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
    }

    /// Takes as many threads as the system gives.
    fn each(
        &self,
        count: usize,
        jobs: NonZeroUsize,
        name: &str,
        work: &(dyn Fn(usize) -> bool + Sync),
    ) {
        let next = AtomicUsize::new(0);
        let is_over = AtomicBool::new(false);
        let bar = Mutex::new((Bar::of_things(name, count as u64), 0));
        let worker = || {
            while !is_over.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= count {
                    break;
                }
                is_over.fetch_or(!work(at), Ordering::Relaxed);
                let mut bar = bar.lock().unwrap_or_else(PoisonError::into_inner);
                bar.1 += 1;
                let done = bar.1;
                bar.0.set(done);
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..jobs.get().min(count))
                .map_while(|_| thread::Builder::new().spawn_scoped(scope, worker).ok())
                .collect();
            if threads.is_empty() {
                worker();
            }
            for thread in threads {
                // A broken invariant of ours goes on as it would without threads.
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
        let (bar, _) = bar.into_inner().unwrap_or_else(PoisonError::into_inner);
        bar.end();
    }

    fn beside<'a>(&self, both: [Job<'a>; 2], here: Box<dyn FnOnce() + 'a>) -> io::Result<()> {
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for job in both {
                threads.push(thread::Builder::new().spawn_scoped(scope, job)?);
            }
            here();
            for thread in threads {
                // A broken invariant of ours goes on as it would without threads.
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::computer::COMPUTER;

    fn threads(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    #[test]
    fn results_have_the_order_of_the_work_on_any_number_of_threads() {
        let items: Vec<u64> = (0..100).collect();
        for count in [1, 3, 200] {
            let squares = COMPUTER
                .map(&items, threads(count), "n", |n| Ok(n * n))
                .unwrap();
            assert_eq!(squares, items.iter().map(|n| n * n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_failure_is_told_whichever_came_first() {
        let items: Vec<u64> = (0..50).collect();
        for _ in 0..20 {
            let result = COMPUTER.map(&items, threads(4), "n", |n| match n {
                7.. => Err(anyhow::anyhow!("item {n}")),
                _ => Ok(()),
            });
            assert_eq!(result.unwrap_err().to_string(), "item 7");
        }
    }

    #[test]
    fn nothing_to_do_is_done() {
        let none: Vec<u8> = COMPUTER
            .map(&[] as &[u8], threads(4), "n", |n| Ok(*n))
            .unwrap();
        assert!(none.is_empty());
    }
}
