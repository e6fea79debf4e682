//! Writes the line of one event. Of a run with events, nothing happens more often.
//!
//! What stands between the values of a line is the same for all events of a kind, so it is put
//! together once. All pieces have one length in memory, and so do the digits of numbers: copying
//! such a piece takes two instructions, while copying as many bytes as are wanted is a call.

use std::sync::LazyLock;

use model::{Event, EventKind, EventWords, NOWHERE, SimTime, TaskId};

use crate::words::{self, KINDS, Word, WordForm};

/// No line is longer: the longest has a time, a CPU, a task and five words.
pub(super) const LONGEST: usize = 512;

/// Bytes of a piece in memory.
const WIDE: usize = 40;

/// Bytes that stand in every line of a kind.
#[derive(Clone, Copy, Debug)]
struct Piece {
    bytes: [u8; WIDE],
    len: usize,
}

impl Piece {
    const EMPTY: Self = Self {
        bytes: [0; WIDE],
        len: 0,
    };

    /// # Panics
    /// If the text is longer than a piece.
    fn of(text: &str) -> Self {
        let mut piece = Self::EMPTY;
        piece.bytes[..text.len()].copy_from_slice(text.as_bytes());
        piece.len = text.len();
        piece
    }
}

/// The lines of a kind: the names need no escapes.
struct Line {
    /// What stands between the time and the CPU.
    head: Piece,
    values: Vec<Value>,
}

/// A word of a line.
struct Value {
    /// What stands before the value.
    name: Piece,
    /// Which of the [`words::payload`]'s numbers it is a part of, and which part.
    number: usize,
    shift: u32,
    mask: u64,
    how: How,
    /// The texts of [`How::Name`].
    texts: Vec<Piece>,
}

/// How a word is written, by its [`WordForm`].
#[derive(Clone, Copy, Debug)]
enum How {
    Number,
    /// `null` if it is this one.
    Maybe(u64),
    Signed,
    /// Left out if it is 0.
    Flag,
    Name,
}

impl Line {
    /// What stands between the time and the task of an event of one of the first CPUs.
    #[cold]
    fn head_of(&self, cpu: usize) -> Piece {
        let mut head = self.head;
        for part in [cpu.to_string().as_bytes(), TASK] {
            head.bytes[head.len..head.len + part.len()].copy_from_slice(part);
            head.len += part.len();
        }
        head
    }
}

static LINES: LazyLock<[Line; KINDS.len()]> = LazyLock::new(|| {
    KINDS.map(|(_, name, words)| Line {
        head: Piece::of(&format!(",\"event\":\"{name}\",\"cpu\":")),
        values: words.iter().map(value).collect(),
    })
});

fn value(word: &'static Word) -> Value {
    let texts = match word.form {
        WordForm::Name(names) => names,
        _ => &[],
    };
    let (number, shift) = word.part.place();
    Value {
        name: Piece::of(&format!(",\"{}\":", word.name)),
        number,
        shift,
        mask: word.part.max(),
        how: match word.form {
            WordForm::Number | WordForm::Cpu | WordForm::Index(_) => How::Number,
            WordForm::Signed => How::Signed,
            WordForm::Task => How::Maybe(TaskId::NONE.0.into()),
            WordForm::Maybe => How::Maybe(NOWHERE.into()),
            WordForm::Flag => How::Flag,
            WordForm::Name(_) => How::Name,
        },
        texts: texts
            .iter()
            .map(|text| Piece::of(&format!("\"{text}\"")))
            .collect(),
    }
}

/// Writes lines. Keeps how the last one began: events often come at one time, and nearly always in
/// the same tenth of a second.
#[derive(Debug)]
pub(super) struct Lines {
    time: SimTime,
    begin: Piece,
    /// Where the last eight digits of the time stand in it; 0 if it has no more.
    tenth: usize,
    /// What stands between the time and the task, by kind and CPU, of the first CPUs; empty until
    /// it is wanted.
    heads: Box<[[Piece; CPUS]]>,
    /// What stands behind the task, of lines that were written before; see [`Tail::place`].
    tails: Box<[Tail; TAILS]>,
}

