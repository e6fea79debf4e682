//! An image made ready to run, with its memory: its state.
//!
//! `instance/create.rs` makes one, and `instance/template.rs` any number of the same image,
//! `instance/call.rs` runs its programs, which are entered and left by what `instance/inside.rs`
//! has, `instance/grow.rs` adds to it what user space loads.

mod call;
mod copy;
mod create;
mod grow;
mod heat;
mod inside;
mod template;

pub use call::{Prepared, Unfinished};
pub(crate) use grow::Piece;
pub use template::Template;

use std::sync::Arc;

use crate::Image;
use crate::aside::Aside;
use crate::backend::{Execution, Refusal};
use crate::call_stack::CallStack;
use crate::config::Config;
use crate::faults::Faults;
use crate::host::{Binding, Host};
use crate::interp::cell::Cells;
use crate::isa::TO_USER;
use crate::jit;
use crate::map::Maps;
use crate::map::hash::Removed;
use crate::memory::Memory;
use crate::objects::Objects;
use crate::op::Code;
use crate::stop::Stop;
use crate::streams::Streams;
use crate::timer::Timers;
use crate::uncast::UncastAccess;
use crate::variables::Variables;
use heat::Heat;
use template::CommonCode;

/// The greatest budget that is told from none: differences of counts fit into a signed word.
const MOST_BUDGET: u64 = 1 << 62;

/// An [`Image`] made ready to run. Its addresses, counts and results depend on nothing but the
/// image, the configuration and what the host does.
#[derive(Debug)]
pub struct Instance<H: Host> {
    pub(crate) memory: Memory,
    pub(crate) maps: Maps,
    pub(crate) timers: Timers,
    pub(crate) objects: Objects,
    pub(crate) variables: Variables,
    /// What programs have printed for user space.
    pub(crate) streams: Streams,
    /// Accesses to pages of the arena that were not there.
    pub(crate) faults: Faults,
    pub(crate) code: Arc<Code>,
    /// The code as the interpreter executes it; made when it is first wanted.
    cells: Option<Arc<Cells<H>>>,
    /// The same again, for an outermost call to borrow: to count references anew takes as long as
    /// to interpret some instructions.
    spare_cells: Option<Arc<Cells<H>>>,
    /// What other instances of the image have made of its code.
    common: Arc<CommonCode<H>>,
    pub(crate) image: Arc<Image>,
    pub(crate) bindings: Vec<Binding<H>>,
    pub(crate) config: Config,
    /// Calls in progress, and what they have.
    pub(crate) stack: CallStack,
    /// Elements that left their maps and may still be looked at.
    removed: Vec<Removed>,
    /// Calls that wait while others go on; see `turns.rs`.
    pub(crate) aside: Aside,
    /// What native code needs while it runs.
    pub(crate) scratch: jit::Scratch,
    /// Native code, if it was made.
    pub(crate) native: Option<Arc<jit::NativeProgram>>,
    /// How an outermost call of each function begins; nothing as long as there is no native code.
    entries: Box<[jit::ProgramEntry]>,
    /// What the next outermost call may spend: the configured budget, as far as it can be told
    /// from none, or what is left of the whole run's.
    allowance: u64,
    /// Why there is none, if it was tried.
    refusal: Option<Refusal>,
    /// Whether and when native code is worth it.
    heat: Heat,
}

impl<H: Host> Instance<H> {
    /// Back end that executes the programs at this time.
    #[must_use]
    pub fn execution(&self) -> Execution {
        match (&self.native, &self.refusal) {
            (Some(program), _) => program.size(),
            (None, Some(refusal)) => Execution::Refused(refusal.clone()),
            (None, None) => Execution::Interpreted,
        }
    }

    /// The image that was loaded.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// [`Image::uncast_accesses`] of the image, which instances of one template find once.
    #[must_use]
    pub fn uncast_accesses(&self) -> Arc<[UncastAccess]> {
        self.common.uncast(&self.image)
    }

    /// The memory, to mirror kernel objects in.
    #[inline]
    pub const fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// CPUs of the machine.
    #[must_use]
    pub const fn cpus(&self) -> u32 {
        self.config.cpus
    }

    /// Instructions retired since the instance was created. See `instance/call.rs` about counting.
    #[inline]
    #[must_use]
    pub const fn retired(&self) -> u64 {
        self.stack.progress.retired()
    }

    /// As [`Instance::retired`], those of calls that wait included.
    #[inline]
    #[must_use]
    pub const fn retired_by_all(&self) -> u64 {
        self.stack
            .progress
            .retired()
            .wrapping_add(self.aside.retired())
    }

    /// How often each function of the host was called, by name. Complete only with
    /// [`Config::tally`]: back ends have some of them built in otherwise.
    pub fn calls(&self) -> impl Iterator<Item = (&str, u64)> {
        let names = self.image.imports.iter().map(|import| &*import.name);
        names.zip(self.bindings.iter().map(|binding| binding.calls))
    }

