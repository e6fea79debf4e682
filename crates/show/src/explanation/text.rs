//! An explanation for people.

use std::fmt::Write as _;

use ask::measure::Measure;
use ask::races::MetRace;
use ask::trial::{CureTrial, Trials};
use ask::words::counted;
use explain::why::{
    Act, Dumped, Fault, Finding, HeldLock, Holder, Idling, Measured, MissingRight, QueueName,
    QueueView, Share, Standing, Tier, Victim,
};
use model::{Nanos, SimTime};

use super::Explanation;

/// Columns of a line at most: longer ones are hard to read.
const WIDEST: usize = 80;
/// Columns of a line at least, on any terminal: beside the names there must be room for words.
const NARROWEST: usize = 40;
/// What the lines below a heading begin with.
const INDENT: &str = "  ";
/// Trials that are told: the last ones, of which one may be a proof.
const TRIED: usize = 3;
/// Races that are told: the worst ones.
const RACES: usize = 3;
/// CPUs that are named one by one.
const NAMED: usize = 8;

/// The text for so many columns, or for at least 40 and at most 80.
#[must_use]
pub fn of(explanation: &Explanation, columns: usize) -> String {
    let mut text = Text {
        out: String::new(),
        width: columns.clamp(NARROWEST, WIDEST),
        is_dump: !explanation.dumps.is_empty(),
    };
    match &explanation.finding {
        _ if text.is_dump => text.dumps(explanation),
        Some(finding) => text.finding(finding, explanation.trials.as_ref()),
        None if explanation.waits.is_empty() => {
            text.line("Nothing to explain: no ejection, and no wait that is a fault.");
        }
        None => {}
    }
    for race in explanation.races.iter().take(RACES) {
        text.item("race", &race_words(race));
    }
    if let Some(played) = &explanation.played {
        text.item("played", played);
    }
    for (at, wait) in explanation.waits.iter().enumerate() {
        if at > 0 || explanation.finding.is_some() {
            text.out.push('\n');
        }
        text.line(&format!(
            "Wait {} of {}: {}",
            at + 1,
            explanation.waits.len(),
            wait.span
        ));
        text.finding(&wait.finding, explanation.wait_trials.get(at));
    }
    if let Some(measured) = &explanation.measured {
        for large in &explanation.large {
            text.item("large", &large_words(*large, measured));
        }
    }
    for missing in &explanation.missing {
        text.item("not known", missing);
    }
    if let Some(again) = &explanation.again {
        // A command is not broken: it is there to be copied.
        let _ = write!(text.out, "\nAgain:\n{INDENT}{again}\n");
    }
    text.out
}

/// What a stall has let happen.
fn race_words(race: &MetRace) -> String {
    let MetRace {
        variable,
        writes,
        other,
        met,
        ..
    } = race;
    let reads = race.reads.as_ref();
    let read = reads.map(|reads| format!("had read {variable} at {reads} and "));
    let read = read.unwrap_or_default();
    let lost = reads.map_or("", |_| ", which was lost");
    let (stopped, wrote, time) = (met.stopped, met.wrote, at(met.time));
    format!(
        "CPU {stopped} {read}stopped before it wrote {variable} at {writes}; meanwhile CPU {wrote} \
         wrote that at {other} at {time} s{lost}"
    )
}

/// That a measure is large, which is no fault by itself.
#[must_use]
pub fn large_words(measure: Measure, measured: &Measured) -> String {
    format!("{} ({})", measure.fault().word(), amount(measure, measured))
}

/// What was measured, in words.
fn amount(measure: Measure, measured: &Measured) -> String {
    let value = measure.of(measured);
    match measure {
        Measure::Idle => {
            let causes = Idling::ALL.iter().zip(&measured.idle);
            let causes = causes.filter(|(_, time)| time.get() > 0);
            let causes = causes.map(|(cause, time)| format!("{time} {}", cause.words()));
            let causes: Vec<_> = causes.collect();
            format!("{value:.1} % of all CPU time: {}", causes.join(", "))
        }
        Measure::Preemptions => format!(
            "{} in all, {value:.0} in a second of CPU time",
            measured.preemptions
        ),
        Measure::Migrations => {
            let [cache, node, far] = measured.migrations;
            format!(
                "{cache} within a cache, {node} to another one, {far} to another node, {value:.0} \
                 in a second of CPU time"
            )
        }
    }
}

