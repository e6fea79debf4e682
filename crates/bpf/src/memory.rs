//! The one memory of an instance: everything that a program can see lies in one reserved region.
//!
//! The region is a power of two in size and has a fixed *guest* base, [`BASE`], so a pointer has
//! the same value in every run and on every machine. An access check is a subtraction and a
//! comparison; a native back end adds the offset to the host pointer.
//!
//! ```text
//! BASE            kernel objects, .rodata, kernel variables      programs read
//! BASE + half     maps, data sections, stacks                    programs read and write
//!  ... window     arena, aligned to 4 GiB, only when asked for   programs read and write
//! ```
//!
//! The whole region can be read: what nobody allocated reads as zero, and so does every address
//! outside it, as the kernel's probing loads do. Memory is committed by explicit allocation only,
//! up to a cap: a store elsewhere is refused, so a program cannot make the process grow. A fresh
//! block is zero without being touched, so a large map costs what is used of it.

mod account;
#[cfg(any(feature = "compact", target_pointer_width = "32"))]
mod compact;
mod copy;
#[cfg(not(any(feature = "compact", target_pointer_width = "32")))]
#[expect(unsafe_code, reason = "accesses that are checked once")]
mod direct;
mod heap;
#[cfg(not(any(feature = "compact", target_pointer_width = "32")))]
#[expect(unsafe_code, reason = "pages are given back")]
mod kept;
mod large;
mod layout;
#[cfg(not(any(feature = "compact", target_pointer_width = "32")))]
#[expect(unsafe_code, reason = "a mapping outlives its region")]
mod mapped;
#[cfg(not(feature = "jit"))]
mod no_words;
#[cfg(any(not(target_os = "linux"), feature = "compact"))]
mod not_shared;
mod pages;
mod present;
#[cfg(all(target_os = "linux", not(feature = "compact")))]
#[expect(unsafe_code, reason = "a file takes the place of pages")]
mod shared;
#[cfg(feature = "jit")]
mod words;

use std::ops::Range;
use std::sync::Arc;

#[cfg(not(feature = "jit"))]
use no_words as words;

use crate::{MapDef, Stop};
use account::Account;
pub use account::OutOfMemory;
#[cfg(any(feature = "compact", target_pointer_width = "32"))]
use compact::Region;
use heap::{GRAIN, Heap};
pub use layout::BASE;
pub(crate) use layout::GUARD;
#[cfg(not(any(feature = "compact", target_pointer_width = "32")))]
use mapped::Region;
#[cfg(any(not(target_os = "linux"), feature = "compact"))]
use not_shared as shared;
pub use pages::Pages;
use shared::Shared;
#[cfg(feature = "jit")]
pub(crate) use words::OpenWords;
#[cfg(not(feature = "jit"))]
use words::OpenWords;

/// Size of a region without an arena, and of the arena's window: what 32 bits can address.
const GIB_4: u64 = 1 << 32;

/// All memory of one instance. See the module.
#[derive(Debug)]
pub struct Memory {
    region: Region,
    /// Bytes of the region; a mapping begins [`GUARD`] bytes before it and ends as many behind.
    size: u64,
    /// Frozen data sections, as ranges of addresses. Native code has their contents built in.
    frozen: Vec<Range<u64>>,
    /// No frozen section lies at or behind this address.
    frozen_end: u64,
    /// Words of kernel objects that native code may store into.
    pub(crate) open_words: OpenWords,
    kernel: Heap,
    /// Kernel objects behind this have not got large pages yet; see [`large`].
    large_from: u64,
    maps: Heap,
    arena: Option<Pages>,
    /// Where native code finds [`Pages::flags`]; 0 without an arena.
    #[cfg(feature = "jit")]
    arena_flags: u64,
    account: Account,
    /// The limit has refused something since somebody last asked.
    refused: bool,
    shared: Shared,
}

