//! What the words of each kind of event are called in files.
//!
//! One table for the writer, the reader and docs/events.md.

use model::{
    Caller, Event, EventKind, EventWords, IdleChange, Kicked, Looked, Op, PrevState, Removed,
    SYNC_BIT, Sliced, Until,
};

/// A word of an event's payload, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    /// Its name in a file; a unit comes last.
    pub name: &'static str,
    /// Where it stands in the event.
    pub part: PayloadPart,
    /// What it means.
    pub form: WordForm,
}

/// A place in an event's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadPart {
    /// [`EventWords::detail`].
    Detail,
    /// All of [`EventWords::a`].
    A,
    /// Bits 0 to 31 of [`EventWords::a`].
    ALow,
    /// Bits 32 to 63 of [`EventWords::a`].
    AHigh,
    /// Bits 32 to 47 of [`EventWords::a`].
    AThird,
    /// Bit 48 of [`EventWords::a`].
    ASync,
    /// All of [`EventWords::b`].
    B,
    /// Bits 0 to 31 of [`EventWords::b`].
    BLow,
    /// Bits 32 to 63 of [`EventWords::b`].
    BHigh,
}

/// What a word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordForm {
    /// A number.
    Number,
    /// A number in two's complement.
    Signed,
    /// A task, `null` for none.
    Task,
    /// A CPU of the machine.
    Cpu,
    /// A number, `null` for none ([`model::NOWHERE`]).
    Maybe,
    /// 1, or not there for 0.
    Flag,
    /// One of these names, by its position.
    Name(&'static [&'static str]),
    /// An index into the header's names.
    Index(Names),
}

/// Lists of the header that words are indexes into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Groups,
    Spans,
    Deadlines,
    Counters,
    Phases,
}

impl PayloadPart {
    /// Shift and width in bits.
    const fn bits(self) -> (u32, u32) {
        match self {
            Self::Detail => (0, 8),
            Self::A | Self::B => (0, 64),
            Self::ALow | Self::BLow => (0, 32),
            Self::AHigh | Self::BHigh => (32, 32),
            Self::AThird => (32, 16),
            Self::ASync => (SYNC_BIT, 1),
        }
    }

    /// The largest value that it holds.
    pub const fn max(self) -> u64 {
        u64::MAX >> (64 - self.bits().1)
    }

    /// Reads it.
    pub const fn get(self, words: EventWords) -> u64 {
        let (number, shift) = self.place();
        payload(words)[number] >> shift & self.max()
    }

    /// Which of [`payload`]'s numbers it is a part of, and how far that is shifted.
    pub const fn place(self) -> (usize, u32) {
        let number = match self {
            Self::Detail => 0,
            Self::A | Self::ALow | Self::AHigh | Self::AThird | Self::ASync => 1,
            Self::B | Self::BLow | Self::BHigh => 2,
        };
        (number, self.bits().0)
    }

    /// Sets it where it is 0; `value` is at most [`Self::max`].
    pub const fn set(self, words: &mut EventWords, value: u64) {
        let word = (value & self.max()) << self.bits().0;
        match self {
            Self::Detail => words.detail = word as u8,
            Self::A | Self::ALow | Self::AHigh | Self::AThird | Self::ASync => words.a |= word,
            Self::B | Self::BLow | Self::BHigh => words.b |= word,
        }
    }
}

/// The numbers whose parts the words of an event are.
pub(crate) const fn payload(words: EventWords) -> [u64; 3] {
    [words.detail as u64, words.a, words.b]
}

const fn word(name: &'static str, part: PayloadPart, form: WordForm) -> Word {
    Word { name, part, form }
}

/// Names of [`PrevState`], in the order of its values.
const PREV_STATES: [&str; 4] = ["idle", "runnable", "sleeping", "dead"];
const _: () = assert!(PrevState::Dead as usize == PREV_STATES.len() - 1);

/// Names of [`model::Caller`], in the order of its numbers.
const CALLERS: [&str; Op::ALL.len() + 2] = {
    let mut names = [""; Op::ALL.len() + 2];
    let mut at = 0;
    while at < OPS.len() {
        names[Caller::Callback(Op::ALL[at]).number() as usize] = OPS[at];
        at += 1;
    }
    names[Caller::Kernel.number() as usize] = Caller::Kernel.name();
    names[Caller::Program.number() as usize] = Caller::Program.name();
    names
};

