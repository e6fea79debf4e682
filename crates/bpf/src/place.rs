//! Where in its source a program is, for whoever asks.

use model::source::own_file;

use crate::host::Host;
use crate::image::{Function, Image, Line};
use crate::instance::Instance;
use crate::stop::Spot;

/// A place in a program's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The function of the object.
    pub function: String,
    /// The file in which the function begins, if the object has line information.
    pub file: Option<String>,
    /// The line of that file, from 1; 0 without line information.
    pub line: u32,
}

impl<H: Host> Instance<H> {
    /// Where operation `op` stands in the object.
    pub(crate) fn spot(&self, op: usize) -> Spot {
        let slot = self.code.origin[op];
        let function = self.image.function_of(slot);
        let (program, start) = function.map_or(("?", 0), |f| (f.name.as_str(), f.start));
        let line = self.image.line_of(slot);
        let line = line.filter(|line| line.insn >= start);
        Spot {
            program: program.to_owned(),
            insn: slot - start,
            file: line.map(|line| line.file.to_string()),
            line: line.map_or(0, |line| line.line),
        }
    }

    /// Where the innermost program is: the number of the conditional jump, of the call of a host
    /// function or of the store into the read-only half that it has executed last. Calls that only
    /// end what was begun, and the end of a loop over an iterator, do not count. After its end
    /// that is the last one of it. Meaningless without [`Config::places`](crate::Config::places).
    #[inline]
    #[must_use]
    pub const fn current_place(&self) -> u32 {
        self.stack.progress.place
    }

    /// `function` is about to be called: until it comes to a place, it is at its begin. One that
    /// neither calls nor chooses is at the last of its stores from the beginning.
    ///
    /// # Panics
    /// If there is no such function.
    pub fn begin_place(&mut self, function: u32) {
        self.stack.progress.place = self.code.entries[function as usize].begin;
    }

    /// The lowest number of a place in `function`. Those of all functions behind it are higher.
    ///
    /// # Panics
    /// If there is no such function.
    #[must_use]
    pub fn first_place(&self, function: u32) -> u32 {
        self.code.entries[function as usize].op
    }

    /// A nested call is over, and the program goes on that was `here`.
    pub const fn return_to(&mut self, here: u32) {
        self.stack.progress.place = here;
    }

    /// The source line of a place. `None` for a number that is none.
    ///
    /// A line of another file is that of a function which the compiler has built in; the line that
    /// stands before it in the function's own file is the one that names it, else the first there.
    #[must_use]
    pub fn place(&self, here: u32) -> Option<SourceLine> {
        let slot = *self.code.origin.get(here as usize)?;
        let function = self.image.function_of(slot)?;
        let file = self.image.file_of(function);
        let lines = self.image.lines_of(function).iter();
        let mut own = lines.filter(|line| Some(&*line.file) == file);
        let first = own.clone().next();
        let line = own.rfind(|line| line.insn <= slot).or(first);
        Some(SourceLine {
            function: function.name.clone(),
            file: file.map(str::to_owned),
            line: line.map_or(0, |line| line.line),
        })
    }
}

impl Image {
    /// The function that has the instruction at `slot`.
    pub(crate) fn function_of(&self, slot: u32) -> Option<&Function> {
        let holds = |f: &&Function| f.start <= slot && slot - f.start < f.len;
        self.functions.iter().find(holds)
    }

    /// What is known of the source of `function`, in the order of its instructions.
    fn lines_of(&self, function: &Function) -> &[Line] {
        let before = |line: &Line| line.insn < function.start;
        let (_, own) = self.lines.split_at(self.lines.partition_point(before));
        let end = own.partition_point(|line| line.insn - function.start < function.len);
        &own[..end]
    }

    /// The file of `function`.
    pub(crate) fn file_of(&self, function: &Function) -> Option<&str> {
        own_file(self.lines_of(function).iter().map(|line| &*line.file))
    }

    /// What is known of the source of the instruction at `slot`.
    pub(crate) fn line_of(&self, slot: u32) -> Option<&Line> {
        let after = self.lines.partition_point(|line| line.insn <= slot);
        after.checked_sub(1).map(|at| &self.lines[at])
    }
}
