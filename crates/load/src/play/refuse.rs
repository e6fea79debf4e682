//! What of a workload cannot be played, and what is played as something else.

use workload::{
    Capacity, ChannelKind, Code, DeviceOp, Expr, Handoff, Info, Instr, LockKind, Operation, Played,
    TaskKind, Woken, Workload,
};

/// `TCP_TIMEOUT_INIT` (kernel 6.18, include/net/tcp.h).
const RETRY: model::Nanos = model::Nanos::from_secs(1);

/// A task that wants the time of a message needs this many bytes of it.
pub const STAMP: u64 = 8;

/// Everything that keeps `workload` from being played on `cpus` CPUs; empty if it can be.
#[must_use]
pub fn refusals(workload: &Workload, cpus: u16) -> Vec<String> {
    let mut found = Vec::new();
    channels(workload, &mut found);
    from_outside(workload, &mut found);
    for (group, declared) in workload.groups.iter().enumerate() {
        let code = Code::new(&declared.body, declared.variables);
        let mut say = |line: u32, what: &str| {
            found.push(format!(
                "{}:{line}: {}: {what}",
                workload.file, declared.name
            ));
        };
        let first = code.lines.first().copied().unwrap_or(0);
        if declared
            .cpus
            .as_ref()
            .is_some_and(|set| set.within(cpus).is_empty())
        {
            say(
                first,
                &format!("none of its CPUs is among the machine's {cpus}"),
            );
        }
        for (instr, line) in code.instrs.iter().zip(&code.lines) {
            if let Some(what) = refused(workload, instr, cpus) {
                say(*line, &what);
            }
        }
        if let Some(line) = mixed_children(workload, &code) {
            say(
                line,
                "waits for children of both kinds, threads and processes",
            );
        }
        if declared.kind == TaskKind::Kernel {
            say(first, "kernel threads are simulated, not played");
        }
        if declared.migration_disabled {
            say(
                first,
                "only the kernel disables the migration of a task: it cannot be played",
            );
        }
        if declared.kind == TaskKind::Thread && forks_forever(group, &code) {
            say(first, "a thread cannot fork its own kind without end");
        }
    }
    for source in &workload.interrupts {
        if source.cpu.0 >= cpus {
            let at = format!("{}:{}: irq {}", workload.file, source.line, source.name);
            found.push(format!("{at}: the machine has no CPU {}", source.cpu));
        }
    }
    found
}

fn channels(workload: &Workload, found: &mut Vec<String>) {
    let by_message = workload
        .deadlines
        .iter()
        .find(|deadline| deadline.period.is_none());
    for channel in &workload.channels {
        let mut say = |what: &str| {
            found.push(format!(
                "{}: [chan.{}]: {what}",
                workload.file, channel.name
            ));
        };
        let is_queue = channel.kind == ChannelKind::Queue;
        if !is_queue && channel.capacity != Capacity::Kernel {
            say("`cap` is played for queues only; the kernel has its own limits");
        }
        if !is_queue && channel.msg > 65_536 {
            say("messages of more than 64 KiB are played through queues only");
        }
        if let Some(deadline) = by_message.filter(|_| !is_queue && channel.msg < STAMP) {
            let name = &deadline.name;
            say(&format!(
                "messages need {STAMP} bytes to carry the time for the deadline `{name}`"
            ));
        }
    }
}

