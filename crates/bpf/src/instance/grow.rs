//! What user space adds to an instance while it lives: maps and programs.
//!
//! What is added is checked and decoded at once. Native code is made anew at the next outermost
//! call that needs it, so that a loader with a hundred programs waits for it once.

use std::sync::Arc;

use super::Instance;
use super::create::Places;
use super::heat::Heat;
use crate::backend::Backend;
use crate::bind::find;
use crate::config::Config;
use crate::decode;
use crate::host::{Binding, Host, HostFunction};
use crate::image::{Function, Line};
use crate::instance_error::InstanceError;
use crate::map::{Map, Maps};
use crate::memory::OutOfMemory;
use crate::{Image, Import, Insn, LoadError, MapDef, StructOps};

/// Maps that a loader may have at a time. Most have about a hundred; `scx_pair` gives each of 4096
/// cgroups one.
const MOST_MAPS: u32 = 16_384;

/// A function to add: its instructions refer to the image as it will be.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) name: String,
    pub(crate) code: Vec<Insn>,
    /// Instruction slot of the function, file and line.
    pub(crate) lines: Vec<(u32, Arc<str>, u32)>,
}

impl<H: Host> Instance<H> {
    /// An instance with the kernel variables of `image` and nothing else of it.
    ///
    /// # Errors
    /// [`InstanceError`] if there is no memory for it.
    pub(crate) fn empty(image: Image, config: Config) -> Result<Self, InstanceError> {
        let arena_bytes = Some(config.memory_bytes);
        Self::assemble(
            Arc::new(image),
            Vec::new(),
            (config, arena_bytes),
            Some(MOST_MAPS),
            &Arc::default(),
        )
    }

    /// The image, to change what no running program looks at.
    pub(crate) fn image_mut(&mut self) -> &mut Image {
        Arc::make_mut(&mut self.image)
    }

    /// The image, with what read-only data holds now, which user space has filled and frozen.
    #[must_use]
    pub fn image_of_now(&self) -> Image {
        let mut image = Image::clone(&self.image);
        for (index, def) in (0..).zip(&mut image.maps) {
            let pages = self.maps.get(index).and_then(|map| map.pages);
            let len = u64::from(def.value_size);
            if let Some((at, _)) = pages
                && self.memory.is_constant(at, len)
            {
                def.frozen = true;
                def.initial = self.memory.bytes(at, len).map(Arc::from);
            }
        }
        image
    }

    /// Adds a map as user space asks for it, see [`Map::for_user`]; its index. `None` if there are
    /// too many.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn add_map(
        &mut self,
        def: MapDef,
        place: (bool, bool),
    ) -> Result<Option<u32>, OutOfMemory> {
        if !self.maps.has_room() {
            return Ok(None);
        }
        let map = Map::for_user(&mut self.memory, &def, self.config.cpus, place)?;
        let index = self.maps.add(map);
        let defs = &mut self.image_mut().maps;
        match defs.get_mut(index as usize) {
            Some(old) => *old = def,
            None => defs.push(def),
        }
        Ok(Some(index))
    }

    /// Nobody has the map any more: what is in it goes.
    pub(crate) fn remove_map(&mut self, map: u32, host: &mut H) {
        let Some(entry) = self.maps.get(map) else {
            return;
        };
        let copies = entry.shape.copies;
        if entry.timer_at.is_some() || !entry.kptrs_at.is_empty() || !self.objects.is_empty() {
            for value in entry.values() {
                self.drop_fields(map, value, copies, host);
            }
        }
        let Self { maps, memory, .. } = self;
        maps.remove(memory, map);
    }

    /// The import with this name, prototype and given argument, added if there is none.
    pub(crate) fn import(
        &mut self,
        import: Import,
        given: Option<(usize, u64)>,
        (table, builtins): (&[HostFunction<H>], &[HostFunction<H>]),
    ) -> u32 {
        let imports = &self.image.imports;
        let known = imports
            .iter()
            .zip(&self.bindings)
            .position(|(other, binding)| {
                other.name == import.name
                    && other.prototype == import.prototype
                    && binding.given == given
            });
        if let Some(known) = known {
            return known as u32;
        }
        let binding = find(&import, table, builtins, &self.config);
        let binding = binding.unwrap_or_else(Binding::absent);
        let binding = match given {
            Some((argument, value)) => binding.with(argument, value),
            None if self.config.tally => Binding {
                direct: None,
                intrinsic: None,
                ..binding
            },
            None => binding,
        };
        self.bindings.push(binding);
        let imports = &mut self.image_mut().imports;
        imports.push(import);
        imports.len() as u32 - 1
    }

    /// Adds functions behind those that there are.
    ///
    /// # Errors
    /// If one of them breaks a rule of the instruction set; then none is added.
    ///
    /// # Panics
    /// While a program runs.
    pub(crate) fn append(&mut self, pieces: Vec<Piece>) -> Result<(), LoadError> {
        assert_eq!(
            self.stack.depth, 0,
            "a program runs while user space loads another"
        );
        let image = Arc::make_mut(&mut self.image);
        let (functions, slots, lines) =
            (image.functions.len(), image.code.len(), image.lines.len());
        for piece in pieces {
            let start = image.code.len() as u32;
            image.functions.push(Function {
                name: piece.name,
                start,
                len: piece.code.len() as u32,
            });
            image.code.extend(piece.code);
            image
                .lines
                .extend(piece.lines.into_iter().map(|(slot, file, line)| Line {
                    insn: start + slot,
                    file,
                    line,
                }));
        }
        self.forget_cells();
        let places = Places {
            maps: &self.maps,
            variables: &self.variables,
            image: &self.image,
        };
        let checked = self.image.check_from(functions);
        let code = Arc::make_mut(&mut self.code);
        let added = checked.and_then(|()| {
            decode::decode_rest(&self.image, &places, code).map_err(|bad| LoadError::Malformed {
                section: bad.function,
                offset: bad.insn.into(),
                problem: bad.what,
            })
        });
        if added.is_err() {
            let image = Arc::make_mut(&mut self.image);
            image.functions.truncate(functions);
            image.code.truncate(slots);
            image.lines.truncate(lines);
            return added;
        }
        self.forget_native();
        Ok(())
    }

    /// Native code is made anew when it is needed.
    fn forget_native(&mut self) {
        self.native = None;
        self.entries = Box::default();
        self.refusal = None;
        self.heat = Heat::new(&self.config);
        if self.config.backend == Backend::Jit {
            self.heat.look_soon();
        }
    }

    /// These tables are what is attached now.
    pub(crate) fn set_tables(&mut self, tables: Vec<StructOps>) {
        self.image_mut().struct_ops = tables;
    }

    /// The maps, for user space.
    pub(crate) fn parts(&mut self) -> (&mut Maps, &mut crate::Memory) {
        (&mut self.maps, &mut self.memory)
    }
}
