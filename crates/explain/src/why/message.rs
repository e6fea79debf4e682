//! What a policy's end says of its fault.

use model::{Exit, ExitKind};

use super::finding::Fault;

/// The class of an exit, by the kernel's message (kernels 6.18 and 7.2) or by what the object
/// machine says.
pub(super) fn fault_of(exit: &Exit) -> Fault {
    // Who is above may end it with words of its own.
    let own = [ExitKind::ErrorBpf, ExitKind::UnregBpf, ExitKind::ParentKill];
    if own.contains(&exit.kind) {
        return Fault::OwnError;
    }
    if !exit.kind.is_error() {
        return Fault::Restart;
    }
    let message = &*exit.message;
    let has = |words: &str| message.contains(words);
    match () {
        () if exit.fault.is_some() => stopped(message),
        () if has("() failed (") || has("parent rejected (") => Fault::InitFailed,
        () if has("not allowed for") || has("cannot move migration disabled") => {
            Fault::CpuNotAllowed
        }
        () if has("invalid CPU") => Fault::NoSuchCpu,
        () if has("non-existent DSQ") || has("invalid DSQ ID") => Fault::NoSuchQueue,
        () if has("already direct-dispatched") => Fault::InsertedTwice,
        () => Fault::Misuse,
    }
}

/// The class of what ended a program of the simulated machine (`bpf::Stop`).
fn stopped(message: &str) -> Fault {
    let has = |words: &str| message.contains(words);
    match () {
        () if has("endless loop") => Fault::EndlessLoop,
        // `look_for_livelock()` of the simulated machine.
        () if has("busy with scheduling alone") => Fault::Livelock,
        () if has("instructions is spent") || has("out of memory: the object") => Fault::OverLimit,
        () if has("calls nested more than") || has("stack overflow") => Fault::TooDeep,
        () if has("outside writable memory") || has("which is no function") => Fault::WildAccess,
        () => Fault::Misuse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SimTime;

    #[test]
    fn what_the_object_machine_says_is_told_apart() {
        let cases = [
            ("the machine is busy with scheduling alone", Fault::Livelock),
            (
                "endless loop: more than 9 instructions in one callback",
                Fault::EndlessLoop,
            ),
            (
                "the run's budget of 9 instructions is spent",
                Fault::OverLimit,
            ),
            (
                "out of memory: the object may use 9 bytes",
                Fault::OverLimit,
            ),
            ("calls nested more than 8 deep", Fault::TooDeep),
            ("stack overflow: more than 512 bytes", Fault::TooDeep),
            (
                "store of 8 bytes outside writable memory, at 0x0",
                Fault::WildAccess,
            ),
            ("call of 0x8, which is no function", Fault::WildAccess),
            ("bpf_loop: too many flags", Fault::Misuse),
        ];
        for (message, want) in cases {
            assert_eq!(of(message, Some("CPU 0")), want, "{message}");
        }
    }

    fn of(message: &str, fault: Option<&str>) -> Fault {
        fault_of(&Exit {
            kind: ExitKind::Error,
            code: 0,
            message: message.to_owned(),
            time: SimTime::ZERO,
            fault: fault.map(str::to_owned),
        })
    }

    #[test]
    fn a_callback_that_refuses_is_no_misuse_of_a_function() {
        for callback in ["init", "init_task", "cgroup_init", "cgroup_prep_move"] {
            let message = format!("ops.{callback}() failed (-12) for a[1]");
            assert_eq!(of(&message, None), Fault::InitFailed);
        }
        // Of the `sub_attach` of the one above.
        assert_eq!(of("parent rejected (-12)", None), Fault::InitFailed);
        let other = "SCX_OPS_ENQ_LAST requires ops.enqueue() to be implemented";
        assert_eq!(of(other, None), Fault::Misuse);
    }
}