/// What stands behind the task of a line, to its end. Of most events it was there before: the
/// words of a kind have few values, but for those that are times.
#[derive(Clone, Copy, Debug)]
struct Tail {
    payload: [u64; 2],
    /// The kind and what it has beside the payload.
    what: u16,
    len: u16,
    bytes: [u8; TAIL],
}

/// Bytes of a tail that is kept.
const TAIL: usize = 104;
/// Tails that are kept. They fit into a processor's nearest cache.
const TAILS: usize = 256;

const _: () = assert!(
    size_of::<Tail>() == 128,
    "a tail fills two lines of a cache"
);

impl Tail {
    /// That of no event.
    const NONE: Self = Self {
        payload: [0; 2],
        what: u16::MAX,
        len: 0,
        bytes: [0; TAIL],
    };

    fn what(kind: EventKind, words: EventWords) -> u16 {
        u16::from(kind as u8) << 8 | u16::from(words.detail)
    }

    /// Where the tail of an event is kept. Others have the same place: the last one stays.
    fn place(kind: EventKind, words: EventWords) -> usize {
        let what = u64::from(Self::what(kind, words));
        let mixed = words.a ^ words.b.rotate_left(20) ^ what << 40;
        // The factor is that of Fibonacci hashing: 2^64 by the golden ratio, odd.
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % TAILS
    }

    fn is_of(&self, kind: EventKind, words: EventWords) -> bool {
        self.payload == [words.a, words.b] && self.what == Self::what(kind, words)
    }
}

/// CPUs whose number is kept as text.
const CPUS: usize = 16;

/// What stands before the task.
const TASK: &[u8; 8] = b",\"task\":";

impl Lines {
    pub fn new() -> Self {
        Self {
            time: SimTime::ZERO,
            begin: Piece::EMPTY,
            tenth: 0,
            heads: vec![[Piece::EMPTY; CPUS]; KINDS.len()].into(),
            tails: Box::new([Tail::NONE; TAILS]),
        }
    }

    /// Writes the line of `event` at the beginning of `to`, and says how long it is.
    pub fn write(&mut self, event: &Event, to: &mut [u8; LONGEST]) -> usize {
        debug_assert!(
            words::covers(event),
            "an event has bits that its kind does not have: {event:?}"
        );
        let mut row = LineWriter { bytes: to, len: 0 };
        if self.begin.len > 0 && self.time == event.time {
            row.piece(&self.begin);
        } else {
            self.begin(event.time, &mut row);
        }
        let cpu = usize::from(event.cpu.0);
        match self.heads[event.kind as usize].get_mut(cpu) {
            Some(head) => {
                if head.len == 0 {
                    *head = LINES[event.kind as usize].head_of(cpu);
                }
                row.piece(head);
            }
            None => {
                row.piece(&LINES[event.kind as usize].head);
                row.number(cpu as u64);
                row.fixed(TASK);
            }
        }
        row.task(event.task.0.into());
        let (kind, words) = (event.kind, event.words());
        let tail = &mut self.tails[Tail::place(kind, words)];
        if tail.is_of(kind, words) {
            row.put(&tail.bytes, tail.len.into());
        } else {
            row.tail(kind, words, tail);
        }
        row.len
    }

    fn begin(&mut self, time: SimTime, row: &mut LineWriter<'_>) {
        let [last, now] = [self.time, time].map(SimTime::as_nanos);
        self.time = time;
        if self.tenth == 0 || last / EIGHT != now / EIGHT {
            let text = format!("{{\"time_ns\":{now}");
            self.begin = Piece::of(&text);
            self.tenth = if now < EIGHT { 0 } else { text.len() - 8 };
            row.piece(&self.begin);
        } else {
            // In this order: a processor waits where it reads what it has just written in parts.
            let digits = (digits(now % EIGHT) | ZEROS).to_le_bytes();
            row.put(&self.begin.bytes, self.tenth);
            row.fixed(&digits);
            self.begin.bytes[self.tenth..self.tenth + 8].copy_from_slice(&digits);
        }
    }
}

/// A line under construction.
struct LineWriter<'a> {
    bytes: &'a mut [u8; LONGEST],
    len: usize,
}

