//! What `hunt` draws for its trials, beyond what real processes can play.
//!
//! A trial has some kinds of work and of disturbances and lacks the others. So a fault that needs
//! a quiet machine has its trials, and one that needs three disturbances at once, too (Groce et
//! al., "Swarm testing", 2012).

use std::fmt::Write as _;

use model::Nanos;

use super::{Load, pick, pick_clone};

/// Adds something to a load.
type TrialKind = fn(&mut Load);

/// What tasks do.
const WORK: &[TrialKind] = &[
    |load| with_keys(load, Load::sleepers),
    |load| with_keys(load, Load::hogs),
    |load| with_keys(load, Load::late),
    |load| with_keys(load, Load::yielders),
    |load| with_keys(load, Load::pair),
    |load| with_keys(load, Load::family),
    |load| with_keys(load, leavers),
    |load| with_keys(load, bursts),
    |load| with_keys(load, long_sleepers),
    |load| with_keys(load, convoy),
    crowd,
    storm,
    herd,
    interrupts,
    kernel_threads,
];

/// What disturbs them.
const DISTURBANCES: &[TrialKind] = &[
    affinities,
    nice_values,
    classes,
    class_change,
    Load::real_time,
    intrusion,
    intrusion,
    moves,
    cgroup_files,
];

/// Cgroups of a load that has any.
const CGROUPS: u64 = 3;

impl Load {
    /// Adds groups of tasks and what disturbs them. Whether CPUs go is drawn last: without that
    /// the rest stays as it is.
    pub(super) fn fill_trial(&mut self, duration: Nanos, has_hotplug: bool) {
        if self.below(3) == 0 {
            self.has_cgroups = true;
            for number in 0..CGROUPS {
                let weight = pick(&mut self.rng, &[1, 10, 100, 100, 1000, 10_000]);
                let _ = write!(self.text, "[cgroup.g{number}]\nweight = {weight}\n");
            }
        }
        let (kinds, groups) = (
            self.some(WORK),
            pick(&mut self.rng, &[1, 1, 2, 2, 3, 4, 5, 6]),
        );
        for _ in 0..groups {
            pick(&mut self.rng, &kinds)(self);
        }
        let kinds = self.some(DISTURBANCES);
        // What disturbs needs somebody to disturb.
        let disturbances = if self.groups.is_empty() {
            0
        } else {
            pick(&mut self.rng, &[0, 0, 1, 1, 2, 3, 4])
        };
        for _ in 0..disturbances {
            pick(&mut self.rng, &kinds)(self);
        }
        let goes = self.below(3) == 0 && self.cpus > 1;
        if goes && has_hotplug {
            hotplug(self, duration);
        }
    }

    /// About half of them, at least one.
    fn some(&mut self, kinds: &[TrialKind]) -> Vec<TrialKind> {
        let mut some = kinds.to_vec();
        some.retain(|_| self.below(2) == 0);
        if some.is_empty() {
            vec![pick(&mut self.rng, kinds)]
        } else {
            some
        }
    }

    /// A task that exists from the start, as an operation names it.
    fn target(&mut self) -> String {
        let (group, count) = pick_clone(&mut self.rng, &self.groups);
        format!("{group}[{}]", self.below(count))
    }

    /// A task that does something to others. As a real-time task it does so also where nobody
    /// else gets a CPU.
    pub(super) fn disturber(&mut self, operations: &str) {
        let at = self.next();
        let policy = match self.below(2) {
            0 => "",
            _ => "policy = \"fifo:60\"\n",
        };
        let _ = write!(
            self.text,
            "[task.disturber{at}]\n{policy}do = \"{operations}\"\n"
        );
    }

    /// CPUs as in a list of them: one or some.
    fn some_cpus(&mut self) -> String {
        let first = self.below(self.cpus);
        match self.below(2) {
            0 => first.to_string(),
            _ => format!("{first}-{}", first + self.below(self.cpus - first)),
        }
    }

    /// A number for a name that nothing else has.
    pub(super) fn next(&mut self) -> usize {
        self.names += 1;
        self.names
    }
}

