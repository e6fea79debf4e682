//! Where the fields of mirrored objects lie.

use bpf::{LoadError, Target};

/// Offsets of the fields that the machine keeps up to date.
pub(super) struct Layout {
    pub task_size: u64,
    pub cpus_ptr: u64,
    pub cpus_mask: u64,
    pub slice: u64,
    pub vtime: u64,
    pub disallow: u64,
    pub weight: u64,
    pub scx_flags: u64,
    pub runnable_at: u64,
    pub pid: u64,
    pub tgid: u64,
    pub flags: u64,
    pub nr_cpus_allowed: u64,
    pub migration_disabled: u64,
    pub wake_cpu: u64,
    pub thread_cpu: u64,
    pub state: u64,
    pub prio: u64,
    pub static_prio: u64,
    pub normal_prio: u64,
    pub rt_priority: u64,
    pub policy: u64,
    pub sum_exec: u64,
    pub utime: u64,
    pub start_time: u64,
    pub start_boottime: u64,
    pub comm: u64,
    pub real_parent: u64,
    pub parent: u64,
    pub group_leader: u64,
    pub cgroups: u64,
    pub mm: u64,
    pub rq_size: u64,
    pub rq_cpu: u64,
    pub rq_curr: u64,
    pub rq_idle: u64,
}

impl Layout {
    pub fn of(target: &Target) -> Result<Self, LoadError> {
        let at = |structure, path| {
            target
                .field(structure, path)
                .map(|field| u64::from(field.offset))
        };
        let task = |path| at("task_struct", path);
        Ok(Self {
            task_size: u64::from(target.size_of("task_struct")?).next_multiple_of(8),
            cpus_ptr: task("cpus_ptr")?,
            cpus_mask: task("cpus_mask")?,
            slice: task("scx.slice")?,
            vtime: task("scx.dsq_vtime")?,
            disallow: task("scx.disallow")?,
            weight: task("scx.weight")?,
            scx_flags: task("scx.flags")?,
            runnable_at: task("scx.runnable_at")?,
            pid: task("pid")?,
            tgid: task("tgid")?,
            flags: task("flags")?,
            nr_cpus_allowed: task("nr_cpus_allowed")?,
            migration_disabled: task("migration_disabled")?,
            wake_cpu: task("wake_cpu")?,
            thread_cpu: task("thread_info.cpu")?,
            state: task("__state")?,
            prio: task("prio")?,
            static_prio: task("static_prio")?,
            normal_prio: task("normal_prio")?,
            rt_priority: task("rt_priority")?,
            policy: task("policy")?,
            sum_exec: task("se.sum_exec_runtime")?,
            utime: task("utime")?,
            start_time: task("start_time")?,
            start_boottime: task("start_boottime")?,
            comm: task("comm")?,
            real_parent: task("real_parent")?,
            parent: task("parent")?,
            group_leader: task("group_leader")?,
            cgroups: task("cgroups")?,
            mm: task("mm")?,
            rq_size: u64::from(target.size_of("rq")?).next_multiple_of(8),
            rq_cpu: at("rq", "cpu")?,
            rq_curr: at("rq", "curr")?,
            rq_idle: at("rq", "idle")?,
        })
    }
}

/// Offsets of the arguments that callbacks get by pointer.
pub(super) struct ArgLayout {
    pub release_reason: u64,
    pub release_task: u64,
    pub init_fork: u64,
    pub init_cgroup: u64,
    pub exit_cancelled: u64,
    pub group_weight: u64,
    pub group_period: u64,
    pub group_quota: u64,
    pub group_burst: u64,
    pub info_kind: u64,
    pub info_code: u64,
    pub info_reason: u64,
    pub info_msg: u64,
    pub info_dump: u64,
}

impl ArgLayout {
    pub fn of(target: &Target) -> Result<Self, LoadError> {
        let at = |structure, path| {
            target
                .field(structure, path)
                .map(|field| u64::from(field.offset))
        };
        Ok(Self {
            release_reason: at("scx_cpu_release_args", "reason")?,
            release_task: at("scx_cpu_release_args", "task")?,
            init_fork: at("scx_init_task_args", "fork")?,
            init_cgroup: at("scx_init_task_args", "cgroup")?,
            exit_cancelled: at("scx_exit_task_args", "cancelled")?,
            group_weight: at("scx_cgroup_init_args", "weight")?,
            group_period: at("scx_cgroup_init_args", "bw_period_us")?,
            group_quota: at("scx_cgroup_init_args", "bw_quota_us")?,
            group_burst: at("scx_cgroup_init_args", "bw_burst_us")?,
            info_kind: at("scx_exit_info", "kind")?,
            info_code: at("scx_exit_info", "exit_code")?,
            info_reason: at("scx_exit_info", "reason")?,
            info_msg: at("scx_exit_info", "msg")?,
            info_dump: at("scx_exit_info", "dump")?,
        })
    }
}