const CALLBACK: Word = word("callback", PayloadPart::Detail, WordForm::Name(&CALLERS));
const QUEUE: Word = word("queue", PayloadPart::ALow, WordForm::Maybe);
const DEPTH: Word = word("depth", PayloadPart::AHigh, WordForm::Number);
const PLACE: Word = word("place", PayloadPart::BLow, WordForm::Maybe);

const LOOKED: [&str; 6] = [
    "move_to_local",
    "iterate",
    "move",
    "kernel",
    "nothing",
    "let_go",
];
const REMOVED: [&str; 2] = ["runs", "leaves"];
const KICKED: [&str; 4] = ["asked", "coalesced", "dropped", "taken"];
const IDLE: [&str; 3] = ["claimed", "idle", "busy"];
const UNTIL: [&str; 3] = ["time", "lock", "events"];
const SLICED: [&str; 4] = ["set", "insert", "default", "cut"];
const _: () = assert!(
    Looked::LetGo as usize == LOOKED.len() - 1
        && Kicked::Taken as usize == KICKED.len() - 1
        && Sliced::Cut as usize == SLICED.len() - 1
        && Until::Events as usize == UNTIL.len() - 1
        && Removed::Leaves as usize == REMOVED.len() - 1
        && IdleChange::Busy as usize == IDLE.len() - 1
);

const CHANGES: [&str; 3] = ["nice", "affinity", "class"];

const OPS: [&str; Op::ALL.len()] = {
    let mut names = [""; Op::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = Op::ALL[at].name();
        at += 1;
    }
    names
};

/// A kind, its name in files, its words.
pub(crate) type KindRow = (EventKind, &'static str, &'static [Word]);

