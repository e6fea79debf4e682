//! The machine that a question asks for, as changes to the one of a workload or bundle.

use model::{
    Advised, CAPACITY_ONE, Governor, Hardware, Interleave, Kernel, MachineSpec, Profile, SmtShare,
    Textbook,
};
use workload::RecordedCosts;

use crate::error::UsageError;
use crate::machine_file;
use crate::services::Services;

/// Changes to the simulated machine; what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineChange {
    /// CPUs.
    pub cpus: Option<u16>,
    /// Hardware threads of each core.
    pub smt: Option<u16>,
    /// CPUs that share a last-level cache; 0 for all of a node.
    pub llc: Option<u16>,
    /// CPUs of each NUMA node; 0 for all.
    pub node: Option<u16>,
    /// Timer ticks a second.
    pub hz: Option<u32>,
    /// The kernel's version.
    pub kernel: Option<Kernel>,
    /// Name or file of the profile.
    pub profile: Option<String>,
    /// What a task keeps of its rate while the other thread of its core executes.
    pub smt_share: Option<SmtShare>,
    /// When CPUs come in between while a program runs on another one.
    pub interleave: Option<Interleave>,
    /// Name or file of the hardware.
    pub hardware: Option<String>,
    /// Who chooses frequencies.
    pub governor: Option<Governor>,
    /// An end of what is uncertain about the hardware ([`Hardware::corners`]).
    pub corner: Option<String>,
    /// A machine as textbooks have it, in place of the one that is asked for.
    pub textbook: Option<Textbook>,
}

/// Most CPUs of a simulated machine.
pub const CPUS_MAX: u16 = 1024;
/// Most hardware threads of a core.
pub const SMT_MAX: u16 = 2;

/// Reads what threads of one core leave each other.
///
/// # Errors
/// When it is no share.
pub fn parse_smt_share(text: &str) -> Result<SmtShare, String> {
    SmtShare::parse(text).ok_or_else(|| "give low, typical, high, or a number of 0.1 to 1".into())
}

/// Reads the name of a governor.
///
/// # Errors
/// When there is no such governor.
pub fn parse_governor(text: &str) -> Result<Governor, String> {
    Governor::named(text).ok_or_else(|| "give performance, powersave, schedutil or hwp".into())
}

/// Reads a tick rate that a kernel can be configured with (kernel 6.18, kernel/Kconfig.hz).
///
/// # Errors
/// When it is none.
pub fn parse_hz(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(hz @ (100 | 250 | 300 | 1000)) => Ok(hz),
        _ => Err("a kernel ticks 100, 250, 300 or 1000 times a second".to_owned()),
    }
}

impl MachineChange {
    /// The machine that is `asked` for, changed.
    ///
    /// # Errors
    /// When there is no such profile, its file is bad, or a node or cache has more CPUs than there
    /// are.
    pub fn change(
        &self,
        services: &Services<'_>,
        asked: &MachineSpec,
    ) -> anyhow::Result<MachineSpec> {
        if let Some(order) = self.textbook.or(asked.textbook) {
            return Ok(self.by_the_book(order, asked)?);
        }
        let profile = self.profile.as_deref();
        let profile = profile
            .map(|it| machine_file::find(services, it))
            .transpose()?;
        let cpus = self.cpus.unwrap_or(asked.cpus);
        for (option, size) in [("--node", self.node), ("--llc", self.llc)] {
            if let Some(size) = size.filter(|size| *size > cpus) {
                return Err(UsageError::new(Advised::new(
                    format!("`{option} {size}`: the machine has {cpus} CPUs"),
                    format!("give at most {cpus}, or more --cpus"),
                ))
                .into());
            }
        }
        let smt = self.smt.unwrap_or(asked.smt);
        let named = self.hardware.as_deref();
        let named = named
            .map(|it| machine_file::find(services, it))
            .transpose()?;
        let has_places = asked.hardware.as_deref().filter(|it| it.places.is_some());
        if let Some(placed) = named.as_ref().or(has_places) {
            return self.at_corner(self.placed(placed.clone(), profile, asked)?);
        }
        let hardware = self.hardware(cpus, smt, asked.hardware.as_deref())?;
        if let Some(governor) = self.governor {
            return Err(UsageError::new(Advised::new(
                format!("`--governor {}`: no frequencies are known", governor.name()),
                "give --hardware, too (runslice list --machines)",
            ))
            .into());
        }
        self.at_corner(MachineSpec {
            cpus,
            smt,
            hardware: hardware.map(Box::new),
            llc: self.llc.unwrap_or(asked.llc),
            node: self.node.unwrap_or(asked.node),
            hz: self.hz.unwrap_or(asked.hz),
            kernel: self.kernel.unwrap_or(asked.kernel),
            profile: profile.unwrap_or_else(|| asked.profile.clone()),
            interleave: self.interleave.clone().or_else(|| asked.interleave.clone()),
            ..asked.clone()
        })
    }