impl Memory {
    /// Reserves a region for a program that may make this process take `memory_bytes`, whatever
    /// for; with `arena_bytes` also the arena's window, whose pages may be so much of it. Reserving
    /// commits nothing.
    ///
    /// # Errors
    /// If the address space is refused.
    pub fn reserve(memory_bytes: u64, arena_bytes: Option<u64>) -> std::io::Result<Self> {
        let size = if arena_bytes.is_some() {
            4 * GIB_4
        } else {
            GIB_4
        };
        let half = size / 2;
        let room = if arena_bytes.is_some() {
            half - GIB_4
        } else {
            half
        };
        let region = Region::reserve(size, arena_bytes.map(|_| size - GIB_4))?;
        let arena = arena_bytes.map(|bytes| Pages::new(BASE + size - GIB_4, bytes));
        Ok(Self {
            region,
            size,
            frozen: Vec::new(),
            frozen_end: 0,
            open_words: OpenWords::default(),
            kernel: Heap::new(GUARD, half - GUARD),
            large_from: Self::first_large(GUARD),
            maps: Heap::new(half, memory_bytes.min(room - GUARD)),
            account: Account::new(memory_bytes),
            refused: false,
            #[cfg(feature = "jit")]
            arena_flags: arena.as_ref().map_or(0, Pages::flags),
            arena,
            shared: Shared::default(),
        })
    }

    /// Allocates zeroed bytes that programs can read and the host can write.
    ///
    /// # Errors
    /// When the lower half is full.
    ///
    /// # Panics
    /// If `align` is no power of two.
    pub fn alloc_kernel(&mut self, size: u64, align: u64) -> Result<u64, OutOfMemory> {
        let limit = self.kernel.limit;
        let block = self.kernel.alloc(size, align, u64::MAX);
        let (at, used) = block.ok_or(OutOfMemory {
            wanted: size,
            limit,
        })?;
        self.region.grow_kernel(self.kernel.next);
        self.ask_for_large_pages();
        if used {
            self.zero(at, size);
        }
        Ok(BASE + at)
    }

    /// Gives back a block of [`Memory::alloc_kernel`]; `size` is what was asked for. The bytes
    /// stay as they are until they are allocated again.
    ///
    /// # Panics
    /// If the block was never allocated.
    pub fn free_kernel(&mut self, address: u64, size: u64) {
        self.kernel.release(address.wrapping_sub(BASE), size);
        self.open_words.close(address, size);
    }

    /// Allocates memory for a kernel object that a program asks for. It counts into the memory that
    /// the program may make this process take.
    ///
    /// # Errors
    /// When that limit is reached.
    ///
    /// # Panics
    /// If `align` is no power of two.
    pub fn alloc_object(&mut self, size: u64, align: u64) -> Result<u64, OutOfMemory> {
        self.hold(size)?;
        let block = self.alloc_kernel(size, align);
        if block.is_err() {
            self.release_held(size);
        }
        block
    }

    /// Gives back a block of [`Memory::alloc_object`].
    ///
    /// # Panics
    /// If the block was never allocated.
    pub fn free_object(&mut self, address: u64, size: u64) {
        self.free_kernel(address, size);
        self.release_held(size);
    }

    /// The host is about to keep `bytes` bytes elsewhere because a program asks for it. They count
    /// into what the program may make this process take.
    ///
    /// # Errors
    /// When that limit is reached.
    pub fn hold(&mut self, bytes: u64) -> Result<(), OutOfMemory> {
        let others = self.maps.used() + self.arena_bytes();
        if self.account.hold(bytes, others) {
            Ok(())
        } else {
            Err(self.refuse(bytes))
        }
    }

    /// `wanted` bytes more are too much for what the program may make this process take.
    #[cold]
    const fn refuse(&mut self, wanted: u64) -> OutOfMemory {
        self.refused = true;
        OutOfMemory {
            wanted,
            limit: self.account.limit,
        }
    }

