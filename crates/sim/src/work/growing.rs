//! Queues of messages that grow to the end of a run.

use model::{GrowingQueue, SimTime};
use workload::{ResourceInstance, growing_queues, may_grow};

use super::Work;
use super::channel::Queue;

impl Work {
    /// Follows the channels that may grow.
    pub(super) fn follow_channels(&mut self) {
        for (of, queues) in (0..).zip(&mut self.channels) {
            if may_grow(&self.workload, of) {
                queues.iter_mut().for_each(Queue::follow);
            }
        }
    }

    /// The followed channels that still grew in the second half of the run, which ends at `end`.
    ///
    /// # Panics
    /// If something happened later than `end`.
    #[must_use]
    pub fn growing(&mut self, end: SimTime) -> Vec<GrowingQueue> {
        let mut grown = Vec::new();
        for (of, queues) in (0..).zip(&mut self.channels) {
            let queues = (0..).zip(queues);
            let queues = queues.filter_map(|(index, queue)| queue.grows(end).then_some(index));
            grown.extend(queues.map(|index| ResourceInstance { of, index }));
        }
        growing_queues(&self.workload, &self.codes, &grown)
    }
}
