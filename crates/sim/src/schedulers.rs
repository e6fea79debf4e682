//! The schedulers that are loaded: who is asked about which task.
//!
//! The machine has one object machine, as a kernel has one BPF: programs of all schedulers lie in
//! it, kernel objects are mirrored once, and a scheduler is a table of functions in it. One of the
//! schedulers is the root. It owns every task and cgroup that no other one owns, and what is asked
//! about a CPU is asked of it.
//!
//! A call of a callback names its scheduler ([`crate::ops::Call`]). The functions that a program
//! calls find theirs in the context of the callback being executed
//! ([`crate::context::Contexts::scheduler`]).

use std::ops::{Index, IndexMut};

/// Number of a scheduler that is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchedId(u8);

impl SchedId {
    /// The root's.
    pub const ROOT: Self = Self(0);
}

/// Something of each scheduler. The root's has a place of its own: where no other one is loaded, to
/// choose takes one comparison at most.
#[derive(Clone, Debug)]
pub(crate) struct PerSched<T> {
    pub root: T,
    /// Of all others, in the order of their numbers.
    others: Vec<T>,
}

impl<T> PerSched<T> {
    /// The root is the only one.
    pub const fn new(root: T) -> Self {
        Self {
            root,
            others: Vec::new(),
        }
    }

    /// Whether no other scheduler is loaded.
    #[inline(always)]
    pub const fn is_alone(&self) -> bool {
        self.others.is_empty()
    }

    /// Adds something of one more scheduler; its number.
    ///
    /// # Panics
    /// If there are 255 others, which nobody can ask for.
    pub fn add(&mut self, value: T) -> SchedId {
        self.others.push(value);
        SchedId(u8::try_from(self.others.len()).expect("fewer than 256 schedulers"))
    }

    /// The numbers of all of them, the root's first.
    pub fn ids(&self) -> impl Iterator<Item = SchedId> + use<T> {
        (0..=self.others.len() as u8).map(SchedId)
    }

    /// All of them, the root's first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.root).chain(&self.others)
    }

    #[cold]
    fn other(&self, id: SchedId) -> &T {
        &self.others[usize::from(id.0) - 1]
    }

    #[cold]
    fn other_mut(&mut self, id: SchedId) -> &mut T {
        &mut self.others[usize::from(id.0) - 1]
    }
}

impl<T> Index<SchedId> for PerSched<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, id: SchedId) -> &T {
        if id == SchedId::ROOT {
            &self.root
        } else {
            self.other(id)
        }
    }
}

impl<T> IndexMut<SchedId> for PerSched<T> {
    #[inline(always)]
    fn index_mut(&mut self, id: SchedId) -> &mut T {
        if id == SchedId::ROOT {
            &mut self.root
        } else {
            self.other_mut(id)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheduler_finds_its_own() {
        let mut names = PerSched::new("root");
        assert!(names.is_alone());
        let ids = [SchedId::ROOT, names.add("first"), names.add("second")];
        assert_eq!(names.ids().collect::<Vec<_>>(), ids);
        assert_eq!(ids.map(|id| names[id]), ["root", "first", "second"]);
        names[ids[2]] = "third";
        names[SchedId::ROOT] = "new";
        assert_eq!(
            names.iter().copied().collect::<Vec<_>>(),
            ["new", "first", "third"]
        );
    }
}
