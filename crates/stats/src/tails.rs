//! How long the tasks of each group waited.

use crate::Histogram;

/// The waits of each group of tasks, of one run or of several.
#[derive(Clone, Debug, Default)]
pub struct Tails {
    /// The groups, in the order of the first run that has them.
    pub groups: Vec<(String, Histogram)>,
}

impl Tails {
    /// The waits of groups that are called so.
    #[must_use]
    pub const fn new(groups: Vec<(String, Histogram)>) -> Self {
        Self { groups }
    }

    /// Adds the waits of another run. In which order runs are added changes nothing but the order
    /// of groups that not all of them have.
    pub fn merge(&mut self, other: &Self) {
        for (name, theirs) in &other.groups {
            match self.groups.iter_mut().find(|(known, _)| known == name) {
                Some((_, ours)) => ours.merge(theirs),
                None => self.groups.push((name.clone(), theirs.clone())),
            }
        }
    }

    /// The waits of the group of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Histogram> {
        let found = self.groups.iter().find(|(known, _)| known == name);
        found.map(|(_, waits)| waits)
    }
}
