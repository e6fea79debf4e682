//! Global variables by name: reading, and setting from text.

use std::sync::Arc;

use model::Advice;

use crate::bytes;
use crate::image::{EntryPoint, Image, Knob, MapDef, MemberValue, Scalar, StructOps, Symbol, Type};
use crate::path::{self, PathError};

/// Why a global variable cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// No variable of that name.
    #[error("no knob or variable `{name}`")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The name most like it; of a knob with range and unit.
        nearest: Option<String>,
        /// The names of the knobs.
        knobs: Vec<String>,
    },
    /// What is fixed once the policy is loaded.
    #[error("`{name}` cannot change while the policy runs: {why}")]
    Fixed {
        /// The variable or map.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// A variable whose value cannot be written as text.
    #[error("`{name}` is no integer and no bool, and cannot be set")]
    NotScalar {
        /// The variable.
        name: String,
    },
    /// An array or a map that cannot have so many elements.
    #[error("`{name}` cannot be resized or filled: {why}")]
    Resize {
        /// The variable or map.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// A path into a variable that leads nowhere, or not far enough.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Text that is no number.
    #[error("invalid value `{text}` for `{name}`")]
    BadValue {
        /// The variable.
        name: String,
        /// What was given.
        text: String,
        /// What would do.
        expected: &'static str,
    },
    /// A number that is too small or too large.
    #[error("{text} is out of range for `{name}`")]
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

impl Advice for SetError {
    fn advice(&self) -> Option<String> {
        match self {
            Self::Unknown { nearest, knobs, .. } => Some(meant(nearest.as_deref(), knobs)),
            Self::BadValue { expected, .. } => Some(format!("write {expected}")),
            Self::OutOfRange { min, max, unit, .. } => {
                Some(format!("give {min} to {max}{}", unit_suffix(unit)))
            }
            Self::Path(error) => error.advice(),
            Self::Fixed { .. } | Self::NotScalar { .. } | Self::Resize { .. } => None,
        }
    }
}

/// Why a set-up program cannot be run with what it was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetUpError {
    /// No program of that name that user space could run.
    #[error("no program `{name}` in a section `syscall`")]
    NoProgram {
        /// What was asked for.
        name: String,
        /// What there is.
        programs: Vec<String>,
    },
    /// The program takes no values, or the object does not say which.
    #[error("`{0}` takes no values")]
    NoArgument(String),
    /// More values than fields.
    #[error("`{name}` takes {} values: {}", .fields.len(), .fields.join(", "))]
    TooMany {
        /// The program.
        name: String,
        /// Its numbers, in order.
        fields: Vec<String>,
    },
    /// More than a kernel accepts.
    #[error("the context of `{name}` has {size} bytes")]
    TooLarge {
        /// The program.
        name: String,
        /// Bytes.
        size: u32,
    },
    /// A field that is none.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A value that is none.
    #[error(transparent)]
    Value(#[from] SetError),
}

impl Advice for SetUpError {
    fn advice(&self) -> Option<String> {
        match self {
            Self::NoProgram { programs, .. } => Some(listed(programs)),
            Self::TooLarge { .. } => Some(format!("a kernel takes {MOST_CONTEXT}")),
            Self::Path(error) => error.advice(),
            Self::Value(error) => error.advice(),
            Self::NoArgument(_) | Self::TooMany { .. } => None,
        }
    }
}

/// Greatest context of a syscall program (`U16_MAX`, Linux 6.18, `net/bpf/test_run.c`).
const MOST_CONTEXT: u32 = 0xffff;

fn listed(programs: &[String]) -> String {
    if programs.is_empty() {
        return "the object has none there".to_owned();
    }
    format!("the object has {}", programs.join(", "))
}

fn meant(nearest: Option<&str>, knobs: &[String]) -> String {
    match (nearest, knobs) {
        (Some(nearest), _) => format!("did you mean {nearest}?"),
        (None, []) => "the policy declares no knobs".to_owned(),
        (None, knobs) => format!("its knobs are {}", knobs.join(", ")),
    }
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

    /// The bits of a value.
    fn mask(self) -> u64 {
        u64::MAX >> (64 - 8 * u32::from(self.size()))
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

/// A value and where it goes: all elements that were named get the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalValue {
    /// The data section's map: index into [`Image::maps`].
    pub map: u32,
    /// Bytes from the section's beginning, of each element.
    pub offsets: Vec<usize>,
    /// As it lies in memory, 1 to 8 bytes; none when no element was named.
    pub bytes: Vec<u8>,
}

impl Image {
    /// Sets the initial value of a global variable; for a knob, within the knob's range.
    ///
    /// `name` may lead into a variable: `mode.slice_ns`, `weights[3]`, `weights[0-7]` for a range
    /// and `weights[*]` for all elements; `weights[]` is the number of elements of an array that is
    /// the last variable of its section, and of a map its capacity. `queues[0-7]` set to `new` puts
    /// new maps into an array of maps. Else `text` is `true`, `false`, 1 or 0 for a `bool`, and for
    /// all others a number in decimal or, with `0x`, in hexadecimal, perhaps negative. For a knob
    /// whose unit is one of time, and for a variable whose name ends in `_ns`, `_us` or `_ms`, it
    /// may have a unit of time: `5ms`.
    ///
    /// # Errors
    /// [`SetError`] says what may be set, in which unit and range.
    pub fn set_global(&mut self, name: &str, text: &str) -> Result<(), SetError> {
        let (variable, path) = path::split(name);
        if path == "[]" {
            return self.resize(variable, text);
        }
        if self.fill_with_maps(name, text)? {
            return Ok(());
        }
        if let Some(table) = self.struct_ops.iter_mut().find(|ops| ops.name == variable)
            && !self.symbols.iter().any(|symbol| symbol.name == variable)
        {
            return set_member(table, name, path, text);
        }
        let value = self.value_of(name, text)?;
        let not_scalar = || SetError::NotScalar {
            name: name.to_owned(),
        };
        let len = value.bytes.len();
        let MapDef {
            initial,
            value_size,
            ..
        } = &mut self.maps[value.map as usize];
        let bytes = initial.as_mut().ok_or_else(not_scalar)?;
        let end = value.offsets.iter().map(|at| at + len).max().unwrap_or(0);
        if end > bytes.len() && end <= *value_size as usize {
            let mut more = bytes.to_vec();
            more.resize(end, 0);
            *bytes = Arc::from(more);
        }
        let bytes = Arc::make_mut(bytes);
        for at in value.offsets {
            let place = bytes.get_mut(at..at + len).ok_or_else(not_scalar)?;
            place.copy_from_slice(&value.bytes);
        }
        Ok(())
    }

    /// The store that sets a global variable to `text` while the policy runs, as its user space
    /// does through the memory that it shares with the policy. `name` and `text` are those of
    /// [`Image::set_global`], without `[]` and `new`.
    ///
    /// # Errors
    /// The errors of [`Image::set_global`], and [`SetError::Fixed`] for constants, which are part
    /// of the programs once they are loaded, and for what is no variable.
    pub fn later_value(&self, name: &str, text: &str) -> Result<GlobalValue, SetError> {
        let (variable, path) = path::split(name);
        let fixed = |why| SetError::Fixed {
            name: name.to_owned(),
            why,
        };
        let is_table = self.struct_ops.iter().any(|ops| ops.name == variable);
        let is_variable = self.symbols.iter().any(|symbol| symbol.name == variable);
        if path == "[]" || !is_variable && is_table {
            return Err(fixed("it is part of what is loaded"));
        }
        let value = self.value_of(name, text)?;
        let map = &self.maps[value.map as usize];
        let end = value.offsets.iter().map(|at| at + value.bytes.len()).max();
        let knob = self.knobs.iter().find(|knob| knob.name == variable);
        if knob.is_some_and(|knob| knob.at_load) {
            return Err(fixed("the policy reads it when it is loaded"));
        }
        if map.name.starts_with(".rodata") {
            return Err(fixed("it is a constant of its programs"));
        }
        if end.unwrap_or(0) > map.value_size as usize {
            return Err(fixed("it is as long as it was when it was loaded"));
        }
        Ok(value)
    }

    /// What setting the variable `name` to `text` writes.
    fn value_of(&self, name: &str, text: &str) -> Result<GlobalValue, SetError> {
        let (variable, path) = path::split(name);
        let named = |symbol: &Symbol| symbol.name == variable;
        let index = self.symbols.iter().position(named);
        let index = index.ok_or_else(|| self.unknown(name))?;
        let symbol = &self.symbols[index];
        let not_scalar = || SetError::NotScalar {
            name: name.to_owned(),
        };
        let ty = symbol.ty.as_deref().ok_or_else(not_scalar)?;
        let places = path::places(variable, ty, path)?;
        let mut value = GlobalValue {
            map: symbol.map,
            offsets: Vec::new(),
            bytes: Vec::new(),
        };
        let Some(scalar) = places.first().map(|place| place.scalar) else {
            return Ok(value);
        };
        let knob = self.knobs.iter().find(|knob| knob.symbol as usize == index);
        let number = match nanos_per_unit(knob, name) {
            Some(per) => number_or_span(name, text, scalar, per)?,
            None => number(name, text, scalar)?,
        };
        let (min, max) =
            knob.map_or_else(|| scalar.range(), |knob| (knob.min.into(), knob.max.into()));
        if !(min..=max).contains(&number) {
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
        value.bytes = number.to_le_bytes()[..usize::from(scalar.size())].to_vec();
        let offset = |place: &path::NumberPlace| symbol.offset as usize + place.offset as usize;
        value.offsets = places.iter().map(offset).collect();
        Ok(value)
    }

    /// The function of the `SEC("syscall")` program `name`, and its context made of `text`: values
    /// by commas, for the fields of its argument in their order, or `FIELD=VALUE`, where a field
    /// is a path as in [`Image::set_global`]. What is not named is 0.
    ///
    /// # Errors
    /// [`SetUpError`] says which programs or fields there are.
    pub fn context(&self, name: &str, text: &str) -> Result<(u32, Vec<u8>), SetUpError> {
        let setup = |program: &&EntryPoint| program.section.trim_start_matches('?') == "syscall";
        let programs = self.programs.iter().filter(setup);
        let Some(program) = programs.clone().find(|program| program.name == name) else {
            return Err(SetUpError::NoProgram {
                name: name.to_owned(),
                programs: programs.map(|program| program.name.clone()).collect(),
            });
        };
        let ty = program.context.as_deref();
        let size = ty.and_then(Type::size).unwrap_or(0);
        if size > MOST_CONTEXT {
            return Err(SetUpError::TooLarge {
                name: name.to_owned(),
                size,
            });
        }
        let mut bytes = vec![0; size as usize];
        let values = text.split(',').filter(|value| !value.is_empty());
        for (nth, value) in values.enumerate() {
            let (field, value) = match value.split_once('=') {
                Some((field, value)) => (field.to_owned(), value),
                None => (nth_field(name, ty, nth)?, value),
            };
            let ty = ty.ok_or_else(|| SetUpError::NoArgument(name.to_owned()))?;
            let path = if field.starts_with('[') {
                field.clone()
            } else {
                format!(".{field}")
            };
            for place in path::places(name, ty, &path)? {
                let (min, max) = place.scalar.range();
                let number = number(&field, value, place.scalar)?;
                if !(min..=max).contains(&number) {
                    return Err(SetUpError::Value(SetError::OutOfRange {
                        name: field,
                        text: value.to_owned(),
                        min,
                        max,
                        unit: String::new(),
                    }));
                }
                let (at, len) = (place.offset as usize, usize::from(place.scalar.size()));
                let place = bytes.get_mut(at..at + len);
                let place = place.ok_or_else(|| SetUpError::NoArgument(name.to_owned()))?;
                place.copy_from_slice(&number.to_le_bytes()[..len]);
            }
        }
        Ok((program.function, bytes))
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
        let map = self.maps.get(symbol.map as usize)?;
        let bytes = map.initial_bytes(start, scalar.size().into())?;
        match scalar {
            Scalar::Signed(_) => bytes::signed_number(&bytes).map(i128::from),
            _ => bytes::number(&bytes).map(i128::from),
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
            .map(
                |(_, name)| match self.knobs.iter().find(|knob| knob.name == *name) {
                    Some(knob) => describe(knob),
                    None => format!("`{name}`"),
                },
            );
        let knobs = self.knobs.iter().map(|knob| knob.name.clone()).collect();
        SetError::Unknown {
            name: name.to_owned(),
            nearest,
            knobs,
        }
    }
}

fn describe(knob: &Knob) -> String {
    format!(
        "`{}` ({} to {}{})",
        knob.name,
        knob.min,
        knob.max,
        unit_suffix(&knob.unit)
    )
}

/// Sets a number of a table, or takes a callback out of it, as a loader may before the table is
/// loaded.
fn set_member(table: &mut StructOps, name: &str, path: &str, text: &str) -> Result<(), SetError> {
    let wanted = path.strip_prefix('.').unwrap_or_default();
    let callback = |(member, value): &(String, MemberValue)| {
        member == wanted && matches!(value, MemberValue::Program(_))
    };
    if let Some(at) = table.members.iter().position(callback) {
        if text != "0" {
            return Err(SetError::BadValue {
                name: name.to_owned(),
                text: text.to_owned(),
                expected: "0, which takes the callback out of the table",
            });
        }
        table.members.remove(at);
        return Ok(());
    }
    let known = table.numbers.iter().find(|(member, _)| member == wanted);
    let Some((member, scalar)) = known else {
        let members = table.members.iter();
        let callbacks = members.filter(|(_, value)| matches!(value, MemberValue::Program(_)));
        let numbers = table.numbers.iter().map(|(name, _)| name);
        let fields = callbacks.map(|(name, _)| name).chain(numbers);
        return Err(SetError::Path(PathError::NoField {
            at: table.name.clone(),
            field: wanted.to_owned(),
            fields: fields.cloned().collect(),
        }));
    };
    let value = number(name, text, *scalar)?;
    let (min, max) = scalar.range();
    if !(min..=max).contains(&value) {
        return Err(SetError::OutOfRange {
            name: name.to_owned(),
            text: text.to_owned(),
            min,
            max,
            unit: String::new(),
        });
    }
    table.members.retain(|(other, _)| other != member);
    let bits = value as u64 & scalar.mask();
    table.members.push((member.clone(), MemberValue::Int(bits)));
    Ok(())
}

/// The path of the `nth` value of a context without names: a field that is a number.
fn nth_field(program: &str, ty: Option<&Type>, nth: usize) -> Result<String, SetUpError> {
    let Some(Type::Struct { fields, .. }) = ty else {
        return Err(SetUpError::NoArgument(program.to_owned()));
    };
    let mut numbers = fields
        .iter()
        .filter(|field| matches!(*field.ty, Type::Scalar(_)));
    let field = numbers.clone().nth(nth);
    field
        .map(|field| field.name.clone())
        .ok_or_else(|| SetUpError::TooMany {
            name: program.to_owned(),
            fields: numbers.by_ref().map(|field| field.name.clone()).collect(),
        })
}

/// Nanoseconds in the unit of a knob, or of a variable by its name; `None` if it is no time.
fn nanos_per_unit(knob: Option<&Knob>, name: &str) -> Option<u64> {
    let unit = match knob {
        Some(knob) => knob.unit.as_str(),
        None => name.rsplit_once('_')?.1,
    };
    match unit {
        "ns" => Some(1),
        "us" => Some(1_000),
        "ms" => Some(1_000_000),
        _ => None,
    }
}

/// As [`number`], for a variable in a unit of `per` ns: `5ms` is a number of these, too.
fn number_or_span(name: &str, text: &str, scalar: Scalar, per: u64) -> Result<i128, SetError> {
    if let Some(number) = parse(text, scalar) {
        return Ok(number);
    }
    let span = model::span::parse(text).map(model::Nanos::get);
    match span {
        Ok(span) if span.is_multiple_of(per) => Ok((span / per).into()),
        _ => Err(SetError::BadValue {
            name: name.to_owned(),
            text: text.to_owned(),
            expected: match per {
                1 => "a number of ns, or with its unit, such as 5ms",
                1_000 => "a whole number of us, or with its unit, such as 5ms",
                _ => "a whole number of ms, or with its unit, such as 2s",
            },
        }),
    }
}

/// The number that `text` says, for `name` of type `scalar`; it may be out of the type's range.
fn number(name: &str, text: &str, scalar: Scalar) -> Result<i128, SetError> {
    parse(text, scalar).ok_or_else(|| SetError::BadValue {
        name: name.to_owned(),
        text: text.to_owned(),
        expected: match scalar {
            Scalar::Bool => "true, false, 1 or 0",
            _ => "a whole number, such as 20000000, -1 or 0xff",
        },
    })
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