    /// Ends a program for which something was refused since the last `Memory::forget_refusal`.
    ///
    /// The limit is this machine's and no kernel's: a program that went on with an error of it, or
    /// with a null, would be another one than the one that a kernel runs.
    ///
    /// # Errors
    /// [`Stop::OutOfMemory`] then.
    pub fn within_limit(&mut self) -> Result<(), Stop> {
        if std::mem::take(&mut self.refused) {
            let limit = self.account.limit;
            return Err(Stop::OutOfMemory { limit });
        }
        Ok(())
    }

    /// A function of a program is about to ask for memory: what was refused to others, to user
    /// space above all, was their affair.
    #[inline]
    pub(crate) const fn forget_refusal(&mut self) {
        self.refused = false;
    }

    /// Gives back bytes that [`Memory::hold`] has counted.
    pub const fn release_held(&mut self, bytes: u64) {
        self.account.release(bytes);
    }

    /// Bytes of the arena's pages that were ever allocated.
    fn arena_bytes(&self) -> u64 {
        self.arena.as_ref().map_or(0, Pages::committed)
    }

    /// What the arena's pages may take together, by what there is besides.
    fn arena_limit(&self) -> u64 {
        self.account.left(0).saturating_sub(self.maps.used())
    }

    /// Programs may store 64 bits at `address`, aligned to 8 and in a block of
    /// [`Memory::alloc_kernel`], until that is freed. Native code then need not ask
    /// [`Host::store_protected`](crate::Host::store_protected), which must allow such a store and
    /// do what [`Host::word_stored`](crate::Host::word_stored) does.
    ///
    /// # Panics
    /// If the word is not aligned or the host does not own it.
    pub fn open_word(&mut self, address: u64) {
        assert!(
            address.is_multiple_of(8) && self.is_kernel_object(address, 8),
            "{address:#x} is no word of a kernel object"
        );
        self.open_words.open(address);
    }

    /// Allocates zeroed bytes that programs can read and write, aligned to 16.
    ///
    /// # Errors
    /// When the cap on map memory is reached.
    pub fn alloc_map(&mut self, size: u64) -> Result<u64, OutOfMemory> {
        self.alloc_writable(size, GRAIN)
    }

    fn alloc_writable(&mut self, size: u64, align: u64) -> Result<u64, OutOfMemory> {
        let most = self.account.left(1).saturating_sub(self.arena_bytes());
        let is_full = self.maps.used() > most;
        let block = (!is_full).then(|| self.maps.alloc(size, align, most));
        let Some((at, used)) = block.flatten() else {
            return Err(self.refuse(size));
        };
        self.account.add_block();
        self.region.grow_maps(self.maps.next);
        if used {
            self.zero(at, size);
        }
        Ok(BASE + at)
    }

    /// Gives back a block of [`Memory::alloc_map`]; `size` is what was asked for.
    ///
    /// # Panics
    /// If the block was never allocated.
    pub fn free_map(&mut self, address: u64, size: u64) {
        self.maps.release(address.wrapping_sub(BASE), size);
        self.account.remove_block();
    }

    /// Allocates whole zeroed pages that nothing else lies on: those of a map that user space may
    /// see. Programs can write them unless they are `read_only`. Gives them back with
    /// [`Memory::free_pages`].
    ///
    /// # Errors
    /// As [`Memory::alloc_map`] and [`Memory::alloc_object`].
    pub(crate) fn alloc_pages(&mut self, size: u64, read_only: bool) -> Result<u64, OutOfMemory> {
        let limit = self.account.limit;
        let whole = size.checked_next_multiple_of(Pages::SIZE);
        let size = whole.ok_or(OutOfMemory {
            wanted: size,
            limit,
        })?;
        if read_only {
            self.alloc_object(size, Pages::SIZE)
        } else {
            self.alloc_writable(size, Pages::SIZE)
        }
    }

