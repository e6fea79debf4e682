//! Which part of a recording a task's work comes from.

use model::{Nanos, SimTime};

use super::CostScale;

/// Cells of a recording, at most. Two become one when there would be more.
const CELLS: u64 = 1024;
/// Length of a cell of a recording that is not longer than [`CELLS`] of them, in nanoseconds.
const SHORTEST: u64 = 1 << 20;

/// What a task of a recording ran, by cell of the recorded time.
///
/// Memory grows with the cells in which it ran, and with nothing else.
#[derive(Debug)]
pub(super) struct Course {
    width: u64,
    /// Cells in which it ran, and for how long.
    ran: Vec<(u32, u64)>,
}

/// Where each task of a load stands in the recording after so much CPU time.
///
/// A rerun gives each task the CPU time that was recorded. So its CPU time up to now says which
/// recorded moment its work is of, under whatever scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedCourse {
    /// Length of a cell.
    pub width: Nanos,
    /// By group of the load: the CPU time at which the work of each cell ends, and the cell.
    pub ends: Vec<Vec<(Nanos, u32)>>,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            width: SHORTEST,
            ran: Vec::new(),
        }
    }
}

impl Course {
    /// It ran from one moment to a later one, on the recorded clock.
    pub fn add(&mut self, from: SimTime, until: SimTime) {
        let (mut from, until) = (from.as_nanos(), until.as_nanos());
        while until / self.width >= CELLS {
            self.widen();
        }
        while from < until {
            let cell = from / self.width;
            let end = until.min((cell + 1).saturating_mul(self.width));
            put(
                &mut self.ran,
                u32::try_from(cell).expect("few cells"),
                end - from,
            );
            from = end;
        }
    }

    fn widen(&mut self) {
        self.width = self.width.saturating_mul(2);
        let mut wider = Vec::with_capacity(self.ran.len().div_ceil(2));
        for (cell, span) in self.ran.drain(..) {
            put(&mut wider, cell / 2, span);
        }
        self.ran = wider;
    }

    /// The courses of all groups of a load, with `scale` of their CPU time.
    pub fn together(of: Vec<Self>, scale: CostScale) -> RecordedCourse {
        let width = of.iter().map(|it| it.width).max().unwrap_or(SHORTEST);
        let ends = |mut course: Self| {
            while course.width < width {
                course.widen();
            }
            let mut all = Nanos::ZERO;
            let end = |(cell, span)| {
                all += Nanos::new(span);
                (scale.of(all), cell)
            };
            course.ran.into_iter().map(end).collect()
        };
        RecordedCourse {
            width: Nanos::new(width),
            ends: of.into_iter().map(ends).collect(),
        }
    }
}

fn put(ran: &mut Vec<(u32, u64)>, cell: u32, span: u64) {
    match ran.last_mut() {
        // Steals may reach back before the turn that they end.
        Some((last, sum)) if *last >= cell => *sum += span,
        _ => ran.push((cell, span)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> SimTime {
        SimTime::from_nanos(ms << 20)
    }

    #[test]
    fn cpu_time_says_which_cell_the_work_is_of() {
        let course = || {
            let mut course = Course::default();
            course.add(ms(1), ms(3));
            course.add(ms(7), SimTime::from_nanos((7 << 20) + 5));
            course
        };
        let found = Course::together(vec![course(), Course::default()], CostScale::ONE);
        let cell = |ends: u64, cell| (Nanos::new(ends), cell);
        let cells = vec![cell(1 << 20, 1), cell(2 << 20, 2), cell((2 << 20) + 5, 7)];
        assert_eq!(found.ends, [cells, Vec::new()]);
        let half = Course::together(vec![course()], CostScale::millionths(500_000));
        assert_eq!(half.ends[0][1], cell(1 << 20, 2));
    }

    #[test]
    fn a_century_has_no_more_cells_than_a_second() {
        let (mut long, mut short) = (Course::default(), Course::default());
        long.add(ms(0), ms(900));
        short.add(ms(10), ms(20));
        long.add(ms(950), SimTime::from_nanos(u64::MAX));
        let found = Course::together(vec![long, short], CostScale::ONE);
        assert!(found.ends[0].len() <= 1024, "{}", found.ends[0].len());
        assert_eq!(found.ends[1].len(), 1);
        let all = found.ends[0].last().unwrap().0;
        assert_eq!(all.get(), u64::MAX - (50 << 20));
    }
}
