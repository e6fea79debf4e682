//! The text of the workload file.

use std::fmt::Write as _;

use model::MachineSpec;

use super::kind::{AsFile, GroupHistory, LengthHistogram};

/// Most lengths of a distribution.
const LENGTHS: usize = 12;
/// What happens so many times in so many turns is written in thousandths.
const TURNS: u64 = 1000;
/// How often a group of tasks that wait for others gets a message that nobody sent.
const REFILL: &str = "100ms";

pub fn write(kinds: &[GroupHistory], file: &AsFile<'_>) -> String {
    let name = if file.anonymous { "trace" } else { file.name };
    let name: String = (name.chars())
        .map(|c| {
            if c == '"' || c == '\\' || c.is_control() {
                '_'
            } else {
                c
            }
        })
        .collect();
    let mut text = format!(
        "# Made of a trace: tasks of the same behaviour are one group. A turn is what a task\n\
         # runs from a wakeup to its next sleep. Counts are thousandths of a group's turns.\n\n\
         [workload]\nname = \"{name}\"\nstop = \"duration:{}ns\"\n\n\
         [machine]\ncpus = {}\n",
        file.length.get().max(1),
        file.machine.cpus
    );
    machine(&mut text, file);
    let mut order: Vec<&GroupHistory> = kinds.iter().collect();
    order.sort_by_key(|kind| std::cmp::Reverse(kind.sum.bursts.sum()));
    for kind in order {
        if waits(kind) {
            channel(&mut text, kind, file);
        }
        task(&mut text, kind, kinds);
    }
    text
}

/// What of the machine is otherwise than usual.
fn machine(text: &mut String, file: &AsFile<'_>) {
    let (own, usual) = (file.machine, MachineSpec::default());
    for (key, own, usual) in [
        ("smt", u32::from(own.smt), u32::from(usual.smt)),
        ("llc", own.llc.into(), usual.llc.into()),
        ("node", own.node.into(), usual.node.into()),
        ("hz", own.hz, usual.hz),
    ] {
        if own != usual {
            writeln!(text, "{key} = {own}").expect("a string");
        }
    }
    if own.kernel != usual.kernel {
        writeln!(text, "kernel = \"{}\"", own.kernel.name()).expect("a string");
    }
}

/// Whether tasks of this kind wait for messages. Forked ones sleep as long as recorded instead:
/// one that waited for ever would fill the machine with its brothers.
fn waits(kind: &GroupHistory) -> bool {
    !kind.forked && kind.sum.waits.many() > 0
}

fn channel(text: &mut String, kind: &GroupHistory, file: &AsFile<'_>) {
    let name = &kind.name;
    let outside = kind.sum.by_outside;
    let mut put = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").expect("a string");
    // A socket wakes as one that is about to sleep, a queue plainly.
    let by_tasks = kind.sum.waits.many() - outside;
    let channel = if kind.sum.synchronously * 2 > by_tasks {
        "unix"
    } else {
        "queue"
    };
    put(format_args!("\n[chan.{name}_wakes]\nkind = \"{channel}\""));
    if let Some(mean) = file.length.get().checked_div(outside) {
        let mean = mean.max(1);
        put(format_args!(
            "\n# Work from outside: {outside} times.\n[irq.{name}_outside]\n\
             poisson = \"{mean}ns\"\nsend = \"{name}_wakes\""
        ));
    }
    if kind.sum.waits.many() > outside {
        put(format_args!(
            "\n# Nobody's message: tasks that wait for each other in a circle go on.\n\
             [irq.{name}_refill]\nevery = \"{REFILL}\"\nstart = \"{REFILL}\"\n\
             send = \"{name}_wakes\""
        ));
    }
}

/// Thousandths of `turns` in which something happens that happened `many` times.
fn share(many: u64, turns: u64) -> u128 {
    (u128::from(many) * u128::from(TURNS)).div_ceil(u128::from(turns.max(1)))
}

/// How often something with this share happens in turn `i`.
fn in_turn(share: u128) -> String {
    format!("(i + 1) * {share} / {TURNS} - i * {share} / {TURNS}")
}

