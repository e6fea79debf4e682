//! Queues of messages that grow to the end of a play.

use model::SimTime;
use model::growth::Course;
use workload::{ResourceInstance, Workload, may_grow};

/// The lengths of the channels that may grow, over time.
#[derive(Debug, Default)]
pub struct QueueLengths(Vec<(ResourceInstance, Course)>);

impl QueueLengths {
    /// Nothing yet of the channels of `workload`.
    pub fn new(workload: &Workload) -> Self {
        let channels = (0..).zip(&workload.channels);
        let channels = channels.filter(|(of, _)| may_grow(workload, *of));
        let instances = channels.flat_map(|(of, channel)| {
            (0..channel.count).map(move |index| ResourceInstance { of, index })
        });
        Self(instances.map(|it| (it, Course::default())).collect())
    }

    /// Looks at all lengths, at a moment of the play that is not before the last look.
    pub fn look(&mut self, now: SimTime, length: impl Fn(ResourceInstance) -> u64) {
        for (channel, course) in &mut self.0 {
            course.add(now, length(*channel));
        }
    }

    /// Those that still grew in the second half of a play that ended at `end`.
    pub fn grown(&self, end: SimTime) -> Vec<ResourceInstance> {
        let grown = self.0.iter().filter(|it| it.1.grown_to(end).is_some());
        grown.map(|it| it.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_interrupts_fill_faster_than_it_is_emptied_grows() {
        let text = "[workload]\nname = \"keys\"\nstop = \"duration:2s\"\n\
                    [chan.key]\nkind = \"queue\"\ncount = 2\n\
                    [chan.short]\nkind = \"queue\"\ncap = \"4msg\"\n\
                    [irq.keys]\nevery = \"1ms\"\nsend = \"key[0]\"\n\
                    [task.worker]\ndo = \"loop(inf)[ recv(key[0]), recv(short), run(2ms) ]\"\n";
        let workload = Workload::parse(text, "keys.toml").expect("a workload");
        let mut lengths = QueueLengths::new(&workload);
        // The first of both fills, the second is taken.
        for ms in 0..2_000 {
            let length = |it: ResourceInstance| [ms / 2, ms % 3][it.index as usize];
            lengths.look(SimTime::from_nanos(ms * 1_000_000), length);
        }
        let grown = lengths.grown(SimTime::from_nanos(2_000_000_000));
        assert_eq!(grown, [ResourceInstance { of: 0, index: 0 }]);
    }
}
