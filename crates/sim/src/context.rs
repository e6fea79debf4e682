//! What the callbacks being executed are, as the checks of the kernel's functions need it.

use model::{CpuId, TaskId};

use crate::schedulers::SchedId;

/// What a callback is being executed, as the checks of the kernel's functions need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// Where its calls are allowed ([`kf`]), the enclosing callbacks' included.
    pub mask: u32,
    /// The CPU whose run queue is locked.
    pub locked: Locked,
    /// The task that the callback is about, or [`TaskId::NONE`].
    pub subject: TaskId,
    /// Whether it can dispatch its subject directly.
    pub direct: Directly,
    /// Whether the task that executes it cannot migrate meanwhile.
    pub guards: bool,
}

/// The CPU whose run queue is locked, if one is: in the two bytes that a CPU's number has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Locked(CpuId);

impl Locked {
    /// No run queue is locked. There is no CPU of this number.
    pub const NONE: Self = Self(CpuId(u16::MAX));

    /// That of `cpu`, if there is one.
    #[inline(always)]
    pub fn of(cpu: Option<CpuId>) -> Self {
        cpu.map_or(Self::NONE, Self)
    }

    /// Whose.
    #[inline]
    pub fn cpu(self) -> Option<CpuId> {
        (self != Self::NONE).then_some(self.0)
    }
}

/// Whether a callback can dispatch its subject directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Directly {
    /// No callback of that kind.
    Never,
    /// It can.
    Once,
    /// It did.
    Done,
}

/// The contexts of the callbacks being executed. Nearly always there is one, so it has a place of
/// its own.
#[derive(Clone)]
pub(crate) struct Contexts {
    innermost: Context,
    /// Whose callback it is. Outside of callbacks, and in each one that
    /// [`Contexts::enter_first`] enters, the root's.
    sched: SchedId,
    /// Those around it, outermost first.
    outer: Vec<(Context, SchedId)>,
    /// How many there are, [`ONE`] for each, and in the lowest bits a [`Beside`]: one test says
    /// whether a call is as nearly all are.
    state: u32,
}

/// A context in [`Contexts::state`].
const ONE: u32 = 4;

/// What there is to do beside a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    /// Nothing but to count it.
    Nothing = 0,
    /// It costs time.
    Charge = 1,
    /// It is recorded, counted by kind or has decisions told of it, and may cost time.
    Note = 2,
}

impl Contexts {
    /// Outside of callbacks.
    const NONE: Context = Context {
        mask: 0,
        locked: Locked::NONE,
        subject: TaskId::NONE,
        direct: Directly::Never,
        guards: false,
    };

    /// No callback is executed. `are_noted`: somebody wants to know more of a call than that it was
    /// made. `are_priced`: it costs time.
    pub const fn new(are_noted: bool, are_priced: bool) -> Self {
        let beside = match (are_noted, are_priced) {
            (true, _) => Beside::Note,
            (false, true) => Beside::Charge,
            (false, false) => Beside::Nothing,
        };
        Self {
            innermost: Self::NONE,
            sched: SchedId::ROOT,
            outer: Vec::new(),
            state: beside as u32,
        }
    }

    /// No callback is executed, of which as much would be noted as of these.
    pub const fn another(&self) -> Self {
        Self {
            innermost: Self::NONE,
            sched: SchedId::ROOT,
            outer: Vec::new(),
            state: self.beside(),
        }
    }

    /// From now on no call is quick: there are several schedulers, and each call names its own.
    pub const fn note_all(&mut self) {
        self.state += Beside::Note as u32 - self.beside();
    }

    /// How many there are.
    #[inline]
    pub const fn depth(&self) -> u32 {
        self.state / ONE
    }

    /// The number of a [`Beside`].
    const fn beside(&self) -> u32 {
        self.state % ONE
    }

    /// Whether calls are noted or charged for.
    pub const fn are_noted(&self) -> bool {
        self.beside() != Beside::Nothing as u32
    }

    /// Whether a call is an outermost one that is charged for, and nothing else.
    #[inline(always)]
    pub const fn are_only_priced(&self) -> bool {
        self.state == Beside::Charge as u32
    }

    /// Whether a call is an outermost one of which nothing is to be noted.
    #[inline(always)]
    pub const fn are_quick(&self) -> bool {
        self.state == Beside::Nothing as u32
    }

    /// The innermost one; outside of callbacks one in which nothing is allowed.
    #[inline]
    pub const fn innermost(&self) -> &Context {
        &self.innermost
    }

    /// The scheduler whose callback is executed; outside of callbacks the root.
    #[inline]
    pub const fn scheduler(&self) -> SchedId {
        self.sched
    }

    /// The innermost one, to change.
    #[inline]
    pub const fn innermost_mut(&mut self) -> &mut Context {
        &mut self.innermost
    }

    /// Whether any of them holds the lock of `cpu`.
    pub fn hold_lock_of(&self, cpu: CpuId) -> bool {
        let outer = self.outer.iter().map(|(context, _)| context);
        let all = outer.chain([&self.innermost]);
        all.into_iter().any(|context| context.locked == Locked(cpu))
    }

    /// How many callbacks keep the task that executes them from migrating.
    #[inline]
    pub fn guards(&self) -> u16 {
        let mut guards = u16::from(self.innermost.guards);
        if self.depth() > 1 {
            let outer = self.outer.iter();
            guards += outer.filter(|(context, _)| context.guards).count() as u16;
        }
        guards
    }

    /// Enters the context of a program of the scheduler whose program executes already, or of the
    /// root.
    #[inline]
    pub fn enter(&mut self, context: Context) {
        self.enter_of(self.sched, context);
    }

    /// Enters the context of a program of `sched`.
    #[inline]
    pub fn enter_of(&mut self, sched: SchedId, context: Context) {
        if self.depth() > 0 {
            self.outer.push((self.innermost, self.sched));
        }
        self.state += ONE;
        (self.innermost, self.sched) = (context, sched);
    }

    /// Enters the context of a callback of the root's that no other one encloses.
    #[inline(always)]
    pub fn enter_first(&mut self, context: Context) {
        debug_assert!(self.are_quick(), "a callback is being executed");
        self.state = ONE;
        self.innermost = context;
    }

    /// Undoes [`Contexts::enter_first`].
    #[inline(always)]
    pub fn leave_first(&mut self) {
        debug_assert_eq!(self.depth(), 1, "a callback has left another one's context");
        self.state -= ONE;
        self.innermost = Self::NONE;
    }

    #[inline]
    pub fn leave(&mut self) {
        self.state -= ONE;
        if self.depth() == 0 {
            (self.innermost, self.sched) = (Self::NONE, SchedId::ROOT);
        } else {
            self.leave_nested();
        }
    }

    #[cold]
    fn leave_nested(&mut self) {
        let outer = self.outer.pop();
        (self.innermost, self.sched) = outer.expect("every outer context is kept");
    }
}