    /// Gives back what [`Memory::alloc_pages`] gave; from now on it is shared with nobody.
    ///
    /// # Errors
    /// If the pages cannot be taken from a file that they were shared with; then they stay
    /// allocated.
    ///
    /// # Panics
    /// If the pages were never allocated.
    pub(crate) fn free_pages(&mut self, address: u64, size: u64) -> std::io::Result<()> {
        let size = size.next_multiple_of(Pages::SIZE);
        self.unshare(address, size)?;
        let end = address + size;
        self.frozen
            .retain(|range| range.start < address || end <= range.start);
        if address - BASE < self.maps.start {
            self.free_object(address, size);
        } else {
            self.free_map(address, size);
        }
        Ok(())
    }

    /// The arena's pages, if the region has an arena.
    #[must_use]
    pub const fn arena(&self) -> Option<&Pages> {
        self.arena.as_ref()
    }

    /// Makes the arena larger by the size of `def` and makes room for its globals. Gives their
    /// address, or without globals that of the window. Several objects so share one window.
    pub(crate) fn open_arena(&mut self, def: &MapDef) -> Result<u64, OutOfMemory> {
        let most = self.arena_limit();
        let pages = self
            .arena
            .as_mut()
            .expect("a region for an object with an arena has a window");
        pages.widen(def.max_entries);
        let globals = |bytes: &Arc<[u8]>| (bytes.len() as u64).max(def.value_size.into());
        let bytes = def.initial.as_ref().map_or(0, globals);
        if bytes == 0 {
            return Ok(pages.base());
        }
        let full = OutOfMemory {
            wanted: bytes,
            limit: pages.limit(),
        };
        let count = bytes.div_ceil(Pages::SIZE);
        let given = pages.alloc(None, count, most).ok_or(full);
        self.grow_arena();
        given
    }

    /// Allocates `count` pages of the arena, which are zero: the first that fit, or exactly those
    /// at `wanted`. `None` if there is no room.
    pub fn alloc_arena(&mut self, wanted: Option<u64>, count: u64) -> Option<u64> {
        let most = self.arena_limit();
        let pages = self.arena.as_mut()?;
        let given = pages.alloc(wanted, count, most);
        // An arena that is full is the program's own affair.
        self.refused |= given.is_none() && pages.has_room(wanted, count);
        self.grow_arena();
        given
    }

    /// There is room for all pages of the arena that were ever allocated.
    fn grow_arena(&mut self) {
        if let Some(pages) = &self.arena {
            let first = pages.first() - BASE;
            let end = first + pages.touched() * Pages::SIZE;
            self.region.grow_arena(first, end);
        }
    }

    /// Sets pages of the arena aside, see [`Pages::reserve`].
    pub(crate) fn reserve_arena(&mut self, address: u64, count: u64) -> Option<bool> {
        self.arena.as_mut()?.reserve(address, count)
    }

    /// Frees pages of the arena and zeroes them, so that they read as zero from now on. Returns
    /// how many were allocated.
    pub(crate) fn free_arena(&mut self, address: u64, count: u64) -> u64 {
        let freed = self
            .arena
            .as_mut()
            .map(|pages| pages.free(address, count))
            .unwrap_or_default();
        for page in &freed {
            if !self.punch(*page) {
                self.zero(page - BASE, Pages::SIZE);
            }
        }
        freed.len() as u64
    }

    /// An arena whose pages user space may map: `count` pages, of which none is allocated.
    pub(crate) fn open_user_arena(&mut self, count: u32) {
        if let Some(pages) = &mut self.arena {
            pages.resize(count);
        }
    }

    /// User space has stored `bytes` at `offset` of the arena, whose pages there so are allocated.
    /// False if the arena ends before, or may not have so many pages.
    pub(crate) fn store_arena(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let most = self.arena_limit();
        let end = offset.saturating_add(bytes.len() as u64);
        let Some(pages) = self.arena.as_mut().filter(|pages| end <= pages.bytes()) else {
            return false;
        };
        let touched = end.next_multiple_of(Pages::SIZE) - offset / Pages::SIZE * Pages::SIZE;
        let at = pages.first() + offset;
        let is_there = pages.holds(at, bytes.len() as u64);
        if !is_there && pages.committed().saturating_add(touched) > most {
            return false;
        }
        pages.adopt(offset / Pages::SIZE..end.div_ceil(Pages::SIZE));
        self.grow_arena();
        self.put(at - BASE, bytes);
        true
    }

