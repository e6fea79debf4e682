//! Calls in progress, one in the other, and what they have.

use crate::config::Config;
use crate::frame::{FRAME_BYTES, Frame, MAX_FRAMES};
use crate::memory::{Memory, OutOfMemory};
use crate::progress::Progress;
use crate::stop::Fault;

/// Calls of programs through the host on top of each other, beyond the outermost.
pub(crate) const MAX_NESTED: u32 = 8;

/// Words of a nested call's context: the arguments, and behind them a key for callbacks.
pub(crate) const CONTEXT_WORDS: u64 = 16;

/// All that an instance keeps for the calls in progress, and nothing else of it. Programs and maps
/// know nothing of it: with another stack in its place, another outermost call can be made, and
/// these calls go on when theirs is back.
#[derive(Clone, Debug)]
pub(crate) struct CallStack {
    pub(crate) progress: Progress,
    /// Calls in progress. Only `instance::inside` changes it.
    pub(crate) depth: u32,
    /// Whether the outermost call runs on a native stack with room enough for native code. True
    /// between calls.
    pub(crate) roomy: bool,
    /// Context arrays of nested calls, in the read-only half.
    pub(crate) contexts: u64,
    /// Where the first of them lies in this process.
    pub(crate) contexts_at: u64,
    /// Where the frames of programs begin and end.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Callers of the functions that run now, of all nested calls.
    pub(crate) frames: Vec<Frame>,
    /// [`crate::Instance::retired`] and [`crate::Instance::charged`] when the spin lock that is
    /// held was taken.
    pub(crate) locked_at: (u64, u64),
    /// Where the innermost of nested calls failed.
    pub(crate) innermost: Option<Fault>,
}

impl CallStack {
    /// No call, and room in `memory` for as many as can be. The first outermost one may spend
    /// `allowance`.
    pub(crate) fn new(
        memory: &mut Memory,
        config: &Config,
        allowance: u64,
    ) -> Result<Self, OutOfMemory> {
        let bytes = u64::from(config.stack_bytes);
        let start = memory.alloc_map(bytes)?;
        let context_bytes = u64::from(MAX_NESTED + 1) * 8 * CONTEXT_WORDS;
        let contexts = memory.alloc_kernel(context_bytes, 64)?;
        let mut progress = Progress {
            frame: start,
            total_end: config.total_budget.unwrap_or(u64::MAX),
            ..Progress::default()
        };
        progress.refuel(allowance);
        Ok(Self {
            progress,
            depth: 0,
            roomy: true,
            contexts,
            contexts_at: memory.host_address(contexts),
            start,
            end: start + bytes,
            frames: Vec::new(),
            locked_at: (0, 0),
            innermost: None,
        })
    }

    /// Whether `address` lies in the frames or the arguments of these calls, which others have not.
    pub(crate) fn has(&self, address: u64) -> bool {
        let arguments = u64::from(MAX_NESTED + 1) * 8 * CONTEXT_WORDS;
        (self.start..self.end).contains(&address) || address.wrapping_sub(self.contexts) < arguments
    }

    /// Where the first frame of the call begins that has just been counted in.
    pub(crate) fn first_frame(&self) -> u64 {
        match self.depth {
            0 | 1 => self.start,
            _ => self.progress.frame + FRAME_BYTES,
        }
    }

    /// The greatest frame pointer with which a function of this call may call another: by depth,
    /// and by stack.
    pub(crate) fn frame_limit(&self) -> u64 {
        let deepest = self.first_frame() + FRAME_BYTES * (MAX_FRAMES as u64 - 1);
        deepest.min(self.end.saturating_sub(FRAME_BYTES))
    }

    /// The context array of the next call.
    pub(crate) fn context(&self) -> u64 {
        self.contexts + u64::from(self.depth.min(MAX_NESTED)) * 8 * CONTEXT_WORDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::insn::{EXIT, add, add_register, call, load, store};
    use crate::scene::{SceneObject, SceneWorld};
    use crate::{Backend, CallCtx, HostFunction, Stop};

    /// Makes another outermost call while the calls in progress are aside.
    fn calls_another(ctx: &mut CallCtx<'_, SceneWorld>, _: [u64; 5]) -> Result<u64, Stop> {
        let config = ctx.vm.config.clone();
        let stack = CallStack::new(&mut ctx.vm.memory, &config, config.budget);
        let mut stack = stack.expect("there is room for another stack");
        std::mem::swap(&mut ctx.vm.stack, &mut stack);
        let value = ctx.vm.call_program(1, &[40], ctx.host);
        assert_eq!(ctx.vm.retired(), 5, "its own instructions alone");
        std::mem::swap(&mut ctx.vm.stack, &mut stack);
        Ok(value?)
    }

    #[test]
    fn calls_that_were_put_aside_have_their_frames_registers_arguments_and_counts() {
        let table = [HostFunction {
            name: "another",
            prototype: "void()",
            cost_ps: 0,
            body: Some(calls_another),
            direct: None,
        }];
        // Both keep their argument in a register, and in the first word of their frames.
        let keep = [load(6, 1, 0), store(10, -8, 6)];
        let outer = [
            call(0),
            add_register(0, 6),
            load(7, 10, -8),
            add_register(0, 7),
            EXIT,
        ];
        let object = SceneObject::default()
            .function(&[&keep, &outer])
            .function(&[&keep, &[load(0, 10, -8), add(0, 2), EXIT]])
            .import("another", "void()");
        let mut vm = object.with(Backend::Interpreter, &table, Config::default());
        for call in 1..=2 {
            let value = vm.call_program(0, &[100], &mut SceneWorld::default());
            assert_eq!(value, Ok(40 + 2 + 100 + 100));
            assert_eq!(vm.retired(), 7 * call, "no instruction of another stack");
        }
    }
}
