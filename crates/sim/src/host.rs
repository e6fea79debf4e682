//! What the object machine asks of the simulated one.

use bpf::{Access, Host, Instance, Memory, Stop};
use model::TaskId;

use crate::interleave::state::LockKey;
use crate::machine::Machine;
use crate::task::{RunState, Task};

impl Host for Machine {
    fn cpu(&self) -> u32 {
        u32::from(self.turn.exec.0)
    }

    fn now_ns(&self) -> u64 {
        self.clock_ns()
    }

    fn clock_within(&mut self, vm: &Instance<Self>) -> u64 {
        self.moving_clock_ns(vm)
    }

    fn clock_functions() -> &'static [&'static str] {
        &["scx_bpf_now"]
    }

    fn random_u32(&mut self) -> u32 {
        (self.rng.next_u64() >> 32) as u32
    }

    fn current_task(&self) -> u64 {
        self.current_address()
    }

    fn current_comm(&self) -> u64 {
        self.comm_address()
    }

    fn node(&self) -> u32 {
        self.idle.topology().node_of(self.turn.exec).into()
    }

    fn current_pid_tgid(&self) -> u64 {
        let ids = |id: TaskId| (self.task(id).tgid, self.task(id).pid);
        let (tgid, pid) = self.current().map_or((0, 0), ids);
        u64::from(tgid) << 32 | u64::from(pid)
    }

    fn store_protected(
        &mut self,
        memory: &mut Memory,
        address: u64,
        size: u8,
        value: u64,
    ) -> Result<(), Stop> {
        if self.store_task_field(memory, address, size, value) {
            return Ok(());
        }
        if self.is_cid_form() && self.is_open_field(memory, address, size) {
            let what = "a policy in cid form does not write the slice or the dsq_vtime of a task; \
                        it calls scx_bpf_task_set_slice() or scx_bpf_task_set_dsq_vtime()";
            return Err(Stop::Refused(what.to_owned()));
        }
        Err(Stop::WildStore { address, size })
    }

    fn stores_at(&mut self, here: u32) {
        self.turn.decisions.set_place(here);
    }

    #[inline(always)]
    fn word_stored(&mut self, memory: &mut Memory, address: u64) {
        self.task_word_stored(memory, address);
    }

    fn timer_start(&mut self, timer: u64, expires_ns: u64, absolute: bool, _pinned: bool) {
        self.arm_bpf_timer(timer, expires_ns, absolute);
    }

    fn timer_cancel(&mut self, timer: u64) -> bool {
        self.timers.cancel(timer)
    }

    fn spin_lock_held(&mut self, address: u64, instructions: u64, charged_ps: u64) {
        self.hold_spin_lock(address, instructions, charged_ps);
    }

    fn at_point(&mut self, vm: &mut Instance<Self>, access: &Access) {
        self.pass_point(vm, access);
    }

    fn wait_for_spin_lock(&mut self, vm: &mut Instance<Self>, address: u64) {
        self.lock(vm, LockKey::Spin(address));
    }

    fn wait_for_resilient_lock(&mut self, vm: &mut Instance<Self>, address: u64) -> bool {
        self.lock_without_deadlock(vm, LockKey::Spin(address))
    }

    fn spin_lock_released(&mut self, address: u64) {
        if self.interleaves() {
            self.unlock(LockKey::Spin(address));
        }
    }

    fn release(&mut self, memory: &mut Memory, address: u64) {
        if !self.release_mask(memory, address)
            && let Some(id) = self.task_at(memory, address)
        {
            self.release_task(memory, id);
        }
    }

    /// Tasks by their process numbers (`task_seq_get_next()`, kernel 6.18,
    /// `kernel/bpf/task_iter.c`).
    fn visited(&self, what: &str) -> Vec<u64> {
        if what != "task" {
            return Vec::new();
        }
        let lives = |task: &&Task| task.address != 0 && task.state != RunState::Dead;
        let mut tasks: Vec<_> = self.tasks.iter().filter(lives).collect();
        tasks.sort_by_key(|task| task.pid);
        tasks.iter().map(|task| task.address).collect()
    }

    fn print(&mut self, text: &str) {
        self.log.print(text);
    }
}
