//! Finding numbers inside a type: `weights[3]`, `mode.levels[*].slice_ns`.

use crate::image::{Scalar, Type};

/// Numbers that one path may name.
const MOST_PLACES: usize = 1 << 20;

/// A number inside a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Bytes from the value's start.
    pub(crate) offset: u32,
    pub(crate) scalar: Scalar,
}

/// Why a path leads nowhere. `at` is the part of the path that was understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// A name that no field has.
    #[error("`{at}` has no field `{field}`; it has {}", listed(.fields))]
    NoField {
        /// The structure's path.
        at: String,
        /// What was asked for.
        field: String,
        /// What there is.
        fields: Vec<String>,
    },
    /// An index behind the last element.
    #[error(
        "`{at}` has {len} elements, 0 to {}; there is none with number {index}",
        .len.saturating_sub(1)
    )]
    NoElement {
        /// The array's path.
        at: String,
        /// What was asked for.
        index: u32,
        /// Elements of the array.
        len: u32,
    },
    /// The path ends at a structure.
    #[error("`{at}` is a structure: set a field, one of {}", listed(.fields))]
    Structure {
        /// The structure's path.
        at: String,
        /// Its fields.
        fields: Vec<String>,
    },
    /// The path ends at an array.
    #[error("`{at}` is an array of {len}: set one element with `{at}[0]`, all with `{at}[*]`")]
    Array {
        /// The array's path.
        at: String,
        /// Its elements.
        len: u32,
    },
    /// The path goes on behind a number, or has an index without an array.
    #[error("`{at}` has nothing inside that `{rest}` could name")]
    Nothing {
        /// What was understood.
        at: String,
        /// What was not.
        rest: String,
    },
    /// No index between brackets.
    #[error("`[{text}]` is no index; write a number, a range such as 0-3, or * for all")]
    BadIndex {
        /// What was given.
        text: String,
    },
    /// More numbers than may be set at once.
    #[error("`{at}` names too many elements")]
    TooMany {
        /// The path.
        at: String,
    },
}

fn listed(names: &[String]) -> String {
    const MOST: usize = 20;
    let mut text = names.iter().take(MOST).map(|name| format!("`{name}`"));
    let first = text.next().unwrap_or_else(|| "none".to_owned());
    let mut list = text.fold(first, |list, name| list + ", " + &name);
    if names.len() > MOST {
        list += ", ...";
    }
    list
}

/// The variable's name and the path behind it.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    text.split_at(end)
}

/// The numbers that `path` names in a value of type `ty`, which messages call `name`.
pub(crate) fn places(name: &str, ty: &Type, path: &str) -> Result<Vec<Place>, PathError> {
    let mut found = vec![0_u32];
    let (mut ty, mut rest) = (ty, path);
    while !rest.is_empty() {
        let at = || format!("{name}{}", &path[..path.len() - rest.len()]);
        let nothing = || PathError::Nothing {
            at: at(),
            rest: rest.to_owned(),
        };
        match ty {
            Type::Scalar(_) => return Err(nothing()),
            Type::Struct { fields, .. } => {
                let inner = rest.strip_prefix('.').ok_or_else(nothing)?;
                let (field, behind) = split(inner);
                let known = fields.iter().find(|known| known.name == field);
                let known = known.ok_or_else(|| PathError::NoField {
                    at: at(),
                    field: field.to_owned(),
                    fields: fields.iter().map(|field| field.name.clone()).collect(),
                })?;
                // What lies beyond the value is refused by whoever writes there.
                for place in &mut found {
                    *place = place.saturating_add(known.offset);
                }
                (ty, rest) = (&known.ty, behind);
            }
            Type::Array {
                element,
                len,
                stride,
            } => {
                let inner = rest.strip_prefix('[').ok_or_else(nothing)?;
                let (index, behind) = inner.split_once(']').ok_or_else(nothing)?;
                let chosen = indices(index, *len).map_err(|index| match index {
                    Some(index) => PathError::NoElement {
                        at: at(),
                        index,
                        len: *len,
                    },
                    None => PathError::BadIndex {
                        text: inner.split(']').next().unwrap_or_default().to_owned(),
                    },
                })?;
                if found.len().saturating_mul(chosen.len()) > MOST_PLACES {
                    return Err(PathError::TooMany { at: at() });
                }
                let all = found.iter();
                found = all
                    .flat_map(|place| {
                        let element = |index: u32| index.saturating_mul(*stride);
                        chosen
                            .clone()
                            .map(move |index| place.saturating_add(element(index)))
                    })
                    .collect();
                (ty, rest) = (element, behind);
            }
        }
    }
    let at = || format!("{name}{path}");
    match ty {
        Type::Scalar(scalar) => {
            let place = |offset| Place {
                offset,
                scalar: *scalar,
            };
            Ok(found.into_iter().map(place).collect())
        }
        Type::Struct { fields, .. } => Err(PathError::Structure {
            at: at(),
            fields: fields.iter().map(|field| field.name.clone()).collect(),
        }),
        Type::Array { len, .. } => Err(PathError::Array {
            at: at(),
            len: *len,
        }),
    }
}

/// The elements that `text` names; the error is the first one that does not exist, if it is that.
fn indices(text: &str, len: u32) -> Result<std::ops::Range<u32>, Option<u32>> {
    if text == "*" {
        return Ok(0..len);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| {
        let plain = text.starts_with(|first: char| first.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| plain).ok_or(None)
    };
    let (first, last) = (number(first)?, number(last)?);
    match last {
        _ if first > last => Err(None),
        _ if last >= len => Err(Some(last)),
        _ => Ok(first..last + 1),
    }
}

impl Type {
    /// Bytes of a value; `None` if 32 bits do not hold the number.
    #[must_use]
    pub fn size(&self) -> Option<u32> {
        match self {
            Self::Scalar(scalar) => Some(scalar.size().into()),
            Self::Array { len, stride, .. } => len.checked_mul(*stride),
            Self::Struct { size, .. } => Some(*size),
        }
    }
}
