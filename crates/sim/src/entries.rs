//! Entries that a policy's loader puts into maps before it attaches: `cpu_node_map[0-7]=0`.

use std::ops::RangeInclusive;

use bpf::{Errno, Image, MapDef, MapKind, Update};
use model::Advice;

use crate::machine::{Machine, Vm};

/// Keys that one setting may name.
const MOST_KEYS: u64 = 1 << 20;

/// A value for some keys of a map.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    name: String,
    map: u32,
    keys: RangeInclusive<u64>,
    key_size: usize,
    value: Vec<u8>,
    /// Each CPU has a value of its own; all get the same.
    percpu: bool,
}

/// Why entries cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// No key, or one that is no number.
    #[error("`{0}`: name a key, `[3]`, a range of keys, `[0-7]`, or of an array all, `[*]`")]
    Key(String),
    /// A kind of map that is not filled by key and value, or keys that are no numbers.
    #[error("`{0}`: only arrays and hash tables with keys of 1, 2, 4 or 8 bytes can be filled")]
    Kind(String),
    /// A value that does not fit.
    #[error("`{name}`: a value has {size} bytes")]
    Value {
        /// The map.
        name: String,
        /// Bytes of a value.
        size: u32,
        /// Hexadecimal digits of a value.
        digits: u64,
    },
}

impl Advice for EntryError {
    fn advice(&self) -> Option<String> {
        match self {
            Self::Value { digits, .. } => Some(format!(
                "write a number that fits, or hex: and {digits} digits"
            )),
            _ => None,
        }
    }
}

impl Entries {
    /// What `name` and `value` set, if `name` leads into a map that the object declares.
    pub(crate) fn find(image: &Image, name: &str, value: &str) -> Result<Option<Self>, EntryError> {
        let (base, path) = name.split_at(name.find('[').unwrap_or(name.len()));
        let is_variable = image.symbols.iter().any(|symbol| symbol.name == base);
        let found = image.maps.iter().position(|map| map.name == base);
        let (Some(at), false) = (found, is_variable) else {
            return Ok(None);
        };
        let map = &image.maps[at];
        if path == "[]" || map.inner.is_some() {
            // The map itself is changed, not what is in it.
            return Ok(None);
        }
        let no_key = || EntryError::Key(name.to_owned());
        if !matches!(
            map.kind,
            MapKind::Array
                | MapKind::PercpuArray
                | MapKind::Hash
                | MapKind::PercpuHash
                | MapKind::LruHash
        ) || !matches!(map.key_size, 1 | 2 | 4 | 8)
        {
            return Err(EntryError::Kind(base.to_owned()));
        }
        let key = path.strip_prefix('[').and_then(|key| key.strip_suffix(']'));
        let keys = keys(key.ok_or_else(no_key)?, map).ok_or_else(no_key)?;
        let no_value = || EntryError::Value {
            name: base.to_owned(),
            size: map.value_size,
            digits: 2 * u64::from(map.value_size),
        };
        Ok(Some(Self {
            name: name.to_owned(),
            map: at as u32,
            keys,
            key_size: map.key_size as usize,
            value: bytes(value, map.value_size as usize).ok_or_else(no_value)?,
            percpu: matches!(map.kind, MapKind::PercpuArray | MapKind::PercpuHash),
        }))
    }

    /// The maps of its object lie so far behind where the object has them.
    pub(crate) const fn move_by(&mut self, maps: u32) {
        self.map += maps;
    }

    /// As the user wrote it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Puts them into the map.
    pub(crate) fn put(&self, vm: &mut Vm, machine: &mut Machine) -> Result<(), Errno> {
        let cpus = if self.percpu { vm.cpus() } else { 1 };
        for key in self.keys.clone() {
            let key = &key.to_le_bytes()[..self.key_size];
            for cpu in 0..cpus {
                let update = Update::new(key, &self.value).on_cpu(cpu);
                vm.map_update(self.map, &update, machine)?;
            }
        }
        Ok(())
    }
}

fn keys(text: &str, map: &MapDef) -> Option<RangeInclusive<u64>> {
    let is_array = matches!(map.kind, MapKind::Array | MapKind::PercpuArray);
    if text == "*" && is_array {
        return Some(0..=u64::from(map.max_entries.checked_sub(1)?));
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (number(first)?, number(last)?);
    let fits = last <= u64::MAX >> (64 - 8 * map.key_size);
    (fits && first <= last && last - first < MOST_KEYS).then_some(first..=last)
}

/// A number in decimal or, with `0x`, in hexadecimal; no sign.
fn number(text: &str) -> Option<u64> {
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A value of `size` bytes: a number, perhaps negative, or bytes in hexadecimal.
fn bytes(text: &str, size: usize) -> Option<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("hex:") {
        let digits: Option<Vec<u8>> = hex
            .chars()
            .map(|digit| digit.to_digit(16).map(|digit| digit as u8))
            .collect();
        let (pairs, rest) = digits.as_deref()?.as_chunks::<2>();
        let whole = rest.is_empty() && pairs.len() == size;
        return whole.then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect());
    }
    if !matches!(size, 1 | 2 | 4 | 8) {
        return None;
    }
    let bits = 8 * size as u32;
    let value = match text.strip_prefix('-') {
        Some(text) => {
            let magnitude = number(text)?;
            (magnitude <= 1 << (bits - 1)).then(|| magnitude.wrapping_neg())?
        }
        None => number(text).filter(|value| *value <= u64::MAX >> (64 - bits))?,
    };
    Some(value.to_le_bytes()[..size].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_that_fit_or_all_their_bytes() {
        assert_eq!(bytes("258", 2), Some(vec![2, 1]));
        assert_eq!(bytes("0x10", 1), Some(vec![16]));
        assert_eq!(bytes("-1", 4), Some(vec![0xff; 4]));
        assert_eq!(bytes("-128", 1), Some(vec![0x80]));
        assert_eq!(bytes("hex:00fF10", 3), Some(vec![0, 255, 16]));
        for (text, size) in [
            ("256", 1),
            ("-129", 1),
            ("+1", 4),
            ("", 4),
            ("1", 3),
            ("hex:0", 1),
            ("hex:00g0", 2),
            ("hex:0000", 1),
            ("x", 8),
        ] {
            assert_eq!(bytes(text, size), None, "{text} in {size} bytes");
        }
    }
}