    /// Where user space sees the arena; see [`Pages::place_user`].
    pub(crate) fn place_arena(&mut self, address: u64) {
        if let Some(pages) = &mut self.arena {
            pages.place_user(address);
        }
    }

    /// Forgets the arena: there is none until the next one is opened.
    ///
    /// # Errors
    /// If its pages cannot be taken from the file that they were shared with.
    pub(crate) fn close_arena(&mut self) -> std::io::Result<()> {
        let Some(pages) = &mut self.arena else {
            return Ok(());
        };
        let (first, bytes) = (pages.first(), pages.bytes());
        let held = pages.allocated();
        pages.clear();
        if self.shared.arena.take().is_some() {
            return self.unshare(first, bytes);
        }
        for page in held {
            self.zero(page - BASE, Pages::SIZE);
        }
        Ok(())
    }

    /// The byte at `address`; 0 outside the region.
    #[inline]
    #[must_use]
    pub fn load_u8(&self, address: u64) -> u64 {
        u64::from(self.load::<1>(address)[0])
    }

    /// Two bytes, little endian; 0 outside the region.
    #[inline]
    #[must_use]
    pub fn load_u16(&self, address: u64) -> u64 {
        u64::from(u16::from_le_bytes(self.load(address)))
    }

    /// Four bytes, little endian; 0 outside the region.
    #[inline]
    #[must_use]
    pub fn load_u32(&self, address: u64) -> u64 {
        u64::from(u32::from_le_bytes(self.load(address)))
    }

    /// Eight bytes, little endian; 0 outside the region.
    #[inline]
    #[must_use]
    pub fn load_u64(&self, address: u64) -> u64 {
        u64::from_le_bytes(self.load(address))
    }

    /// As [`Memory::store`].
    #[inline]
    pub(crate) fn store_bytes(&mut self, address: u64, bytes: &[u8]) -> bool {
        let at = address.wrapping_sub(BASE + self.maps.start);
        let last = self.maps.used().checked_sub(bytes.len() as u64);
        if last.is_none_or(|last| at > last) {
            return false;
        }
        self.put(self.maps.start + at, bytes);
        true
    }

    /// Whether these bytes, at least one, are the host's to allow a store to:
    /// [`StoreVerdict::Protected`].
    #[inline]
    pub(crate) fn is_kernel_object(&self, address: u64, len: u64) -> bool {
        let at = address.wrapping_sub(BASE + self.kernel.start);
        at < self.kernel.used().saturating_sub(len - 1) && !self.is_frozen(address, len)
    }

    /// What a store of `len` bytes that [`Memory::store`] refused means.
    #[inline]
    pub(crate) fn verdict(&self, address: u64, len: u64) -> StoreVerdict {
        match self.allocated(address, len) {
            StoreVerdict::Protected if self.is_frozen(address, len) => StoreVerdict::Wild,
            verdict => verdict,
        }
    }

    #[inline]
    fn allocated(&self, address: u64, len: u64) -> StoreVerdict {
        let at = address.wrapping_sub(BASE);
        if self.kernel.holds(at, len) {
            return StoreVerdict::Protected;
        }
        match &self.arena {
            Some(pages) if pages.in_window(address, len) => {
                if pages.holds(address, len) {
                    StoreVerdict::Allowed
                } else {
                    StoreVerdict::Dropped
                }
            }
            _ if self.maps.holds(at, len) => StoreVerdict::Allowed,
            _ => StoreVerdict::Wild,
        }
    }

    /// Where native code finds what to add to a guest address.
    #[cfg(feature = "jit")]
    pub(crate) const DELTA: usize = std::mem::offset_of!(Self, region.delta);

    /// Where native code finds [`Pages::flags`].
    #[cfg(feature = "jit")]
    pub(crate) const ARENA_FLAGS: usize = std::mem::offset_of!(Self, arena_flags);

