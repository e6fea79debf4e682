//! Where the fields of mirrored objects lie.

use bpf::{FieldRead, LoadError, Target};

use super::cgroups::CgroupLayout;
use super::seen::Seen;

/// Where the fields of all mirrored objects lie, and which of them an object's programs can see.
#[derive(Clone, Copy)]
pub(crate) struct Layouts {
    pub(super) layout: Layout,
    pub(super) args: ArgLayout,
    pub(super) cgroups: CgroupLayout,
    pub(super) seen: Seen,
}

impl Layouts {
    /// Those of `target`, for an object with these `reads`.
    pub fn of(target: &Target, reads: &[FieldRead]) -> Result<Self, LoadError> {
        Ok(Self {
            layout: Layout::of(target)?,
            args: ArgLayout::of(target)?,
            cgroups: CgroupLayout::of(target)?,
            seen: Seen::of(target, reads)?,
        })
    }
}

/// Offsets of the fields that the machine keeps up to date.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub task_size: u64,
    /// Where the machine keeps a task's number: in bytes that no field has.
    pub number: u64,
    /// Fields that change with every turn.
    pub turn: Turn,
    pub cpus_ptr: u64,
    pub cpus_mask: u64,
    pub slice: u64,
    pub vtime: u64,
    pub disallow: u64,
    /// Since 7.2.
    pub tid: Option<u64>,
    pub weight: u64,
    pub pid: u64,
    pub tgid: u64,
    pub flags: u64,
    pub nr_cpus_allowed: u64,
    pub thread_cpu: u64,
    pub prio: u64,
    pub static_prio: u64,
    pub normal_prio: u64,
    pub rt_priority: u64,
    pub policy: u64,
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
    /// `clock`, `clock_task`, `clock_pelt`.
    pub rq_clocks: [u64; 3],
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
            number: task("thread_info.cpu")? + 4,
            turn: Turn::of(target)?,
            cpus_ptr: task("cpus_ptr")?,
            cpus_mask: task("cpus_mask")?,
            slice: task("scx.slice")?,
            vtime: task("scx.dsq_vtime")?,
            disallow: task("scx.disallow")?,
            tid: task("scx.tid").ok(),
            weight: task("scx.weight")?,
            pid: task("pid")?,
            tgid: task("tgid")?,
            flags: task("flags")?,
            nr_cpus_allowed: task("nr_cpus_allowed")?,
            thread_cpu: task("thread_info.cpu")?,
            prio: task("prio")?,
            static_prio: task("static_prio")?,
            normal_prio: task("normal_prio")?,
            rt_priority: task("rt_priority")?,
            policy: task("policy")?,
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
            rq_clocks: [
                at("rq", "clock")?,
                at("rq", "clock_task")?,
                at("rq", "clock_pelt")?,
            ],
        })
    }
}

/// Bytes at the begin of a task in which all lies that changes with every turn: a power of two, so
/// that the compiler sees without a test that a place is among them.
pub(super) const TURN_BYTES: usize = 512;

/// Places of what changes with every turn, in words of the fields' own sizes.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub slice: Word<8>,
    pub vtime: Word<8>,
    pub sum_exec: Word<8>,
    pub utime: Word<8>,
    pub runnable_at: Word<8>,
    pub scx_flags: Word<4>,
    pub wake_cpu: Word<4>,
    pub thread_cpu: Word<4>,
    pub state: Word<4>,
    pub migration_disabled: Word<2>,
}

impl Turn {
    fn of(target: &Target) -> Result<Self, LoadError> {
        Ok(Self {
            slice: Word::of(target, "scx.slice")?,
            vtime: Word::of(target, "scx.dsq_vtime")?,
            sum_exec: Word::of(target, "se.sum_exec_runtime")?,
            utime: Word::of(target, "utime")?,
            runnable_at: Word::of(target, "scx.runnable_at")?,
            scx_flags: Word::of(target, "scx.flags")?,
            wake_cpu: Word::of(target, "wake_cpu")?,
            thread_cpu: Word::of(target, "thread_info.cpu")?,
            state: Word::of(target, "__state")?,
            migration_disabled: Word::of(target, "migration_disabled")?,
        })
    }
}

