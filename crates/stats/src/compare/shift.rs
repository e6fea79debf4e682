//! Tests of the hypothesis that one set of values is another, shifted; and the interval of the
//! shifts that such a test does not refuse.

/// Up to so many relabelings are gone through one by one; of more, a sample is drawn.
pub const EXACT_MAX: f64 = 200_000.0;
/// Relabelings of a sample. One less than a round number, because the real one is added.
pub const SAMPLES_MAX: usize = 9_999;
/// Relabelings of a sample of very many values.
const SAMPLES_MIN: usize = 1_999;
/// Values that all relabelings of a sample have together, as far as the limits above allow.
const SAMPLED_VALUES: usize = 40_000_000;
/// Halvings by which the end of an interval is found: to 1 part in 65,536 of where it is sought.
const HALVINGS: u32 = 16;

/// A test of shifts.
pub trait ShiftTest {
    /// The shift that was measured.
    fn value(&self) -> f64;

    /// The shifts below and above which the values are separated.
    fn reach(&self) -> (f64, f64);

    /// The smallest that [`ShiftTest::p`] can be.
    fn least(&self) -> f64;

    /// How probable a shift so large is if the true one is `shift` or less.
    fn p_above(&self, shift: f64) -> f64;

    /// How probable a shift so small is if the true one is `shift` or more.
    fn p_below(&self, shift: f64) -> f64;

    /// How probable a shift so far from `shift`, either way, is if that is the true one.
    fn p(&self, shift: f64) -> f64;

    /// The shifts whose probability is not below `alpha`; endless when no values of this number
    /// could refuse any.
    fn interval(&self, alpha: f64) -> (f64, f64) {
        if self.least() >= alpha {
            return (f64::NEG_INFINITY, f64::INFINITY);
        }
        let (low, high) = self.reach();
        (self.end(low, alpha), self.end(high, alpha))
    }

    /// The end of the interval between the measured shift and `refused`, beyond which every shift
    /// is refused. It is the refused side of the last step, so that no accepted shift is left out.
    fn end(&self, refused: f64, alpha: f64) -> f64 {
        let (mut inside, mut outside) = (self.value(), refused);
        // 0 first: then it is outside exactly when its probability says so.
        let zero = 0.0 > inside.min(outside) && 0.0 < inside.max(outside);
        let mut next = if zero {
            0.0
        } else {
            f64::midpoint(inside, outside)
        };
        for _ in 0..HALVINGS {
            if self.p(next) < alpha {
                outside = next;
            } else {
                inside = next;
            }
            next = f64::midpoint(inside, outside);
        }
        outside
    }

    /// How probable this is if the true shift is not between `-margin` and `margin`: the larger
    /// probability of two one-sided tests.
    ///
    /// Source: Schuirmann (1987), "A comparison of the two one-sided tests procedure and the power
    /// approach for assessing the equivalence of average bioavailability".
    fn p_same(&self, margin: f64) -> f64 {
        self.p_above(-margin).max(self.p_below(margin))
    }
}

/// Relabelings of a sample of so many values: fewer of very many, where they say as much.
pub fn samples(values: usize) -> usize {
    (SAMPLED_VALUES / values.max(1)).clamp(SAMPLES_MIN, SAMPLES_MAX)
}
