//! Cgroups as the policy sees them.

use bpf::{LoadError, Memory, OutOfMemory, Target};
use model::TaskId;
use workload::{Bandwidth, Cgroup};

use super::{Mirror, MirrorError};
use crate::cgroup::{Cgroups, id_of};
use crate::machine::{Machine, Vm};

/// `CSS_ONLINE` of `cgroup_subsys_state.flags` (kernel 6.18, include/linux/cgroup-defs.h).
const CSS_ONLINE: u32 = 2;

/// `cpu_cgrp_id` of `enum cgroup_subsys_id` (kernel 7.3, `include/linux/cgroup_subsys.h`).
const CPU: u64 = 1;

/// Where the objects of one cgroup are.
#[derive(Clone, Copy, Debug)]
struct Place {
    cgroup: u64,
    css_set: u64,
    task_group: u64,
}

/// Sizes of a cgroup's objects, and where fields lie in them.
#[derive(Clone, Copy, Debug)]
pub(super) struct CgroupLayout {
    cgroup_size: u64,
    css_set_size: u64,
    task_group_size: u64,
    node_size: u64,
    node_id: u64,
    node_name: u64,
    kn: u64,
    dom_cgrp: u64,
    level: u64,
    ancestors: u64,
    dfl_cgrp: u64,
    /// Where a cgroup's own state lies in it.
    css_at: u64,
    group_css: u64,
    css_cgroup: u64,
    css_parent: u64,
    css_flags: u64,
    sched_task_group_at: u64,
    /// Where a cgroup has the state of the controller of CPU time, and where that has its weight.
    /// Since 7.2 there.
    controller: Option<(u64, u64)>,
}

impl CgroupLayout {
    pub fn of(target: &Target) -> Result<Self, LoadError> {
        let at = |structure, path| {
            let field = target.field(structure, path)?;
            Ok::<_, LoadError>(u64::from(field.offset))
        };
        let size = |structure| target.size_of(structure).map(u64::from);
        Ok(Self {
            cgroup_size: size("cgroup")?,
            css_set_size: size("css_set")?,
            task_group_size: size("task_group")?,
            node_size: size("kernfs_node")?,
            node_id: at("kernfs_node", "id")?,
            node_name: at("kernfs_node", "name")?,
            kn: at("cgroup", "kn")?,
            dom_cgrp: at("cgroup", "dom_cgrp")?,
            level: at("cgroup", "level")?,
            ancestors: at("cgroup", "ancestors")?,
            dfl_cgrp: at("css_set", "dfl_cgrp")?,
            css_at: at("cgroup", "self")?,
            group_css: at("task_group", "css")?,
            css_cgroup: at("cgroup_subsys_state", "cgroup")?,
            css_parent: at("cgroup_subsys_state", "parent")?,
            css_flags: at("cgroup_subsys_state", "flags")?,
            sched_task_group_at: at("task_struct", "sched_task_group")?,
            controller: at("cgroup", "subsys")
                .and_then(|subsys| Ok((subsys + 8 * CPU, at("task_group", "scx.weight")?)))
                .ok(),
        })
    }
}

/// The mirrors of all cgroups, by number. They last as long as the run.
#[derive(Clone)]
pub(super) struct CgroupMirrors {
    places: Vec<Place>,
    layout: CgroupLayout,
}

impl CgroupMirrors {
    /// Lays out the root and what the workload declares.
    pub fn new(at: CgroupLayout, vm: &mut Vm, declared: &[Cgroup]) -> Result<Self, MirrorError> {
        let memory = vm.memory();
        let mut places: Vec<Place> = Vec::new();
        let sizes = [at.cgroup_size, at.css_set_size, at.task_group_size];
        for _ in 0..=declared.len() {
            let [cgroup, css_set, task_group] = sizes.map(|size| zeroed(memory, size));
            places.push(Place {
                cgroup: cgroup?,
                css_set: css_set?,
                task_group: task_group?,
            });
        }
        let tree = Cgroups::new(declared);
        for (number, &place) in (0..).zip(&places) {
            let name = (number as usize)
                .checked_sub(1)
                .map_or("", |index| last_part(&declared[index].path));
            let node = zeroed(memory, at.node_size)?;
            let text = zeroed(memory, name.len() as u64 + 1)?;
            memory.write(text, name.as_bytes());
            memory.poke_u64(node + at.node_id, id_of(number));
            memory.poke_u64(node + at.node_name, text);
            memory.poke_u64(place.cgroup + at.kn, node);
            memory.poke_u64(place.cgroup + at.dom_cgrp, place.cgroup);
            let level = tree.level(number);
            memory.poke_u32(place.cgroup + at.level, level as u32);
            for ancestor in tree.ancestors(number) {
                let slot = place.cgroup + at.ancestors + 8 * tree.level(ancestor) as u64;
                memory.poke_u64(slot, places[ancestor as usize].cgroup);
            }
            memory.poke_u64(place.css_set + at.dfl_cgrp, place.cgroup);
            let parent = tree.parent(number).map(|parent| places[parent as usize]);
            let states = [
                (
                    place.cgroup + at.css_at,
                    parent.map(|parent| parent.cgroup + at.css_at),
                ),
                (
                    place.task_group + at.group_css,
                    parent.map(|parent| parent.task_group + at.group_css),
                ),
            ];
            if let Some((subsys, _)) = at.controller {
                memory.poke_u64(place.cgroup + subsys, place.task_group + at.group_css);
            }
            for (css, parent) in states {
                memory.poke_u64(css + at.css_cgroup, place.cgroup);
                memory.poke_u64(css + at.css_parent, parent.unwrap_or(0));
                memory.poke_u32(css + at.css_flags, CSS_ONLINE);
            }
        }
        Ok(Self { places, layout: at })
    }