impl LineWriter<'_> {
    fn fixed<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.put(bytes, N);
    }

    fn piece(&mut self, piece: &Piece) {
        self.put(&piece.bytes, piece.len);
    }

    /// Appends the first `len` bytes of `bytes`. The others are overwritten by what comes next.
    #[inline]
    fn put<const N: usize>(&mut self, bytes: &[u8; N], len: usize) {
        self.bytes[self.len..self.len + N].copy_from_slice(bytes);
        self.len += len;
    }

    #[inline]
    fn value(&mut self, value: u64, of: &Value) {
        match of.how {
            How::Number | How::Flag => self.number(value),
            How::Maybe(none) if value == none => self.fixed(b"null"),
            How::Maybe(_) => self.number(value),
            How::Signed => {
                if value.cast_signed() < 0 {
                    self.fixed(b"-");
                }
                self.number(value.cast_signed().unsigned_abs());
            }
            How::Name => match usize::try_from(value).ok().and_then(|at| of.texts.get(at)) {
                Some(text) => self.piece(text),
                None => self.number(value),
            },
        }
    }

    /// What stands behind the task, to the end of the line. Keeps it in `tail` if it has room.
    #[inline(never)]
    fn tail(&mut self, kind: EventKind, words: EventWords, tail: &mut Tail) {
        let begin = self.len;
        let payload = words::payload(words);
        for value in &LINES[kind as usize].values {
            let word = payload[value.number] >> value.shift & value.mask;
            if word == 0 && matches!(value.how, How::Flag) {
                continue;
            }
            self.piece(&value.name);
            self.value(word, value);
        }
        self.fixed(b"}\n");
        let len = self.len - begin;
        if len <= TAIL {
            // What lies behind it in the row is copied, too, and written over as it was here.
            let bytes = self.bytes[begin..].first_chunk();
            tail.bytes = *bytes.expect("the longest line ends before the row");
            tail.len = len as u16;
            (tail.payload, tail.what) = ([words.a, words.b], Tail::what(kind, words));
        }
    }

    fn task(&mut self, task: u64) {
        if task == u64::from(TaskId::NONE.0) {
            self.fixed(b"null");
        } else {
            self.number(task);
        }
    }

    fn number(&mut self, value: u64) {
        if value < SMALL.len() as u64 {
            let small = SMALL[value as usize];
            self.put(&small.to_le_bytes(), (small >> 24) as usize);
        } else if value < EIGHT {
            self.short(value);
        } else if value < EIGHT * EIGHT {
            self.short(value / EIGHT);
            self.eight(value % EIGHT);
        } else {
            self.short(value / EIGHT / EIGHT);
            self.eight(value / EIGHT % EIGHT);
            self.eight(value % EIGHT);
        }
    }

    /// At most eight digits.
    fn short(&mut self, value: u64) {
        let digits = digits(value);
        let zeros = digits.trailing_zeros() / 8;
        let text = (digits | ZEROS) >> (zeros * 8);
        self.put(&text.to_le_bytes(), 8 - zeros as usize);
    }

    /// Eight digits, with zeros before the number.
    fn eight(&mut self, value: u64) {
        self.fixed(&(digits(value) | ZEROS).to_le_bytes());
    }
}

/// The digits of small numbers, from the lowest byte on, and how many there are in the highest one:
/// most numbers are those of tasks and CPUs, or few.
const SMALL: [u32; 1000] = {
    let mut texts = [0; 1000];
    let mut value = 0;
    while value < texts.len() {
        let digits = [value / 100, value / 10 % 10, value % 10];
        let begin = if value < 10 {
            2
        } else if value < 100 {
            1
        } else {
            0
        };
        let mut text = [0; 4];
        let mut at = begin;
        while at < digits.len() {
            text[at - begin] = b'0' + digits[at] as u8;
            at += 1;
        }
        text[3] = (digits.len() - begin) as u8;
        texts[value] = u32::from_le_bytes(text);
        value += 1;
    }
    texts
};

/// The first number with nine digits.
const EIGHT: u64 = 100_000_000;