/// The place of a field of `N` bytes among the first [`TURN_BYTES`] of a task: so near that the
/// compiler needs no test to see that it lies in them.
#[derive(Clone, Copy)]
pub(super) struct Word<const N: usize>(u8);

impl<const N: usize> Word<N> {
    /// # Panics
    /// If our own header has the field farther away.
    fn of(target: &Target, path: &str) -> Result<Self, LoadError> {
        let offset = target.field("task_struct", path)?.offset as usize;
        assert!(
            offset.is_multiple_of(N) && offset < TURN_BYTES,
            "`{path}` changes with every turn and lies {offset} bytes behind a task's begin"
        );
        Ok(Self((offset / N) as u8))
    }

    /// Bytes from the task's begin.
    #[inline]
    pub const fn offset(self) -> u64 {
        self.0 as u64 * N as u64
    }

    /// Writes the field.
    #[inline(always)]
    pub fn put(self, object: &mut [u8; TURN_BYTES], bytes: [u8; N]) {
        let (words, _) = object.as_chunks_mut::<N>();
        words[usize::from(self.0) % (TURN_BYTES / N)] = bytes;
    }
}

/// Offsets of the arguments that callbacks get by pointer.
#[derive(Clone, Copy)]
pub(super) struct ArgLayout {
    pub release_reason: u64,
    pub release_task: u64,
    pub init_fork: u64,
    pub init_cgroup: u64,
    pub exit_cancelled: u64,
    /// Since 7.1.
    pub sub: Option<SubArgs>,
    pub group_weight: u64,
    /// Period, quota, burst. Since 6.17.
    pub group_bandwidth: Option<[u64; 3]>,
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
            sub: SubArgs::of(target),
            group_weight: at("scx_cgroup_init_args", "weight")?,
            group_bandwidth: bandwidth(target),
            info_kind: at("scx_exit_info", "kind")?,
            info_code: at("scx_exit_info", "exit_code")?,
            info_reason: at("scx_exit_info", "reason")?,
            info_msg: at("scx_exit_info", "msg")?,
            info_dump: at("scx_exit_info", "dump")?,
        })
    }
}

/// What `ops.sub_attach()` gets: sizes and offsets.
#[derive(Clone, Copy)]
pub(super) struct SubArgs {
    pub args_size: u64,
    /// Pointers of the arguments.
    pub ops: u64,
    pub path: u64,
    pub ops_size: u64,
    /// Fields of the table of the scheduler below.
    pub cgroup: u64,
    pub name: u64,
    pub name_size: u64,
}

impl SubArgs {
    fn of(target: &Target) -> Option<Self> {
        let field = |structure, path| target.field(structure, path).ok();
        let at = |structure, path| field(structure, path).map(|it| u64::from(it.offset));
        let name = field("sched_ext_ops", "name")?;
        Some(Self {
            args_size: u64::from(target.size_of("scx_sub_attach_args").ok()?),
            ops: at("scx_sub_attach_args", "ops")?,
            path: at("scx_sub_attach_args", "cgroup_path")?,
            ops_size: u64::from(target.size_of("sched_ext_ops").ok()?),
            cgroup: at("sched_ext_ops", "sub_cgroup_id")?,
            name: u64::from(name.offset),
            name_size: u64::from(name.size),
        })
    }
}

/// Where `struct scx_cgroup_init_args` has a limit of time, if it has one.
fn bandwidth(target: &Target) -> Option<[u64; 3]> {
    let at = |path| target.field("scx_cgroup_init_args", path).ok();
    let [period, quota, burst] = ["bw_period_us", "bw_quota_us", "bw_burst_us"].map(at);
    Some([period?, quota?, burst?].map(|field| u64::from(field.offset)))
}
