//! The filter that compares recordings with simulations notices every change that matters, and
//! none that does not.

use model::Op;
use runslice_tests::call::{Call, Who};
use runslice_tests::comparable::{Comparable, comparable, is_kept};
use runslice_tests::recording::{self, Section};

/// The CPU of which a recording has every callback.
const WHOLE_CPU: u16 = 1;

const RECORDINGS: [(&str, &str); 4] = [
    ("a618", include_str!("../golden/traces/a618.txt")),
    ("b618", include_str!("../golden/traces/b618.txt")),
    ("c618", include_str!("../golden/traces/c618.txt")),
    ("k618", include_str!("../golden/traces/k618.txt")),
];

fn for_each_section(mut check: impl FnMut(&str, &Section, &Comparable)) {
    for (name, text) in RECORDINGS {
        let sections = recording::parse(text).expect(name);
        assert_eq!(sections.len(), 10, "{name}");
        for section in &sections {
            let place = format!("{name} {}", section.name);
            check(&place, section, &comparable(&section.calls, WHOLE_CPU));
        }
    }
}

/// The words of `from` at the time and place of `to`.
fn moved(from: &Call, to: &Call) -> Call {
    Call {
        time: to.time,
        cpu: to.cpu,
        current: to.current.clone(),
        ..from.clone()
    }
}

#[test]
fn every_task_of_every_recording_has_a_sequence_that_ends_as_it_should() {
    for_each_section(|place, _, comparable| {
        assert!(!comparable.sequences.is_empty(), "{place}");
        for (name, sequence) in &comparable.sequences {
            // The real-time task leaves sched_ext alive.
            let end = if name == "tvRT" {
                "set_weight 100"
            } else {
                "quiescent 0x19"
            };
            assert_eq!(
                sequence.last().map(String::as_str),
                Some(end),
                "{place} {name}: {sequence:?}"
            );
        }
    });
}

#[test]
fn swapping_two_neighbours_of_a_sequence_is_noticed_at_every_position() {
    let mut swaps = 0;
    for_each_section(|place, section, original| {
        for name in original.sequences.keys() {
            let own: Vec<usize> = (0..section.calls.len())
                .filter(|&at| is_kept(&section.calls[at]))
                .filter(|&at| section.calls[at].task.name() == Some(name))
                .collect();
            for pair in own.windows(2) {
                let mut calls = section.calls.clone();
                calls[pair[0]] = moved(&section.calls[pair[1]], &section.calls[pair[0]]);
                calls[pair[1]] = moved(&section.calls[pair[0]], &section.calls[pair[1]]);
                let changed = comparable(&calls, WHOLE_CPU);
                if section.calls[pair[0]].words() == section.calls[pair[1]].words() {
                    continue;
                }
                assert_ne!(
                    changed.sequences, original.sequences,
                    "{place} {name} at {pair:?}"
                );
                swaps += 1;
            }
        }
    });
    assert!(swaps > 800, "only {swaps} swaps were tried");
}

/// The callback with one bit of one compared word changed.
fn with_one_change(call: &Call) -> Vec<Call> {
    let flag_bits = [0, 1, 2, 3, 4, 6, 7, 10, 32, 40, 41];
    let (a_bits, b_bits): (&[u32], &[u32]) = match call.op {
        Op::Enqueue => (&flag_bits, &[0]),
        Op::Runnable | Op::Quiescent | Op::Dequeue => (&flag_bits, &[]),
        Op::SelectCpu => (&flag_bits, &[0]),
        Op::Stopping | Op::InitTask => (&[0], &[]),
        Op::SetWeight | Op::Enable => (&[0, 1, 5], &[]),
        Op::SetCpumask => (&[0], &[0, 1]),
        _ => (&[], &[]),
    };
    let a = a_bits.iter().map(|bit| Call {
        a: call.a ^ 1 << bit,
        ..call.clone()
    });
    let b = b_bits.iter().map(|bit| Call {
        b: call.b ^ 1 << bit,
        ..call.clone()
    });
    let cpu = (call.op == Op::Running).then(|| Call {
        cpu: call.cpu ^ 1,
        ..call.clone()
    });
    a.chain(b).chain(cpu).collect()
}

