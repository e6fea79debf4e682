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
        // `look_for_livelock()` of the simulated machine.
        () if has("busy with scheduling alone") => Fault::Livelock,
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::SimTime;

    #[test]
    fn what_the_object_machine_says_is_told_apart() {
        let of = |message: &str| {
            fault_of(&Exit {
                kind: ExitKind::Error,
                code: 0,
                message: message.to_owned(),
                time: SimTime::ZERO,
                fault: Some("CPU 0".to_owned()),
            })
        };
        let livelock = "the machine is busy with scheduling alone";
        assert_eq!(of(livelock), Fault::Livelock);
        assert_eq!(of("x_enqueue: endless loop"), Fault::EndlessLoop);
        assert_eq!(of("x_enqueue: a store to 0x8"), Fault::WildAccess);
    }
}