/// Tables that only the simulated machine has.
fn from_outside(workload: &Workload, found: &mut Vec<String>) {
    for requests in &workload.requests {
        let (line, name) = (requests.irq.line, &requests.irq.name);
        let what = "requests from outside are simulated only; let a task send them";
        found.push(format!(
            "{}:{line}: [arrival.{name}]: {what}",
            workload.file
        ));
    }
    for hotplug in &workload.hotplugs {
        let (line, name) = (hotplug.line, &hotplug.name);
        let what = "CPUs are taken from the simulated machine only";
        found.push(format!(
            "{}:{line}: [hotplug.{name}]: {what}",
            workload.file
        ));
    }
    for lock in &workload.locks {
        let what = match (lock.kind, lock.handoff) {
            (LockKind::Keyed(_), _) => "keyed locks are simulated only",
            (LockKind::ReadWrite, Handoff::Barge) => {
                "read-write locks are played in the order of arrival: leave `handoff` out"
            }
            _ => continue,
        };
        found.push(format!("{}: [lock.{}]: {what}", workload.file, lock.name));
    }
    for listener in &workload.listeners {
        let what = match (listener.retry == RETRY, listener.woken) {
            (false, _) => "the kernel's clients try again after 1 s: `retry` is simulated only",
            (_, Woken::Last) => "tasks are played that wait in accept(): the first is woken",
            (true, Woken::First) => continue,
        };
        found.push(format!(
            "{}: [listen.{}]: {what}",
            workload.file, listener.name
        ));
    }
}

fn refused(workload: &Workload, instr: &Instr, cpus: u16) -> Option<String> {
    let reads_message = |expr: &&Expr| expr.mentions(&|part| *part == Expr::Got);
    if let Instr::Do(Operation::Device(DeviceOp::Connect { value, .. })) = instr
        && *value != Expr::Me
    {
        return Some("the value of a connection is simulated only".to_owned());
    }
    if instr.exprs().iter().any(reads_message) {
        return Some("`got` is simulated only: played messages carry no value".to_owned());
    }
    let Instr::Do(op) = instr else {
        return None;
    };
    let Info { name, played, .. } = Info::of(op);
    if let Played::No(why) = played {
        return Some(format!("`{name}` is simulated only: {why}"));
    }
    match op {
        Operation::Send {
            to,
            bytes: Some(bytes),
            ..
        } => {
            let channel = &workload.channels[to.of as usize];
            let same = i64::try_from(channel.msg).is_ok_and(|msg| *bytes == Expr::Number(msg));
            (channel.kind != ChannelKind::Queue && !same).then(|| {
                "a `send` with a size of its own is played for queues only: streams have no \
                 borders between messages"
                    .to_owned()
            })
        }
        Operation::SetAffinity {
            cpus: Some(set), ..
        } if set.within(cpus).is_empty() => Some(format!(
            "none of the CPUs {{{set}}} is among the machine's {cpus}"
        )),
        _ => None,
    }
}

/// The line of a wait for children of both kinds: the system has no call for that.
fn mixed_children(workload: &Workload, code: &Code) -> Option<u32> {
    let kind = |group: u32| workload.groups[group as usize].kind;
    let mut kinds = (code.instrs.iter()).filter_map(|instr| match instr {
        Instr::Do(Operation::Fork(group) | Operation::Pool { group, .. }) => Some(kind(*group)),
        _ => None,
    });
    let first = kinds.next()?;
    kinds.find(|kind| *kind != first)?;
    let waits = |instr: &Instr| {
        matches!(
            instr,
            Instr::Do(Operation::Wait { .. } | Operation::Pool { .. })
        )
    };
    let at = code.instrs.iter().position(waits)?;
    Some(code.lines[at])
}

fn forks_forever(group: usize, code: &Code) -> bool {
    let own = |instr: &Instr| match instr {
        Instr::Do(Operation::Fork(child)) => *child as usize == group,
        _ => false,
    };
    let waits = |instr: &Instr| matches!(instr, Instr::Do(Operation::Wait { .. }));
    code.instrs.iter().any(own) && !code.instrs.iter().any(waits)
}

