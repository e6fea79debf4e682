//! Priorities as traces have them.

/// A priority as the kernel counts it, with what inheritance made of it: 0 to 99 real-time, 120 is
/// nice 0.
#[derive(Clone, Copy, Debug)]
pub struct Priority(pub Option<i16>);

impl Priority {
    /// The nice value of a task of this priority; 0 if it is real-time or not known.
    pub fn nice(self) -> i8 {
        let nice = self.0.filter(|prio| (100..140).contains(prio));
        nice.and_then(|prio| i8::try_from(prio - 120).ok())
            .unwrap_or(0)
    }

    /// The real-time priority, 1 to 99, 99 most urgent; `None` for other tasks. Deadline tasks, of
    /// which a trace has no budget, are taken for real-time ones of 99.
    pub fn realtime(self) -> Option<u8> {
        let prio = self.0.filter(|prio| (-1..100).contains(prio))?;
        u8::try_from(99 - prio.clamp(0, 98)).ok()
    }
}
