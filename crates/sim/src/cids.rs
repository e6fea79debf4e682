//! The topological numbers of the policy that is attached, and the kernel's masks in its arena.

use crate::cid::CidTable;

/// What [`crate::cid_form`] has made; it alone changes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cids {
    table: Option<Box<CidTable>>,
    /// Programs find the numbers: `ops.init_cids()` has ended.
    is_visible: bool,
    masks: Option<ArenaMasks>,
}

/// Guest addresses of the kernel's masks.
#[derive(Clone, Debug)]
pub(crate) struct ArenaMasks {
    /// One for each CPU: what it tells a callback lies there until it tells the next one.
    pub scratch: Vec<u64>,
    /// The CPUs that are online.
    pub online: u64,
    /// One for each shard: which CPUs of it a scheduler's rights have changed on.
    pub shards: Vec<u64>,
}

impl Cids {
    /// Numbers that may still be replaced, and that programs do not find.
    pub fn new(table: CidTable) -> Self {
        Self {
            table: Some(Box::new(table)),
            ..Self::default()
        }
    }

    /// The numbers are final.
    pub const fn show(&mut self) {
        self.is_visible = true;
    }

    /// The masks have their places.
    pub fn place(&mut self, masks: ArenaMasks) {
        self.masks = Some(masks);
    }

    /// The numbers.
    pub fn table(&self) -> Option<&CidTable> {
        self.table.as_deref()
    }

    /// The numbers, as programs find them.
    #[inline]
    pub fn visible(&self) -> Option<&CidTable> {
        self.table.as_deref().filter(|_| self.is_visible)
    }

    /// The numbers while they may still be replaced.
    pub fn being_made(&mut self) -> Option<&mut CidTable> {
        self.table.as_deref_mut().filter(|_| !self.is_visible)
    }

    /// The root's masks; `None` before `ops.init()`, and of a policy in cpu form.
    pub const fn masks(&self) -> Option<&ArenaMasks> {
        self.masks.as_ref()
    }
}
