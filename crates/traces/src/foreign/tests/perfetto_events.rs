//! Each event of Perfetto, from messages whose field numbers are declared apart from the reader's.

use prost::Message as _;

use super::messages::{self as m, event::Event as Of};
use crate::foreign::perfetto::record;
use crate::foreign::record::{Comm, CpuContext, InterruptSource, Record, RecordWhat, Who};

fn read(event: Option<Of>) -> Option<Record> {
    let message = m::Event {
        timestamp: Some(7),
        pid: Some(3),
        common_flags: Some(0),
        event,
    };
    record(&message.encode_to_vec(), 1).expect("nothing is damaged")
}

fn named(pid: u32) -> Who {
    Who {
        pid,
        comm: Comm::new(b"sh"),
        prio: None,
    }
}

#[test]
fn every_event_is_found_by_the_number_that_its_message_declares() {
    let (pid, name) = (Some(5), Some(b"sh".to_vec()));
    let device = |clock| InterruptSource::Device { clock };
    let soft = |clock| InterruptSource::Soft { clock };
    let timer = InterruptSource::Timer;
    let cases = [
        (
            Of::SchedProcessExec(m::Exec {
                pid,
                old_pid: Some(6),
            }),
            RecordWhat::Exec { pid: 5, old: 6 },
        ),
        (Of::SchedProcessExit(m::Pid { pid }), RecordWhat::Exit(5)),
        (
            Of::SchedProcessFork(m::Fork {
                parent_pid: Some(4),
                child_comm: name.clone(),
                child_pid: pid,
            }),
            RecordWhat::Fork {
                parent: 4,
                child: named(5),
            },
        ),
        (
            Of::TaskRename(m::Rename { pid, newcomm: name }),
            RecordWhat::Rename(named(5)),
        ),
        (
            Of::IrqHandlerEntry(m::IrqEntry {
                name: Some(b"timer".to_vec()),
            }),
            RecordWhat::Enter(device(true)),
        ),
        (
            Of::IrqHandlerExit(m::Empty {}),
            RecordWhat::Leave(device(false)),
        ),
        (
            Of::SoftirqEntry(m::Softirq { vec: Some(1) }),
            RecordWhat::Enter(soft(true)),
        ),
        (
            Of::SoftirqExit(m::Softirq { vec: Some(3) }),
            RecordWhat::Leave(soft(false)),
        ),
        (
            Of::HrtimerExpireEntry(m::Empty {}),
            RecordWhat::Enter(timer),
        ),
        (Of::HrtimerExpireExit(m::Empty {}), RecordWhat::Leave(timer)),
        (Of::TimerExpireEntry(m::Empty {}), RecordWhat::Enter(timer)),
        (Of::TimerExpireExit(m::Empty {}), RecordWhat::Leave(timer)),
        (Of::LocalTimerEntry(m::Empty {}), RecordWhat::Enter(timer)),
        (Of::LocalTimerExit(m::Empty {}), RecordWhat::Leave(timer)),
    ];
    for (event, what) in cases {
        let want = Record {
            time: 7,
            cpu: 1,
            pid: 3,
            context: CpuContext::of_flags(0),
            what,
        };
        assert_eq!(read(Some(event)), Some(want));
    }
}

#[test]
fn an_event_of_another_kind_is_no_record_and_a_text_for_a_number_is_damage() {
    assert_eq!(read(None), None);
    // Field 9, a message of an event that is not read.
    assert_eq!(record(&[0x4a, 0], 1), Ok(None));
    // A time that is a text, and an exit whose pid is one.
    for damaged in [&[0x0a, 0][..], &[0xf2, 0x0e, 2, 0x12, 0]] {
        record(damaged, 1).unwrap_err();
    }
}
