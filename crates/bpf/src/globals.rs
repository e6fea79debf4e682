//! Global variables by name: reading, and setting from text.

use std::sync::Arc;

use crate::bytes;
use crate::image::{Image, Knob, Scalar, Symbol};

/// Why a global variable cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// No variable of that name.
    #[error(
        "no global variable `{name}`{}; {}",
        did_you_mean(.nearest.as_deref()),
        tunables(.knobs)
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The name most like it.
        nearest: Option<String>,
        /// The tunables, each with unit and range.
        knobs: Vec<String>,
    },
    /// A variable whose value cannot be written as text.
    #[error("`{name}` is no integer and no bool, and cannot be set")]
    NotScalar {
        /// The variable.
        name: String,
    },
    /// Text that is no number.
    #[error("`{text}` is no value for `{name}`; write {expected}")]
    BadValue {
        /// The variable.
        name: String,
        /// What was given.
        text: String,
        /// What would do.
        expected: &'static str,
    },
    /// A number that is too small or too large.
    #[error("{text} is out of range for `{name}`: {min} to {max}{}", unit_suffix(.unit))]
    OutOfRange {
        /// The variable.
        name: String,
        /// What was given.
        text: String,
        /// Least value.
        min: i128,
        /// Greatest value.
        max: i128,
        /// Unit of a knob, or empty.
        unit: String,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

fn tunables(knobs: &[String]) -> String {
    if knobs.is_empty() {
        return "the object declares no tunables".to_owned();
    }
    format!("the tunables are {}", knobs.join(", "))
}

fn unit_suffix(unit: &str) -> String {
    if unit.is_empty() || unit == "bool" {
        String::new()
    } else {
        format!(" {unit}")
    }
}

impl Scalar {
    /// Bytes.
    #[must_use]
    pub fn size(self) -> u8 {
        match self {
            Self::Unsigned(size) | Self::Signed(size) => size,
            Self::Bool => 1,
        }
    }

    /// Least and greatest value.
    #[must_use]
    pub fn range(self) -> (i128, i128) {
        match self {
            Self::Bool => (0, 1),
            Self::Unsigned(size) => (0, (1i128 << (8 * size)) - 1),
            Self::Signed(size) => {
                let half = 1i128 << (8 * size - 1);
                (-half, half - 1)
            }
        }
    }
}

impl Image {
    /// Sets the initial value of a global variable; for a knob, within the knob's range.
    ///
    /// `text` is `true` or `false` or 1 or 0 for a `bool`, else a number in decimal or, with `0x`,
    /// in hexadecimal, perhaps negative.
    ///
    /// # Errors
    /// [`SetError`] says what may be set, in which unit and range.
    pub fn set_global(&mut self, name: &str, text: &str) -> Result<(), SetError> {
        let Some(index) = self.symbols.iter().position(|symbol| symbol.name == name) else {
            return Err(self.unknown(name));
        };
        let symbol = &self.symbols[index];
        let not_scalar = || SetError::NotScalar {
            name: name.to_owned(),
        };
        let scalar = symbol.scalar.ok_or_else(not_scalar)?;
        let value = parse(text, scalar).ok_or_else(|| SetError::BadValue {
            name: name.to_owned(),
            text: text.to_owned(),
            expected: match scalar {
                Scalar::Bool => "true, false, 1 or 0",
                _ => "a whole number, such as 20000000, -1 or 0xff",
            },
        })?;
        let knob = self.knobs.iter().find(|knob| knob.symbol as usize == index);
        let (min, max) =
            knob.map_or_else(|| scalar.range(), |knob| (knob.min.into(), knob.max.into()));
        if !(min..=max).contains(&value) {
            let (name, text) = (name.to_owned(), text.to_owned());
            let unit = knob.map_or_else(String::new, |knob| knob.unit.clone());
            return Err(SetError::OutOfRange {
                name,
                text,
                min,
                max,
                unit,
            });
        }
        let (map, start) = (symbol.map as usize, symbol.offset as usize);
        let len = usize::from(scalar.size());
        let place = self.maps[map]
            .initial
            .as_mut()
            .and_then(|bytes| Arc::make_mut(bytes).get_mut(start..start + len));
        let place = place.ok_or_else(not_scalar)?;
        place.copy_from_slice(&value.to_le_bytes()[..len]);
        Ok(())
    }

    /// Gives every knob that has a value for kernels that value; in a loader that loads into one,
    /// before what the user sets. Returns the names of these knobs.
    ///
    /// # Errors
    /// [`SetError::NotScalar`] when a knob's variable cannot be written.
    pub fn set_for_kernel(&mut self) -> Result<Vec<String>, SetError> {
        let values = self.knobs.iter();
        let values: Vec<_> = values
            .filter_map(|knob| Some((knob.name.clone(), knob.on_kernel?)))
            .collect();
        for (name, value) in &values {
            self.set_global(name, &value.to_string())?;
        }
        Ok(values.into_iter().map(|(name, _)| name).collect())
    }

    /// The initial value of a variable, read as `scalar`.
    pub(crate) fn read_scalar(&self, symbol: &Symbol, scalar: Scalar) -> Option<i128> {
        let start = symbol.offset as usize;
        let initial = self.maps.get(symbol.map as usize)?.initial.as_ref()?;
        let bytes = initial.get(start..start + usize::from(scalar.size()))?;
        match scalar {
            Scalar::Signed(_) => bytes::signed_number(bytes).map(i128::from),
            _ => bytes::number(bytes).map(i128::from),
        }
    }

    fn unknown(&self, name: &str) -> SetError {
        let nearest = self
            .symbols
            .iter()
            .filter(|symbol| symbol.scalar.is_some())
            .map(|symbol| (edits(name, &symbol.name), &symbol.name))
            .filter(|(edits, _)| *edits <= name.len().div_ceil(3))
            .min()
            .map(|(_, name)| name.clone());
        let knobs = self.knobs.iter().map(describe).collect();
        SetError::Unknown {
            name: name.to_owned(),
            nearest,
            knobs,
        }
    }
}

fn describe(knob: &Knob) -> String {
    format!(
        "{} ({} to {}{})",
        knob.name,
        knob.min,
        knob.max,
        unit_suffix(&knob.unit)
    )
}

fn parse(text: &str, scalar: Scalar) -> Option<i128> {
    match (scalar, text) {
        (Scalar::Bool, "true") => return Some(1),
        (Scalar::Bool, "false") => return Some(0),
        _ => {}
    }
    let (sign, digits) = text
        .strip_prefix('-')
        .map_or((1, text), |digits| (-1, digits));
    // `parse` would accept a second sign.
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let hex = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let magnitude = match hex {
        Some(hex) if hex.starts_with(|first: char| first.is_ascii_hexdigit()) => {
            i128::from_str_radix(hex, 16)
        }
        Some(_) => return None,
        None => digits.parse(),
    };
    Some(sign * magnitude.ok()?)
}

/// How many letters must be inserted, deleted or replaced to make one word of the other.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in (1..).zip(one.chars()) {
        let mut diagonal = std::mem::replace(&mut row[0], at);
        for (column, other_letter) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other_letter);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
