//! Kinds of things that a question names.

/// What a word can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// A scheduler.
    Policy,
    /// What it is to schedule.
    Workload,
    /// What takes time on a machine.
    Profile,
    /// A published experiment.
    Experiment,
    /// Events of a run, or another program's trace.
    Recording,
    /// A file for `sweep`.
    Sweep,
    /// What runs have given, for `compare`.
    Results,
}
