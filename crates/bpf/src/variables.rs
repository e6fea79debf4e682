//! Kernel variables: read-only for programs, filled by the host.

use crate::{Memory, OutOfMemory, Variable};

/// Where the kernel variables of an image lie.
///
/// All per-CPU variables together form one block for each CPU, as in the kernel, so that one
/// stride leads from any variable to its instance on another CPU.
#[derive(Clone, Debug)]
pub(crate) struct Variables {
    addresses: Vec<u64>,
    cpus: u32,
    stride: u64,
}

impl Variables {
    pub(crate) fn new(
        memory: &mut Memory,
        variables: &[Variable],
        cpus: u32,
    ) -> Result<Self, OutOfMemory> {
        let room = |variable: &Variable| u64::from(variable.size).next_multiple_of(64);
        let stride = variables.iter().filter(|v| v.percpu).map(room).sum();
        let mut percpu = match stride {
            0 => 0,
            _ => memory.alloc_kernel(stride * u64::from(cpus), 64)?,
        };
        let mut addresses = Vec::with_capacity(variables.len());
        for variable in variables {
            let address = match variable {
                Variable { size: 0, .. } => 0,
                Variable { percpu: true, .. } => {
                    percpu += room(variable);
                    percpu - room(variable)
                }
                _ => memory.alloc_kernel(room(variable), 64)?,
            };
            if address != 0 {
                let len = variable.initial.len().min(variable.size as usize);
                memory.write(address, &variable.initial[..len]);
            }
            addresses.push(address);
        }
        Ok(Self {
            addresses,
            cpus,
            stride,
        })
    }

    /// The address that a program sees; 0 when the kernel lacks the variable.
    pub(crate) fn address(&self, variable: u32) -> Option<u64> {
        self.addresses.get(variable as usize).copied()
    }

    /// The instance of a per-CPU variable, given as the program sees it, on `cpu`.
    pub(crate) fn on_cpu(&self, address: u64, cpu: u64) -> Option<u64> {
        let known = address != 0 && cpu < u64::from(self.cpus);
        known.then(|| address + cpu * self.stride)
    }
}
