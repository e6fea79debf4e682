//! The bytes of a recording: a first line, the records, and a checksum. Numbers are little-endian;
//! what has a length has it before itself, in 4 bytes.

use model::user_space::{
    BpfCall, BpfId, MapCreate, ProgLoad, ProgramEnd, SetSched, ThreadId, ThreadTurn, TurnEnd,
};
use model::{Advice, Nanos};

use super::{Act, After, Fnv1a, Record};

/// What a recording begins with; another version has another line.
const FIRST: &[u8] = b"runslice recording of a loader 1\n";
/// No recording is longer.
const BYTES_MAX: usize = 1 << 30;

/// Recording of a program's calls, to be played back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    pub(super) records: Vec<Record>,
}

/// Why bytes are no recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damaged {
    /// They begin otherwise.
    #[error("this is no recording of a loader, or one of another version of runslice")]
    First,
    /// There are too many.
    #[error("the recording has more than {} MiB", BYTES_MAX >> 20)]
    Long,
    /// The checksum is another one.
    #[error("the recording is cut or changed")]
    Checksum,
    /// A record is none.
    #[error("the recording is damaged at byte {0}")]
    Record(usize),
}

impl Advice for Damaged {
    fn advice(&self) -> Option<String> {
        None
    }
}

impl Recording {
    /// The bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = FIRST.to_vec();
        self.records.put(&mut bytes);
        let sum = Fnv1a::of(bytes.iter().copied());
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// Reads bytes that anybody may have made.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Damaged> {
        if !bytes.starts_with(FIRST) {
            return Err(Damaged::First);
        }
        if bytes.len() > BYTES_MAX {
            return Err(Damaged::Long);
        }
        let (content, sum) = bytes.split_last_chunk::<8>().ok_or(Damaged::Checksum)?;
        if Fnv1a::of(content.iter().copied()) != u64::from_le_bytes(*sum) {
            return Err(Damaged::Checksum);
        }
        let mut from = Source {
            bytes: content,
            at: FIRST.len(),
        };
        let records = Coded::get(&mut from).ok_or(Damaged::Record(from.at))?;
        if from.at != content.len() {
            return Err(Damaged::Record(from.at));
        }
        Ok(Self { records })
    }

    /// How many records there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

/// Bytes, and how many were read.
struct Source<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Source<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let found = self.bytes.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(*found)
    }

    const fn left(&self) -> usize {
        self.bytes.len() - self.at
    }
}

/// A type that stands in a recording.
trait Coded: Sized {
    /// Bytes that each takes at least: a list claims no more elements than bytes can hold.
    const LEAST: usize = 1;

    fn put(&self, to: &mut Vec<u8>);
    fn get(from: &mut Source<'_>) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(
            impl Coded for $type {
                const LEAST: usize = size_of::<Self>();

                fn put(&self, to: &mut Vec<u8>) {
                    to.extend(self.to_le_bytes());
                }

                fn get(from: &mut Source<'_>) -> Option<Self> {
                    from.take().map(Self::from_le_bytes)
                }
            }
        )*
    };
}

numbers!(u8, u16, u32, u64, i8, i32);

impl Coded for bool {
    fn put(&self, to: &mut Vec<u8>) {
        to.push((*self).into());
    }