    /// Cost of the calls of host functions beyond their instructions, picoseconds.
    #[inline]
    #[must_use]
    pub const fn charged(&self) -> u64 {
        self.stack.progress.charged_ps
    }

    /// A host function costs more than its table says, by `cost_ps` picoseconds.
    #[inline]
    pub const fn charge(&mut self, cost_ps: u64) {
        self.stack.progress.charged_ps += cost_ps;
    }

    /// Instructions that an outermost call may retire.
    #[must_use]
    pub const fn budget(&self) -> u64 {
        self.config.budget
    }

    /// A function handled `bytes` bytes for a program, or looked at so many. Its call counts as
    /// one instruction, but the budget shrinks with the work, so that no program runs for ever
    /// inside functions of the kernel. A host calls this for all that a program can make grow.
    #[inline]
    pub const fn spend(&mut self, bytes: u64) {
        self.stack.progress.spend(bytes / 8);
    }

    /// An outermost call has ended, and the next one has its budget.
    #[inline]
    fn account(&mut self) {
        if self.stack.progress.exceeds_total() {
            self.tighten();
        }
    }

    /// The next outermost call gets no more than what is left.
    #[cold]
    fn tighten(&mut self) {
        self.allowance = self.stack.progress.total_left();
        self.stack.progress.refuel(self.allowance);
    }

    /// Why a program stops that has no budget left.
    pub(crate) fn budget_stop(&self) -> Stop {
        let Config {
            budget,
            total_budget,
            ..
        } = self.config;
        match total_budget {
            Some(total) if self.allowance < budget.min(MOST_BUDGET) => {
                Stop::TotalBudget { budget: total }
            }
            _ => Stop::Budget { budget },
        }
    }

    pub(crate) const fn stack_bytes(&self) -> u32 {
        self.config.stack_bytes
    }

    /// The code as the interpreter executes it, apart from the instance; `None` if it is still to
    /// be made.
    #[inline]
    pub(crate) fn lend_cells(&mut self) -> Option<Arc<Cells<H>>> {
        let spare = self.spare_cells.take();
        spare.or_else(|| self.cells.clone())
    }

    /// The code as the interpreter executes it was made.
    pub(crate) fn keep_cells(&mut self, cells: &Arc<Cells<H>>) {
        self.common.keep_cells(&self.code, cells);
        self.cells = Some(Arc::clone(cells));
    }

    /// Gives back what [`Instance::lend_cells`] gave.
    #[inline]
    pub(crate) fn take_cells_back(&mut self, cells: Arc<Cells<H>>) {
        self.spare_cells = Some(cells);
    }

    /// There is more code than before.
    fn forget_cells(&mut self) {
        self.cells = None;
        self.spare_cells = None;
    }

    /// The import that is the helper `number`.
    pub(crate) fn helper(&self, number: u64) -> Result<usize, Stop> {
        let wanted = u32::try_from(number).ok();
        let found = self
            .image
            .imports
            .iter()
            .position(|import| import.helper.is_some() && import.helper == wanted);
        found.ok_or_else(|| Stop::Poison(format!("the object declares no helper {number}")))
    }

    /// `addr_space_cast`: to what programs can follow, or with [`TO_USER`] to what user space can.
    /// The low 32 bits are the same for both.
    #[inline]
    pub(crate) fn cast_arena(&self, value: u64, imm: i64) -> u64 {
        let low = value & u64::from(u32::MAX);
        match self.memory.arena() {
            Some(pages) if low != 0 && imm == TO_USER => pages.user() | low,
            Some(pages) if low != 0 => pages.base() | low,
            _ => low,
        }
    }
}

/// Every test runs on both back ends.
#[cfg(test)]
#[path = "instance"]
mod interpreted {
    const BACKEND: crate::Backend = crate::Backend::Interpreter;

    #[path = "tests.rs"]
    mod tests;

    #[path = "limits_tests.rs"]
    mod limits_tests;

    #[path = "arena_tests.rs"]
    mod arena_tests;

    #[path = "maps_tests.rs"]
    mod maps_tests;
}

#[cfg(all(test, feature = "jit"))]
#[path = "instance"]
mod native {
    const BACKEND: crate::Backend = crate::Backend::Jit;

    #[expect(clippy::duplicate_mod, reason = "the same tests with another back end")]
    #[path = "tests.rs"]
    mod tests;

    #[expect(clippy::duplicate_mod, reason = "the same tests with another back end")]
    #[path = "limits_tests.rs"]
    mod limits_tests;

    #[expect(clippy::duplicate_mod, reason = "the same tests with another back end")]
    #[path = "arena_tests.rs"]
    mod arena_tests;

    #[expect(clippy::duplicate_mod, reason = "the same tests with another back end")]
    #[path = "maps_tests.rs"]
    mod maps_tests;
}
