//! What programs store into kernel objects.

use bpf::Memory;
use model::TaskId;

use crate::machine::Machine;

impl Machine {
    /// A program writes into a kernel object. Allowed are the fields that the kernel's verifier
    /// allows (`bpf_scx_btf_struct_access()`, kernel 6.18): slice, vtime, disallow. In cid form it
    /// allows disallow alone (7.3).
    pub(crate) fn store_task_field(
        &mut self,
        memory: &mut Memory,
        address: u64,
        size: u8,
        value: u64,
    ) -> bool {
        let found = self.open_field(memory, address, u64::from(size));
        let disallow = self.mirror.layout.disallow;
        let is_disallow = found.is_some_and(|(_, base)| address == base + disallow);
        if self.is_cid_form() && !is_disallow {
            return false;
        }
        if found.is_none() && !self.is_field_of_bound(address, u64::from(size)) {
            return false;
        }
        match size {
            8 => memory.poke_u64(address, value),
            _ => memory.write(address, &value.to_le_bytes()[..usize::from(size)]),
        }
        if let Some((id, base)) = found {
            self.take_fields_over(memory, id, base);
        }
        true
    }

    /// Whether these bytes are a slice or a vtime of an idle task or of a migration thread:
    /// programs may write them as any task's, and it is of no consequence.
    #[cold]
    fn is_field_of_bound(&self, address: u64, size: u64) -> bool {
        let layout = &self.mirror.layout;
        open_distances(
            [(layout.slice, 8), (layout.vtime, 8), (layout.disallow, 1)],
            size,
        )
        .filter_map(|distance| address.checked_sub(distance))
        .any(|base| {
            let stoppers = self.mirror.stoppers.values();
            let mut bound = self.mirror.idle_tasks.iter().chain(stoppers);
            bound.any(|it| *it == base)
        })
    }

    /// A program has stored into a task's slice or vtime.
    #[inline(always)]
    pub(crate) fn task_word_stored(&mut self, memory: &Memory, address: u64) {
        // Most often it is the vtime of the task that the callback is about.
        let subject = self.turn.contexts.innermost().subject;
        let base = address.wrapping_sub(self.mirror.layout.vtime);
        match self.tasks.get_mut(subject.index()) {
            Some(task) if task.address == base && base != 0 => {
                task.vtime = memory.load_u64(address);
            }
            _ => self.other_word_stored(memory, address),
        }
    }

    #[inline(never)]
    fn other_word_stored(&mut self, memory: &Memory, address: u64) {
        let layout = &self.mirror.layout;
        let at = |distance: u64| self.task_at(memory, address.wrapping_sub(distance));
        if let Some(id) = at(layout.vtime) {
            self.task_mut(id).vtime = memory.load_u64(address);
        } else if let Some(id) = at(layout.slice) {
            self.take_fields_over(memory, id, address - self.mirror.layout.slice);
        }
    }

    /// Takes the fields that programs may write from the mirror at `base`.
    fn take_fields_over(&mut self, memory: &Memory, id: TaskId, base: u64) {
        let (slice, vtime) = (self.mirror.layout.slice, self.mirror.layout.vtime);
        let (slice, vtime) = (memory.load_u64(base + slice), memory.load_u64(base + vtime));
        let task = self.task_mut(id);
        let before = std::mem::replace(&mut task.slice, slice);
        task.vtime = vtime;
        if before != slice {
            self.tell_slice(id, model::Sliced::Set);
        }
    }

    /// Whether these bytes are a field of a task's that policies in cpu form may write.
    pub(crate) fn is_open_field(&self, memory: &Memory, address: u64, size: u8) -> bool {
        self.open_field(memory, address, u64::from(size)).is_some()
    }

    /// The task that has a field which programs may write and in which all `size` bytes at
    /// `address` lie, and the task's address.
    fn open_field(&self, memory: &Memory, address: u64, size: u64) -> Option<(TaskId, u64)> {
        let layout = &self.mirror.layout;
        let fields = [(layout.slice, 8), (layout.vtime, 8), (layout.disallow, 1)];
        open_distances(fields, size).find_map(|distance| {
            let base = address.checked_sub(distance)?;
            Some((self.task_at(memory, base)?, base))
        })
    }
}

/// How far behind a task's beginning a store of `size` bytes may lie so that it is in one of
/// `fields` (distance and width) with all its bytes. First come the beginnings of the fields,
/// because nearly every store is to one.
fn open_distances(fields: [(u64, u64); 3], size: u64) -> impl Iterator<Item = u64> {
    let wide = fields.into_iter().filter(move |(_, width)| size <= *width);
    let inside =
        move |(field, width): (u64, u64)| (1..=width - size).map(move |inner| field + inner);
    wide.clone()
        .map(|(field, _)| field)
        .chain(wide.flat_map(inside))
}

#[cfg(test)]
mod tests {
    use super::open_distances;

    #[test]
    fn a_store_lies_in_one_field_with_all_its_bytes() {
        let fields = [(32, 8), (40, 8), (61, 1)];
        for size in [1, 2, 4, 8] {
            let holds = |at: u64| {
                let inside = |(field, width)| field <= at && at + size <= field + width;
                fields.into_iter().any(inside)
            };
            let mut found: Vec<u64> = open_distances(fields, size).collect();
            assert_eq!(found[..2], [32, 40], "beginnings come first");
            found.sort_unstable();
            let wanted: Vec<u64> = (0..100).filter(|at| holds(*at)).collect();
            assert_eq!(found, wanted, "{size} bytes");
        }
    }
}
