//! Puts records in the order of time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::foreign::record::Record;

/// Holds the last records back until earlier ones can hardly come any more.
///
/// Files have the records of one CPU after those of another. How many lie between two records that
/// belong together is bounded by the recorder's buffers, so a bounded number is held.
#[derive(Debug)]
pub struct Order {
    held: BinaryHeap<Reverse<Held>>,
    capacity: usize,
    next: u64,
}

#[derive(Debug)]
struct Held {
    record: Record,
    number: u64,
}

impl Held {
    const fn key(&self) -> (u64, u64) {
        (self.record.time, self.number)
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Order {
    /// Holds at most `capacity` records.
    pub const fn new(capacity: usize) -> Self {
        Self {
            held: BinaryHeap::new(),
            capacity,
            next: 0,
        }
    }

    /// Takes a record in and gives the earliest one, if enough are held.
    pub fn push(&mut self, record: Record) -> Option<Record> {
        let number = self.next;
        self.next += 1;
        self.held.push(Reverse(Held { record, number }));
        if self.held.len() > self.capacity {
            self.pop()
        } else {
            None
        }
    }

    /// Gives the earliest record that is held.
    pub fn pop(&mut self) -> Option<Record> {
        self.held.pop().map(|Reverse(held)| held.record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::record::{CpuContext, RecordWhat};

    #[test]
    fn records_of_one_moment_keep_their_order_and_late_ones_find_their_place() {
        let mut order = Order::new(3);
        let mut times = Vec::new();
        for (time, pid) in [(5, 0), (3, 1), (5, 2), (4, 3), (1, 4)] {
            let record = Record {
                time,
                cpu: 0,
                pid,
                context: CpuContext::Unsaid,
                what: RecordWhat::Exit(0),
            };
            times.extend(order.push(record).map(|it| (it.time, it.pid)));
        }
        times.extend(std::iter::from_fn(|| order.pop()).map(|it| (it.time, it.pid)));
        // Record 4 came after 3 had left: it was later than the capacity allows.
        assert_eq!(times, [(3, 1), (1, 4), (4, 3), (5, 0), (5, 2)]);
    }
}
