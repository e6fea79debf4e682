//! The machine that a question asks for, as changes to the one of a workload or bundle.

use model::{Advised, Kernel, MachineSpec};

use crate::error::UsageError;
use crate::profile;
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
}

/// Most CPUs of a simulated machine.
pub const CPUS_MAX: u16 = 1024;
/// Most hardware threads of a core.
pub const SMT_MAX: u16 = 2;

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
        let profile = self.profile.as_deref();
        let profile = profile.map(|it| profile::find(services, it)).transpose()?;
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
        Ok(MachineSpec {
            cpus,
            smt: self.smt.unwrap_or(asked.smt),
            llc: self.llc.unwrap_or(asked.llc),
            node: self.node.unwrap_or(asked.node),
            hz: self.hz.unwrap_or(asked.hz),
            kernel: self.kernel.unwrap_or(asked.kernel),
            profile: profile.unwrap_or_else(|| asked.profile.clone()),
            ..asked.clone()
        })
    }
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
}
