//! The story: two CPUs, a fork, and wakeups of every kind.

use crate::foreign::record::{Comm, CpuContext, InterruptSource, Left, Record, RecordWhat, Who};

pub fn who(pid: u32, comm: &str) -> Who {
    Who {
        pid,
        comm: Comm::new(comm.as_bytes()),
        prio: Some(if pid == 10 { 125 } else { 120 }),
    }
}

fn idle(cpu: u32) -> Who {
    who(0, &format!("swapper/{cpu}"))
}

/// Makes records one after the other, 5 us apart.
struct Teller {
    records: Vec<Record>,
    time: u64,
}

impl Teller {
    fn say(&mut self, (cpu, pid, context): (u32, u32, CpuContext), what: RecordWhat) {
        self.time += 5_000;
        self.records.push(Record {
            time: self.time,
            cpu,
            pid,
            context,
            what,
        });
    }

    fn switch(&mut self, cpu: u32, prev: Who, left: Left, next: Who) {
        let what = RecordWhat::Switch { prev, left, next };
        self.say((cpu, prev.pid, CpuContext::Task), what);
    }

    /// The waking of a thread in a context, and the wakeup that follows.
    fn wake(&mut self, at: (u32, u32, CpuContext), whom: Who, cpu: u32) {
        self.say(at, RecordWhat::Waking(whom, Some(cpu)));
        let cpu = Some(cpu);
        let wakeup = RecordWhat::Wakeup {
            who: whom,
            cpu,
            new: false,
        };
        self.say(at, wakeup);
    }
}

/// The records, in the order of time.
pub fn story() -> Vec<Record> {
    let main = who(10, "main: [0] x-1");
    let server = who(20, "server");
    let child = who(30, "main: [0] x-1");
    let mut tell = Teller {
        records: Vec::new(),
        time: 1_000_000_000,
    };
    let in_main = (0, 10, CpuContext::Task);
    tell.wake(in_main, server, 1);
    tell.switch(1, idle(1), Left::Runnable, server);
    let unborn = Who {
        prio: None,
        ..child
    };
    tell.say(
        in_main,
        RecordWhat::Fork {
            parent: 10,
            child: unborn,
        },
    );
    let new = RecordWhat::Wakeup {
        who: child,
        cpu: Some(0),
        new: true,
    };
    tell.say(in_main, new);
    tell.switch(0, main, Left::Sleeping, child);
    // A clock ends main's sleep.
    let hard = (0, 30, CpuContext::Hard);
    tell.say(hard, RecordWhat::Enter(InterruptSource::Timer));
    tell.wake(hard, main, 0);
    tell.say(hard, RecordWhat::Leave(InterruptSource::Timer));
    tell.switch(0, child, Left::Dead, main);
    tell.switch(1, server, Left::Sleeping, idle(1));
    tell.switch(0, main, Left::Blocked, idle(0));
    // A disk, then the network.
    let no_clock = InterruptSource::Soft { clock: false };
    let soft = (0, 0, CpuContext::Soft);
    tell.say(soft, RecordWhat::Enter(no_clock));
    tell.wake(soft, main, 0);
    tell.say(soft, RecordWhat::Leave(no_clock));
    tell.switch(0, idle(0), Left::Runnable, main);
    let soft = (1, 0, CpuContext::Soft);
    tell.say(soft, RecordWhat::Enter(no_clock));
    tell.say(soft, RecordWhat::Waking(server, Some(1)));
    let to = RecordWhat::Migrate {
        who: server,
        from: 1,
        to: 0,
    };
    tell.say(soft, to);
    let wakeup = RecordWhat::Wakeup {
        who: server,
        cpu: Some(0),
        new: false,
    };
    // It is reported where it takes effect: main wakes nobody.
    tell.say((0, 10, CpuContext::Hard), wakeup);
    tell.say(soft, RecordWhat::Leave(no_clock));
    tell.switch(0, main, Left::Runnable, server);
    tell.switch(0, server, Left::Sleeping, main);
    tell.records
}