    /// What the machine that is asked for charges for work of the kernel that is in the CPU time
    /// of a trace; `None` if nobody says it. `bundled` is the machine of a bundle, if there is one:
    /// its profile holds where none is named.
    ///
    /// # Errors
    /// When there is no such profile, or its file is bad.
    pub fn recorded_costs(
        &self,
        services: &Services<'_>,
        bundled: Option<&MachineSpec>,
    ) -> anyhow::Result<Option<RecordedCosts>> {
        let textbook = self.textbook.or(bundled.and_then(|it| it.textbook));
        if textbook.is_some() {
            return Ok(Some(RecordedCosts::default()));
        }
        if let Some(named) = self.profile.as_deref() {
            let profile: Profile = machine_file::find(services, named)?;
            return Ok(Some(RecordedCosts::of(&profile)));
        }
        Ok(bundled.map(|it| RecordedCosts::of(&it.profile)))
    }

    /// `machine` at the end of what is uncertain that is asked for.
    fn at_corner(&self, mut machine: MachineSpec) -> anyhow::Result<MachineSpec> {
        let Some(wanted) = &self.corner else {
            return Ok(machine);
        };
        let corners = machine.hardware.iter().flat_map(|it| it.corners());
        let mut found = corners.filter(|(name, _)| name == wanted);
        let (_, hardware) = found.next().ok_or_else(|| {
            UsageError::new(Advised::new(
                format!("the hardware has no end `{wanted}` of what is uncertain"),
                "ask for the names first",
            ))
        })?;
        machine.hardware = Some(Box::new(hardware));
        Ok(machine)
    }