    fn get(from: &mut Source<'_>) -> Option<Self> {
        match u8::get(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<T: Coded> Coded for Vec<T> {
    const LEAST: usize = 4;

    fn put(&self, to: &mut Vec<u8>) {
        // Longer ones were refused before they could be recorded.
        u32::try_from(self.len()).unwrap_or(u32::MAX).put(to);
        self.iter().for_each(|it| it.put(to));
    }

    fn get(from: &mut Source<'_>) -> Option<Self> {
        let len = u32::get(from)? as usize;
        if len > from.left() / T::LEAST {
            return None;
        }
        // A vector that grows would have three times as much for a moment.
        let mut all = Self::with_capacity(len);
        for _ in 0..len {
            all.push(T::get(from)?);
        }
        Some(all)
    }
}

impl Coded for String {
    fn put(&self, to: &mut Vec<u8>) {
        self.as_bytes().to_vec().put(to);
    }

    fn get(from: &mut Source<'_>) -> Option<Self> {
        Self::from_utf8(Coded::get(from)?).ok()
    }
}

impl<T: Coded> Coded for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        if let Some(it) = self {
            it.put(to);
        }
    }

    fn get(from: &mut Source<'_>) -> Option<Self> {
        if bool::get(from)? {
            Some(Some(T::get(from)?))
        } else {
            Some(None)
        }
    }
}

impl<T: Coded> Coded for Box<T> {
    fn put(&self, to: &mut Vec<u8>) {
        (**self).put(to);
    }

    fn get(from: &mut Source<'_>) -> Option<Self> {
        T::get(from).map(Self::new)
    }
}

impl<A: Coded, B: Coded> Coded for (A, B) {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }

    fn get(from: &mut Source<'_>) -> Option<Self> {
        Some((A::get(from)?, B::get(from)?))
    }
}

impl Coded for Nanos {
    fn put(&self, to: &mut Vec<u8>) {
        Self::get(*self).put(to);
    }

    fn get(from: &mut Source<'_>) -> Option<Self> {
        // Sums of times do not overflow: no run lasts 292 years.
        let nanos = u64::get(from)?;
        (nanos <= i64::MAX.cast_unsigned()).then_some(Self::new(nanos))
    }
}

/// A structure by its fields.
macro_rules! structure {
    ($type:ident { $($field:tt),* }) => {
        impl Coded for $type {
            fn put(&self, to: &mut Vec<u8>) {
                $(Coded::put(&self.$field, to);)*
            }

            fn get(from: &mut Source<'_>) -> Option<Self> {
                Some($type { $($field: Coded::get(from)?),* })
            }
        }
    };
}

/// An enum by its variants, each with its number.
macro_rules! variants {
    ($type:ident, least $least:literal {
        $($tag:literal $name:ident $({ $($field:ident),* })? $(( $($item:ident),* ))?),*
    }) => {
        impl Coded for $type {
            const LEAST: usize = $least;

            fn put(&self, to: &mut Vec<u8>) {
                match self {
                    $($type::$name $({ $($field),* })? $(( $($item),* ))? => {
                        to.push($tag);
                        $($(Coded::put($field, to);)*)?
                        $($(Coded::put($item, to);)*)?
                    })*
                }
            }

            fn get(from: &mut Source<'_>) -> Option<Self> {
                match u8::get(from)? {
                    $($tag => {
                        $($(let $field = Coded::get(from)?;)*)?
                        $($(let $item = Coded::get(from)?;)*)?
                        Some($type::$name $({ $($field),* })? $(( $($item),* ))?)
                    })*
                    _ => None,
                }
            }
        }
    };
}

