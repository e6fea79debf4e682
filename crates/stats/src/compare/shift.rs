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
/// How exactly the end of an interval is found, as a part of its distance from the measured shift.
const PRECISION: f64 = 1e-3;
/// Steps after which the search for an end stops.
const STEPS_MAX: u32 = 60;

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
    /// is refused. It is on the refused side, so that no accepted shift is left out.
    ///
    /// The square root of the logarithm of a probability is nearly linear in the shift, so a
    /// straight line finds where it is `alpha` in a few steps; every third step halves, which ends
    /// for any probability.
    fn end(&self, refused: f64, alpha: f64) -> f64 {
        let value = self.value();
        let height = |p: f64| (-libm::log(p)).max(0.0).sqrt();
        let aim = height(alpha);
        let (mut inside, mut outside) = ((value, 0.0), (refused, height(self.least())));
        for step in 0..STEPS_MAX {
            let (width, reach) = (outside.0 - inside.0, outside.0 - value);
            if width.abs() <= PRECISION * reach.abs() {
                break;
            }
            // Beside the line, so that the end comes to lie between two tried shifts.
            let beside = PRECISION / 2.0 * reach * if step % 2 == 0 { 1.0 } else { -1.0 };
            let part = (aim - inside.1) / (outside.1 - inside.1);
            let next = match step {
                // 0 first: then it is outside exactly when its probability says so.
                0 if (value < 0.0) != (refused < 0.0) => 0.0,
                _ if step % 3 == 2 => f64::midpoint(inside.0, outside.0),
                _ => inside.0 + part * width + beside,
            };
            let is_between = (next - inside.0) * (next - outside.0) < 0.0;
            let next = if is_between {
                next
            } else {
                f64::midpoint(inside.0, outside.0)
            };
            let p = self.p(next);
            if p < alpha {
                outside = (next, height(p));
            } else {
                inside = (next, height(p));
            }
        }
        outside.0
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