fn with_keys(load: &mut Load, kind: fn(&mut Load, &str)) {
    let mut keys = match pick(&mut load.rng, &[0, 0, 0, -20, -10, -5, 1, 5, 10, 19]) {
        0 => String::new(),
        nice => format!("nice = {nice}\n"),
    };
    keys += match load.below(12) {
        0 => "policy = \"batch\"\n",
        1 => "policy = \"idle\"\n",
        _ => "",
    };
    if load.has_cgroups && load.below(2) == 0 {
        let _ = writeln!(keys, "cgroup = \"/g{}\"", load.below(CGROUPS));
    }
    keys += &load.place();
    kind(load, &keys);
}

/// Tasks that exit while others go on.
fn leavers(load: &mut Load, keys: &str) {
    let (run, sleep) = (load.span(100, 200_000), load.span(500, 50_000));
    let (count, turns, late) = (
        1 + load.below(load.cpus * 3),
        1 + load.below(20),
        load.span(1_000, 2_000_000),
    );
    let keys = format!("{keys}start = \"uniform(0us, {late})\"\n");
    load.add(
        count,
        &keys,
        &format!("loop({turns})[ run({run}), sleep({sleep}) ]"),
    );
}

/// Tasks that all wake at the same moment on an idle machine.
fn bursts(load: &mut Load, keys: &str) {
    let (period, run) = (load.span(20_000, 2_000_000), load.span(50, 10_000));
    let count = 2 + load.below(load.cpus * 4);
    load.add(
        count,
        keys,
        &format!("loop(inf)[ timer({period}), run({run}) ]"),
    );
}

/// Tasks that sleep for seconds.
fn long_sleepers(load: &mut Load, keys: &str) {
    let (run, sleep) = (load.span(100, 50_000), load.span(500_000, 4_000_000));
    let count = 1 + load.below(load.cpus + 2);
    load.add(
        count,
        keys,
        &format!("loop(inf)[ run({run}), sleep(exp({sleep})) ]"),
    );
}

/// Tasks that wait for one lock.
fn convoy(load: &mut Load, keys: &str) {
    let at = load.next();
    let handoff = pick(&mut load.rng, &["fifo", "barge"]);
    let _ = write!(load.text, "[lock.l{at}]\nhandoff = \"{handoff}\"\n");
    let (run, sleep) = (load.span(50, 5_000), load.span(100, 10_000));
    let count = 2 + load.below(load.cpus * 2);
    let body = format!("lock(l{at}), run({run}), unlock(l{at}), sleep({sleep})");
    load.add(count, keys, &format!("loop(inf)[ {body} ]"));
}

/// More tasks than a small table holds, which run for little.
fn crowd(load: &mut Load) {
    let (count, run, sleep) = (
        30 + load.below(400),
        load.span(10, 100),
        load.span(100_000, 800_000),
    );
    load.add(
        count,
        "",
        &format!("loop(inf)[ run({run}), sleep(exp({sleep})) ]"),
    );
}

/// Hundreds of children at once, which live for little.
fn storm(load: &mut Load) {
    let (at, run, sleep) = (
        load.next(),
        load.span(10, 500),
        load.span(100_000, 1_000_000),
    );
    let children = 16 << load.below(6);
    let children = children + load.below(children);
    let _ = write!(load.text, "[task.brief{at}]\ndo = \"run({run})\"\n");
    let forks = format!("for(i, {children})[ fork(brief{at}) ]");
    load.add(
        1,
        "",
        &format!("loop(inf)[ {forks}, waitpid(all), sleep({sleep}) ]"),
    );
}

/// One task wakes many.
fn herd(load: &mut Load) {
    let at = load.next();
    let count = 2 + load.below(load.cpus * 4);
    let (run, sleep) = (load.span(20, 4_000), load.span(1_000, 200_000));
    let _ = write!(
        load.text,
        "[chan.h{at}]\nkind = \"queue\"\ncount = {count}\n"
    );
    load.add(
        1,
        "",
        &format!("loop(inf)[ sleep({sleep}), bcast(h{at}, 0, {count}) ]"),
    );
    load.add(
        count,
        "",
        &format!("loop(inf)[ recv(h{at}[self]), run({run}) ]"),
    );
}

