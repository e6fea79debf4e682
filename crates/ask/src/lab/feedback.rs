//! Where a student's policy and the wanted one first give the CPU to different tasks.

use explain::timeline::Timeline;
use explain::why::{Act, Follower};
use model::{Event, EventMask, Header, PolicySpec, SimTime, Sink, Text};
use traces::Tee;

use super::LabLoad;
use super::run::{Course, options};
use crate::diff::Told;
use crate::runner::Runner;
use crate::services::Services;

/// Decisions of the student's policy that are told.
const TOLD: usize = 4;
/// Columns of a chart.
const COLUMNS: usize = 64;

/// Where two runs part, and both as charts.
#[derive(Debug)]
pub struct LabParting {
    /// When.
    pub time: SimTime,
    /// Who got the CPU then under the student's policy, and under the wanted one; `None`: nobody.
    pub got: [Option<String>; 2],
    /// Decisions of the student's policy at that time, with their lines.
    pub told: Vec<Told>,
    /// The student's run, and the wanted one.
    pub charts: [Timeline; 2],
}

/// Where the run of `own` first differs from that of the wanted policy, whose course is known, if
/// it does.
///
/// # Errors
/// When a policy cannot run.
pub(super) fn parting(
    services: &Services<'_>,
    load: &LabLoad,
    own: &PolicySpec,
    (wanted, other): (&PolicySpec, &Course),
) -> anyhow::Result<Option<LabParting>> {
    let one = Course::of(services, &load.spec(own.clone()))?;
    let turns = |course: &Course, at: usize| course.turns.get(at).copied();
    let most = one.turns.len().max(other.turns.len());
    let Some(at) = (0..most).find(|at| turns(&one, *at) != turns(other, *at)) else {
        return Ok(None);
    };
    let (first, second) = (turns(&one, at), turns(other, at));
    let times = [first, second].into_iter().flatten().map(|(time, ..)| time);
    let Some(time) = times.min() else {
        return Ok(None);
    };
    // Who has the CPU at that time: whose turn begins then, or the one before.
    let holder = |course: &Course| {
        let turns = course
            .turns
            .iter()
            .take_while(|(begins, ..)| *begins <= time);
        let who = turns.last().and_then(|(.., who)| *who);
        who.and_then(|who| Some(course.tasks.get(who)?.name.clone()))
    };
    let end = one.end.max(other.end).max(SimTime::from_nanos(1));
    let mut teller = Teller::new(time);
    let [mut chart, mut wanted_chart] =
        [(); 2].map(|()| Timeline::new(SimTime::ZERO, end, COLUMNS));
    let own_spec = load.spec(own.clone());
    let mut both = Tee::new(vec![&mut chart, &mut teller]);
    Runner::new(&own_spec, services)
        .with_options(options())
        .with_sink(&mut both)
        .start()?;
    let wanted_spec = load.spec(wanted.clone());
    Runner::new(&wanted_spec, services)
        .with_options(options())
        .with_sink(&mut wanted_chart)
        .start()?;
    Ok(Some(LabParting {
        time,
        got: [holder(&one), holder(other)],
        told: teller.told,
        charts: [chart, wanted_chart],
    }))
}

/// Keeps the decisions of one moment that a line of the policy made.
struct Teller {
    time: SimTime,
    follower: Follower,
    told: Vec<Told>,
}

impl Teller {
    fn new(time: SimTime) -> Self {
        Self {
            time,
            follower: Follower::default(),
            told: Vec::new(),
        }
    }
}

impl Sink for Teller {
    fn wants(&self) -> EventMask {
        Follower::wants()
    }

    fn begin(&mut self, header: &Header) {
        self.follower.begin(header);
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            if event.time <= self.time && self.follower.key(event).is_some() {
                let told: Told = self.follower.describe(event);
                let Act { place, .. } = &told.1;
                if place.is_some() {
                    self.told.push(told);
                    if self.told.len() > TOLD {
                        self.told.remove(0);
                    }
                }
            }
            self.follower.apply(event);
        }
    }

    fn text(&mut self, text: &Text) {
        self.follower.text(text);
    }

    fn finish(&mut self, _: SimTime) {}
}
