//! The user space of a scheduler, of which nothing is tested here.