/// The line that does `op`, which was done `many` times in all turns.
fn repeated(many: u64, turns: u64, op: &str) -> String {
    let share = share(many, turns);
    let turn = u128::from(TURNS);
    match share / turn {
        1 if share == turn => format!("  {op},"),
        times if share.is_multiple_of(turn) => format!("  loop({times})[ {op} ],"),
        _ => format!("  loop({})[ {op} ],", in_turn(share)),
    }
}

fn task(text: &mut String, kind: &GroupHistory, kinds: &[GroupHistory]) {
    let turns = kind.sum.bursts.many();
    let each = (turns / kind.tasks).max(1);
    let mut lines = vec![format!("let i = self * {each}")];
    let times = if kind.forked {
        each.to_string()
    } else {
        "inf".to_owned()
    };
    lines.push(format!("loop({times})["));
    let wait = wait(kind, turns);
    // Who was seen asleep first begins so; otherwise all would work at once.
    let asleep_first = kind.ran_first * 2 < kind.tasks;
    if asleep_first {
        lines.extend(wait.iter().map(|line| format!("  {line},")));
    }
    lines.push(format!("  run({}),", distribution(&kind.sum.bursts)));
    for (target, many) in &kind.wakes {
        let target = &kinds[*target];
        if waits(target) {
            let send = format!("send({}_wakes)", target.name);
            lines.push(repeated(*many, turns, &send));
        }
    }
    for (child, many) in &kind.forks {
        let fork = format!("fork({})", kinds[*child].name);
        lines.push(repeated(*many, turns, &fork));
    }
    if !asleep_first {
        lines.extend(wait.iter().map(|line| format!("  {line},")));
    }
    lines.push("  i = i + 1".to_owned());
    lines.push("]".to_owned());
    let GroupHistory {
        name,
        called,
        nice,
        tasks,
        ..
    } = kind;
    let mut put = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").expect("a string");
    put(format_args!(""));
    if !called.is_empty() {
        let called: String = called.chars().filter(|c| !c.is_control()).collect();
        put(format_args!(
            "# `{called}`: {tasks} in the trace, {turns} turns."
        ));
    }
    put(format_args!("[task.{name}]"));
    if !kind.forked {
        put(format_args!("count = {tasks}"));
    } else {
        put(format_args!("count = 0"));
    }
    if let Some(cpus) = &kind.known.cpus {
        put(format_args!("cpus = \"{cpus}\""));
    }
    match kind.known.realtime {
        Some(priority) => put(format_args!("policy = \"fifo:{priority}\"")),
        None if *nice != 0 => put(format_args!("nice = {nice}")),
        None => {}
    }
    put(format_args!("kind = \"process\"\ndo = ["));
    // One operation may go over several lines, and a list joins its strings with commas: so all of
    // it is one string.
    put(format_args!("\"\"\"\n{}\"\"\"]", joined(&lines)));
}

/// The lines as one text. After the first, a `,` stands where an operation ends.
fn joined(lines: &[String]) -> String {
    let mut text = format!("{},\n", lines[0]);
    for line in &lines[1..] {
        text += line;
        text.push('\n');
    }
    text
}

/// What a task does at the end of a turn, at most one line.
fn wait(kind: &GroupHistory, turns: u64) -> Vec<String> {
    let sum = &kind.sum;
    let mut sleeps = Vec::new();
    for (lengths, is_wait) in [
        (&sum.clocks, false),
        (&sum.devices, false),
        (&sum.waits, true),
    ] {
        let many = lengths.many();
        if many > 0 && !(is_wait && waits(kind)) {
            sleeps.push((many, format!("sleep({})", distribution(lengths))));
        }
    }
    let sleep = match &sleeps[..] {
        [] => None,
        [(_, only)] => Some(only.clone()),
        several => {
            let all: Vec<String> = several
                .iter()
                .map(|(many, it)| format!("{many}: {it}"))
                .collect();
            Some(format!("choose({})", all.join(", ")))
        }
    };
    if !waits(kind) {
        return sleep.into_iter().collect();
    }
    let recv = format!("recv({}_wakes)", kind.name);
    vec![match sleep {
        None => recv,
        Some(sleep) => {
            let times = in_turn(share(sum.waits.many(), turns));
            format!("if({times})[ {recv} ] else [ {sleep} ]")
        }
    }]
}

