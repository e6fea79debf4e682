//! The link step: an [`Object`] and a [`Target`] become an [`Image`].
//!
//! Each module makes one part of the image; the order below is the order in which they depend on
//! each other.

mod code;
mod data;
mod externs;
mod knobs;
mod live;
mod maps;
mod struct_ops;
mod types;
mod value_fields;

pub(crate) use code::KERNEL_TEXT;
pub(crate) use value_fields::ValueFields;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::image::{EntryPoint, Function, Image, Line};
use crate::isa::SLOT;
use crate::{LoadError, MissingExtern, Object, Target};
use data::Data;
use externs::Externs;
use maps::Declared;

impl Object {
    /// Binds the object to a kernel: places maps and globals, resolves what it wants from the
    /// kernel, adapts it to the kernel's types, and checks the result.
    ///
    /// # Errors
    /// [`LoadError::Missing`] lists everything that the kernel lacks and the object cannot do
    /// without; the others name what is wrong with the object.
    pub fn link(&self, target: &Target) -> Result<Image, LoadError> {
        let declared = Declared::new(self)?;
        let data = Data::new(self, target, declared)?;
        let externs = Externs::resolve(self, target);
        externs.check(target)?;
        let code = code::link(self, target, &data, &externs)?;
        let mut image = Image {
            functions: functions(self),
            programs: programs(self),
            code: code.insns,
            imports: code.imports,
            poisons: code.poisons,
            reads: code.reads,
            maps: data.maps,
            variables: externs.variables,
            symbols: data.symbols,
            struct_ops: Vec::new(),
            knobs: Vec::new(),
            types: types::allocated(self)?,
            lines: lines(self),
            license: self.license.clone(),
        };
        image.struct_ops = struct_ops::tables(self, target)?;
        image.knobs = knobs::knobs(self, &image)?;
        // First, because what follows relies on indices.
        image.check()?;
        live::prune(&mut image);
        Ok(image)
    }

    /// Everything that the object asks a kernel for and `target` lacks: what it can do without
    /// (weak) as well as what makes [`Object::link`] fail.
    #[must_use]
    pub fn missing(&self, target: &Target) -> Vec<MissingExtern> {
        Externs::resolve(self, target).missing
    }
}

/// The image keeps the functions in the object's order, without the gaps between them.
fn functions(object: &Object) -> Vec<Function> {
    let mut start = 0;
    let mut list = Vec::with_capacity(object.functions.len());
    for function in &object.functions {
        // The object's instructions were counted when it was parsed.
        let len = function.len as u32;
        list.push(Function {
            name: function.name.clone(),
            start,
            len,
        });
        start += len;
    }
    list
}

fn programs(object: &Object) -> Vec<EntryPoint> {
    let functions = (0..).zip(&object.functions);
    let programs = functions.filter(|(_, function)| function.is_program);
    let mut types = types::Types::new(&object.btf);
    programs
        .map(|(index, function)| EntryPoint {
            name: function.name.clone(),
            section: object.section_of(function).name.clone(),
            function: index,
            autoload: object.is_autoloaded(function),
            context: types.argument(&function.name),
        })
        .collect()
}

/// Code sections by name.
fn code_sections(object: &Object) -> BTreeMap<&str, usize> {
    let functions = object.functions.iter();
    functions
        .map(|function| (&*object.section_of(function).name, function.section))
        .collect()
}

fn lines(object: &Object) -> Vec<Line> {
    let sections = code_sections(object);
    let starts = functions(object);
    let mut files = BTreeMap::<u32, Arc<str>>::new();
    let mut lines = Vec::new();
    for line in &object.ext.lines {
        let Some(section) = object
            .btf
            .text_at(line.section)
            .and_then(|name| sections.get(name))
        else {
            continue;
        };
        let slot = line.offset as usize / SLOT;
        let Some(index) = object.function_at(*section, slot) else {
            continue;
        };
        let within = (slot - object.functions[index].start) as u32;
        let file = files
            .entry(line.file)
            .or_insert_with(|| object.btf.text_at(line.file).unwrap_or_default().into());
        let insn = starts[index].start + within;
        lines.push(Line {
            insn,
            file: Arc::clone(file),
            line: line.line,
        });
    }
    lines.sort_by_key(|line| line.insn);
    lines
}
