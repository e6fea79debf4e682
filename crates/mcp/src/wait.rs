//! A question on a thread of its own, for which a client waits so long and no longer.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use ask::{Note, Services};
use runslice::COMPUTER;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout_at;

use crate::answer::{Answered, NoAnswer};
use crate::desk::{Desk, Shelf};
use crate::options::Owner;

/// The stack of a main thread: a workload may be nested.
const STACK: usize = 8 << 20;

/// What a thread has to do.
pub type Work = Box<dyn FnOnce(&Desk<'_>) -> anyhow::Result<Answered> + Send>;

/// Does `work` with the files of `shelf`, when one of `turns` is free, until `gone` is over. What
/// is given up ends within some milliseconds where it simulates; its turn is free only then.
///
/// # Errors
/// See [`NoAnswer`].
pub async fn wait(
    owner: &Arc<Owner>,
    turns: &Arc<Semaphore>,
    gone: impl Future<Output = ()>,
    (shelf, work): (Shelf, Work),
) -> Result<Answered, NoAnswer> {
    let until = Instant::now() + owner.time;
    let cancelled = Arc::new(AtomicBool::new(false));
    let answer = async {
        let turn = Arc::clone(turns).acquire_owned().await;
        let turn = turn.map_err(|_| NoAnswer::Broken)?;
        let job = Job {
            owner: Arc::clone(owner),
            cancelled: Arc::clone(&cancelled),
            until,
            shelf,
            turn,
        };
        let (to, from) = oneshot::channel();
        let thread = thread::Builder::new().name("question".to_owned());
        let started = thread.stack_size(STACK).spawn(move || {
            // Nobody may wait any more.
            let _ = to.send(job.answer(work));
        });
        started.map_err(|error| NoAnswer::Error(error.into()))?;
        from.await.map_err(|_| NoAnswer::Broken)?
    };
    let waited = timeout_at(until.into(), async {
        tokio::select! {
            answered = answer => answered,
            () = gone => Err(NoAnswer::Cancelled),
        }
    });
    let answered = waited.await.unwrap_or(Err(NoAnswer::Late));
    cancelled.store(true, Ordering::Relaxed);
    answered
}

/// A question that has its turn.
struct Job {
    owner: Arc<Owner>,
    cancelled: Arc<AtomicBool>,
    until: Instant,
    shelf: Shelf,
    turn: OwnedSemaphorePermit,
}

impl Job {
    fn answer(self, work: Work) -> Result<Answered, NoAnswer> {
        let notes = Mutex::new(Vec::new());
        let hears = |note: &Note| {
            let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
            notes.push(runslice::line(&note.text));
        };
        let is_cancelled = || self.cancelled.load(Ordering::Relaxed);
        let desk = Desk {
            services: Services {
                files: Some(&self.shelf),
                compiler: Some(&self.shelf),
                // No client starts a program, and no advice is for a command line.
                programs: None,
                words: None,
                hears: Some(&hears),
                is_cancelled: Some(&is_cancelled),
                ..COMPUTER
            },
            owner: &self.owner,
            until: self.until,
        };
        // A broken invariant of ours ends this question, and not the next ones.
        let made = panic::catch_unwind(AssertUnwindSafe(|| work(&desk)));
        drop(self.turn);
        let mut answered = match made {
            Ok(made) => made.map_err(NoAnswer::Error)?,
            Err(_) => return Err(NoAnswer::Broken),
        };
        let heard = notes.into_inner().unwrap_or_else(PoisonError::into_inner);
        let later = std::mem::replace(&mut answered.notes, heard);
        answered.notes.extend(later);
        Ok(answered)
    }
}
