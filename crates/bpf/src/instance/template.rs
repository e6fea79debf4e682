//! What all instances of an image have in common: made once, however many runs there are.

use std::sync::{Arc, OnceLock};

use super::Instance;
use super::create::Places;
use crate::backend::Backend;
use crate::bind::bind;
use crate::builtin;
use crate::config::Config;
use crate::decode::{self, Addresses as _, BadInsn};
use crate::host::{Binding, Host, HostFunction};
use crate::instance_error::InstanceError;
use crate::interp::cell::Cells;
use crate::op::Code;
use crate::uncast::UncastAccess;
use crate::{Image, MapKind};

/// An [`Image`] and a [`Config`], of which any number of instances can be made, on any thread.
///
/// An instance shares nothing with another but what never changes, so each is as if it were the
/// only one.
#[derive(Debug)]
pub struct Template<H: Host> {
    image: Arc<Image>,
    bindings: Vec<Binding<H>>,
    config: Config,
    common: Arc<CommonCode<H>>,
}

impl<H: Host> Template<H> {
    /// Binds the imports of `image`, by name and prototype: first from `table`, then from the
    /// machine's own functions.
    ///
    /// # Errors
    /// [`InstanceError::Missing`] lists all missing functions.
    pub fn new(
        image: Arc<Image>,
        table: &[HostFunction<H>],
        config: Config,
    ) -> Result<Self, InstanceError> {
        let builtins = builtin::table(&config.builtin_cost_ps);
        let bindings = bind(&image, table, &builtins, &config)?;
        Ok(Self {
            image,
            bindings,
            config,
            common: Arc::new(CommonCode::default()),
        })
    }

    /// The image that every instance has.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// An instance with maps and data sections of its own.
    ///
    /// # Errors
    /// See [`InstanceError`].
    pub fn instance(&self) -> Result<Instance<H>, InstanceError> {
        let has_arena = self.image.maps.iter().any(|map| map.kind == MapKind::Arena);
        let config = self.config.clone();
        let arena_bytes = has_arena.then_some(config.memory_bytes);
        let mut instance = Instance::assemble(
            Arc::clone(&self.image),
            self.bindings.clone(),
            (config, arena_bytes),
            None,
            &self.common,
        )?;
        if instance.config.backend == Backend::Jit {
            instance.make_native();
        }
        match instance.refusal.take() {
            Some(refusal) => Err(InstanceError::Native(refusal)),
            None => Ok(instance),
        }
    }
}

/// The code of an image, which its instances share.
#[derive(Debug)]
pub(super) struct CommonCode<H: Host> {
    /// With the addresses that it was decoded for.
    code: OnceLock<(Box<[u64]>, Arc<Code>)>,
    /// The same as the interpreter executes it.
    cells: OnceLock<Arc<Cells<H>>>,
    /// What [`Image::uncast_accesses`] says of the image.
    uncast: OnceLock<(Arc<Image>, Arc<[UncastAccess]>)>,
}

impl<H: Host> Default for CommonCode<H> {
    fn default() -> Self {
        Self {
            code: OnceLock::new(),
            cells: OnceLock::new(),
            uncast: OnceLock::new(),
        }
    }
}

impl<H: Host> CommonCode<H> {
    /// The code for an instance whose parts lie at `places`. An image decides by itself where its
    /// parts lie; the addresses are compared all the same, because all of the code has them in it.
    pub(super) fn code(&self, places: &Places<'_>) -> Result<Arc<Code>, BadInsn> {
        let addresses = addresses(places);
        if let Some((known, code)) = self.code.get()
            && *known == addresses
        {
            return Ok(Arc::clone(code));
        }
        let code = Arc::new(decode::decode(places.image, places)?);
        // Another thread may have been faster, with the same.
        let _ = self.code.set((addresses, Arc::clone(&code)));
        Ok(code)
    }

    /// [`Image::uncast_accesses`] of `image`: to look through its code takes longer than a short
    /// run.
    pub(super) fn uncast(&self, image: &Arc<Image>) -> Arc<[UncastAccess]> {
        if let Some((known, found)) = self.uncast.get()
            && Arc::ptr_eq(known, image)
        {
            return Arc::clone(found);
        }
        let found: Arc<[UncastAccess]> = image.uncast_accesses().into();
        let _ = self.uncast.set((Arc::clone(image), Arc::clone(&found)));
        found
    }

    /// The cells that another instance has made of `code`.
    pub(super) fn cells(&self, code: &Arc<Code>) -> Option<Arc<Cells<H>>> {
        self.is_of(code)
            .then(|| self.cells.get().cloned())
            .flatten()
    }

    /// Keeps the `cells` of `code` for other instances.
    pub(super) fn keep_cells(&self, code: &Arc<Code>, cells: &Arc<Cells<H>>) {
        if self.is_of(code) {
            let _ = self.cells.set(Arc::clone(cells));
        }
    }

    fn is_of(&self, code: &Arc<Code>) -> bool {
        let known = self.code.get();
        known.is_some_and(|(_, known)| Arc::ptr_eq(known, code))
    }
}

/// All that the decoder asks of `places`.
fn addresses(places: &Places<'_>) -> Box<[u64]> {
    let Places { image, .. } = places;
    let maps = 0..image.maps.len() as u32;
    let variables = 0..image.variables.len() as u32;
    let of_maps = maps.flat_map(|map| [places.map_handle(map), places.map_value(map)]);
    let all = of_maps.chain(variables.map(|variable| places.variable(variable)));
    // No address is 0 but that of a variable which the kernel lacks.
    all.map(|address| address.unwrap_or(0)).collect()
}