#[test]
fn changing_one_bit_of_a_compared_word_is_noticed_at_every_position() {
    let mut changes = 0;
    for_each_section(|place, section, original| {
        for (at, call) in section
            .calls
            .iter()
            .enumerate()
            .filter(|(_, call)| is_kept(call))
        {
            for changed_call in with_one_change(call) {
                let mut calls = section.calls.clone();
                calls[at] = changed_call;
                let changed = comparable(&calls, WHOLE_CPU);
                assert_ne!(
                    changed.sequences, original.sequences,
                    "{place} at {at}: {:?}",
                    calls[at]
                );
                changes += 1;
            }
        }
    });
    assert!(changes > 6_000, "only {changes} changes were tried");
}

#[test]
fn swapping_two_neighbours_of_a_clean_exchange_is_noticed() {
    let mut noticed = 0;
    for_each_section(|place, section, original| {
        let on_cpu: Vec<usize> = (0..section.calls.len())
            .filter(|&at| section.calls[at].cpu == WHOLE_CPU)
            .collect();
        for window in on_cpu.windows(6) {
            // Inside a wakeup of an idle CPU the order is exact from end to end.
            let calls: Vec<&Call> = window.iter().map(|&at| &section.calls[at]).collect();
            let ops: Vec<Op> = calls.iter().map(|call| call.op).collect();
            let wake = [
                Op::Runnable,
                Op::Enqueue,
                Op::Dispatch,
                Op::UpdateIdle,
                Op::Running,
            ];
            if ops[1..] != wake || calls[1..].iter().any(|call| call.current != Who::Idle) {
                continue;
            }
            for pair in window[1..].windows(2) {
                let mut swapped = section.calls.clone();
                swapped.swap(pair[0], pair[1]);
                let changed = comparable(&swapped, WHOLE_CPU);
                assert_ne!(changed.exchanges, original.exchanges, "{place} at {pair:?}");
                noticed += 1;
            }
        }
    });
    assert!(noticed > 60, "only {noticed} swaps were tried");
}

/// A callback at the time and place of `at`.
fn stray(at: &Call, current: Who, op: Op, task: Who, words: (u64, u64)) -> Call {
    Call {
        time: at.time,
        cpu: at.cpu,
        current,
        op,
        task,
        a: words.0,
        b: words.1,
    }
}

#[test]
fn ticks_anywhere_change_nothing() {
    for_each_section(|place, section, original| {
        for (at, call) in section.calls.iter().enumerate() {
            let mut calls = section.calls.clone();
            calls.insert(
                at,
                stray(
                    call,
                    call.current.clone(),
                    Op::Tick,
                    call.task.clone(),
                    (1, 0),
                ),
            );
            assert_eq!(comparable(&calls, WHOLE_CPU), *original, "{place} at {at}");
        }
    });
}

#[test]
fn the_moment_at_which_rcu_frees_a_task_changes_nothing() {
    for_each_section(|place, section, original| {
        for (at, call) in section.calls.iter().enumerate() {
            let mut calls = section.calls.clone();
            for op in [Op::ExitTask, Op::Disable] {
                calls.insert(
                    at,
                    stray(call, call.current.clone(), op, Who::named("tvA"), (0, 0)),
                );
            }
            assert_eq!(
                comparable(&calls, WHOLE_CPU).sequences,
                original.sequences,
                "{place} at {at}"
            );
        }
    });
}

/// Whether the kernel goes on from this callback to the next one of its CPU without letting
/// anybody run in between.
fn goes_on(call: &Call) -> bool {
    match call.op {
        Op::Dispatch => call.b == 1,
        Op::Stopping => call.a == 0,
        Op::SelectCpu | Op::Runnable | Op::Quiescent | Op::SetWeight | Op::SetCpumask => true,
        Op::InitTask | Op::Enable | Op::Yield => true,
        _ => false,
    }
}

#[test]
fn a_kernel_thread_that_runs_in_between_changes_no_sequence() {
    for_each_section(|place, section, original| {
        for (at, call) in section.calls.iter().enumerate() {
            let cpu = u64::from(call.cpu);
            let mut calls = section.calls.clone();
            // It takes the CPU, looks for the next task, and leaves.
            for (op, words) in [(Op::Dispatch, (cpu, 0)), (Op::CpuAcquire, (cpu, 0))] {
                calls.insert(at, stray(call, Who::Other, op, Who::Other, words));
            }
            let changed = comparable(&calls, WHOLE_CPU);
            assert_eq!(changed.sequences, original.sequences, "{place} at {at}");
            let before = section.calls[..at]
                .iter()
                .rev()
                .find(|before| before.cpu == call.cpu);
            if before.is_some_and(goes_on) {
                continue;
            }
            let extra = changed.exchanges.difference(&original.exchanges).next();
            assert_eq!(extra, None, "{place} at {at}");
        }
    });
}