/// Interrupts that take time from a CPU and wake a task there.
fn interrupts(load: &mut Load) {
    let (at, cpu) = (load.next(), load.below(load.cpus));
    let kind = pick(&mut load.rng, &["every", "poisson"]);
    let (gap, cost, run) = (
        load.span(200, 20_000),
        load.span(1, 50),
        load.span(20, 2_000),
    );
    let _ = write!(
        load.text,
        "[chan.i{at}]\nkind = \"queue\"\n\
         [irq.i{at}]\ncpu = {cpu}\n{kind} = \"{gap}\"\ncost = \"{cost}\"\nsend = \"i{at}\"\n"
    );
    load.add(1, "", &format!("loop(inf)[ recv(i{at}), run({run}) ]"));
}

/// Threads of the kernel, each bound to a CPU, which wake often and run for little.
fn kernel_threads(load: &mut Load) {
    let cpu = load.below(load.cpus);
    let (run, sleep) = (load.span(10, 200), load.span(500, 50_000));
    let disabled = load.below(3) == 0;
    let keys = format!("kind = \"kernel\"\ncpus = \"{cpu}\"\nmigration_disabled = {disabled}\n");
    let count = 1 + load.below(3);
    load.add(
        count,
        &keys,
        &format!("loop(inf)[ run({run}), sleep(exp({sleep})) ]"),
    );
}

/// A task, or all of a group, is bound to other CPUs: now and then, or once.
fn affinities(load: &mut Load) {
    let (pause, other, cpus) = (
        load.span(2_000, 1_000_000),
        load.span(2_000, 1_000_000),
        load.some_cpus(),
    );
    let (group, count) = pick_clone(&mut load.rng, &load.groups);
    let all = |to: &str| format!("for(i, {count})[ setaffinity({group}[i], {to}) ]");
    let target = load.target();
    let one = |to: &str| format!("setaffinity({target}, {to})");
    let set = format!("{{{cpus}}}");
    let (bind, free) = match load.below(4) {
        0 => (all(&set), all("all")),
        _ => (one(&set), one("all")),
    };
    let operations = match load.below(3) {
        0 => format!("sleep({pause}), {bind}"),
        _ => format!("loop(inf)[ sleep({pause}), {bind}, sleep({other}), {free} ]"),
    };
    load.disturber(&operations);
}

fn nice_values(load: &mut Load) {
    let (pause, other, target) = (
        load.span(2_000, 500_000),
        load.span(2_000, 500_000),
        load.target(),
    );
    let nice = pick(&mut load.rng, &[-20, -10, -1, 1, 10, 19]);
    load.disturber(&format!(
        "loop(inf)[ sleep({pause}), setnice({target}, {nice}), sleep({other}), \
         setnice({target}, 0) ]"
    ));
}

fn classes(load: &mut Load) {
    let (pause, other, target) = (
        load.span(5_000, 200_000),
        load.span(5_000, 200_000),
        load.target(),
    );
    let class = pick(&mut load.rng, &["batch", "idle"]);
    load.disturber(&format!(
        "loop(inf)[ sleep({pause}), setpolicy({target}, {class}), sleep({other}), \
         setpolicy({target}, normal) ]"
    ));
}

/// A task that leaves the policy for the real-time class and comes back. Whoever changes it has a
/// higher priority, or it might keep the only CPU.
fn class_change(load: &mut Load) {
    let (at, target) = (load.next(), load.target());
    let (pause, away) = (load.span(20_000, 200_000), load.span(500, 100_000));
    let _ = write!(
        load.text,
        "[task.changer{at}]\npolicy = \"fifo:60\"\n\
         do = \"loop(inf)[ sleep({pause}), setpolicy({target}, fifo:40), sleep({away}), \
         setpolicy({target}, normal) ]\"\n"
    );
}

/// Real-time tasks that keep CPUs for milliseconds or seconds, as a thread of an audio program
/// that sleeps no more. The simulated kernels let them, as 6.18 does, where the limit of
/// `sched_rt_runtime_us` is for deadline tasks and the fair class has a server of its own.
pub(super) fn intrusion(load: &mut Load) {
    let at = load.next();
    let (pause, run) = (load.span(2_000, 2_000_000), load.span(1_000, 5_000_000));
    let class = pick(&mut load.rng, &["fifo:50", "rr:50"]);
    let count = 1 + load.below(load.cpus);
    let cpus = match load.below(3) {
        0 => String::new(),
        _ => format!("cpus = \"{}\"\n", load.some_cpus()),
    };
    let operations = match load.below(3) {
        0 => format!("loop(inf)[ sleep({pause}), run({run}) ]"),
        1 => format!("sleep({pause}), run({run})"),
        _ => format!("sleep({pause}), run(inf)"),
    };
    let _ = write!(
        load.text,
        "[task.intruder{at}]\ncount = {count}\npolicy = \"{class}\"\n{cpus}do = \"{operations}\"\n"
    );
}