/// Every kind, in the order of the declaration.
pub(crate) const KINDS: [KindRow; EventKind::ALL.len()] = [
    (
        EventKind::New,
        "new",
        &[
            word("group", PayloadPart::ALow, WordForm::Index(Names::Groups)),
            word("index", PayloadPart::AHigh, WordForm::Number),
            word("pid", PayloadPart::BLow, WordForm::Number),
            word("parent", PayloadPart::BHigh, WordForm::Task),
        ],
    ),
    (EventKind::Exit, "exit", &[]),
    (
        EventKind::Wakeup,
        "wakeup",
        &[
            word("waker", PayloadPart::ALow, WordForm::Task),
            word("waker_cpu", PayloadPart::AThird, WordForm::Cpu),
            word("new", PayloadPart::B, WordForm::Number),
            word("sync", PayloadPart::ASync, WordForm::Flag),
        ],
    ),
    (
        EventKind::Switch,
        "switch",
        &[
            word(
                "prev_state",
                PayloadPart::Detail,
                WordForm::Name(&PREV_STATES),
            ),
            word("prev", PayloadPart::ALow, WordForm::Task),
            word("overhead_ns", PayloadPart::B, WordForm::Number),
        ],
    ),
    (
        EventKind::Migrate,
        "migrate",
        &[word("from", PayloadPart::A, WordForm::Cpu)],
    ),
    (
        EventKind::Callback,
        "callback",
        &[
            word("op", PayloadPart::Detail, WordForm::Name(&OPS)),
            word("a", PayloadPart::A, WordForm::Number),
            word("b", PayloadPart::B, WordForm::Number),
        ],
    ),
    (
        EventKind::Steal,
        "steal",
        &[word("span_ns", PayloadPart::A, WordForm::Number)],
    ),
    (
        EventKind::Report,
        "report",
        &[
            word("priority", PayloadPart::ALow, WordForm::Number),
            word("level", PayloadPart::AHigh, WordForm::Number),
            word("flags", PayloadPart::B, WordForm::Number),
        ],
    ),
    (
        EventKind::SpanBegin,
        "span_begin",
        &[word("span", PayloadPart::A, WordForm::Index(Names::Spans))],
    ),
    (
        EventKind::SpanEnd,
        "span_end",
        &[
            word("span", PayloadPart::A, WordForm::Index(Names::Spans)),
            word("length_ns", PayloadPart::B, WordForm::Number),
        ],
    ),
    (
        EventKind::Deadline,
        "deadline",
        &[
            word(
                "deadline",
                PayloadPart::A,
                WordForm::Index(Names::Deadlines),
            ),
            word("late_ns", PayloadPart::B, WordForm::Number),
        ],
    ),
    (
        EventKind::Skipped,
        "skipped",
        &[
            word(
                "deadline",
                PayloadPart::A,
                WordForm::Index(Names::Deadlines),
            ),
            word("periods", PayloadPart::B, WordForm::Number),
        ],
    ),
    (
        EventKind::Count,
        "count",
        &[
            word("counter", PayloadPart::A, WordForm::Index(Names::Counters)),
            word("by", PayloadPart::B, WordForm::Number),
        ],
    ),
    (
        EventKind::Phase,
        "phase",
        &[word(
            "phase",
            PayloadPart::A,
            WordForm::Index(Names::Phases),
        )],
    ),
    (
        EventKind::Kick,
        "kick",
        &[
            word("flags", PayloadPart::A, WordForm::Number),
            word("caller", PayloadPart::B, WordForm::Cpu),
        ],
    ),
    (
        EventKind::Change,
        "change",
        &[
            word("what", PayloadPart::A, WordForm::Name(&CHANGES)),
            word("value", PayloadPart::B, WordForm::Signed),
        ],
    ),
    (
        EventKind::Queue,
        "queue",
        &[
            CALLBACK,
            word("id", PayloadPart::A, WordForm::Number),
            word("queue", PayloadPart::BLow, WordForm::Number),
            word("exists", PayloadPart::BHigh, WordForm::Number),
        ],
    ),
    (
        EventKind::Insert,
        "insert",
        &[
            CALLBACK,
            QUEUE,
            DEPTH,
            PLACE,
            word("flags", PayloadPart::BHigh, WordForm::Number),
        ],
    ),
    (
        EventKind::Look,
        "look",
        &[
            CALLBACK,
            QUEUE,
            DEPTH,
            PLACE,
            word("how", PayloadPart::BHigh, WordForm::Name(&LOOKED)),
        ],
    ),
    (
        EventKind::Remove,
        "remove",
        &[
            CALLBACK,
            QUEUE,
            DEPTH,
            PLACE,
            word("why", PayloadPart::BHigh, WordForm::Name(&REMOVED)),
        ],
    ),
    (
        EventKind::Ignored,
        "ignored",
        &[
            CALLBACK,
            word("id", PayloadPart::A, WordForm::Number),
            PLACE,
        ],
    ),
    (
        EventKind::KickEnd,
        "kick_end",
        &[
            CALLBACK,
            word("what", PayloadPart::A, WordForm::Name(&KICKED)),
            PLACE,
            word("caller", PayloadPart::BHigh, WordForm::Cpu),
        ],
    ),
    (
        EventKind::Idle,
        "idle",
        &[
            CALLBACK,
            word("what", PayloadPart::A, WordForm::Name(&IDLE)),
            PLACE,
        ],
    ),
    (
        EventKind::Slice,
        "slice",
        &[
            CALLBACK,
            word("slice_ns", PayloadPart::A, WordForm::Number),
            PLACE,
            word("why", PayloadPart::BHigh, WordForm::Name(&SLICED)),
        ],
    ),
    (
        EventKind::Allowed,
        "allowed",
        &[
            CALLBACK,
            word("cpus", PayloadPart::A, WordForm::Number),
            word("mask", PayloadPart::B, WordForm::Number),
        ],
    ),
    (
        EventKind::Failed,
        "failed",
        &[
            CALLBACK,
            word("kind", PayloadPart::A, WordForm::Number),
            PLACE,
        ],
    ),
    (
        EventKind::Suspend,
        "suspend",
        &[
            CALLBACK,
            PLACE,
            word("until", PayloadPart::BHigh, WordForm::Name(&UNTIL)),
            word("word", PayloadPart::A, WordForm::Number),
        ],
    ),
    (
        EventKind::Resume,
        "resume",
        &[
            CALLBACK,
            PLACE,
            word("lasted_ns", PayloadPart::A, WordForm::Number),
        ],
    ),
    (
        EventKind::Scheduler,
        "scheduler",
        &[
            word("scheduler", PayloadPart::ALow, WordForm::Number),
            word("cgroup", PayloadPart::B, WordForm::Number),
        ],
    ),
    (
        EventKind::Frequency,
        "frequency",
        &[
            word("khz", PayloadPart::A, WordForm::Number),
            word("rate", PayloadPart::BLow, WordForm::Number),
        ],
    ),
    (
        EventKind::Vtime,
        "vtime",
        &[
            CALLBACK,
            PLACE,
            word("vtime", PayloadPart::A, WordForm::Number),
        ],
    ),
];

