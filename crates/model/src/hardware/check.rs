//! Refuses hardware that cannot be.

use super::{CAPACITY_ONE, ClusterPower, Governor, Hardware, IdleState, Opp, SmtShare};
use crate::{Advised, CPUS_MAX, CpuGroups};

/// Greatest power (microwatts) and time (nanoseconds) of which sums fit.
const MOST_UW: u64 = 1_000_000_000;
const MOST_NS: u64 = 1_000_000_000;

impl Hardware {
    /// Refuses hardware that cannot be, for a machine of `cpus`: it may come from a bundle that
    /// somebody else wrote.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, cpus: u16) -> Result<(), Advised> {
        let wrong = |what: String, expected: &str| Err(Advised::new(what, expected.to_owned()));
        if self.cpus.len() != usize::from(cpus) {
            let what = format!(
                "the hardware has {} CPUs, the machine {cpus}",
                self.cpus.len()
            );
            return wrong(what, "let both have the same number");
        }
        if self.classes.len() > usize::from(CPUS_MAX) {
            return wrong("more classes than CPUs".to_owned(), "leave unused ones out");
        }
        let capacities = 1..=CAPACITY_ONE;
        for class in &self.classes {
            if !capacities.contains(&class.capacity) || !capacities.contains(&class.told()) {
                let what = format!("class `{}` has no capacity of 1 to 1024", class.name);
                return wrong(
                    what,
                    "give 1024 to the biggest CPU, and others their share of it",
                );
            }
        }
        let is_class = |class: &u16| usize::from(*class) < self.classes.len();
        if !self.cpus.iter().all(is_class) {
            return wrong("a CPU is of no class".to_owned(), "name one that is there");
        }
        let biggest = |class: &u16| self.classes[usize::from(*class)].capacity == CAPACITY_ONE;
        if !self.cpus.iter().any(biggest) {
            let what = "no CPU has the capacity 1024".to_owned();
            return wrong(
                what,
                "give 1024 to the biggest CPU, and others their share of it",
            );
        }
        self.check_classes()?;
        self.check_places()?;
        let both = self.smt_power;
        if both.is_some_and(|both| !(1024..=2048).contains(&both) || !self.has_threads()) {
            return wrong(
                "`smt_power` is not 1 to 2, or no core has two threads".to_owned(),
                "correct it, or leave it out",
            );
        }
        let remote = self.places.iter().flat_map(|it| it.remote.iter().flatten());
        let mut longer = self.penalty.iter().chain(remote);
        if longer.any(|it| !(1024..=12 * 1024).contains(it)) {
            let what = "memory does not take 1 to 12 times as long".to_owned();
            return wrong(what, "correct `penalty` and `remote`");
        }
        let shares = self.smt.iter().flat_map(SmtShare::each);
        if shares
            .into_iter()
            .any(|share| !(102..=1024).contains(&share))
        {
            return wrong(
                "a share of a core is not 0.1 to 1".to_owned(),
                "correct `smt`",
            );
        }
        Ok(())
    }

    fn check_classes(&self) -> Result<(), Advised> {
        for class in &self.classes {
            let wrong = |what: &str| {
                let name = &class.name;
                Err(Advised::new(
                    format!("class `{name}`: {what}"),
                    "correct it",
                ))
            };
            if !(102..=CAPACITY_ONE).contains(&class.memory) {
                return wrong("`memory` is not 0.1 to 1");
            }
            let rises = |pair: &[Opp]| pair[0].khz < pair[1].khz && pair[0].uw <= pair[1].uw;
            let is_alike = class
                .opps
                .iter()
                .all(|opp| opp.uw.is_some() == class.has_power());
            let first = class.opps.first().map_or(1, |opp| opp.khz);
            if !class.opps.windows(2).all(rises) || !is_alike || first == 0 {
                return wrong("frequencies and powers do not rise");
            }
            if !class.has_right_turbo() {
                return wrong("its turbo has no frequencies of `opps` that fall");
            }
            let deepens = |pair: &[IdleState]| pair[0].residency_ns < pair[1].residency_ns;
            if !class.idle.windows(2).all(deepens) {
                return wrong("residencies do not rise");
            }
            let cluster = class.cluster.iter();
            let is_of_opps = |it: &ClusterPower| it.uw.len() == class.opps.len();
            if !cluster.clone().all(is_of_opps) || class.cluster.is_some() && !class.has_power() {
                return wrong("its cluster has no power beside that of each frequency");
            }
            let states = || {
                let off = class.cluster.iter().filter_map(|it| it.off.as_ref());
                class.idle.iter().chain(off)
            };
            let shared = cluster.flat_map(|it| it.uw.iter().copied().chain([it.idle_uw]));
            let powers = class.opps.iter().filter_map(|opp| opp.uw);
            let powers = powers.chain(states().map(|state| state.uw)).chain(shared);
            if powers.chain(self.base_uw).any(|uw| uw > MOST_UW) {
                return wrong("a power of more than 1 kW");
            }
            let times = states().map(|state| state.residency_ns.max(state.exit_ns));
            if times
                .chain([class.transition_ns])
                .any(|time| time > MOST_NS)
            {
                return wrong("a time of more than a second");
            }
        }
        self.check_governor()
    }

    /// Refuses a governor that has nothing to choose from.
    ///
    /// # Errors
    /// When a class has no frequencies.
    pub fn check_governor(&self) -> Result<(), Advised> {
        let chooses = matches!(self.governor, Governor::Powersave | Governor::Schedutil);
        let mut without = self.classes.iter().filter(|class| class.opps.is_empty());
        match without.next().filter(|_| chooses) {
            None => Ok(()),
            Some(class) => Err(Advised::new(
                format!(
                    "the governor {} cannot choose: class `{}` has no frequencies",
                    self.governor.name(),
                    class.name
                ),
                "take the governor performance, or hardware with `opps`",
            )),
        }
    }

    fn check_places(&self) -> Result<(), Advised> {
        let wrong = |what: &str| Err(Advised::new(what, "correct the hardware"));
        let Some(places) = &self.places else {
            let is_unplaced = self.llc_bytes.is_empty();
            return if is_unplaced {
                Ok(())
            } else {
                wrong("sizes of caches without places")
            };
        };
        let cpus = self.cpus.len();
        let all = [
            &places.core,
            &places.l2,
            &places.llc,
            &places.node,
            &places.domain,
        ];
        for of in all {
            let count = of.iter().max().map_or(0, |last| usize::from(*last) + 1);
            let has = |number: usize| of.iter().any(|it| usize::from(*it) == number);
            if of.len() != cpus || count > cpus || !(0..count).all(has) {
                return wrong("a CPU has no core, cache, node or clock");
            }
        }
        let groups = CpuGroups::new(places.core.clone());
        if groups.iter().any(|core| core.len() > 2) {
            return wrong("a core has more than two threads");
        }
        let inside = |inner: &[u16], outer: &[u16]| {
            let groups = CpuGroups::new(inner.to_vec());
            let is_in_one = |group: &Vec<crate::CpuId>| {
                let mut of = group.iter().map(|cpu| outer[cpu.index()]);
                let first = of.next();
                of.all(|other| Some(other) == first)
            };
            groups.iter().all(is_in_one)
        };
        let is_nested = inside(&places.core, &places.l2)
            && inside(&places.core, &self.cpus)
            && inside(&places.l2, &places.llc)
            && inside(&places.llc, &places.node)
            && inside(&places.domain, &self.cpus);
        if !is_nested {
            return wrong("a core, cache or clock lies in two others");
        }
        let nodes = places
            .node
            .iter()
            .max()
            .map_or(0, |last| usize::from(*last) + 1);
        let is_whole =
            |rows: &[Vec<u16>]| rows.len() == nodes && rows.iter().all(|row| row.len() == nodes);
        if !is_whole(&places.distances) {
            return wrong("the distances are not those of the nodes");
        }
        if !places.remote.is_empty() && !is_whole(&places.remote) {
            return wrong("the factors of remote memory are not those of the nodes");
        }
        let llcs = places
            .llc
            .iter()
            .max()
            .map_or(0, |last| usize::from(*last) + 1);
        if !self.llc_bytes.is_empty() && self.llc_bytes.len() != llcs {
            return wrong("the sizes are not those of the caches");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_that_cannot_be_is_refused() {
        let good = Hardware::of_capacities(&[1024, 512]);
        let refused = |change: fn(&mut Hardware)| {
            let mut bad = good.clone();
            change(&mut bad);
            bad.check(2).unwrap_err().to_string()
        };
        assert!(refused(|it| it.classes[0].capacity = 1000).contains("1024"));
        assert!(refused(|it| it.classes[1].capacity = 0).contains("capacity-512"));
        assert!(refused(|it| it.classes[1].shown = Some(2000)).contains("capacity-512"));
        assert!(refused(|it| it.cpus[1] = 2).contains("no class"));
        assert!(refused(|it| it.smt = Some(SmtShare::all(0))).contains("share"));
        assert!(refused(|it| it.smt_power = Some(1200)).contains("no core has two threads"));
        assert!(refused(|it| it.penalty = Some(1023)).contains("1 to 12 times"));
    }
}