    /// A machine as textbooks have it, which says all but the kernel.
    fn by_the_book(&self, order: Textbook, asked: &MachineSpec) -> Result<MachineSpec, UsageError> {
        let given = [
            ("--cpus", self.cpus.is_some_and(|cpus| cpus != 1)),
            ("--smt", self.smt.is_some_and(|smt| smt != 1)),
            ("--llc", self.llc.is_some()),
            ("--node", self.node.is_some()),
            ("--hz", self.hz.is_some()),
            (
                "--profile",
                self.profile.as_deref().is_some_and(|it| it != "ideal"),
            ),
            ("--smt-share", self.smt_share.is_some()),
            ("--interleave", self.interleave.is_some()),
            ("--hardware", self.hardware.is_some()),
            ("--governor", self.governor.is_some()),
        ];
        if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
            let has = "a textbook machine has one CPU, no costs and no ticks";
            return Err(UsageError::new(Advised::new(
                format!("`{option}`: {has}"),
                format!("leave out `{option}`, or --machine"),
            )));
        }
        Ok(MachineSpec {
            kernel: self.kernel.unwrap_or(asked.kernel),
            ..MachineSpec::by_the_book(order)
        })
    }

    /// The machine that `asked` is on `hardware`, which says the number and places of CPUs.
    fn placed(
        &self,
        mut hardware: Hardware,
        profile: Option<Profile>,
        asked: &MachineSpec,
    ) -> anyhow::Result<MachineSpec> {
        let given = [
            ("--cpus", self.cpus),
            ("--smt", self.smt),
            ("--llc", self.llc),
            ("--node", self.node),
        ];
        if let Some((option, _)) = given.iter().find(|(_, value)| value.is_some()) {
            let (name, cpus) = (&hardware.name, hardware.cpus.len());
            return Err(UsageError::new(Advised::new(
                format!("`{option}`: the hardware `{name}` says it, with {cpus} CPUs"),
                format!("leave out `{option}`"),
            ))
            .into());
        }
        hardware.governor = self.governor.unwrap_or(hardware.governor);
        hardware.check_governor().map_err(UsageError::new)?;
        if let Some(share) = self.smt_share {
            hardware.smt = Some(share);
        }
        let asked = MachineSpec {
            hz: self.hz.unwrap_or(asked.hz),
            kernel: self.kernel.unwrap_or(asked.kernel),
            profile: profile.unwrap_or_else(|| asked.profile.clone()),
            interleave: self.interleave.clone().or_else(|| asked.interleave.clone()),
            ..asked.clone()
        };
        let machine = asked.with_hardware(hardware);
        if self.smt_share.is_some() && machine.smt < 2 {
            return Err(no_threads("leave it out").into());
        }
        Ok(machine)
    }

    /// How the CPUs differ that were asked to differ as `asked` says.
    fn hardware(
        &self,
        cpus: u16,
        smt: u16,
        asked: Option<&Hardware>,
    ) -> Result<Option<Hardware>, UsageError> {
        let alike = Hardware::of_capacities(&vec![CAPACITY_ONE; cpus.into()]);
        let mut hardware = match asked {
            Some(asked) if asked.cpus.len() == usize::from(cpus) => Some(asked.clone()),
            // CPUs that are alike can be more or fewer.
            Some(asked) if asked.classes == alike.classes => Some(Hardware {
                smt: asked.smt,
                ..alike.clone()
            }),
            Some(asked) => {
                let known = asked.cpus.len();
                return Err(UsageError::new(Advised::new(
                    format!("`--cpus {cpus}`: the speeds of {known} CPUs are given"),
                    format!("leave out `--cpus`, or give {cpus} capacities in the workload"),
                )));
            }
            None => None,
        };
        if let Some(share) = self.smt_share {
            if smt < 2 {
                return Err(no_threads("give --smt 2, too"));
            }
            hardware.get_or_insert(alike).smt = Some(share);
        }
        Ok(hardware)
    }
}

fn no_threads(advice: &str) -> UsageError {
    UsageError::new(Advised::new(
        "`--smt-share`: each core has one thread",
        advice,
    ))
}

#[cfg(test)]
mod tests {
    use model::Advice as _;

    use super::*;

    #[test]
    fn a_kernel_ticks_at_four_rates() {
        let rates = [100, 250, 300, 1000];
        assert_eq!(rates.map(|hz| parse_hz(&hz.to_string())), rates.map(Ok));
        assert!(parse_hz("123").is_err() && parse_hz("").is_err());
    }

    #[test]
    fn what_is_not_changed_stays_as_it_was_asked_for() {
        let asked = MachineSpec {
            cpus: 6,
            hz: 1000,
            ..MachineSpec::default()
        };
        let change = MachineChange {
            cpus: Some(2),
            profile: Some("default-v0".to_owned()),
            ..MachineChange::default()
        };
        let none = Services::default();
        let machine = change.change(&none, &asked).unwrap();
        assert_eq!((machine.cpus, machine.hz), (2, 1000));
        assert_eq!(machine.profile.name(), "default-v0");
        let large = MachineChange {
            cpus: Some(4),
            node: Some(8),
            ..MachineChange::default()
        };
        let said = crate::Error::from(large.change(&none, &asked).unwrap_err());
        assert_eq!(said.to_string(), "`--node 8`: the machine has 4 CPUs");
        let advice = said.advice();
        assert_eq!(advice.as_deref(), Some("give at most 4, or more --cpus"));
        let same = MachineChange::default().change(&none, &asked);
        assert_eq!(same.unwrap(), asked);
    }

