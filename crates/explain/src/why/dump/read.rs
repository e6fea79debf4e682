//! What stands in a dump.
//!
//! Source: `scx_dump_state()`, `scx_dump_cpu()` and `scx_dump_task()`, kernels 6.12 to 7.2,
//! kernel/sched/ext.c. `scx_lavd` prints its own words for a task below the kernel's.

use std::collections::{BTreeMap, VecDeque};

use super::ending::{self, Ending};
use super::mask::Mask;
use super::name::name_of;
use crate::why::log;

/// Dumps of one text that are kept, the last ones.
const KEPT: usize = 16;
/// Lines behind that of an ejection in which the kernel's log tells its message.
const NEAR: usize = 3;
/// What an idle CPU's own task is called.
const IDLE: &str = "swapper";
/// Classes above the policy's that can keep a CPU (kernel 6.18, kernel/sched/sched.h). The stop
/// class has one for microseconds only; a kernel without kallsyms prints an address.
const ABOVE: [&str; 3] = ["dl_sched_class", "rt_sched_class", "fair_sched_class"];
/// Letters of a task's state (kernel 6.18, `task_state_to_char()`).
const STATES: &str = "RSDTtXZPI";

/// A task of a dump.
#[derive(Debug, Default)]
pub struct Task {
    pub name: String,
    pub pid: u32,
    /// The CPU below which it stands.
    pub cpu: u16,
    pub is_current: bool,
    pub waited_ms: u64,
    /// `SCX_OPSS_*`.
    pub state: u64,
    pub dsq: Option<u64>,
    pub slice: Option<u64>,
    mask: Option<Mask>,
    /// `no_mig` is not 0.
    pub is_pinned: bool,
    /// The CPU that the policy chose for it, by the policy's own words.
    pub chosen: Option<u16>,
    has: Has,
}

/// Lines that were seen. Those of a policy that look alike come later.
#[derive(Debug, Default)]
struct Has {
    state: bool,
    queue: bool,
}

impl Task {
    /// Whether it may use the CPU, as far as the dump tells.
    pub fn may_run(&self, cpu: u16) -> bool {
        match &self.mask {
            Some(mask) if self.is_pinned && mask.has(self.cpu) => cpu == self.cpu,
            Some(mask) => mask.has(cpu),
            None => !self.is_pinned || cpu == self.cpu,
        }
    }

    /// The CPUs that it may use; `None` if the dump does not tell.
    pub fn allowed(&self) -> Option<Vec<u16>> {
        let all = self.mask.as_ref().map(Mask::cpus);
        let all = all.or_else(|| self.is_pinned.then(|| vec![self.cpu]))?;
        Some(all.into_iter().filter(|cpu| self.may_run(*cpu)).collect())
    }

    /// The highest CPU that its lines name.
    pub fn last_cpu(&self) -> Option<u16> {
        let usable = self.mask.as_ref().map(Mask::cpus);
        let last = usable.and_then(|cpus| cpus.last().copied());
        [Some(self.cpu), last].into_iter().max().flatten()
    }

    /// The lines below a task's first one.
    fn take(&mut self, line: &str) {
        let begins = |word: &&str| line.starts_with(*word);
        let of_kernel = [
            "scx_state/flags=",
            "state/flags=",
            "ops_state/qseq=",
            "sticky/holding_cpu=",
            "dsq_id=",
            "dsq_vtime=",
            "cpus=",
        ];
        if of_kernel.iter().any(begins) {
            self.fields(line);
        } else if let Some((_, rest)) = line.split_once("scpu: ") {
            let word = rest.split_whitespace().next().unwrap_or_default();
            self.chosen = self.chosen.or_else(|| word.parse().ok());
        }
    }

