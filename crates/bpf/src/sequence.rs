//! A list that finds, adds and removes in the middle in a number of steps that grows with the
//! logarithm of its length.
//!
//! A treap: a tree in the order of the list, and a heap by priorities that are drawn at random.
//! What it holds and in which order never depends on them.

use std::hash::{BuildHasher, Hasher};

use crate::keyed::Keyed;

/// "No node" in the links.
const NONE: u32 = u32::MAX;

/// An element and what is below it.
#[derive(Clone, Copy, Debug)]
struct Node {
    value: u64,
    priority: u64,
    /// Elements from here on downwards.
    size: u32,
    up: u32,
    left: u32,
    right: u32,
}

/// The list.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    nodes: Vec<Node>,
    /// Slots of `nodes` to use again.
    vacant: Vec<u32>,
    root: u32,
    /// Elements that were ever added: what the next priority is drawn from.
    added: u64,
    keyed: Keyed,
}

impl Default for Sequence {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            vacant: Vec::new(),
            root: NONE,
            added: 0,
            keyed: Keyed::default(),
        }
    }
}

impl Sequence {
    pub(crate) fn len(&self) -> usize {
        self.size(self.root) as usize
    }

    /// The element number `at`.
    pub(crate) fn get(&self, mut at: usize) -> Option<u64> {
        let mut slot = self.root;
        loop {
            let node = self.nodes.get(slot as usize)?;
            let before = self.size(node.left) as usize;
            match at.cmp(&before) {
                std::cmp::Ordering::Less => slot = node.left,
                std::cmp::Ordering::Equal => return Some(node.value),
                std::cmp::Ordering::Greater => {
                    at -= before + 1;
                    slot = node.right;
                }
            }
        }
    }

    /// Adds `value` before the element that is number `at` now, or at the end. Gives the slot that
    /// it keeps.
    pub(crate) fn insert(&mut self, at: usize, value: u64) -> u32 {
        let at = at.min(self.len());
        let slot = self.leaf(value);
        self.hang(slot, at);
        while let Some(above) = self.nodes.get(self.nodes[slot as usize].up as usize)
            && above.priority < self.nodes[slot as usize].priority
        {
            self.lift(slot);
        }
        slot
    }

    /// Takes out what [`Sequence::insert`] has put into `slot`.
    pub(crate) fn remove(&mut self, slot: u32) {
        loop {
            let Node { left, right, .. } = self.nodes[slot as usize];
            let priority = |slot: u32| self.nodes.get(slot as usize).map(|node| node.priority);
            // `None` is less than any priority.
            match (priority(left), priority(right)) {
                (None, None) => break,
                (left_priority, right_priority) if left_priority > right_priority => {
                    self.lift(left);
                }
                _ => self.lift(right),
            }
        }
        let above = self.nodes[slot as usize].up;
        self.replace_child(above, slot, NONE);
        let mut next = above;
        while let Some(node) = self.nodes.get_mut(next as usize) {
            node.size -= 1;
            next = node.up;
        }
        self.vacant.push(slot);
    }

    /// All elements in their order.
    pub(crate) fn values(&self) -> Vec<u64> {
        let mut values = Vec::with_capacity(self.len());
        let (mut slot, mut due) = (self.root, Vec::new());
        loop {
            while let Some(node) = self.nodes.get(slot as usize) {
                due.push(slot);
                slot = node.left;
            }
            let Some(next) = due.pop() else { return values };
            let node = self.nodes[next as usize];
            values.push(node.value);
            slot = node.right;
        }
    }

    fn size(&self, slot: u32) -> u32 {
        self.nodes.get(slot as usize).map_or(0, |node| node.size)
    }

    /// A node that is not in the tree yet.
    fn leaf(&mut self, value: u64) -> u32 {
        self.added += 1;
        let mut hasher = self.keyed.build_hasher();
        hasher.write_u64(self.added);
        hasher.write_u64(self.added);
        let node = Node {
            value,
            priority: hasher.finish(),
            size: 1,
            up: NONE,
            left: NONE,
            right: NONE,
        };
        if let Some(slot) = self.vacant.pop() {
            self.nodes[slot as usize] = node;
            return slot;
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// Hangs a leaf below the tree, as number `at`.
    fn hang(&mut self, slot: u32, mut at: usize) {
        let (mut above, mut below, mut is_left) = (NONE, self.root, false);
        while below != NONE {
            let before = self.size(self.nodes[below as usize].left) as usize;
            let node = &mut self.nodes[below as usize];
            node.size += 1;
            above = below;
            is_left = at <= before;
            below = if is_left {
                node.left
            } else {
                at -= before + 1;
                node.right
            };
        }
        self.nodes[slot as usize].up = above;
        match self.nodes.get_mut(above as usize) {
            None => self.root = slot,
            Some(node) if is_left => node.left = slot,
            Some(node) => node.right = slot,
        }
    }

    /// Puts `slot` in the place of the node above it, which comes below it.
    fn lift(&mut self, slot: u32) {
        let above = self.nodes[slot as usize].up;
        let (top, size) = (
            self.nodes[above as usize].up,
            self.nodes[above as usize].size,
        );
        let is_left = self.nodes[above as usize].left == slot;
        let node = &mut self.nodes[slot as usize];
        let inner = if is_left {
            std::mem::replace(&mut node.right, above)
        } else {
            std::mem::replace(&mut node.left, above)
        };
        let own = std::mem::replace(&mut node.size, size);
        node.up = top;
        let inner_size = self.size(inner);
        let node = &mut self.nodes[above as usize];
        node.up = slot;
        node.size = size - own + inner_size;
        if is_left {
            node.left = inner;
        } else {
            node.right = inner;
        }
        if let Some(node) = self.nodes.get_mut(inner as usize) {
            node.up = above;
        }
        self.replace_child(top, above, slot);
    }

    /// Where `old` hangs below `above`, `new` hangs from now on.
    fn replace_child(&mut self, above: u32, old: u32, new: u32) {
        match self.nodes.get_mut(above as usize) {
            None => self.root = new,
            Some(node) if node.left == old => node.left = new,
            Some(node) => node.right = new,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_sequence_of_changes_agrees_with_a_plain_list() {
        let mut sequence = Sequence::default();
        let mut model: Vec<(u64, u32)> = Vec::new();
        let mut state = 1_u64;
        for value in 0..4000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = (state >> 40) as usize % (model.len() + 1);
            if state >> 62 == 0 && at < model.len() {
                sequence.remove(model.remove(at).1);
            } else {
                model.insert(at, (value, sequence.insert(at, value)));
            }
            assert_eq!(sequence.len(), model.len());
            assert_eq!(sequence.get(at), model.get(at).map(|(value, _)| *value));
        }
        let values: Vec<u64> = model.iter().map(|(value, _)| *value).collect();
        assert_eq!(sequence.values(), values);
        assert_eq!(sequence.get(model.len()), None);
    }

    #[test]
    fn a_long_sequence_is_not_deep() {
        let mut sequence = Sequence::default();
        for value in 0..100_000 {
            sequence.insert(usize::MAX, value);
        }
        let depth = |mut slot: u32| {
            let mut depth = 0;
            while let Some(node) = sequence.nodes.get(slot as usize) {
                slot = node.up;
                depth += 1;
            }
            depth
        };
        let deepest = (0..100_000).map(depth).max();
        assert!(deepest < Some(100), "{deepest:?}");
    }
}
