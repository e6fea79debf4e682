//! In place of the open words, when runslice is built without native code.

/// Words that native code may store into.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenWords(());

impl OpenWords {
    pub(crate) const fn open(&mut self, _: u64) {}

    pub(crate) const fn close(&mut self, _: u64, _: u64) {}

    pub(crate) const fn prefetch(&self, _: u64) {}
}
