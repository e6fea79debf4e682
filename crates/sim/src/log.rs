//! What a run has to say in words: text that programs print, and notes.

use crate::machine::Machine;

/// What is kept of the text that programs print, bytes.
const MOST_TEXT: usize = 64 << 10;
/// Notes that are kept.
const MOST_NOTES: usize = 100;

/// Texts of bounded length.
#[derive(Debug, Default)]
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

    /// What was printed, and the notes.
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
}