    /// Words of `name=value`. The first of a name counts.
    fn fields(&mut self, line: &str) {
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some(("ops_state/qseq", value)) if !self.has.state => {
                    let state = value.split('/').next().unwrap_or_default();
                    self.state = state.parse().unwrap_or(0);
                    self.has.state = true;
                }
                Some(("dsq_id", value)) if !self.has.queue => {
                    let hex = value.strip_prefix("0x");
                    self.dsq = hex.and_then(|hex| u64::from_str_radix(hex, 16).ok());
                    self.has.queue = true;
                }
                Some(("slice", value)) => self.slice = self.slice.or_else(|| value.parse().ok()),
                Some(("cpus", value)) if self.mask.is_none() => self.mask = Mask::read(value),
                Some(("no_mig", value)) => self.is_pinned = !matches!(value, "" | "0"),
                Some(("run_at", value)) => {
                    self.waited_ms = milliseconds(value).unwrap_or(self.waited_ms);
                }
                _ => {}
            }
        }
    }
}

/// A CPU of a dump.
#[derive(Debug, Default)]
pub struct Cpu {
    pub number: u16,
    pub curr: String,
    /// The scheduling class of that task, as the kernel calls its variable.
    pub class: String,
}

impl Cpu {
    pub fn idles(&self) -> bool {
        self.curr.starts_with(IDLE)
    }

    /// A task of a class above the policy's has it: no slice of the policy's ends that.
    pub fn is_above(&self) -> bool {
        !self.idles() && ABOVE.contains(&self.class.as_str())
    }
}

/// One dump, or the lines of a log that tell how a policy ended.
#[derive(Debug, Default)]
pub struct Dump {
    pub ending: Option<Ending>,
    /// Somebody asked for it (SysRq-D): the policy was not ejected.
    pub is_asked: bool,
    /// Only a log told of the ending.
    pub is_log: bool,
    pub cpus: BTreeMap<u16, Cpu>,
    /// The CPU that was read last.
    last: u16,
    pub tasks: Vec<Task>,
    pub is_cut: bool,
    /// The function of the policy in the backtrace of the ending.
    pub callback: Option<String>,
}

impl Dump {
    fn is_empty(&self) -> bool {
        self.ending.is_none() && !self.is_asked && self.cpus.is_empty() && self.tasks.is_empty()
    }

    pub fn cpu(&self, number: u16) -> Option<&Cpu> {
        self.cpus.get(&number)
    }

    /// Whether both tell of one ejection. A log may leave out what the dump says.
    fn is_told_by(&self, other: &Self) -> bool {
        let (Some(one), Some(other)) = (&self.ending, &other.ending) else {
            return false;
        };
        let has_same = one.message.is_empty() || one.message == other.message;
        one.kind == other.kind && has_same
    }
}

/// All dumps of a text, in its order; the last ones, and how many others there were.
pub fn dumps(text: &str) -> (Vec<Dump>, usize) {
    let mut reader = Reader::default();
    let lines = log::lines(text);
    for (at, line) in lines.iter().enumerate() {
        reader.take(line, &lines[at + 1..]);
    }
    reader.end();
    let Reader {
        mut all, mut over, ..
    } = reader;
    let mut at = 0;
    while at < all.len() {
        let told = |other: usize| {
            let is_first = !all[other].is_log || other < at;
            other != at && is_first && all[at].is_told_by(&all[other])
        };
        if all[at].is_log && (0..all.len()).any(told) {
            all.remove(at);
        } else {
            at += 1;
        }
    }
    let left = all.len().saturating_sub(KEPT);
    over += left;
    (all.into_iter().skip(left).collect(), over)
}

/// Reads lines into dumps.
#[derive(Default)]
struct Reader {
    all: VecDeque<Dump>,
    now: Dump,
    /// Dumps that are kept no more.
    over: usize,
}

impl Reader {
    /// Another dump begins.
    fn end(&mut self) {
        let dump = std::mem::take(&mut self.now);
        if !dump.is_empty() {
            self.keep(dump);
        }
    }

    fn keep(&mut self, dump: Dump) {
        // Logs that only repeat a dump are left out later.
        if self.all.len() >= 2 * KEPT {
            self.all.pop_front();
            self.over += 1;
        }
        self.all.push_back(dump);
    }

