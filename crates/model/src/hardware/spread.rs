//! What is uncertain about hardware, and its ends.

use super::{CAPACITY_ONE, CpuClass, Hardware, SmtShare};

/// Two published tables of powers of one board differ by this factor and its inverse.
const POWERS: [(&str, u64); 2] = [("x0.6", 6), ("x1.7", 17)];
/// By so much one number for the speed of a small CPU is wrong for some loads.
const SPEEDS: [(&str, u64); 2] = [("x0.85", 85), ("x1.15", 115)];

/// How much longer memory takes than a cache, as tasks feel it, in 1/1024: from no longer to 12
/// times, which is what random reads take that nothing overlaps.
const PENALTIES: [(&str, u16); 2] = [("x1", 1024), ("x12", 12 * 1024)];

impl Hardware {
    /// The same hardware at each end of what is uncertain about it, the rest as it is: shares of
    /// the threads of a core, time of memory where caches or nodes differ, powers of each class,
    /// speeds of the smaller ones. Each has a name: `smt low`, `A55 power x0.6`. What the kernel
    /// tells stays.
    ///
    /// Sources: [`SmtShare::NAMED`]; EPYC 7742 (`AnandTech` 2019); `HiKey960` in `hi3660.dtsi` and
    /// in Arm's LISA, whose powers differ by 1.7 to 3.0; speeds are a guess.
    #[must_use]
    pub fn corners(&self) -> Vec<(String, Self)> {
        let mut corners = Vec::new();
        if self.smt.is_some() || self.has_threads() {
            let ends = SmtShare::NAMED
                .iter()
                .filter(|(name, _)| *name != "typical");
            corners.extend(ends.map(|(name, share)| {
                let smt = Some(SmtShare::all(*share));
                (
                    format!("smt {name}"),
                    Self {
                        smt,
                        ..self.clone()
                    },
                )
            }));
        }
        if self.penalty.is_some() && self.has_unequal_memory() {
            corners.extend(PENALTIES.map(|(end, penalty)| {
                let penalty = Some(penalty);
                (
                    format!("memory {end}"),
                    Self {
                        penalty,
                        ..self.clone()
                    },
                )
            }));
        }
        for (at, class) in self.classes.iter().enumerate() {
            if self.has_power() {
                corners.extend(POWERS.map(|(end, tenths)| {
                    let name = format!("{} power {end}", class.name);
                    (name, self.with_class(at, |class| class.with_power(tenths)))
                }));
            }
            if class.capacity < CAPACITY_ONE {
                corners.extend(SPEEDS.map(|(end, percent)| {
                    let name = format!("{} speed {end}", class.name);
                    (name, self.with_class(at, |class| class.with_speed(percent)))
                }));
            }
        }
        corners
    }

    /// Whether it matters for memory where a task executes.
    fn has_unequal_memory(&self) -> bool {
        let has_nodes = self.places.as_ref().is_some_and(|it| it.remote.len() > 1);
        has_nodes || self.llc_bytes.windows(2).any(|pair| pair[0] != pair[1])
    }

    fn with_class(&self, at: usize, change: impl FnOnce(&mut CpuClass)) -> Self {
        let mut changed = self.clone();
        change(&mut changed.classes[at]);
        changed
    }
}

impl CpuClass {
    /// Takes so many tenths of the power while it executes and while it idles, its cluster, too.
    fn with_power(&mut self, tenths: u64) {
        let scaled = |uw: u64| (u128::from(uw) * u128::from(tenths) / 10) as u64;
        for opp in &mut self.opps {
            opp.uw = opp.uw.map(scaled);
        }
        for state in &mut self.idle {
            state.uw = scaled(state.uw);
        }
        if let Some(cluster) = &mut self.cluster {
            let off = cluster.off.iter_mut().map(|state| &mut state.uw);
            let powers = cluster.uw.iter_mut().chain(off);
            powers.for_each(|uw| *uw = scaled(*uw));
            cluster.idle_uw = scaled(cluster.idle_uw);
        }
    }

    /// Does so many per cent of the work, at most all.
    fn with_speed(&mut self, percent: u64) {
        self.shown = Some(self.told());
        let capacity = u64::from(self.capacity) * percent / 100;
        self.capacity = capacity.clamp(1, CAPACITY_ONE.into()) as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(hardware: &str) -> Vec<String> {
        let hardware = Hardware::find(hardware).expect("it is there");
        let corners = hardware.corners();
        let cpus = hardware.cpus.len() as u16;
        for (name, corner) in &corners {
            corner
                .check(cpus)
                .unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert_ne!(*corner, hardware, "{name}");
        }
        corners.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn each_machine_has_the_ends_of_what_it_has() {
        let pixel6 = names("pixel6");
        assert_eq!(pixel6.len(), 10, "{pixel6:?}");
        assert!(pixel6.contains(&"A55 speed x1.15".to_owned()), "{pixel6:?}");
        assert!(pixel6.contains(&"X1 power x1.7".to_owned()), "{pixel6:?}");
        let intel = names("i7-13700h");
        assert_eq!(intel[..2], ["smt low", "smt high"]);
        assert_eq!(intel.len(), 4, "no power is known: {intel:?}");
        assert!(names("graviton3").is_empty());
        assert_eq!(names("numa-2x2"), ["memory x1", "memory x12"]);
        assert!(names("ryzen-7950x3d").contains(&"memory x12".to_owned()));
        for (name, _) in Hardware::shipped() {
            let mut all = names(name);
            all.sort();
            all.dedup();
            assert_eq!(all.len(), names(name).len(), "{name}");
        }
    }

    #[test]
    fn the_kernel_goes_on_telling_what_it_told() {
        let pixel6 = Hardware::find("pixel6").expect("it is there");
        let corners = pixel6.corners();
        let slow = corners.iter().find(|(name, _)| name == "A55 speed x0.85");
        let class = &slow.expect("it is one").1.classes[0];
        assert_eq!((class.capacity, class.told()), (136, 160));
        let cheap = corners.iter().find(|(name, _)| name == "A55 power x0.6");
        let cheap = &cheap.expect("it is one").1;
        assert_eq!(
            cheap.classes[0].opps[0].uw,
            Some(pixel6.classes[0].opps[0].uw.unwrap() * 6 / 10)
        );
    }
}