    /// Bits of an address below those that the whole region shares, and the shared part.
    #[cfg(feature = "jit")]
    pub(crate) const fn shared_bits(&self) -> (u32, u64) {
        let bits = self.size.ilog2();
        (bits, BASE >> bits)
    }

    /// Whether the byte at `address` lies in the region.
    #[cfg(feature = "jit")]
    pub(crate) const fn is_inside(&self, address: u64) -> bool {
        address.wrapping_sub(BASE) < self.size
    }

    /// Bytes of the region.
    #[cfg(feature = "jit")]
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Guest address of the writable half.
    #[cfg(feature = "jit")]
    pub(crate) const fn writable_start(&self) -> u64 {
        BASE + self.maps.start
    }

    /// Where native code finds how far behind the start of the writable half a store of up to 8
    /// bytes may begin so that [`Memory::store`] takes it.
    #[cfg(feature = "jit")]
    pub(crate) const WRITABLE: usize =
        std::mem::offset_of!(Self, maps) + std::mem::offset_of!(Heap, open);

    /// Where native code finds the words that it may store into.
    #[cfg(feature = "jit")]
    pub(crate) const OPEN_WORDS: usize = std::mem::offset_of!(Self, open_words);

    /// Whether no byte of these can ever change.
    pub(crate) fn is_constant(&self, address: u64, len: u64) -> bool {
        let holds = |range: &Range<u64>| range.start <= address && address + len <= range.end;
        self.frozen.iter().any(holds)
    }

    /// Frozen sections, by address.
    #[cfg(feature = "jit")]
    pub(crate) fn constants(&self) -> Vec<(u64, Box<[u8]>)> {
        let bytes = |range: &Range<u64>| self.bytes(range.start, range.end - range.start);
        let section = |range: &Range<u64>| Some((range.start, bytes(range)?.into()));
        self.frozen.iter().filter_map(section).collect()
    }

    /// No program and no host function changes these bytes any more.
    pub(crate) fn freeze(&mut self, address: u64, len: u64) {
        self.frozen.push(address..address + len);
        self.frozen_end = self.frozen_end.max(address + len);
    }

    /// Whether any of the bytes lies in a frozen data section.
    #[inline]
    fn is_frozen(&self, address: u64, len: u64) -> bool {
        address < self.frozen_end && self.meets_frozen(address, len)
    }

    fn meets_frozen(&self, address: u64, len: u64) -> bool {
        let end = address.saturating_add(len);
        let meets = |range: &Range<u64>| address < range.end && range.start < end;
        self.frozen.iter().any(meets)
    }

    /// Copies `bytes.len()` bytes out; zeros when any of them lies outside the region.
    pub fn read(&self, address: u64, bytes: &mut [u8]) {
        match self.bytes(address, bytes.len() as u64) {
            Some(source) => bytes.copy_from_slice(source),
            None => bytes.fill(0),
        }
    }

    /// The bytes themselves; `None` when any of them lies outside the region.
    #[inline]
    #[must_use]
    pub fn bytes(&self, address: u64, len: u64) -> Option<&[u8]> {
        let at = address.wrapping_sub(BASE);
        let end = at.checked_add(len).filter(|end| *end <= self.size)?;
        self.region.bytes(at, end)
    }

    /// Text at `address` up to a zero byte, at most `max` bytes, none of them outside the region.
    #[must_use]
    pub fn text(&self, address: u64, max: usize) -> &[u8] {
        let at = address.wrapping_sub(BASE);
        let is_inside = at < self.size;
        let tail = is_inside.then(|| self.region.tail(at, self.size)).flatten();
        let tail = tail.unwrap_or_default();
        let most = &tail[..tail.len().min(max)];
        most.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// The host writes `bytes` into memory of either half that somebody allocated.
    ///
    /// # Panics
    /// If any byte lies elsewhere: the host has lost track of its own objects.
    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        let len = bytes.len() as u64;
        let known = matches!(
            self.allocated(address, len),
            StoreVerdict::Allowed | StoreVerdict::Protected
        );
        assert!(
            known,
            "the host wrote {len} bytes at {address:#x}, which nobody allocated"
        );
        self.put(address - BASE, bytes);
    }

