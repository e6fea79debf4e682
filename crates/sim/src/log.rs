//! What a run has to say in words: text that programs print, and notes.

use bpf::ArenaFault;

use crate::machine::{Machine, Vm};

/// What is kept of the text that programs print, bytes.
const MOST_TEXT: usize = 64 << 10;
/// Notes that are kept.
const MOST_NOTES: usize = 100;

/// Instructions with faults in the arena that are named.
const MOST_FAULTS: usize = 5;
/// Lines that programs have printed before the run and that are shown if it does not begin.
const MOST_LINES: usize = 10;

/// Texts of bounded length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    printed: String,
    notes: Vec<String>,
}

impl Log {
    /// A program prints `text`: each call is a line, as in the kernel's trace.
    pub fn print(&mut self, text: &str) {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let room = MOST_TEXT.saturating_sub(self.printed.len() + 1);
        let mut end = text.len().min(room);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        if end > 0 {
            self.printed.push_str(&text[..end]);
            self.printed.push('\n');
        }
    }

    /// Adds a note; one that is there already is not repeated.
    pub fn note(&mut self, text: String) {
        if self.notes.len() < MOST_NOTES && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Printed text, and the notes.
    pub fn take(&mut self) -> (String, Vec<String>) {
        let Self { printed, notes } = std::mem::take(self);
        (printed, notes)
    }
}

impl Machine {
    /// A warning that a kernel would log, or a hint that only a simulator can give.
    #[cold]
    pub(crate) fn note(&mut self, text: String) {
        self.log.note(text);
    }

    /// Notes what programs have loaded from and stored to pages of the arena that nobody has
    /// allocated. A kernel says it to the program's stream of errors, from 6.18 on.
    pub(crate) fn note_arena(&mut self, vm: &Vm) {
        let faults = vm.arena_faults();
        for fault in faults.iter().take(MOST_FAULTS) {
            self.note(in_words(fault));
        }
        let more = faults.len().saturating_sub(MOST_FAULTS);
        if more > 0 {
            self.note(format!(
                "{more} more instructions used pages of the arena that are not allocated"
            ));
        }
        self.note_uncast(vm);
    }

    /// Notes instructions that a kernel's verifier refuses, and which are executed here.
    fn note_uncast(&mut self, vm: &Vm) {
        let found = vm.uncast_accesses();
        for access in found.iter().take(MOST_FAULTS) {
            self.note(format!(
                "a kernel refuses this program: {access}; clang 22 makes the cast"
            ));
        }
        let more = found.len().saturating_sub(MOST_FAULTS);
        if more > 0 {
            self.note(format!("{more} more instructions lack the cast"));
        }
    }

    /// What has been printed and noted so far, for a run that ends before it begins: the last
    /// lines that programs have printed, and the notes.
    pub(crate) fn say_so_far(&mut self, vm: &Vm) -> String {
        self.note_arena(vm);
        let (printed, notes) = self.log.take();
        let lines: Vec<&str> = printed.lines().collect();
        let last = &lines[lines.len().saturating_sub(MOST_LINES)..];
        let mut text = String::new();
        if !last.is_empty() {
            text += "\nits BPF programs printed last:\n";
            text += &last.join("\n");
        }
        for note in notes {
            text += "\nnote: ";
            text += &note;
        }
        text
    }
}

fn in_words(fault: &ArenaFault) -> String {
    let ArenaFault {
        is_store,
        address,
        count,
        program,
        insn,
        file,
        line,
    } = fault;
    let place = file
        .as_ref()
        .map_or_else(String::new, |file| format!(" ({file}:{line})"));
    let times = match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    let (did, result) = if *is_store {
        ("stored to", "the store is lost")
    } else {
        ("loaded from", "it gets 0")
    };
    format!(
        "{program}+{insn}{place} {did} a page of the arena that is not allocated, {times}, first \
         at {address:#x}: {result}, as in a kernel"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_in_the_arena_is_told_with_its_place() {
        let fault = ArenaFault {
            is_store: true,
            address: 1 << 44,
            count: 1,
            program: "push".into(),
            insn: 29,
            file: Some("stack.c".into()),
            line: 7,
        };
        assert_eq!(
            in_words(&fault),
            "push+29 (stack.c:7) stored to a page of the arena that is not allocated, once, first \
             at 0x100000000000: the store is lost, as in a kernel"
        );
        let load = ArenaFault {
            is_store: false,
            count: 3,
            file: None,
            ..fault
        };
        assert_eq!(
            in_words(&load),
            "push+29 loaded from a page of the arena that is not allocated, 3 times, first at \
             0x100000000000: it gets 0, as in a kernel"
        );
    }
}
