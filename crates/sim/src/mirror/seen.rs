//! What of the mirrors the object's programs can look at.
//!
//! Most policies look at three or four fields of a task. What changes with every turn, and what no
//! program of the object names, need not be brought up to date. A program names a field by a CO-RE
//! relocation. It must: offsets here are not those of any kernel, so that an object which brings
//! offsets of its own reads something else in any case. For an object that asks nothing of the
//! kernel's types by CO-RE everything is kept, because nothing is known of it.

use bpf::{FieldRead, LoadError, Target};

use super::stale;

/// What is kept up to date.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// Parts of a task ([`stale`]).
    pub parts: u8,
    /// A task's `migration_disabled`.
    pub migration_disabled: bool,
    /// Whether programs read the running task from a run queue.
    pub curr: bool,
    /// Whether they read the clocks of run queues.
    pub clocks: bool,
}

impl Seen {
    /// Fields that programs with these `reads` can see.
    pub fn of(target: &Target, reads: &[FieldRead]) -> Result<Self, LoadError> {
        let sees = |structure, path| sees(target, reads, structure, path);
        let task = |path| sees("task_struct", path);
        // What programs may write is always there.
        let mut parts = !(stale::FLAGS | stale::TIME | stale::STATE);
        if task("scx.flags")? || task("scx.runnable_at")? {
            parts |= stale::FLAGS;
        }
        if task("se.sum_exec_runtime")? || task("utime")? {
            parts |= stale::TIME;
        }
        if task("wake_cpu")? || task("thread_info.cpu")? || task("__state")? {
            parts |= stale::STATE;
        }
        Ok(Self {
            parts,
            migration_disabled: task("migration_disabled")?,
            curr: sees("rq", "curr")?,
            clocks: sees("rq", "clock")? || sees("rq", "clock_task")? || sees("rq", "clock_pelt")?,
        })
    }

    /// Whether something is to be said before each callback.
    pub const fn needs_guard(&self) -> bool {
        self.migration_disabled || self.clocks
    }
}

/// Whether one of `reads` touches a field: through a pointer to the structure, or to a member on
/// the way to the field.
fn sees(
    target: &Target,
    reads: &[FieldRead],
    structure: &str,
    path: &str,
) -> Result<bool, LoadError> {
    // Members of a task to which programs may have pointers.
    const INNER: [(&str, &str); 3] = [
        ("sched_ext_entity", "scx"),
        ("sched_entity", "se"),
        ("thread_info", "thread_info"),
    ];
    let field = target.field(structure, path)?;
    let field = field.offset..field.offset.saturating_add(field.size);
    let mut bases = vec![(structure, 0)];
    if structure == "task_struct" {
        for (inner, member) in INNER {
            bases.push((inner, target.field(structure, member)?.offset));
        }
    }
    let touches = |read: &FieldRead| {
        let base = bases.iter().find(|(name, _)| *name == read.structure);
        // A structure without a name may be any.
        read.structure.is_empty()
            || base.is_some_and(|(_, base)| {
                let start = base.saturating_add(read.at);
                start < field.end && field.start < start.saturating_add(read.len)
            })
    };
    Ok(reads.is_empty() || reads.iter().any(touches))
}

#[cfg(test)]
mod tests {
    use model::MachineSpec;

    use super::*;

    fn read(structure: &str, path: &str, len: u32) -> FieldRead {
        let target = crate::target(&MachineSpec::default());
        let at = match path {
            "" => 0,
            path => target.field(structure, path).unwrap().offset,
        };
        FieldRead {
            structure: structure.to_owned(),
            at,
            len,
        }
    }

    fn seen(reads: &[FieldRead]) -> [bool; 6] {
        let target = crate::target(&MachineSpec::default());
        let seen = Seen::of(&target, reads).unwrap();
        let has = |part| seen.parts & part != 0;
        assert!(has(stale::SLICE) && has(stale::CPUS) && has(stale::POLICY));
        [
            has(stale::FLAGS),
            has(stale::TIME),
            has(stale::STATE),
            seen.migration_disabled,
            seen.curr,
            seen.clocks,
        ]
    }

    #[test]
    fn what_is_named_is_kept_up_to_date() {
        let weight = read("task_struct", "scx.weight", 4);
        assert_eq!(seen(std::slice::from_ref(&weight)), [false; 6]);
        for (structure, path, len, wanted) in [
            ("task_struct", "scx.flags", 4, 0),
            ("sched_ext_entity", "flags", 4, 0),
            ("task_struct", "utime", 8, 1),
            ("sched_entity", "sum_exec_runtime", 8, 1),
            ("task_struct", "__state", 4, 2),
            ("thread_info", "cpu", 4, 2),
            ("task_struct", "migration_disabled", 2, 3),
            ("rq", "curr", 8, 4),
            ("rq", "clock", 8, 5),
            ("rq", "clock_task", 8, 5),
            ("rq", "clock_pelt", 8, 5),
        ] {
            let reads = [weight.clone(), read(structure, path, len)];
            let only = std::array::from_fn(|at| at == wanted);
            assert_eq!(seen(&reads), only, "{structure}.{path}");
        }
    }

    #[test]
    fn who_reads_a_whole_structure_or_says_nothing_sees_all_of_it() {
        let all = [true, true, true, true, false, false];
        assert_eq!(seen(&[read("task_struct", "", u32::MAX)]), all);
        let entity = [true, true, false, true, false, false];
        assert_eq!(seen(&[read("task_struct", "scx", u32::MAX)]), entity);
        let run_queue = [false, false, false, false, true, true];
        assert_eq!(seen(&[read("rq", "", u32::MAX)]), run_queue);
        assert_eq!(seen(&[]), [true; 6]);
        assert_eq!(seen(&[read("", "", 1)]), [true; 6]);
    }
}
