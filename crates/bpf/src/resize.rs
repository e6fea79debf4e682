//! What a loader changes about an object's maps before it loads them: longer and shorter arrays in
//! data sections, capacities, and maps inside of maps.

use std::sync::Arc;

use crate::globals::SetError;
use crate::image::{Image, MapDef, MapKind, Type};
use crate::object::ObjectLimits;

impl Image {
    /// Gives the array `name`, the last variable of its data section, so many elements. New ones
    /// are zero. It is what a loader's `bpf_map__set_value_size()` does before it loads an object
    /// whose arrays have one element for each CPU.
    pub(crate) fn resize(&mut self, name: &str, text: &str) -> Result<(), SetError> {
        let refuse = |why| SetError::Resize {
            name: name.to_owned(),
            why,
        };
        let found = self.symbols.iter_mut().find(|symbol| symbol.name == name);
        let Some(symbol) = found else {
            return self.set_capacity(name, text);
        };
        let map = &mut self.maps[symbol.map as usize];
        let Some(Type::Array {
            element, stride, ..
        }) = symbol.ty.as_deref()
        else {
            return Err(refuse("it is no array of numbers or structures"));
        };
        let Some(bytes) = map.initial.clone().filter(|_| map.max_entries == 1) else {
            return Err(refuse("it lies in no data section"));
        };
        if symbol.offset + symbol.size != map.value_size {
            return Err(refuse("another variable of its section lies behind it"));
        }
        let len: u32 = text.parse().unwrap_or(0);
        let size = u64::from(len) * u64::from(*stride);
        let whole = u64::from(symbol.offset) + size;
        if len == 0 || whole > ObjectLimits::default().zero_bytes {
            return Err(refuse(
                "the number of elements is no number of 1 or more that fits",
            ));
        }
        symbol.ty = Some(Arc::new(Type::Array {
            element: Arc::clone(element),
            len,
            stride: *stride,
        }));
        symbol.size = size as u32;
        map.value_size = whole as u32;
        let kept = bytes.len().min(whole as usize);
        map.initial = Some(Arc::from(&bytes[..kept]));
        Ok(())
    }

    /// Gives a map room for so many entries, as `bpf_map__set_max_entries()` does.
    fn set_capacity(&mut self, name: &str, text: &str) -> Result<(), SetError> {
        let refuse = |why| SetError::Resize {
            name: name.to_owned(),
            why,
        };
        let declared = |map: &&mut MapDef| map.name == name && map.initial.is_none();
        let map = self.maps.iter_mut().find(declared);
        let map = map.ok_or_else(|| refuse("there is no such variable and no such map"))?;
        if matches!(map.kind, MapKind::TaskStorage | MapKind::CgrpStorage) {
            return Err(refuse("maps of its kind have no capacity"));
        }
        let entries = text.parse().ok().filter(|entries| *entries > 0);
        map.max_entries = entries.ok_or_else(|| refuse("a capacity is a number of 1 or more"))?;
        Ok(())
    }

    /// Puts a new map, as the object declares it, under each of the keys `name[FIRST-LAST]` of an
    /// array of maps. False if `name` names no such array.
    pub(crate) fn fill_with_maps(&mut self, name: &str, text: &str) -> Result<bool, SetError> {
        let (base, path) = name.split_at(name.find('[').unwrap_or(name.len()));
        let is_outer = |map: &MapDef| map.name == base && map.inner.is_some();
        let Some(outer) = self.maps.iter().position(is_outer) else {
            return Ok(false);
        };
        let refuse = |why| SetError::Resize {
            name: name.to_owned(),
            why,
        };
        let entries = self.maps[outer].max_entries;
        let keys = path.strip_prefix('[').and_then(|key| key.strip_suffix(']'));
        let keys = keys.and_then(|keys| {
            let (first, last) = keys.split_once('-').unwrap_or((keys, keys));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last && last < entries).then_some(first..=last)
        });
        let Some(keys) = keys.filter(|_| text == "new") else {
            return Err(refuse(
                "it is an array of maps; write NAME[0-7]=new, with keys that it has",
            ));
        };
        for key in keys {
            let number = self.maps.len() as u32;
            let Some((template, known)) = &mut self.maps[outer].inner else {
                return Ok(false);
            };
            let template = *template as usize;
            known.retain(|(other, _)| *other != key);
            known.push((key, number));
            self.maps.push(MapDef {
                name: format!("{base}[{key}]"),
                ..self.maps[template].clone()
            });
        }
        Ok(true)
    }
}