/// A distribution of at most [`LENGTHS`] lengths, each the mean of its part.
fn distribution(lengths: &LengthHistogram) -> String {
    let mut parts: Vec<(u64, u128)> = lengths.0.values().copied().collect();
    while parts.len() > LENGTHS {
        // The two neighbours that are the fewest together become one.
        let pairs = parts.windows(2).enumerate();
        let fewest = pairs.min_by_key(|(_, pair)| pair[0].0 + pair[1].0);
        let (at, _) = fewest.expect("more than one");
        let (many, sum) = parts.remove(at + 1);
        parts[at].0 += many;
        parts[at].1 += sum;
    }
    let mean = |(many, sum): &(u64, u128)| {
        let mean = u64::try_from(sum / u128::from((*many).max(1))).unwrap_or(u64::MAX);
        span(mean)
    };
    match &parts[..] {
        [] => "1ns".to_owned(),
        [only] => mean(only),
        several => {
            let all = several
                .iter()
                .map(|part| format!("{}: {}", mean(part), part.0));
            format!("hist({})", all.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A length with three digits.
fn span(ns: u64) -> String {
    let digits = ns.max(1).ilog10();
    let unit = 10_u64.pow(digits.saturating_sub(2));
    let ns = (ns + unit / 2) / unit * unit;
    match ns {
        0 => "1ns".to_owned(),
        ns if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        ns if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Nanos;

    /// `hist(3us: 10, 5us: 2)` as lengths in nanoseconds and how many.
    fn parts(text: &str) -> Vec<(u64, u64)> {
        let inside = text
            .strip_prefix("hist(")
            .and_then(|it| it.strip_suffix(')'));
        let parts = inside.unwrap_or(text).split(", ");
        let part = |part: &str| {
            let (length, many) = part.split_once(": ").expect("a length and how many");
            let length = model::span::parse(length).expect("a span");
            (length.get(), many.parse().expect("a number"))
        };
        parts.map(part).collect()
    }

    #[test]
    fn a_distribution_has_few_lengths_and_loses_no_turn_and_no_time() {
        let mut lengths = LengthHistogram::default();
        for at in 0..200_u64 {
            (0..=at % 7).for_each(|_| lengths.add(Nanos::new(1_000 + at * at * 50)));
        }
        let found = parts(&distribution(&lengths));
        assert_eq!(found.len(), LENGTHS);
        assert!(found.is_sorted_by(|a, b| a.0 < b.0), "{found:?}");
        assert_eq!(found.iter().map(|it| it.1).sum::<u64>(), lengths.many());
        let sum: u64 = found.iter().map(|(length, many)| length * many).sum();
        let want = u64::try_from(lengths.sum()).unwrap();
        // Each is rounded to three digits.
        assert!(sum.abs_diff(want) * 200 < want, "{sum} {want}");
        let mut few = LengthHistogram::default();
        for length in [7, 7, 900] {
            few.add(Nanos::new(length));
        }
        assert_eq!(distribution(&few), "hist(7ns: 2, 900ns: 1)");
    }

    #[test]
    fn of_many_lengths_the_rarest_neighbours_become_one() {
        let mut lengths = LengthHistogram::default();
        for power in 0..=LENGTHS {
            let many = if (2..4).contains(&power) { 1 } else { 50 };
            (0..many).for_each(|_| lengths.add(Nanos::new(1 << power)));
        }
        let found = parts(&distribution(&lengths));
        assert_eq!(found.len(), LENGTHS);
        assert_eq!(found[..4], [(1, 50), (2, 50), (6, 2), (16, 50)]);
    }

    #[test]
    fn what_happens_in_every_turn_stands_alone_and_the_rest_in_a_loop() {
        assert_eq!(repeated(100, 100, "yield"), "  yield,");
        assert_eq!(repeated(300, 100, "yield"), "  loop(3)[ yield ],");
        for many in [1, 50, 150, 250] {
            let share = 10 * many;
            let loops = format!("loop((i + 1) * {share} / 1000 - i * {share} / 1000)[ yield ]");
            assert_eq!(repeated(many, 100, "yield"), format!("  {loops},"));
        }
    }
}
