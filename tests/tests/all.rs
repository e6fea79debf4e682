//! The tests of the whole in one program: each program is linked with all of the simulator, which
//! takes longer than most of these tests. Apart are `attacks` and `hostile`, which measure their
//! process, `isa`, which a folder of vectors drives, `bounds`, whose allocator counts, and `scale`,
//! which runs itself under valgrind.

mod balance;
mod births;
mod both_back_ends;
mod cfs;
mod cgroups;
mod classes;
mod conservation;
mod costs;
mod day;
mod deadline;
mod determinism;
mod doors;
mod eevdf;
mod elsc;
mod explain;
mod filter;
mod first_turn;
mod goodness;
mod guard;
mod hand_over;
mod hooks;
mod hotplug;
mod kernel_7_2;
mod kernels;
mod limits;
mod lines;
mod memory;
mod mirrors;
mod misuse;
mod mlfq;
mod neighbour;
mod nodes;
mod o1;
mod operations;
mod own_lines;
mod own_profile;
mod policies;
mod profile;
mod rtapp;
mod schedstat;
mod setup;
mod shares;
mod shipped;
mod soak;
mod staircase;
mod staircase5;
mod ticks;
mod traces;
mod tracing;
mod two_machines;
mod user_space;
mod vectors;
mod workloads;
