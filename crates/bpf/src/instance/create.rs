//! How an image is made ready to run.

use std::sync::Arc;

use super::heat::Heat;
use super::template::{CommonCode, Template};
use super::{Instance, MOST_BUDGET};
use crate::Image;
use crate::aside::Aside;
use crate::call_stack::CallStack;
use crate::config::Config;
use crate::decode::Addresses;
use crate::faults::Faults;
use crate::host::{Binding, Host, HostFunction};
use crate::instance_error::InstanceError;
use crate::jit;
use crate::map::Maps;
use crate::memory::Memory;
use crate::objects::Objects;
use crate::streams::Streams;
use crate::timer::Timers;
use crate::variables::Variables;

/// Guest address of the first function, outside the region: the kernel's module area. Only for
/// callbacks; a load from there gives zero.
const FUNCTIONS: u64 = 0xffff_ffff_c000_0000;

/// Bytes between the addresses of two functions.
const FUNCTION_STEP: u64 = 16;

impl<H: Host> Instance<H> {
    /// Creates the maps and data sections of `image` and binds its imports, by name and prototype:
    /// first from `table`, then from the machine's own functions.
    ///
    /// # Errors
    /// See [`InstanceError`]. Missing functions are reported all at once.
    pub fn new(
        image: Arc<Image>,
        table: &[HostFunction<H>],
        config: Config,
    ) -> Result<Self, InstanceError> {
        Template::new(image, table, config)?.instance()
    }

    /// An instance that does not run yet. With `room` it has no map, and may get so many.
    pub(super) fn assemble(
        image: Arc<Image>,
        bindings: Vec<Binding<H>>,
        (config, arena_bytes): (Config, Option<u64>),
        room: Option<u32>,
        common: &Arc<CommonCode<H>>,
    ) -> Result<Self, InstanceError> {
        let mut memory =
            Memory::reserve(config.memory_bytes, arena_bytes).map_err(InstanceError::Reserve)?;
        let total = config.total_budget.unwrap_or(u64::MAX);
        let allowance = config.budget.min(MOST_BUDGET).min(total);
        let stack = CallStack::new(&mut memory, &config, allowance)?;
        let variables = Variables::new(&mut memory, &image.variables, config.cpus)?;
        let maps = match room {
            Some(most) => Maps::with_room(&mut memory, most)?,
            None => Maps::new(&mut memory, &image, config.cpus)?,
        };
        let places = Places {
            maps: &maps,
            variables: &variables,
            image: &image,
        };
        let code = common.code(&places)?;
        let heat = Heat::new(&config);
        Ok(Self {
            memory,
            maps,
            timers: Timers::default(),
            objects: Objects::default(),
            variables,
            streams: Streams::default(),
            faults: Faults::default(),
            cells: common.cells(&code),
            common: Arc::clone(common),
            spare_cells: None,
            code,
            image,
            bindings,
            config,
            stack,
            removed: Vec::new(),
            aside: Aside::default(),
            scratch: jit::Scratch::default(),
            native: None,
            entries: Box::default(),
            allowance,
            refusal: None,
            heat,
        })
    }

    /// The guest address of a function.
    #[must_use]
    pub fn function_address(&self, function: u32) -> Option<u64> {
        Places::of(self).function(function)
    }

    /// The function at a callback's address.
    pub(super) fn function_at(&self, address: u64) -> Option<u32> {
        let at = address.wrapping_sub(FUNCTIONS);
        let function = u32::try_from(at / FUNCTION_STEP).ok()?;
        let exact = at.is_multiple_of(FUNCTION_STEP);
        (exact && (function as usize) < self.image.functions.len()).then_some(function)
    }
}

/// Where the decoder finds the addresses of an instance's parts.
pub(super) struct Places<'a> {
    pub(super) maps: &'a Maps,
    pub(super) variables: &'a Variables,
    pub(super) image: &'a Image,
}

impl<'a> Places<'a> {
    fn of<H: Host>(instance: &'a Instance<H>) -> Self {
        Self {
            maps: &instance.maps,
            variables: &instance.variables,
            image: &instance.image,
        }
    }
}

impl Addresses for Places<'_> {
    fn map_handle(&self, map: u32) -> Option<u64> {
        self.maps.handle(map)
    }

    fn map_value(&self, map: u32) -> Option<u64> {
        self.maps.get(map)?.first_value()
    }

    fn variable(&self, variable: u32) -> Option<u64> {
        self.variables.address(variable)
    }

    fn function(&self, function: u32) -> Option<u64> {
        let known = (function as usize) < self.image.functions.len();
        known.then(|| FUNCTIONS + u64::from(function) * FUNCTION_STEP)
    }
}
