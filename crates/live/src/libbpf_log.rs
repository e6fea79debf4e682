//! What libbpf prints while it works, kept instead of printed: a refusal quotes it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use libbpf_rs::{PrintLevel, set_print};

/// libbpf prints through one function of the whole process, so there is one text.
static TEXT: Mutex<String> = Mutex::new(String::new());
/// Held while somebody listens, so that two threads do not get each other's words.
static LISTENER: Mutex<()> = Mutex::new(());

/// Runs `work` and returns its result with libbpf's warnings during it.
pub fn listen<T>(work: impl FnOnce() -> T) -> (T, String) {
    let _only = lock(&LISTENER);
    lock(&TEXT).clear();
    let before = set_print(Some((PrintLevel::Warn, keep)));
    let result = work();
    set_print(before);
    (result, std::mem::take(&mut *lock(&TEXT)))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "libbpf-rs fixes the signature"
)]
fn keep(_: PrintLevel, line: String) {
    lock(&TEXT).push_str(&line);
}

/// A text is as good after a panic as before.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
