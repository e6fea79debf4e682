//! The machines that come with the program.

use super::Hardware;

/// Names and files.
const FILES: &[(&str, &str)] = &[
    ("apple-m1", include_str!("../../hardware/apple-m1.toml")),
    (
        "epyc-9654-2p",
        include_str!("../../hardware/epyc-9654-2p.toml"),
    ),
    ("graviton3", include_str!("../../hardware/graviton3.toml")),
    ("hikey960", include_str!("../../hardware/hikey960.toml")),
    (
        "hikey960-lisa",
        include_str!("../../hardware/hikey960-lisa.toml"),
    ),
    ("i7-13700h", include_str!("../../hardware/i7-13700h.toml")),
    ("juno-r0", include_str!("../../hardware/juno-r0.toml")),
    ("n100", include_str!("../../hardware/n100.toml")),
    ("numa-2x2", include_str!("../../hardware/numa-2x2.toml")),
    ("pixel6", include_str!("../../hardware/pixel6.toml")),
    ("rk3399", include_str!("../../hardware/rk3399.toml")),
    ("rpi5", include_str!("../../hardware/rpi5.toml")),
    (
        "ryzen-7950x3d",
        include_str!("../../hardware/ryzen-7950x3d.toml"),
    ),
    (
        "ryzen-9800x3d",
        include_str!("../../hardware/ryzen-9800x3d.toml"),
    ),
    ("smt-2x2", include_str!("../../hardware/smt-2x2.toml")),
    ("steamdeck", include_str!("../../hardware/steamdeck.toml")),
    (
        "xeon-8480-2p",
        include_str!("../../hardware/xeon-8480-2p.toml"),
    ),
];

impl Hardware {
    /// Names of the machines that come with the program, and their files' texts.
    #[must_use]
    pub const fn shipped() -> &'static [(&'static str, &'static str)] {
        FILES
    }

    /// The machine of that name that comes with the program.
    ///
    /// # Panics
    /// Never: tests read all of them.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let (name, text) = FILES.iter().find(|(known, _)| *known == name)?;
        let read = Self::parse(text, &format!("hardware/{name}.toml"));
        Some(read.unwrap_or_else(|error| panic!("{error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuClass;

    #[test]
    fn every_machine_is_read_and_has_the_name_of_its_file() {
        for (name, _) in FILES {
            let hardware = Hardware::find(name).expect("it is there");
            assert_eq!(hardware.name, *name);
            assert!(!hardware.sources.is_empty(), "{name}");
        }
        assert!(Hardware::find("pixel").is_none());
    }

    #[test]
    fn every_figure_has_a_source_or_is_called_assumed() {
        for (name, text) in FILES {
            for part in text.split("\n\n") {
                let figures = part.lines().filter(|line| !line.starts_with('#'));
                let units = ["Hz\"", "W\"", "iB\"", "us\"", "distance"];
                let has_figure = figures.into_iter().any(|line| {
                    units.iter().any(|unit| line.contains(unit))
                        || line.starts_with("capacity") && line != "capacity = 1024"
                });
                assert!(!has_figure || part.contains("# "), "{name}:\n{part}");
            }
        }
    }

    #[test]
    fn the_kernels_costs_are_those_of_the_published_tables() {
        let pixel6 = Hardware::find("pixel6").expect("it is there");
        let costs: Vec<_> = (pixel6.classes.iter())
            .map(|class| class.cost(class.opps.len() - 1).expect("a power"))
            .collect();
        // floor(power x 10 / performance), powers in microwatts of one decimal of a milliwatt.
        assert_eq!(costs, [6_475, 12_040, 19_833]);
        let rk3399 = Hardware::find("rk3399").expect("it is there");
        let passed_over: Vec<_> = (rk3399.classes.iter())
            .map(|class| {
                (0..class.opps.len())
                    .filter(|at| class.is_inefficient(*at))
                    .count()
            })
            .collect();
        // 408 MHz has the voltage of 600 MHz. The A72's costs differ by what rounding leaves.
        assert_eq!(passed_over, [1, 0]);
    }

    #[test]
    fn what_the_kernel_tells_of_capacities_depends_on_the_computer() {
        let told = |name| {
            let hardware = Hardware::find(name).expect("it is there");
            let told: Vec<_> = hardware.classes.iter().map(CpuClass::told).collect();
            (hardware.is_told_apart(), told)
        };
        assert_eq!(told("pixel6"), (true, vec![160, 498, 1024]));
        assert_eq!(told("i7-13700h"), (false, vec![1024, 1024]));
        assert_eq!(told("ryzen-7950x3d"), (false, vec![1024, 1024]));
    }

    #[test]
    fn threads_of_large_servers_are_numbered_in_halves() {
        let small = Hardware::find("smt-2x2").expect("it is there");
        let places = small.placed().expect("a machine of its own");
        assert_eq!(places.cores.with(crate::CpuId(1)), [1, 3].map(crate::CpuId));
        let epyc = Hardware::find("epyc-9654-2p").expect("it is there");
        let places = epyc.placed().expect("a machine of its own");
        let cpus = |list: &[crate::CpuId]| list.iter().map(|cpu| cpu.0).collect::<Vec<_>>();
        assert_eq!(epyc.cpus.len(), 384);
        assert_eq!(cpus(places.cores.with(crate::CpuId(5))), [5, 197]);
        assert_eq!((places.llcs.count(), places.nodes.count()), (24, 2));
        let hybrid = Hardware::find("i7-13700h").expect("it is there");
        let places = hybrid.placed().expect("a machine of its own");
        assert_eq!(cpus(places.cores.with(crate::CpuId(11))), [10, 11]);
        assert_eq!(cpus(places.l2s.with(crate::CpuId(13))), [12, 13, 14, 15]);
    }

    /// The class on which a lone task of `util` takes the least energy.
    fn cheapest(hardware: &Hardware, util: u64) -> &str {
        let need = (util * 5).div_ceil(4);
        let energy = |class: &CpuClass| {
            let at = (0..class.opps.len()).find(|at| class.performance(*at) >= need)?;
            // Power over performance, compared as fractions.
            Some((class.opps[at].uw?, class.performance(at)))
        };
        let classes = hardware.classes.iter();
        let able = classes.filter_map(|class| Some((energy(class)?, class.name.as_str())));
        let cheaper = |(a, b): &(u64, u64), (c, d): &(u64, u64)| (a * d).cmp(&(c * b));
        able.min_by(|(a, _), (b, _)| cheaper(a, b))
            .map_or("none", |(_, name)| name)
    }

    #[test]
    fn where_a_lone_task_takes_the_least_energy_is_not_monotone() {
        let pixel6 = Hardware::find("pixel6").expect("it is there");
        for (first, last, class) in [
            (1, 52, "A55"),
            (53, 140, "A76"),
            (141, 145, "X1"),
            (146, 180, "A76"),
            (181, 800, "X1"),
        ] {
            for util in [first, last] {
                assert_eq!(cheapest(&pixel6, util), class, "{util}");
            }
        }
        let hikey960 = Hardware::find("hikey960").expect("it is there");
        assert_eq!(cheapest(&hikey960, 369), "A53");
        assert_eq!(cheapest(&hikey960, 370), "A73");
    }
}
