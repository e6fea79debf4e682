//! The tests that boot kernels in one program, so that `make test-vm` has one to run. Each of them
//! boots one guest at a time, because two would starve each other on a small computer.

mod bench;
mod det;
mod fidelity;
mod guide;
mod load;
mod play;
mod policies;
mod record;
mod stat;
mod systemd;
mod trace;
mod two_machines;
mod vectors;
mod verbs;
