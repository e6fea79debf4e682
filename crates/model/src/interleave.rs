//! When other CPUs come in between while a policy's program runs on one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Nanos, span};

/// Accesses between two stalls, on average, if nothing else is asked for.
const EVERY: u64 = 500;
/// Length of a stall, on average, if nothing else is asked for.
const STALL: Nanos = Nanos::from_micros(20);

/// When other CPUs come in between while a policy's program runs on one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Interleave {
    /// Programs take the time that the profile says, and whatever is due on other CPUs meanwhile
    /// happens meanwhile.
    Timed,
    /// A CPU stops now and then before an access of a program to shared memory, as a virtual one
    /// that is taken away or one that an interrupt of the firmware has.
    Seeded {
        /// Seed of the draws.
        seed: u64,
        /// Accesses between two stalls, on average; at least 1.
        every: u64,
        /// Length of a stall, on average; at least 1 ns.
        stall: Nanos,
    },
    /// Exactly these, in the order of their points.
    At(Vec<Stall>),
}

/// A CPU stops in the middle of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stall {
    /// Number of the access before which it stops, of all CPUs together, from 1.
    pub point: u64,
    /// How long.
    pub span: Nanos,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}ns", self.point, self.span.get())
    }
}

impl fmt::Display for Interleave {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timed => f.write_str("timed"),
            Self::Seeded { seed, every, stall } => {
                write!(f, "seed:{seed},every={every},stall={}ns", stall.get())
            }
            Self::At(stalls) => {
                let stalls: Vec<_> = stalls.iter().map(Stall::to_string).collect();
                write!(f, "at={}", stalls.join("+"))
            }
        }
    }
}

impl From<Interleave> for String {
    fn from(interleave: Interleave) -> Self {
        interleave.to_string()
    }
}

impl TryFrom<String> for Interleave {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Interleave {
    type Err = String;

    /// Reads `timed`, `seed:N[,every=N][,stall=TIME]` or `at=POINT:TIME[+POINT:TIME...]`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "timed" {
            return Ok(Self::Timed);
        }
        if let Some(rest) = text.strip_prefix("seed:") {
            return seeded(rest);
        }
        if let Some(rest) = text.strip_prefix("at=") {
            return at(rest);
        }
        Err("expected timed, seed:N or at=POINT:TIME, such as seed:1,every=500,stall=20us".into())
    }
}

fn seeded(text: &str) -> Result<Interleave, String> {
    let mut parts = text.split(',');
    let seed = number(parts.next().unwrap_or(""), "a seed")?;
    let (mut every, mut stall) = (EVERY, STALL);
    for part in parts {
        match part.split_once('=') {
            Some(("every", value)) => every = at_least_one(number(value, "accesses")?, "every")?,
            Some(("stall", value)) => {
                stall = span::parse(value)?;
                at_least_one(stall.get(), "stall")?;
            }
            _ => return Err(format!("`{part}` is neither every=N nor stall=TIME")),
        }
    }
    Ok(Interleave::Seeded { seed, every, stall })
}

fn at(text: &str) -> Result<Interleave, String> {
    let stalls = text.split('+').map(|part| {
        let Some((point, span)) = part.split_once(':') else {
            return Err(format!("`{part}` is not POINT:TIME, such as 339:20us"));
        };
        let point = at_least_one(number(point, "an access")?, "the number of an access")?;
        let span = span::parse(span)?;
        at_least_one(span.get(), "the time")?;
        Ok(Stall { point, span })
    });
    let stalls = stalls.collect::<Result<Vec<_>, _>>()?;
    if !stalls.is_sorted_by(|one, next| one.point < next.point) {
        return Err("the numbers of the accesses must rise".to_owned());
    }
    Ok(Interleave::At(stalls))
}

fn number(text: &str, what: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is no number for {what}"))
}

fn at_least_one(value: u64, what: &str) -> Result<u64, String> {
    if value == 0 {
        return Err(format!("{what} must be at least 1"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["timed", "seed:7,every=50,stall=5000ns", "at=3:20ns+9:1ns"] {
            let read: Interleave = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
            assert_eq!(Interleave::try_from(String::from(read.clone())), Ok(read));
        }
        let usual: Interleave = "seed:1".parse().unwrap();
        assert_eq!(usual.to_string(), "seed:1,every=500,stall=20000ns");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for text in [
            "",
            "time",
            "seed:",
            "seed:x",
            "seed:1,every=0",
            "seed:1,stall=0ns",
            "seed:1,stall=20",
            "seed:1,often",
            "at=",
            "at=5",
            "at=0:20us",
            "at=5:0ns",
            "at=5:1us+5:1us",
            "at=99999999999999999999:1us",
        ] {
            assert!(text.parse::<Interleave>().is_err(), "{text}");
        }
    }
}