/// Eight times the character `0`.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The eight digits of a number below [`EIGHT`], one in each byte, the first digit in the lowest
/// byte. Two halves of four digits are divided at once, then four pairs, as lanes of one word. The
/// multipliers are 1/100 and 1/10, in units of 2^-20 and 2^-10 and rounded up; for as many digits
/// as a lane has, the result is exact.
const fn digits(value: u64) -> u64 {
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((pairs - tens * 10) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: u64) -> String {
        let mut bytes = [0; LONGEST];
        let mut row = LineWriter {
            bytes: &mut bytes,
            len: 0,
        };
        row.number(value);
        let len = row.len;
        String::from_utf8(bytes[..len].to_vec()).unwrap()
    }

    #[test]
    fn numbers_of_every_length_have_the_digits_that_the_standard_library_gives_them() {
        for power in 0..20 {
            let power = 10_u64.pow(power);
            for value in [
                power - 1,
                power,
                power + 1,
                power.saturating_mul(9),
                power / 7,
            ] {
                assert_eq!(written(value), value.to_string());
            }
        }
        assert_eq!(written(u64::MAX), u64::MAX.to_string());
        for value in 0..2_000 {
            assert_eq!(written(value), value.to_string());
        }
    }

    #[test]
    fn each_lane_of_the_digits_is_exact() {
        for half in 0..10_000 {
            for value in [half, half * 10_000, half * 10_000 + (9_999 - half)] {
                let bytes = (digits(value) | ZEROS).to_le_bytes();
                assert_eq!(bytes, format!("{value:08}").as_bytes());
            }
        }
    }

    #[test]
    fn the_longest_line_of_each_kind_has_room() {
        let least = LINES.iter().map(|line| {
            let value = |value: &Value| {
                let texts = value.texts.iter().map(|text| text.len);
                value.name.len + texts.max().unwrap_or(0).max("-18446744073709551615".len())
            };
            let number = u64::MAX.to_string().len();
            let head = "{\"time_ns\":".len() + line.head.len + ",\"task\":".len() + 3 * number;
            head + line.values.iter().map(value).sum::<usize>() + "}\n".len()
        });
        // The last piece is copied whole, and so is a tail, behind the task of any line.
        assert!(least.max().unwrap() + WIDE.max(TAIL) <= LONGEST);
    }

    #[test]
    fn what_stands_before_the_task_has_room_with_every_cpu_that_is_kept_and_is_right() {
        for (at, (kind, name, _)) in KINDS.into_iter().enumerate() {
            for cpu in [0, 9, CPUS - 1] {
                let head = LINES[at].head_of(cpu);
                let want = format!(",\"event\":\"{name}\",\"cpu\":{cpu},\"task\":");
                assert_eq!(&head.bytes[..head.len], want.as_bytes(), "{kind:?}");
            }
        }
        let mut lines = Lines::new();
        let mut bytes = [0; LONGEST];
        for cpu in [0, CPUS - 1, CPUS, 1023, 0] {
            let cpu = u16::try_from(cpu).unwrap();
            let event = crate::testing::event(5, EventKind::Exit, cpu, TaskId(7));
            let len = lines.write(&event, &mut bytes);
            let want = format!("{{\"time_ns\":5,\"event\":\"exit\",\"cpu\":{cpu},\"task\":7}}\n");
            assert_eq!(String::from_utf8_lossy(&bytes[..len]), want);
        }
    }

    #[test]
    fn every_line_begins_with_its_own_time() {
        let mut lines = Lines::new();
        let mut bytes = [0; LONGEST];
        let times = [
            0,
            0,
            7,
            99_999_999,
            100_000_000,
            100_000_001,
            99,
            1_234_567_890_123,
        ];
        let more = [1_234_567_890_124, 1_234_600_000_000, u64::MAX, u64::MAX, 5];
        // Of eight digits only the head of the line before is kept, whatever the others are.
        let pairs = (1..5).flat_map(|one| (1..5).map(move |other| (one, other)));
        let pairs = pairs.flat_map(|(one, other)| [one * 100_000_000 + other, other * 100_000_000]);
        for time in times.into_iter().chain(more).chain(pairs) {
            let event = crate::testing::event(time, EventKind::Exit, 3, TaskId(12));
            let len = lines.write(&event, &mut bytes);
            let want = format!("{{\"time_ns\":{time},\"event\":\"exit\",\"cpu\":3,\"task\":12}}\n");
            assert_eq!(String::from_utf8_lossy(&bytes[..len]), want);
        }
    }
}