/// A task that goes to a cgroup, and perhaps comes back.
fn moves(load: &mut Load) {
    if !load.has_cgroups {
        return affinities(load);
    }
    let (pause, other, target) = (
        load.span(2_000, 1_000_000),
        load.span(2_000, 1_000_000),
        load.target(),
    );
    let group = load.below(CGROUPS);
    let away = format!("sleep({pause}), cgroup_move({target}, g{group})");
    let operations = match load.below(2) {
        0 => away,
        _ => format!("loop(inf)[ {away}, sleep({other}), cgroup_move({target}, root) ]"),
    };
    load.disturber(&operations);
}

/// Somebody writes into the files of a cgroup.
fn cgroup_files(load: &mut Load) {
    if !load.has_cgroups {
        return nice_values(load);
    }
    let (pause, other, group) = (
        load.span(5_000, 500_000),
        load.span(5_000, 500_000),
        load.below(CGROUPS),
    );
    let (there, back) = match load.below(2) {
        0 => ("cgroup_weight(G, 1)", "cgroup_weight(G, 100)"),
        _ => ("cgroup_max(G, 5ms/100ms)", "cgroup_max(G, inf)"),
    };
    let [there, back] = [there, back].map(|it| it.replace('G', &format!("g{group}")));
    load.disturber(&format!(
        "loop(inf)[ sleep({pause}), {there}, sleep({other}), {back} ]"
    ));
}

/// CPUs that go, for a moment, for long or for ever. CPU 0 stays.
fn hotplug(load: &mut Load, duration: Nanos) {
    let micros = duration.get() / 1_000;
    let first = 1 + load.below(load.cpus - 1);
    let gone = 1 + load.below((load.cpus - first).min(3));
    for cpu in first..first + gone {
        let mut from = 1 + load.below(micros / 2);
        for turn in 0..=load.below(3) {
            let _ = write!(
                load.text,
                "[hotplug.h{cpu}_{turn}]\ncpu = {cpu}\noffline = \"{from}us\"\n"
            );
            if load.below(3) == 0 {
                break;
            }
            let length = 1 << load.below(micros.ilog2().into());
            let online = from + length + load.below(length);
            let _ = writeln!(load.text, "online = \"{online}us\"");
            from = online + 1 + load.below(micros / 4);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial;

    #[test]
    fn every_kind_of_work_and_disturbance_occurs_and_hotplug_only_where_it_may() {
        let texts: String = (0..300).map(|it| trial(1, it, true).text).collect();
        let all = [
            "setaffinity",
            "setnice",
            ", batch)",
            ", idle)",
            ", fifo:40)",
            "fifo:50",
            "rr:50",
            "run(inf)",
            "timer(",
            "yield",
            "pool(",
            "fork(",
            "bcast(",
            "lock(",
            "send(",
            "[irq.",
            "[cgroup.",
            "cgroup_move(",
            "cgroup_max(",
            "\"kernel\"",
            "migration_disabled = true",
            "[hotplug",
            "online =",
        ];
        for part in all {
            assert!(texts.contains(part), "{part}");
        }
        for number in 0..300 {
            let (with, without) = (trial(1, number, true), trial(1, number, false));
            assert!(!without.text.contains("[hotplug"));
            assert!(with.text.starts_with(&without.text), "{}", with.text);
        }
    }

    /// Some keep a CPU for less than ten milliseconds, some for more than three seconds.
    #[test]
    fn real_time_tasks_keep_cpus_for_milliseconds_and_for_seconds() {
        let mut spans = Vec::new();
        for number in 0..500 {
            let text = trial(1, number, false).text;
            for part in text.split("[task.intruder").skip(1) {
                let part = part.split("\n[").next().unwrap_or(part);
                let span = part
                    .split(" run(")
                    .nth(1)
                    .and_then(|it| it.split("us)").next());
                spans.extend(span.and_then(|it| it.parse::<u64>().ok()));
            }
        }
        assert!(spans.iter().any(|it| *it < 10_000), "{spans:?}");
        assert!(spans.iter().any(|it| *it > 3_000_000), "{spans:?}");
    }
}