    #[test]
    fn cpus_whose_speeds_are_given_can_be_no_more_and_no_fewer() {
        let none = Services::default();
        let differ = MachineSpec {
            cpus: 2,
            hardware: Some(Box::new(Hardware::of_capacities(&[1024, 512]))),
            ..MachineSpec::default()
        };
        let change = MachineChange {
            cpus: Some(4),
            ..MachineChange::default()
        };
        let said = crate::Error::from(change.change(&none, &differ).unwrap_err());
        assert_eq!(
            said.to_string(),
            "`--cpus 4`: the speeds of 2 CPUs are given"
        );
        let same = MachineChange::default().change(&none, &differ).unwrap();
        assert_eq!(same, differ);
    }

    #[test]
    fn a_textbook_machine_says_all_but_the_kernel() {
        let none = Services::default();
        let asked = MachineSpec::default();
        let book = MachineChange {
            textbook: Some(Textbook::ArrivalsLast),
            kernel: Some(Kernel::V7_0),
            profile: Some("ideal".to_owned()),
            cpus: Some(1),
            ..MachineChange::default()
        };
        let machine = book.change(&none, &asked).unwrap();
        let kernel = Kernel::V7_0;
        let want = MachineSpec {
            kernel,
            ..MachineSpec::by_the_book(Textbook::ArrivalsLast)
        };
        assert_eq!(machine, want);
        let same = MachineChange::default().change(&none, &machine).unwrap();
        assert_eq!(same, want, "a workload's own");
        let ticks = MachineChange {
            hz: Some(1000),
            ..book
        };
        let said = crate::Error::from(ticks.change(&none, &asked).unwrap_err());
        assert!(said.to_string().starts_with("`--hz`: a textbook machine"));
    }

    #[test]
    fn hardware_says_how_many_cpus_there_are() {
        let none = Services::default();
        let change = |cpus| MachineChange {
            cpus,
            hardware: Some("pixel6".to_owned()),
            governor: Some(Governor::Powersave),
            interleave: Some(Interleave::Timed),
            ..MachineChange::default()
        };
        let asked = MachineSpec::default();
        let machine = change(None).change(&none, &asked).unwrap();
        assert_eq!(machine.interleave, Some(Interleave::Timed));
        assert_eq!((machine.cpus, machine.smt, machine.hz), (8, 1, asked.hz));
        assert_eq!(machine.hardware.unwrap().governor, Governor::Powersave);
        let said = crate::Error::from(change(Some(4)).change(&none, &asked).unwrap_err());
        let want = "`--cpus`: the hardware `pixel6` says it, with 8 CPUs";
        assert_eq!(said.to_string(), want);
        let unknown = MachineChange {
            hardware: Some("pixel".to_owned()),
            ..MachineChange::default()
        };
        let said = crate::Error::from(unknown.change(&none, &asked).unwrap_err());
        assert!(said.advice().unwrap().contains("pixel6"));
    }

    #[test]
    fn threads_of_a_core_leave_each_other_a_share_where_there_are_threads() {
        let none = Services::default();
        let change = |smt| MachineChange {
            smt: Some(smt),
            smt_share: Some(SmtShare::all(614)),
            ..MachineChange::default()
        };
        let asked = MachineSpec::default();
        let machine = change(2).change(&none, &asked).unwrap();
        assert_eq!(
            machine.hardware.as_ref().unwrap().smt,
            Some(SmtShare::all(614))
        );
        let more = MachineChange {
            cpus: Some(8),
            ..MachineChange::default()
        };
        let more = more.change(&none, &machine).unwrap();
        assert_eq!(more.hardware.unwrap().cpus.len(), 8);
        let said = crate::Error::from(change(1).change(&none, &asked).unwrap_err());
        assert_eq!(said.to_string(), "`--smt-share`: each core has one thread");
        let on = |hardware: &str| MachineChange {
            smt: None,
            hardware: Some(hardware.to_owned()),
            ..change(1)
        };
        let said = crate::Error::from(on("pixel6").change(&none, &asked).unwrap_err());
        assert_eq!(said.to_string(), "`--smt-share`: each core has one thread");
        assert!(on("smt-2x2").change(&none, &asked).is_ok());
    }
}
