//! Independent work on all CPUs, with results in the order of the work.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::cancel;
use crate::progress::Bar;

/// As many threads as the user asked for, or as this process may use CPUs.
pub fn jobs(asked: Option<NonZeroUsize>) -> NonZeroUsize {
    asked.unwrap_or_else(|| thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
}

/// Does `work` on every item, on `jobs` threads, or as many as the system gives, and returns what
/// came of them in their order.
/// `name` says on a terminal what is being counted.
///
/// # Errors
/// That of the first item, in their order, that has one. Items after it may not have been touched.
pub fn map<Item: Sync, Result_: Send>(
    items: &[Item],
    jobs: NonZeroUsize,
    name: &str,
    work: impl Fn(&Item) -> anyhow::Result<Result_> + Sync,
) -> anyhow::Result<Vec<Result_>> {
    let next = AtomicUsize::new(0);
    let flag = cancel::flag();
    let failed = AtomicBool::new(false);
    let bar = Mutex::new((Bar::of_things(name, items.len() as u64), 0));
    let worker = || {
        cancel::cancellable(flag.clone(), || {
            let mut done = Vec::new();
            while !failed.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(at) else { break };
                let result = cancel::check()
                    .map_err(Into::into)
                    .and_then(|()| work(item));
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                done.push((at, result));
                let mut bar = bar.lock().unwrap_or_else(PoisonError::into_inner);
                bar.1 += 1;
                let count = bar.1;
                bar.0.set(count);
            }
            done
        })
    };
    let mut all: Vec<(usize, anyhow::Result<Result_>)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.get().min(items.len()))
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, worker).ok())
            .collect();
        if threads.is_empty() {
            return worker();
        }
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(done) => done,
            // A broken invariant of ours goes on as it would without threads.
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().flat_map(join).collect()
    });
    let (bar, _) = bar.into_inner().unwrap_or_else(PoisonError::into_inner);
    bar.end();
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    #[test]
    fn results_have_the_order_of_the_work_on_any_number_of_threads() {
        let items: Vec<u64> = (0..100).collect();
        for count in [1, 3, 200] {
            let squares = map(&items, threads(count), "n", |n| Ok(n * n)).unwrap();
            assert_eq!(squares, items.iter().map(|n| n * n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_failure_is_told_whichever_came_first() {
        let items: Vec<u64> = (0..50).collect();
        for _ in 0..20 {
            let result = map(&items, threads(4), "n", |n| match n {
                7.. => Err(anyhow::anyhow!("item {n}")),
                _ => Ok(()),
            });
            assert_eq!(result.unwrap_err().to_string(), "item 7");
        }
    }

    #[test]
    fn nothing_to_do_is_done() {
        let none: Vec<u8> = map(&[] as &[u8], threads(4), "n", |n| Ok(*n)).unwrap();
        assert!(none.is_empty());
    }
}