    /// The host writes 32 bits; see [`Memory::write`].
    ///
    /// # Panics
    /// As [`Memory::write`].
    #[inline]
    pub fn poke_u32(&mut self, address: u64, value: u32) {
        self.poke(address, value.to_le_bytes());
    }

    /// The host writes 64 bits; see [`Memory::write`].
    ///
    /// # Panics
    /// As [`Memory::write`].
    #[inline]
    pub fn poke_u64(&mut self, address: u64, value: u64) {
        self.poke(address, value.to_le_bytes());
    }

    /// Writes words into a kernel object of the machine's own.
    #[inline]
    pub(crate) fn put_words(&mut self, address: u64, words: &[u64]) {
        let bytes = self
            .region
            .bytes_mut(address - BASE, 8 * words.len() as u64);
        let (places, _) = bytes.as_chunks_mut();
        for (place, word) in places.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
    }

    /// The first bytes of an object of [`Memory::alloc_kernel`], for the host to change.
    ///
    /// # Panics
    /// If any byte lies behind all objects, or before the region.
    #[inline(always)]
    pub fn kernel_object<const N: usize>(&mut self, address: u64) -> &mut [u8; N] {
        let object = self.region.object(address, self.kernel.next);
        object.unwrap_or_else(|| panic!("{address:#x} is no kernel object"))
    }

    /// Asks the processor for the line of its cache that holds the byte at `address`, and for what
    /// a native program needs to store there. Anything may be asked for.
    #[inline]
    pub fn prefetch(&self, address: u64) {
        self.region.prefetch(address);
        self.open_words.prefetch(address);
    }

    /// Mirrors of kernel objects change all the time, so they come first.
    #[inline]
    fn poke<const N: usize>(&mut self, address: u64, bytes: [u8; N]) {
        let at = address.wrapping_sub(BASE + self.kernel.start);
        // Behind `open` there is room for 8 bytes.
        if at <= self.kernel.open
            && let Some(place) = self.region.chunk_mut::<N>(self.kernel.start + at)
        {
            *place = bytes;
        } else {
            self.poke_elsewhere(address, bytes);
        }
    }

    #[inline(never)]
    fn poke_elsewhere<const N: usize>(&mut self, address: u64, bytes: [u8; N]) {
        if !self.store(address, bytes) {
            self.write(address, &bytes);
        }
    }

    /// Zeroes memory of the writable half that the machine itself allocated: `len` bytes, a
    /// multiple of 8, at an address that is one.
    ///
    /// Little of it word by word: the C library takes longer to find out how little it is. It
    /// zeroes no bytes at all by a store under an empty mask, which takes the processor hundreds of
    /// cycles on a page that nobody has written to.
    #[inline]
    pub(crate) fn clear(&mut self, address: u64, len: u64) {
        if len > 64 {
            return self.zero(address - BASE, len);
        }
        for at in (0..len).step_by(8) {
            let stored = self.store(address + at, [0; 8]);
            debug_assert!(stored, "{address:#x} was never allocated");
        }
    }

    #[inline(always)]
    fn put(&mut self, at: u64, bytes: &[u8]) {
        self.region
            .bytes_mut(at, bytes.len() as u64)
            .copy_from_slice(bytes);
    }

    fn zero(&mut self, at: u64, len: u64) {
        self.region.bytes_mut(at, len).fill(0);
    }
}

/// Where a store points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreVerdict {
    /// Memory that programs may write.
    Allowed,
    /// A page of the arena that nobody allocated: in the window, but not through a pointer of which
    /// it is known. The kernel's fault handler skips the store.
    Dropped,
    /// The read-only half: the host decides.
    Protected,
    /// Nothing.
    Wild,
}

#[cfg(test)]
mod tests;
