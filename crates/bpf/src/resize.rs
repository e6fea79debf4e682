//! Longer and shorter arrays in data sections.

use std::sync::Arc;

use crate::globals::SetError;
use crate::image::{Image, Type};
use crate::object::MAX_BYTES;

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
        let symbol = found.ok_or_else(|| refuse("there is no such variable"))?;
        let map = &mut self.maps[symbol.map as usize];
        let Some(Type::Array {
            element, stride, ..
        }) = symbol.ty.as_deref()
        else {
            return Err(refuse("it is no array of numbers or structures"));
        };
        let Some(bytes) = map.initial.as_ref().filter(|_| map.max_entries == 1) else {
            return Err(refuse("it lies in no data section"));
        };
        if symbol.offset + symbol.size != map.value_size {
            return Err(refuse("another variable of its section lies behind it"));
        }
        let len: u32 = text.parse().unwrap_or(0);
        let size = u64::from(len) * u64::from(*stride);
        let whole = u64::from(symbol.offset) + size;
        if len == 0 || whole > MAX_BYTES {
            return Err(refuse("the number of elements is no number of 1 or more that fits"));
        }
        let mut bytes = bytes.to_vec();
        bytes.resize(whole as usize, 0);
        symbol.ty = Some(Arc::new(Type::Array {
            element: Arc::clone(element),
            len,
            stride: *stride,
        }));
        symbol.size = size as u32;
        map.value_size = whole as u32;
        map.initial = Some(Arc::from(bytes));
        Ok(())
    }
}