    /// The number of the object at an address, which `field` gives of each cgroup.
    fn number(&self, address: u64, field: impl Fn(&Place) -> u64) -> Option<u32> {
        // They were laid out one after the other.
        let found = self.places.binary_search_by_key(&address, field);
        found.ok().map(|index| index as u32)
    }
}

/// The cgroups that a program sees below /sys/fs/cgroup: their paths, without a leading `/`, and
/// their numbers, which are the inodes of their directories.
#[must_use]
pub fn cgroups(declared: &[Cgroup]) -> Vec<(String, u64)> {
    let path = |cgroup: &Cgroup| cgroup.path.trim_start_matches('/').to_owned();
    let all = (1..).zip(declared);
    all.map(|(number, cgroup)| (path(cgroup), id_of(number)))
        .collect()
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn zeroed(memory: &mut Memory, size: u64) -> Result<u64, OutOfMemory> {
    let at = memory.alloc_kernel(size, 8)?;
    memory.write(at, &vec![0; size as usize]);
    Ok(at)
}

impl Mirror {
    /// Address of a cgroup.
    pub fn cgroup(&self, number: u32) -> u64 {
        self.cgroups.places[number as usize].cgroup
    }

    /// The cgroup at an address.
    pub fn cgroup_at(&self, address: u64) -> Option<u32> {
        self.cgroups.number(address, |place| place.cgroup)
    }

    /// `&cgroup->self` of a cgroup.
    pub fn cgroup_css(&self, number: u32) -> u64 {
        self.cgroup(number) + self.cgroups.layout.css_at
    }

    /// The cgroup whose own state lies at an address.
    pub fn cgroup_of_css(&self, address: u64) -> Option<u32> {
        self.cgroup_at(address.checked_sub(self.cgroups.layout.css_at)?)
    }

    /// Writes a cgroup's weight where programs find it.
    pub fn write_cgroup_weight(&self, vm: &mut Vm, number: u32, weight: u32) {
        if let Some((_, at)) = self.cgroups.layout.controller {
            let group = self.cgroups.places[number as usize].task_group;
            vm.memory().poke_u32(group + at, weight);
        }
    }

    /// `struct scx_cgroup_init_args`.
    pub fn cgroup_args(&self, vm: &mut Vm, weight: u32, max: Bandwidth) -> u64 {
        let (at, args) = (self.args_at, &self.args);
        let memory = vm.memory();
        memory.poke_u32(at + args.group_weight, weight);
        if let Some([period, quota, burst]) = args.group_bandwidth {
            memory.poke_u64(at + period, max.period_us);
            memory.poke_u64(at + quota, max.quota_us.unwrap_or(u64::MAX));
            memory.poke_u64(at + burst, max.burst_us);
        }
        at
    }
}

impl Machine {
    /// Writes which cgroup a task is in.
    pub(crate) fn mirror_cgroup(&self, vm: &mut Vm, id: TaskId) {
        let (task, cgroups) = (self.task(id), &self.mirror.cgroups);
        let set = cgroups.places[task.css_set as usize].css_set;
        let group = cgroups.places[task.cgroup as usize].task_group;
        let memory = vm.memory();
        memory.poke_u64(task.address + self.mirror.layout.cgroups, set);
        memory.poke_u64(task.address + cgroups.layout.sched_task_group_at, group);
    }
}