/// What files say of the kind `kind`.
pub(crate) const fn of(kind: EventKind) -> &'static KindRow {
    &KINDS[kind as usize]
}

/// Whether an event of `kind` happens to a task. Others can happen to none: to an idle CPU, or
/// in the workload's interrupts.
#[must_use]
pub const fn needs_task(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::New
            | EventKind::Exit
            | EventKind::Wakeup
            | EventKind::Migrate
            | EventKind::Report
            | EventKind::Phase
            | EventKind::Change
            | EventKind::Insert
            | EventKind::Remove
            | EventKind::Ignored
            | EventKind::Slice
            | EventKind::Allowed
            | EventKind::Vtime
    )
}

/// Whether the words in files say everything that is in `event`.
pub(crate) fn covers(event: &Event) -> bool {
    let mut said = EventWords::default();
    for word in of(event.kind).2 {
        word.part.set(&mut said, word.part.get(event.words()));
    }
    said == event.words()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::testing::{check_docs, with};

    #[test]
    fn every_kind_stands_at_its_own_number() {
        for (at, (kind, name, _)) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, at, "{name}");
        }
        for (at, op) in Op::ALL.iter().enumerate() {
            assert_eq!(*op as usize, at, "{}", op.name());
        }
    }

    #[test]
    fn what_no_word_says_is_not_covered() {
        for (kind, name, words) in KINDS {
            let plain = crate::testing::event(0, kind, 0, model::TaskId::NONE);
            assert!(covers(&plain), "{name}");
            let mut said = EventWords::default();
            words.iter().for_each(|word| word.part.set(&mut said, 1));
            let said = with(plain, (said.detail, said.a, said.b));
            assert!(covers(&said), "{name}");
        }
        // An exit says no more than whose it is, and a file does not say the cause of a wakeup.
        let exit = crate::testing::event(0, EventKind::Exit, 0, model::TaskId(1));
        let wakeup = crate::testing::event(0, EventKind::Wakeup, 0, model::TaskId(1));
        for more in [
            with(wakeup, (1, 0, 0)),
            with(exit, (0, 1, 0)),
            with(exit, (0, 0, 1)),
        ] {
            assert!(!covers(&more), "{more:?}");
        }
    }

    #[test]
    fn parts_of_one_word_do_not_overlap() {
        for (_, name, words) in KINDS {
            for (at, word) in words.iter().enumerate() {
                let mut numbers = EventWords::default();
                word.part.set(&mut numbers, word.part.max());
                assert_eq!(word.part.get(numbers), word.part.max());
                for other in &words[at + 1..] {
                    assert_eq!(
                        other.part.get(numbers),
                        0,
                        "{name}: {} {}",
                        word.name,
                        other.name
                    );
                }
            }
        }
    }

    fn meaning(form: WordForm) -> String {
        match form {
            // The text above the table says which words can be `null`.
            WordForm::Number | WordForm::Maybe => String::new(),
            WordForm::Signed => "number, can be negative".to_owned(),
            WordForm::Task => "task or `null`".to_owned(),
            WordForm::Cpu => "CPU".to_owned(),
            WordForm::Flag => "1, or not there".to_owned(),
            WordForm::Name(names) if names.len() > LOOKED.len() => "callback".to_owned(),
            WordForm::Name(names) => format!("`\"{}\"`", names.join("\"`, `\"")),
            WordForm::Index(_) => "index".to_owned(),
        }
    }

    #[test]
    fn the_documentation_lists_every_word() {
        let mut text = String::from("\n| event | words |\n| --- | --- |\n");
        for (_, name, words) in KINDS {
            let word = |word: &Word| match meaning(word.form).as_str() {
                "" => format!("`{}`", word.name),
                meaning => format!("`{}`: {meaning}", word.name),
            };
            // Every decision has a callback, as the text above the table says.
            let words = words.iter().filter(|it| it.name != "callback").map(word);
            let words = words.collect::<Vec<_>>().join("; ");
            if !words.is_empty() {
                writeln!(text, "| `{name}` | {words} |").unwrap();
            }
        }
        check_docs("words", &(text + "\n"));
    }
}
