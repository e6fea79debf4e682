//! Finding numbers inside a type: `weights[3]`, `mode.levels[*].slice_ns`.

use crate::image::{Scalar, Type, TypeField};
use model::Advice;

/// Numbers that one path may name.
const MOST_PLACES: usize = 1 << 20;

/// A number inside a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberPlace {
    /// Bytes from the value's start.
    pub(crate) offset: u32,
    pub(crate) scalar: Scalar,
}

/// Why a path leads nowhere. `at` is the part of the path that was understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// A name that no field has.
    #[error("`{at}` has no field `{field}`")]
    NoField {
        /// The structure's path.
        at: String,
        /// What was asked for.
        field: String,
        /// What there is.
        fields: Vec<String>,
    },
    /// An index behind the last element.
    #[error("`{at}` has {len} elements, 0 to {}, and none with number {index}",
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
    #[error("`{at}` is a structure")]
    Structure {
        /// The structure's path.
        at: String,
        /// Its fields.
        fields: Vec<String>,
    },
    /// The path ends at an array.
    #[error("`{at}` is an array of {len}")]
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
    #[error("`[{text}]` is no index")]
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

impl Advice for PathError {
    fn advice(&self) -> Option<String> {
        Some(match self {
            Self::NoField { fields, .. } => format!("it has {}", listed(fields)),
            Self::Structure { fields, .. } => format!("set a field, one of {}", listed(fields)),
            Self::Array { at, .. } => {
                format!("set one element with `{at}[0]`, all with `{at}[*]`")
            }
            Self::BadIndex { .. } => "write a number, a range such as 0-3, or * for all".to_owned(),
            _ => return None,
        })
    }
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
pub(crate) fn places(name: &str, ty: &Type, path: &str) -> Result<Vec<NumberPlace>, PathError> {
    let mut walk = Walk {
        name,
        path,
        found: vec![0],
        ty,
        rest: path,
    };
    while !walk.rest.is_empty() {
        match walk.ty {
            Type::Scalar(_) => return Err(walk.nothing()),
            Type::Struct { fields, .. } => walk.enter_field(fields)?,
            Type::Array {
                element,
                len,
                stride,
            } => walk.enter_elements(element, *len, *stride)?,
        }
    }
    match walk.ty {
        Type::Scalar(scalar) => {
            let place = |offset| NumberPlace {
                offset,
                scalar: *scalar,
            };
            Ok(walk.found.into_iter().map(place).collect())
        }
        Type::Struct { fields, .. } => Err(PathError::Structure {
            at: walk.at(),
            fields: names(fields),
        }),
        Type::Array { len, .. } => Err(PathError::Array {
            at: walk.at(),
            len: *len,
        }),
    }
}

/// How far a path has been followed.
struct Walk<'a> {
    name: &'a str,
    path: &'a str,
    /// Bytes from the value's start to each of the values that were found.
    found: Vec<u32>,
    /// Their type.
    ty: &'a Type,
    /// What is not understood yet.
    rest: &'a str,
}

impl<'a> Walk<'a> {
    fn at(&self) -> String {
        let understood = self.path.len() - self.rest.len();
        format!("{}{}", self.name, &self.path[..understood])
    }

    fn nothing(&self) -> PathError {
        PathError::Nothing {
            at: self.at(),
            rest: self.rest.to_owned(),
        }
    }

    fn enter_field(&mut self, fields: &'a [TypeField]) -> Result<(), PathError> {
        let inner = self.rest.strip_prefix('.');
        let (field, behind) = split(inner.ok_or_else(|| self.nothing())?);
        let known = fields.iter().find(|known| known.name == field);
        let known = known.ok_or_else(|| PathError::NoField {
            at: self.at(),
            field: field.to_owned(),
            fields: names(fields),
        })?;
        // What lies beyond the value is refused by whoever writes there.
        for place in &mut self.found {
            *place = place.saturating_add(known.offset);
        }
        (self.ty, self.rest) = (&known.ty, behind);
        Ok(())
    }

    fn enter_elements(
        &mut self,
        element: &'a Type,
        len: u32,
        stride: u32,
    ) -> Result<(), PathError> {
        let inner = self.rest.strip_prefix('[');
        let inside = inner.and_then(|inner| inner.split_once(']'));
        let (index, behind) = inside.ok_or_else(|| self.nothing())?;
        let chosen = indices(index, len).map_err(|missing| match missing {
            Some(index) => PathError::NoElement {
                at: self.at(),
                index,
                len,
            },
            None => PathError::BadIndex {
                text: index.to_owned(),
            },
        })?;
        if self.found.len().saturating_mul(chosen.len()) > MOST_PLACES {
            return Err(PathError::TooMany { at: self.at() });
        }
        let places = |place: &u32| {
            let place = *place;
            let at = move |index: u32| place.saturating_add(index.saturating_mul(stride));
            chosen.clone().map(at)
        };
        self.found = self.found.iter().flat_map(places).collect();
        (self.ty, self.rest) = (element, behind);
        Ok(())
    }
}

fn names(fields: &[TypeField]) -> Vec<String> {
    fields.iter().map(|field| field.name.clone()).collect()
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