structure!(ThreadId { 0 });
structure!(BpfId { 0 });
structure!(MapCreate {
    kind,
    key_size,
    value_size,
    max_entries,
    flags,
    name,
    inner,
    btf,
    key_type,
    value_type,
    kernel_value_type,
    extra
});
structure!(ProgLoad {
    kind,
    attach_type,
    name,
    code,
    license,
    flags,
    btf,
    functions,
    lines,
    attach_to,
    fds
});
structure!(ThreadTurn { stop, cost, woken });
structure!(ProgramEnd { status, last_lines });
structure!(After {
    waits_for_files,
    end
});
variants!(TurnEnd, least 1 { 0 Wait { until }, 1 Yield, 2 Exit, 3 Again });
variants!(SetSched, least 2 {
    0 Policy(policy, priority), 1 Nice(nice), 2 Affinity(cpus), 3 Name(name)
});
variants!(BpfCall, least 5 {
    0 BtfLoad { bytes },
    1 MapCreate(map),
    2 Lookup { map, key, flags, delete },
    3 Update { map, key, value, flags, fds },
    4 Delete { map, key },
    5 NextKey { map, key },
    6 Freeze { map },
    7 ProgLoad(program),
    8 LinkCreate { target, attach_type, name, flags },
    9 LinkDetach { link },
    10 TestRun { program, context, flags, cpu },
    11 IterRead { link },
    12 StreamRead { program, stream, len },
    13 Close { object }
});
variants!(Act, least 14 {
    0 Bpf(call, answer),
    1 Spawn(thread, name, answer),
    2 SetSched(thread, change, answer),
    3 ArenaAt(map, address, answer),
    4 Store(map, offset, bytes)
});
variants!(Record, least 7 {
    0 Turn { thread, now, acts, turn, after },
    1 Woken(asked, woken, after),
    2 Interrupt(woken, after)
});

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Recording {
        let turn = ThreadTurn {
            stop: TurnEnd::Wait {
                until: Some(Nanos::new(9)),
            },
            cost: Nanos::new(5200),
            woken: vec![ThreadId(3)],
        };
        let program = ProgLoad {
            kind: 27,
            name: "enqueue".into(),
            code: vec![0x95, 0, 0, 0, 0, 0, 0, 0],
            fds: vec![(7, BpfId(2))],
            lines: (vec![1; 16], 16),
            ..ProgLoad::default()
        };
        let acts = vec![
            Act::Bpf(BpfCall::MapCreate(MapCreate::default()), 1),
            Act::Bpf(BpfCall::ProgLoad(Box::new(program)), 2),
            Act::Spawn(ThreadId(1), "ctrl-c".into(), 3),
            Act::SetSched(ThreadId(1), SetSched::Affinity(vec![0, 3]), 4),
            Act::ArenaAt(BpfId(4), 1 << 44, 5),
            Act::Store(BpfId(1), 4096, vec![1, 2, 3]),
        ];
        let end = ProgramEnd {
            status: 2,
            last_lines: "no CPUs".into(),
        };
        let after = After {
            waits_for_files: true,
            end: Some(end),
        };
        let (thread, now) = (ThreadId(0), Nanos::from_secs(3600));
        Recording {
            records: vec![
                Record::Turn {
                    thread,
                    now,
                    acts,
                    turn,
                    after,
                },
                Record::Woken(812, vec![ThreadId(1)], After::default()),
                Record::Interrupt(vec![], After::default()),
            ],
        }
    }

    fn signed(mut content: Vec<u8>) -> Vec<u8> {
        let sum = Fnv1a::of(content.iter().copied());
        content.extend(sum.to_le_bytes());
        content
    }

    #[test]
    fn what_is_written_is_read() {
        let recording = example();
        let bytes = recording.to_bytes();
        assert_eq!(Recording::from_bytes(&bytes), Ok(recording));
    }

    #[test]
    fn cut_changed_and_forged_bytes_are_refused() {
        let bytes = example().to_bytes();
        for len in 0..bytes.len() {
            assert!(Recording::from_bytes(&bytes[..len]).is_err(), "{len} bytes");
        }
        let content = &bytes[..bytes.len() - 8];
        for at in FIRST.len()..content.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x80;
            assert_eq!(
                Recording::from_bytes(&changed),
                Err(Damaged::Checksum),
                "byte {at}"
            );
            // With a right checksum the reader still has to end by itself, with little memory.
            let mut forged = content.to_vec();
            forged[at] = 0xff;
            let _ = Recording::from_bytes(&signed(forged));
            let _ = Recording::from_bytes(&signed(content[..at].to_vec()));
        }
        let mut long = FIRST.to_vec();
        long.extend(u32::MAX.to_le_bytes());
        assert!(matches!(
            Recording::from_bytes(&signed(long)),
            Err(Damaged::Record(_))
        ));
        assert_eq!(
            Recording::from_bytes(b"runslice bundle 1\n"),
            Err(Damaged::First)
        );
    }
}
