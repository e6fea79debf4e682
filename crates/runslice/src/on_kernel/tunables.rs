//! The variables of an object that may be set, checked in one way before a policy is loaded and
//! while it runs.

use anyhow::Context as _;
use bpf::{Image, Knob, Object, Scalar, SetError};
use model::Kernel;

use crate::kernel;

/// The variables of one object.
#[derive(Debug)]
pub struct Tunables {
    image: Image,
}

/// Where a variable lies and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariablePlace {
    /// The section, such as `.data.knobs`.
    pub section: String,
    /// Bytes from the section's start.
    pub offset: usize,
    /// Its type.
    pub scalar: Scalar,
}

impl Tunables {
    /// Reads an object that messages call `name`.
    ///
    /// # Errors
    /// When it is no object, or needs what no known kernel has.
    pub fn of(name: &str, object: &[u8]) -> anyhow::Result<Self> {
        let object = Object::parse(object).with_context(|| name.to_owned())?;
        let image = kernel::link(&object, Kernel::default()).with_context(|| name.to_owned())?;
        Ok(Self { image })
    }

    /// The variables that the object declares as tunables.
    pub fn knobs(&self) -> &[Knob] {
        &self.image.knobs
    }

    /// Where the variable `name` lies; `None` when there is none that can be set.
    pub fn place(&self, name: &str) -> Option<VariablePlace> {
        let symbols = &self.image.symbols;
        let symbol = symbols.iter().find(|symbol| symbol.name == name)?;
        Some(VariablePlace {
            section: self.image.maps.get(symbol.map as usize)?.name.clone(),
            offset: symbol.offset as usize,
            scalar: symbol.scalar?,
        })
    }

    /// Checks `text` against the variable's type and range, and returns where it goes and how it
    /// lies in memory there.
    ///
    /// # Errors
    /// [`SetError`] says what may be set, in which unit and range.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(VariablePlace, Vec<u8>), SetError> {
        self.image.set_global(name, text)?;
        self.value(name)
    }

    /// Gives the knobs that have a value for kernels that value; before what the user sets.
    /// Returns their names, and how their values lie in memory.
    ///
    /// # Errors
    /// [`SetError::NotScalar`] when a knob's variable cannot be written.
    pub fn set_for_kernel(&mut self) -> Result<Vec<(String, Vec<u8>)>, SetError> {
        let names = self.image.set_for_kernel()?;
        let values = names.into_iter().map(|name| {
            let (_, bytes) = self.value(&name)?;
            Ok((name, bytes))
        });
        values.collect()
    }

    /// The variable's place and its value in the object as it is now.
    fn value(&self, name: &str) -> Result<(VariablePlace, Vec<u8>), SetError> {
        let not_scalar = || SetError::NotScalar {
            name: name.to_owned(),
        };
        let place = self.place(name).ok_or_else(not_scalar)?;
        let mut maps = self.image.maps.iter();
        let map = maps.find(|map| map.name == place.section);
        let len = place.scalar.size().into();
        let bytes = map.and_then(|map| map.initial_bytes(place.offset, len));
        let bytes = bytes.ok_or_else(not_scalar)?;
        Ok((place, bytes))
    }
}

impl VariablePlace {
    /// Whether programs see a change: constants are part of the programs once they are loaded.
    pub fn can_change(&self) -> bool {
        !self.section.starts_with(".rodata")
    }

    /// The value that lies in memory as `bytes`.
    pub fn value(&self, bytes: &[u8]) -> i128 {
        let mut wide = [0; 8];
        let size = bytes.len().min(8);
        wide[..size].copy_from_slice(&bytes[..size]);
        let number = u64::from_le_bytes(wide);
        match self.scalar {
            Scalar::Signed(_) => {
                let unused = 64 - 8 * u32::try_from(size).unwrap_or(8);
                i128::from((number << unused).cast_signed() >> unused)
            }
            Scalar::Unsigned(_) | Scalar::Bool => i128::from(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fifo() -> Tunables {
        Tunables::of("fifo", policies::find("fifo").unwrap().object).unwrap()
    }

    #[test]
    fn a_value_is_checked_and_comes_with_its_place() {
        let mut fifo = fifo();
        let (place, bytes) = fifo.set("slice_ns", "5000000").unwrap();
        assert_eq!(place.section, ".data.knobs");
        assert_eq!(bytes, 5_000_000_u64.to_le_bytes());
        assert_eq!(place.value(&bytes), 5_000_000);
        assert!(place.can_change());
        for bad in ["1", "x", "-1"] {
            fifo.set("slice_ns", bad).unwrap_err();
        }
        fifo.set("slices", "1").unwrap_err();
        assert_eq!(fifo.place("slices"), None);
    }

    #[test]
    fn numbers_are_read_with_their_signs() {
        let place = |scalar| VariablePlace {
            section: ".rodata".to_owned(),
            offset: 0,
            scalar,
        };
        assert_eq!(place(Scalar::Signed(4)).value(&(-7_i32).to_le_bytes()), -7);
        assert_eq!(place(Scalar::Signed(8)).value(&(-7_i64).to_le_bytes()), -7);
        assert_eq!(place(Scalar::Unsigned(2)).value(&[0xff, 0xff]), 65535);
        assert_eq!(place(Scalar::Bool).value(&[1]), 1);
        assert!(!place(Scalar::Bool).can_change());
    }
}
