//! Calls that wait in the middle while others go on.
//!
//! A *turn* is a piece of the host's work that may call programs, on a stack of its own. Where it
//! calls [`Instance::suspend`], it waits, and [`TurnStacks::begin`] or [`TurnStacks::resume`]
//! returns to whoever drives the turns. Host and instance are one, however many turns wait: their
//! contents are moved from stack to stack, so that each stack has a place of its own for them, and
//! one of these has the contents. A reference into them cannot live across a wait, because to wait
//! takes both of them mutably.
//!
//! Of an instance, each turn that waits keeps its calls ([`CallStack`]).

use std::alloc::{Layout, handle_alloc_error};
use std::any::Any;
use std::cell::Cell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::call_stack::CallStack;
use crate::host::Host;
use crate::instance::Instance;
use crate::memory::OutOfMemory;

/// Bytes of a turn's stack. Pages that nobody touches take none. Interpreted programs take the
/// most, in builds without optimisation: nested calls, in each a chain of some hundred functions.
const STACK_BYTES: usize = 4 << 20;

/// How a turn ended: a panic goes on in whoever drives it.
type Ended = Result<(), Box<dyn Any + Send>>;

type Turn<H> = Coroutine<Places<H>, (), Ended>;

/// Where whoever drives the turns has host and instance. While a turn goes on their contents are on
/// its stack, and nobody looks here.
struct Places<H: Host> {
    host: *mut H,
    vm: *mut Instance<H>,
}

impl<H: Host> Clone for Places<H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Host> Copy for Places<H> {}

/// How the turn that goes on gives them back. It lies on the turn's stack.
struct WayBack<H: Host> {
    yielder: NonNull<Yielder<Places<H>, ()>>,
    /// Those of who has resumed the turn last.
    places: Cell<Places<H>>,
}

impl<H: Host> WayBack<H> {
    /// Moves host and instance to whoever drives the turns, and here again when that resumes this
    /// one.
    fn wait(&self, host: &mut H, vm: &mut Instance<H>) {
        let unwinds = Abort;
        // SAFETY: Both sides are moved from before they are moved to, and whoever has references
        // to the places without contents waits meanwhile. The yielder lives as long as the turn. If
        // it unwound the process would end.
        unsafe {
            let there = self.places.get();
            ptr::copy_nonoverlapping(ptr::from_mut(host), there.host, 1);
            ptr::copy_nonoverlapping(ptr::from_mut(vm), there.vm, 1);
            let there = self.yielder.as_ref().suspend(());
            ptr::copy_nonoverlapping(there.host, ptr::from_mut(host), 1);
            ptr::copy_nonoverlapping(there.vm, ptr::from_mut(vm), 1);
            self.places.set(there);
        }
        mem::forget(unwinds);
    }
}

/// The turns of a host.
pub struct TurnStacks<H: Host + 'static> {
    /// By number; `None`: it has ended.
    turns: Vec<Option<Turn<H>>>,
    /// Stacks of turns that have ended.
    stacks: Vec<DefaultStack>,
}

