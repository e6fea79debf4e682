//! What a policy's end says of its fault.

use model::{Exit, ExitKind};

use super::finding::Fault;

/// The class of an exit, by the kernel's message (kernels 6.18 and 7.2) or by what the object
/// machine says.
pub(super) fn fault_of(exit: &Exit) -> Fault {
    if matches!(exit.kind, ExitKind::ErrorBpf | ExitKind::UnregBpf) {
        return Fault::OwnError;
    }
    if !exit.kind.is_error() {
        return Fault::Restart;
    }
    let message = &*exit.message;
    let has = |words: &str| message.contains(words);
    match () {
        () if has("endless loop") || has("instructions is spent") => Fault::EndlessLoop,
        () if exit.fault.is_some() => Fault::WildAccess,
        () if has("not allowed for") || has("cannot move migration disabled") => {
            Fault::CpuNotAllowed
        }
        () if has("invalid CPU") => Fault::NoSuchCpu,
        () if has("non-existent DSQ") || has("invalid DSQ ID") => Fault::NoSuchQueue,
        () if has("already direct-dispatched") => Fault::InsertedTwice,
        () => Fault::Misuse,
    }
}