/// What is played as something else, for those who compare.
#[must_use]
pub fn notes(workload: &Workload) -> Vec<String> {
    let mut notes = Vec::new();
    if !workload.interrupts.is_empty() {
        notes.push(
            "interrupts are played by real-time threads that a timer wakes on their CPU".to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Vec<String> {
        let head = "[workload]\nname = \"w\"\n";
        refusals(
            &Workload::parse(&format!("{head}{text}"), "w.toml").unwrap(),
            2,
        )
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of cases")]
    fn what_cannot_be_played_is_named_with_its_place() {
        let cases = [
            (
                "[chan.c]\nkind = \"pipe\"\ncap = \"3msg\"\n[task.t]\ndo = \"send(c)\"\n",
                "w.toml: [chan.c]: `cap` is played for queues only",
            ),
            (
                "[chan.c]\nkind = \"unix\"\n[task.t]\ndo = \"send(c, 7)\"\n",
                "w.toml:6: t: a `send` with a size of its own",
            ),
            (
                "[chan.c]\nkind = \"pipe\"\nmsg = 4\n[deadline.d]\nslack = \"1ms\"\n\
                 [task.t]\ndo = \"recv(c), release(d), complete(d)\"\n",
                "messages need 8 bytes to carry the time for the deadline `d`",
            ),
            (
                "[task.t]\ncpus = \"5\"\ndo = \"run(1ms)\"\n",
                "w.toml:5: t: none of its CPUs is among the machine's 2",
            ),
            (
                "[irq.i]\ncpu = 3\nonce = true\n[task.t]\ndo = \"run(1ms)\"\n",
                "irq i: the machine has no CPU 3",
            ),
            (
                "[task.a]\ndo = \"fork(p), fork(q), waitpid(all)\"\n\
                 [task.p]\nkind = \"process\"\ndo = \"run(1ms)\"\n\
                 [task.q]\ndo = \"run(1ms)\"\n",
                "waits for children of both kinds",
            ),
            (
                "[task.k]\nkind = \"kernel\"\ndo = \"run(1ms)\"\n",
                "w.toml:5: k: kernel threads are simulated, not played",
            ),
            (
                "[task.t]\nmigration_disabled = true\ndo = \"run(1ms)\"\n",
                "w.toml:5: t: only the kernel disables the migration of a task",
            ),
            (
                "[disk.d]\n[task.t]\ndo = \"fsync(d)\"\n",
                "w.toml:5: t: `fsync` is simulated only",
            ),
            (
                "[listen.l]\nwake = \"lifo\"\n[task.t]\ndo = \"accept(l)\"\n",
                "w.toml: [listen.l]: tasks are played that wait in accept()",
            ),
            (
                "[listen.l]\nretry = \"2s\"\n[task.t]\ndo = \"connect(l)\"\n",
                "w.toml: [listen.l]: the kernel's clients try again after 1 s",
            ),
            (
                "[listen.l]\n[task.t]\ndo = \"connect(l, 5)\"\n",
                "w.toml:5: t: the value of a connection is simulated only",
            ),
            (
                "[lock.l]\nkind = \"keyed\"\nkeys = 3\n[task.t]\ndo = \"run(1ms)\"\n",
                "w.toml: [lock.l]: keyed locks are simulated only",
            ),
            (
                "[hotplug.h]\ncpu = 1\noffline = \"1s\"\n[task.t]\ndo = \"run(1ms)\"\n",
                "w.toml:3: [hotplug.h]: CPUs are taken from the simulated machine only",
            ),
            (
                "[lock.l]\nkind = \"rw\"\nhandoff = \"barge\"\n\
                 [task.t]\ndo = \"lock(l), unlock(l)\"\n",
                "w.toml: [lock.l]: read-write locks are played in the order of arrival",
            ),
            (
                "[chan.c]\nkind = \"queue\"\n[task.t]\ndo = \"recv(c), count(n, 1 + got)\"\n",
                "w.toml:6: t: `got` is simulated only",
            ),
            (
                "[chan.c]\nkind = \"queue\"\n\
                 [arrival.a]\nkind = \"poisson\"\nrate = 9\nsend = \"c\"\n\
                 [task.t]\ndo = \"recv(c)\"\n",
                "w.toml:5: [arrival.a]: requests from outside are simulated only",
            ),
        ];
        for (text, want) in cases {
            let found = refused(text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].contains(want), "{found:?}");
        }
    }

    #[test]
    fn an_own_size_that_is_the_channels_is_no_other_size() {
        let text = "[chan.c]\nkind = \"unix\"\nmsg = 7\n[task.t]\ndo = \"send(c, 7)\"\n";
        assert_eq!(refused(text), [""; 0]);
    }
}