impl<H: Host + 'static> TurnStacks<H> {
    /// Whether there are stacks to wait on.
    pub const EXIST: bool = true;

    /// No turns. Of those to come at most so many wait at a time.
    ///
    /// # Errors
    /// If there is no room for the stacks of so many programs.
    pub fn new(vm: &mut Instance<H>, most: usize) -> Result<Self, OutOfMemory> {
        let config = vm.config.clone();
        while vm.aside.spare.len() < most {
            let allowance = vm.stack.progress.fuel.cast_unsigned();
            let stack = CallStack::new(&mut vm.memory, &config, allowance)?;
            vm.aside.retired = vm.aside.retired.wrapping_add(stack.progress.retired());
            vm.aside.spare.push(stack);
        }
        Ok(Self {
            turns: Vec::new(),
            stacks: Vec::new(),
        })
    }

    /// Does `body` in a turn of this number, up to where it waits or ends. Whether it has ended.
    ///
    /// # Panics
    /// If a turn of this number waits, or if `body` panics.
    pub fn begin(
        &mut self,
        number: usize,
        (host, vm): (&mut H, &mut Instance<H>),
        body: impl FnOnce(&mut H, &mut Instance<H>) + 'static,
    ) -> bool {
        let stack = self.stacks.pop().unwrap_or_else(new_stack);
        let turn = Turn::with_stack(stack, |yielder, places: Places<H>| {
            // SAFETY: Whoever has the references waits in `go_on`.
            let mut host = unsafe { ptr::read(places.host) };
            // SAFETY: As the host.
            let mut vm = unsafe { ptr::read(places.vm) };
            let way = WayBack {
                yielder: NonNull::from(yielder),
                places: Cell::new(places),
            };
            vm.aside.set_way(Some(NonNull::from(&way).cast()));
            let ended = catch_unwind(AssertUnwindSafe(|| body(&mut host, &mut vm)));
            vm.aside.set_way(None);
            let places = way.places.get();
            // SAFETY: The places have no contents, and whoever looks at them again waits.
            unsafe {
                ptr::write(places.host, host);
                ptr::write(places.vm, vm);
            }
            ended
        });
        if number >= self.turns.len() {
            self.turns.resize_with(number + 1, || None);
        }
        assert!(self.turns[number].is_none(), "turn {number} waits");
        self.go_on(number, turn, (host, vm))
    }

    /// Lets the turn of this number go on, which waits. Whether it has ended.
    ///
    /// # Panics
    /// If it does not wait, or if it panics.
    pub fn resume(&mut self, number: usize, both: (&mut H, &mut Instance<H>)) -> bool {
        let turn = self.turns[number].take().expect("the turn waits");
        self.go_on(number, turn, both)
    }

    fn go_on(
        &mut self,
        number: usize,
        mut turn: Turn<H>,
        (host, vm): (&mut H, &mut Instance<H>),
    ) -> bool {
        let places = Places {
            host: ptr::from_mut(host),
            vm: ptr::from_mut(vm),
        };
        // If it unwound, the places would have no contents.
        let unwinds = Abort;
        let resumed = turn.resume(places);
        mem::forget(unwinds);
        let CoroutineResult::Return(ended) = resumed else {
            self.turns[number] = Some(turn);
            return false;
        };
        self.stacks.push(turn.into_stack());
        if let Err(panic) = ended {
            resume_unwind(panic);
        }
        vm.forget_removed();
        true
    }
}

impl<H: Host + 'static> Drop for TurnStacks<H> {
    /// Turns that wait have nowhere to go on: what they have is lost, and not torn down, because
    /// the contents are not theirs.
    fn drop(&mut self) {
        self.turns.drain(..).flatten().for_each(mem::forget);
    }
}

#[cold]
fn new_stack() -> DefaultStack {
    DefaultStack::new(STACK_BYTES).unwrap_or_else(|_| {
        let layout = Layout::from_size_align(STACK_BYTES, 4096);
        handle_alloc_error(layout.expect("a size that stacks have"))
    })
}

/// Ends the process when it is dropped.
struct Abort;

impl Drop for Abort {
    fn drop(&mut self) {
        std::process::abort();
    }
}