    fn take(&mut self, line: &str, rest: &[&str]) {
        let words = line.trim();
        let near = rest.iter().take(NEAR);
        if let Some(number) = ending::kind_of_head(words) {
            self.end();
            let next = rest
                .iter()
                .map(|line| line.trim())
                .find(|it| !it.is_empty());
            self.now.ending = Some(Ending::of_dump(number, next.unwrap_or_default()));
        } else if words.contains("Debug dump triggered by ") {
            self.end();
            self.now.is_asked = true;
        } else if let Some(ending) = Ending::of_log(words, near.copied()) {
            let dump = Dump {
                ending: Some(ending),
                is_log: true,
                ..Dump::default()
            };
            self.keep(dump);
        } else if words.contains("TRUNCATED") || line.contains("[LOST") {
            self.now.is_cut = true;
        } else if let Some(cpu) = cpu_of(words) {
            // A kernel shows each CPU once: the head of the next dump is missing.
            if self.now.cpu(cpu.number).is_some() {
                self.end();
            }
            self.now.last = cpu.number;
            self.now.cpus.insert(cpu.number, cpu);
        } else {
            self.take_below(words);
        }
    }

    /// A line below that of a CPU.
    fn take_below(&mut self, words: &str) {
        let dump = &mut self.now;
        let cpu = dump.cpus.get_mut(&dump.last);
        if let (Some(rest), Some(cpu)) = (words.strip_prefix("curr="), cpu) {
            let (curr, class) = rest.split_once(" class=").unwrap_or((rest, ""));
            curr.clone_into(&mut cpu.curr);
            class.trim().clone_into(&mut cpu.class);
        } else if let Some(task) = task_of(words, dump.last) {
            dump.tasks.push(task);
        } else if let Some(task) = dump.tasks.last_mut() {
            task.take(words);
        } else if dump.callback.is_none() && dump.cpus.is_empty() {
            dump.callback = callback_of(words);
        }
    }
}

/// `CPU 3   : nr_run=1 flags=...`
fn cpu_of(words: &str) -> Option<Cpu> {
    let (number, rest) = words.strip_prefix("CPU ")?.split_once(':')?;
    let number = number.trim().parse().ok()?;
    rest.contains("nr_run=").then(|| Cpu {
        number,
        ..Cpu::default()
    })
}

/// `bpf_prog_33340da880198fec_mine_enqueue+0x359/0xcd5`, a frame of a backtrace.
fn callback_of(words: &str) -> Option<String> {
    let (tag, name) = words.strip_prefix("bpf_prog_")?.split_once('_')?;
    let (name, _) = name.split_once('+')?;
    let is_tag = tag.len() == 16 && tag.bytes().all(|it| it.is_ascii_hexdigit());
    (is_tag && !name.is_empty()).then(|| name.chars().take(128).collect())
}

/// ` *R stress[123] -40ms`: a mark at the current task, a letter for the state, the name, and how
/// long ago it became runnable. Kernel 7.2 says before that which scheduler has the task: `*root`.
/// Kernels before 6.11 wrote ` *R stress   : pid=123 state/flags=...`.
fn task_of(words: &str, cpu: u16) -> Option<Task> {
    let (is_current, words) = match words.strip_prefix('*') {
        Some(rest) => (true, rest),
        None => (false, words),
    };
    let (state, rest) = words.split_once(' ')?;
    if state.len() != 1 || !STATES.contains(state) {
        return None;
    }
    let fresh = |name: &str, pid| Task {
        name: name.to_owned(),
        pid,
        cpu,
        is_current,
        ..Task::default()
    };
    if let Some((name, rest)) = rest.split_once(": pid=") {
        let (pid, rest) = rest.split_once(' ')?;
        let mut task = fresh(name.trim_end(), pid.parse().ok()?);
        task.take(rest);
        return Some(task);
    }
    let (name, since) = rest.trim_end().rsplit_once(' ')?;
    let waited_ms = milliseconds(since)?;
    let (name, pid) = name_of(name)?;
    Some(Task {
        waited_ms,
        ..fresh(name, pid)
    })
}

/// `-40ms` or `+0ms`: how long ago. What lies ahead is no wait.
fn milliseconds(word: &str) -> Option<u64> {
    let number: i64 = word
        .strip_suffix("ms")?
        .trim_start_matches('+')
        .parse()
        .ok()?;
    Some(number.min(0).unsigned_abs())
}