struct Text {
    out: String,
    width: usize,
    is_dump: bool,
}

impl Text {
    /// Writes words, broken where the line is full.
    fn wrapped(&mut self, first: &str, rest: &str, words: &str) {
        let mut line = first.to_owned();
        let mut is_fresh = true;
        for word in words.split_whitespace() {
            if !is_fresh && line.chars().count() + 1 + word.chars().count() > self.width {
                self.out.push_str(line.trim_end());
                self.out.push('\n');
                rest.clone_into(&mut line);
                is_fresh = true;
            }
            if !is_fresh {
                line.push(' ');
            }
            line.push_str(word);
            is_fresh = false;
        }
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn line(&mut self, words: &str) {
        self.wrapped("", "", words);
    }

    fn item(&mut self, name: &str, words: &str) {
        let first = format!("{INDENT}{:<12}", format!("{name}:"));
        self.wrapped(&first, &" ".repeat(14), words);
    }

    /// Each dump, the last one last: what people look at first stands at the prompt.
    fn dumps(&mut self, explanation: &Explanation) {
        let (dumps, over) = (&explanation.dumps, explanation.dumps_left_out);
        if dumps.len() + over > 1 {
            let of = match over {
                0 => "each is explained".to_owned(),
                _ => format!("the last {} are explained", dumps.len()),
            };
            self.line(&format!("The text has {} dumps; {of}.", dumps.len() + over));
        }
        for (at, dumped) in dumps.iter().enumerate() {
            if dumps.len() > 1 {
                self.line("");
                self.line(&format!("Dump {} of {}", over + at + 1, over + dumps.len()));
            }
            self.dump(dumped);
        }
    }

    fn dump(&mut self, dumped: &Dumped) {
        let finding = &dumped.finding;
        for words in &dumped.before {
            self.line(&format!("First: {words}."));
        }
        let is_told = finding.message.is_some() || finding.fault == Fault::Waited;
        let likely = match (dumped.is_likely, is_told) {
            (true, _) => " (likely)",
            (false, true) => "",
            (false, false) => " (supposed)",
        };
        self.title(finding, likely);
        self.scene(finding);
        for words in &dumped.seen {
            self.item("seen", words);
        }
        let advice = dumped.advice.unwrap_or_else(|| finding.fault.advice());
        self.item("what to do", advice);
        for missing in &dumped.missing {
            self.item("not known", missing);
        }
    }

    fn title(&mut self, finding: &Finding, likely: &str) {
        let Finding { fault, .. } = finding;
        self.line(&format!("{}{likely}: {}", fault.word(), fault.sentence()));
    }

    fn finding(&mut self, finding: &Finding, trials: Option<&Trials>) {
        let is_supposed = trials.is_some_and(|it| is_supposed(finding, it));
        self.title(finding, if is_supposed { " (supposed)" } else { "" });
        self.scene(finding);
        if let Some(culprit) = &finding.culprit {
            self.item("look at", &act(culprit));
        }
        if let Some(also) = &finding.also {
            self.item("chosen", &act(also));
        }
        self.item("what to do", finding.fault.advice());
        if let Some(trials) = trials {
            self.trials(finding, trials);
        }
    }

    /// The kernel's words, who waits where, and what the CPUs did.
    fn scene(&mut self, finding: &Finding) {
        if let Some(scheduler) = &finding.scheduler {
            let words = format!("{scheduler}, which the kernel ended; the others went on");
            self.item("scheduler", &words);
        }
        if let Some(message) = &finding.message {
            self.item("kernel", message);
        }
        self.verdict(finding);
        if let Some(measured) = &finding.verdict.measured {
            let measure = Measure::ALL.into_iter();
            for measure in measure.filter(|it| it.fault() == finding.fault) {
                self.item("measured", &amount(measure, measured));
            }
        }
        if let Some(stopped) = &finding.stopped {
            self.item("stopped at", stopped);
        }
        if let Some(victim) = &finding.victim {
            let queue = finding.queue.as_ref();
            let of = queue.and_then(|queue| queue.of.as_deref());
            self.victim(victim, of, finding.waiting);
        }
        if let Some(lock) = &finding.verdict.lock {
            self.lock(lock);
        }
        if let Some(missing) = &finding.verdict.missing {
            self.missing(missing);
        }
        if let Some(queue) = &finding.queue {
            self.queue(queue);
        }
        self.idle(finding);
        self.holders(finding);
    }

    /// Why it is a fault, or is none.
    fn verdict(&mut self, finding: &Finding) {
        let words = match (finding.tier(), &finding.verdict.share) {
            _ if finding.fault == Fault::Outranked && finding.verdict.has_server => {
                "no fault of the policy, but of somebody: from 7.0 on the kernel's deadline server \
                 owes its tasks 50 ms of each second (the simulated machine has no such server)"
            }
            _ if finding.fault == Fault::Outranked && finding.message.is_some() => {
                "no fault, but the kernel's rule: before 7.0 its watchdog ends a policy whose \
                 tasks wait behind real-time or deadline tasks"
            }
            _ if finding.fault == Fault::Outranked && !self.is_dump => {
                "no fault: before 7.0 the kernel gives real-time and deadline tasks all that they \
                 want"
            }
            (Some(Tier::NoRival), _) => {
                "no rival: it could run on a CPU that idles, at nobody's expense"
            }
            (Some(Tier::Share), Some(share)) => return self.share(share),
            _ => return,
        };
        self.item("verdict", words);
    }

    fn lock(&mut self, lock: &HeldLock) {
        let HeldLock {
            name, holder, runs, ..
        } = lock;
        let since = lock.since.map(|since| format!(" since {} s", at(since)));
        let since = since.unwrap_or_default();
        let words = format!("{holder} has the lock {name} and waits for a CPU{since}; {runs} runs");
        self.item("waits for", &words);
    }

    fn missing(&mut self, missing: &MissingRight) {
        let right = match missing.rights {
            [] => "a right".to_owned(),
            rights => format!(
                "the right `{}`",
                rights.join("` or, with `SCX_ENQ_IMMED`, `")
            ),
        };
        let cpu = missing.cpu;
        let words = format!("{right} on CPU {cpu}, whose local queue turned the task away");
        self.item("missing", &words);
    }

    fn share(&mut self, share: &Share) {
        let by_cgroup = share.lag_by_cgroup;
        let by_cgroup = by_cgroup.map_or_else(String::new, |lag| format!(", {lag} by cgroup"));
        let (lag, bound) = (share.lag, share.bound);
        let lags = if lag > bound {
            format!("it lags {lag} behind by weight{by_cgroup}, and a round is {bound}")
        } else {
            format!("a slice that never ends keeps it waiting for more than a round, {bound}")
        };
        let whose = match share.right {
            Some(right) => format!(
                "share, by the right `{}` (declared, or of --right)",
                right.word()
            ),
            None => "share, no fault: the policy declares no right (--right)".to_owned(),
        };
        self.item("verdict", &format!("{whose}; {lags}"));
    }

    fn trials(&mut self, finding: &Finding, trials: &Trials) {
        let victim = finding.victim.as_ref();
        let name = victim.map_or("the task", |victim| &victim.name);
        let before = trials.tried.len().saturating_sub(TRIED);
        for trial in &trials.tried[before..] {
            self.item("tried", &tried(trial, name));
        }
        let is_told = is_supposed(finding, trials) || !trials.tried.is_empty();
        if let Some(why) = trials.unproven.as_ref().filter(|_| is_told) {
            self.item("not proven", &why.text());
        }
    }

    /// Who waits; its queue is that of a scheduler at the cgroup `of`, or the root's.
    fn victim(&mut self, victim: &Victim, of: Option<&str>, waiting: usize) {
        let Victim { name, pid, .. } = victim;
        let words = match (victim.since, self.is_dump) {
            (Some(since), _) => {
                format!(
                    "{name}[{pid}] waits since {} s, for {}",
                    at(since),
                    victim.waited
                )
            }
            (None, true) if victim.waited > Nanos::ZERO => {
                format!("{name}[{pid}] has waited for {}", victim.waited)
            }
            (None, false) if victim.waited > Nanos::ZERO => {
                format!("{name}[{pid}] sleeps for {}", victim.waited)
            }
            (None, _) => format!("{name}[{pid}]"),
        };
        let others = match waiting.saturating_sub(1) {
            0 => String::new(),
            1 => "; one other task waits".to_owned(),
            others => format!("; {others} others wait"),
        };
        self.item("who", &(words + &others));
        let place = match &victim.standing {
            Standing::Nowhere => "in no queue: the policy has it".to_owned(),
            Standing::Queue(id) => {
                let whose = if of.is_some() { "" } else { " of the policy" };
                format!("in the queue {}{whose}", queue_name(of, *id))
            }
            Standing::Global => match of {
                Some(of) => format!("in the global queue of {of}"),
                None => "in the global queue".to_owned(),
            },
            Standing::Local(cpu) => format!("in the local queue of CPU {cpu}"),
            Standing::Elsewhere => {
                "not with the policy: it is of another class, or not yet taken over".to_owned()
            }
            Standing::Unknown => return,
        };
        self.item("where", &place);
        if let Some(put) = &victim.put {
            self.item("put there", &act(put));
        }
        if let Some(trigger) = victim.trigger {
            self.item("when", &format!("at the moment in which {trigger}"));
        }
    }

    fn queue(&mut self, queue: &QueueView) {
        let (looks, takes) = queue.looks;
        if self.is_dump {
            let words = format!("holds {} of the dump", counted(queue.depth.into(), "task"));
            return self.item("the queue", &words);
        }
        let readers: Vec<_> = queue
            .readers
            .iter()
            .take(NAMED)
            .map(ToString::to_string)
            .collect();
        let mut words = match looks {
            0 => format!(
                "holds {}; nobody has looked at it since the task came",
                counted(queue.depth.into(), "task")
            ),
            _ => format!(
                "holds {}; since the task came, looks at it: {looks} (by CPU {}), which took {}",
                counted(queue.depth.into(), "task"),
                readers.join(", "),
                counted(takes, "task"),
            ),
        };
        if queue.overtaken > 0 {
            let _ = write!(words, "; {} of them came later than it", queue.overtaken);
        }
        self.item("the queue", &words);
        if let Some(of) = queue.of.as_ref().filter(|_| queue.is_passed_by) {
            let words = format!(
                "no CPU to {of} since the task came: the one above did not call \
                 `scx_bpf_sub_dispatch()`, or {of} has no right to the CPU"
            );
            self.item("handed", &words);
        }
        match &queue.last_look {
            Some(look) => self.item("last look", &act(look)),
            None => self.item("last look", "never: nobody has ever looked at it"),
        }
        if let Some((look, id)) = queue.other_look.as_ref().filter(|_| looks == 0) {
            let words = format!("took a task from the queue {id} instead, {}", act(look));
            self.item("others", &words);
        }
        if let Some(empty) = queue.empty_dispatch.as_ref().filter(|_| looks == 0) {
            self.item(
                "passed by",
                &format!("{}, which ended without a task", act(empty)),
            );
        }
    }

    fn idle(&mut self, finding: &Finding) {
        if finding.idle.is_empty() || finding.fault == Fault::UnfairShare {
            return;
        }
        let idle = finding.idle.iter().take(NAMED).map(|idle| {
            let since = if self.is_dump {
                String::new()
            } else {
                format!(" since {} s", at(idle.since))
            };
            let kicked = match idle.kicked {
                _ if self.is_dump => String::new(),
                Some(time) => format!(", kicked at {} s", at(time)),
                None => ", never kicked".to_owned(),
            };
            let claimed = idle.claimed.as_ref();
            let claimed = claimed
                .map(|by| format!(", claimed {}", act(by)))
                .unwrap_or_default();
            format!("CPU {}{since}{kicked}{claimed}", idle.cpu)
        });
        let idle: Vec<_> = idle.collect();
        let more = finding.idle.len().saturating_sub(NAMED);
        let more = if more > 0 {
            format!("; {more} more")
        } else {
            String::new()
        };
        self.item("idle", &(idle.join("; ") + &more));
    }

    fn holders(&mut self, finding: &Finding) {
        let held = finding.holders.iter().take(NAMED);
        let held = held.map(|holder| format!("CPU {} has {}", holder.cpu, self.turn(holder)));
        let held: Vec<_> = held.collect();
        if !held.is_empty() {
            self.item("running", &held.join("; "));
        }
        if let Some((holder, span)) = &finding.longest {
            let (cpu, turn) = (holder.cpu, self.turn(holder));
            let given = holder.given.as_ref();
            let given = given.map(|given| format!(", given {}", act(given)));
            let given = given.unwrap_or_default();
            let words = format!("for {span} of the wait CPU {cpu} had {turn}{given}");
            self.item("before", &words);
        }
    }

    /// Who has a CPU, since when, and with which slice.
    fn turn(&self, holder: &Holder) -> String {
        let since = if self.is_dump {
            String::new()
        } else {
            format!(" since {} s", at(holder.since))
        };
        let slice = match holder.slice {
            Some(u64::MAX) => ", with a slice that never ends".to_owned(),
            Some(slice) => format!(", with a slice of {}", Nanos::new(slice)),
            None => String::new(),
        };
        format!("{}{since}{slice}", holder.name)
    }
}

/// Whether a cause is named that is not proven, of what may be no fault.
fn is_supposed(finding: &Finding, trials: &Trials) -> bool {
    let names = !matches!(
        finding.fault,
        Fault::Outranked | Fault::Waited | Fault::Unknown
    );
    names && !trials.accuses()
}

/// What was tried, and what came of it.
fn tried(trial: &CureTrial, victim: &str) -> String {
    let (cure, is_rule) = trial.cure.text(victim);
    let when = match trial.at {
        SimTime::ZERO => String::new(),
        _ => format!(
            " {} {} s",
            if is_rule { "from" } else { "at" },
            at(trial.at)
        ),
    };
    let came = match trial.after {
        Some(after) if trial.helped > 0 => format!("{victim} ran after {after}"),
        Some(_) => format!("{victim} still waited"),
        None => "the shares were as the weights".to_owned(),
    };
    let times = match trial.tried - trial.helped {
        0 => format!("tried {} times", trial.tried),
        _ => format!("{} of {} times", trial.helped, trial.tried),
    };
    let placebos = match (trial.placebos, trial.placebos_helped) {
        (0, _) => String::new(),
        (all, 0) => format!("; of {all} other trials none helped"),
        (all, some) => format!("; of {all} other trials {some} helped"),
    };
    format!("{cure}{when} {came} ({times}{placebos})")
}

/// Who did something, where and when.
fn act(act: &Act) -> String {
    format!("{} at {} s", by(act), at(act.time))
}

/// Who did something, and where.
pub(crate) fn by(act: &Act) -> String {
    let who = match act.callback {
        "kernel" => "the kernel, by a rule of its own".to_owned(),
        "program" => "a timer's or another program".to_owned(),
        callback => format!("`{callback}`"),
    };
    let place = act.place.as_ref().map(|place| match &place.file {
        Some(file) => format!(", {file}:{} ({})", place.line, place.function),
        None => format!(", in {}", place.function),
    });
    format!("by {who}{} on CPU {}", place.unwrap_or_default(), act.cpu)
}

/// Seconds with microseconds.
pub(crate) fn at(time: SimTime) -> String {
    let ns = time.as_nanos();
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

/// The queue `id` of the scheduler at the cgroup `of`, or of the root.
fn queue_name(of: Option<&str>, id: u64) -> String {
    let of = of.map(str::to_owned);
    QueueName { of, id }.to_string()
}