impl<H: Host + 'static> Instance<H> {
    /// Whether [`Instance::suspend`] would wait.
    #[must_use]
    pub const fn is_in_turn(&self) -> bool {
        self.aside.way().is_some()
    }

    /// Lets others go on until whoever drives the turns resumes this one. Does nothing outside of
    /// turns.
    ///
    /// # Panics
    /// If more turns wait than was said.
    pub fn suspend(&mut self, host: &mut H) {
        let Some(erased) = self.aside.way() else {
            return;
        };
        let way: NonNull<WayBack<H>> = erased.cast();
        self.aside.set_way(None);
        let spare = self.aside.spare.pop();
        let spare = spare.expect("as many turns wait as was said");
        let mine = self.exchange_stack(spare);
        self.aside.waiting += 1;
        // SAFETY: It is on the stack of this turn, which has not ended, and is what `begin` has put
        // there.
        let way = unsafe { way.as_ref() };
        way.wait(host, self);
        self.aside.waiting -= 1;
        let spare = self.exchange_stack(mine);
        self.aside.spare.push(spare);
        self.aside.set_way(Some(erased));
    }

    /// Goes on with other calls. What is left of the whole run's budget is left for them.
    fn exchange_stack(&mut self, stack: CallStack) -> CallStack {
        let left = self.stack.progress.total_left();
        let old = mem::replace(&mut self.stack, stack);
        let new = &mut self.stack.progress;
        new.total_end = new.retired().saturating_add(left);
        let more = old.progress.retired().wrapping_sub(new.retired());
        self.aside.retired = self.aside.retired.wrapping_add(more);
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::insn::{EXIT, add_register, call, load, store};
    use crate::scene::{SceneObject, SceneWorld};
    use crate::{CallCtx, Config, HostFunction, Stop};

    fn waits(ctx: &mut CallCtx<'_, SceneWorld>, _: [u64; 5]) -> Result<u64, Stop> {
        ctx.vm.suspend(ctx.host);
        Ok(0)
    }

    const WAITS: HostFunction<SceneWorld> = HostFunction {
        name: "waits",
        prototype: "void()",
        cost_ps: 0,
        body: Some(waits),
        direct: None,
    };

    /// Keeps its argument in a register and in its frame, waits, and returns both together.
    fn instance() -> Instance<SceneWorld> {
        let program = [
            load(6, 1, 0),
            store(10, -8, 6),
            call(0),
            load(0, 10, -8),
            add_register(0, 6),
            EXIT,
        ];
        let object = SceneObject::default()
            .function(&[&program])
            .import("waits", "void()");
        let config = Config {
            interleave: true,
            ..Config::default()
        };
        object.with(crate::Backend::Interpreter, &[WAITS], config)
    }

    /// A turn that says at its end what its program has returned.
    fn body(
        argument: u64,
        results: &std::rc::Rc<std::cell::RefCell<Vec<u64>>>,
    ) -> impl FnOnce(&mut SceneWorld, &mut Instance<SceneWorld>) + 'static {
        let results = std::rc::Rc::clone(results);
        move |host, vm| {
            let value = vm.call_program(0, &[argument], host).unwrap();
            results.borrow_mut().push(value);
        }
    }

    #[test]
    fn turns_go_on_in_any_order_with_their_own_frames_and_registers() {
        let (mut vm, mut host) = (instance(), SceneWorld::default());
        let results = std::rc::Rc::default();
        let mut turns = TurnStacks::new(&mut vm, 2).unwrap();
        assert!(!turns.begin(0, (&mut host, &mut vm), body(100, &results)));
        assert!(!turns.begin(1, (&mut host, &mut vm), body(7, &results)));
        assert!(vm.aside.any());
        assert!(turns.resume(0, (&mut host, &mut vm)));
        assert!(turns.resume(1, (&mut host, &mut vm)));
        assert_eq!(*results.borrow(), [200, 14]);
        assert_eq!(vm.retired_by_all(), 12, "six of each");
        assert!(!vm.is_in_turn() && !vm.aside.any());
    }

    #[test]
    fn outside_of_a_turn_nothing_waits() {
        let (mut vm, mut host) = (instance(), SceneWorld::default());
        assert_eq!(vm.call_program(0, &[4], &mut host), Ok(8));
    }

    #[test]
    fn a_panic_in_a_turn_goes_on_in_its_driver_and_host_and_instance_are_whole() {
        let (mut vm, mut host) = (instance(), SceneWorld::default());
        let mut turns = TurnStacks::new(&mut vm, 1).unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            turns.begin(0, (&mut host, &mut vm), |_, _| panic!("as asked"));
        }));
        assert!(panicked.is_err());
        assert_eq!(vm.call_program(0, &[4], &mut host), Ok(8));
    }

    #[test]
    fn turns_that_wait_for_ever_are_dropped_with_their_driver() {
        let (mut vm, mut host) = (instance(), SceneWorld::default());
        let results = std::rc::Rc::default();
        let mut turns = TurnStacks::new(&mut vm, 1).unwrap();
        assert!(!turns.begin(0, (&mut host, &mut vm), body(1, &results)));
        drop(turns);
        assert!(results.borrow().is_empty());
    }
}
