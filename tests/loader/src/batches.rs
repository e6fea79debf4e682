//! Calls of bpf(2) that say themselves how much they ask for.
#![expect(unsafe_code, reason = "system calls that std does not make")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "a test program: it may crash"
)]

use crate::cases::{bpf, errno, map};

const LOOKUP: i64 = 24;
const LOOKUP_AND_DELETE: i64 = 25;
const UPDATE: i64 = 26;
const DELETE: i64 = 27;

/// As many zeros as the address space has room for, which take no memory.
fn zeros(len: usize) -> u64 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let at = unsafe { libc::mmap(std::ptr::null_mut(), len, both, flags, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED);
    at as u64
}

/// A batch: what it answers, and how many elements it says that it has done.
fn batch(command: i64, map: i32, (keys, values): (u64, u64), count: u32) -> (i32, u32) {
    let mut attr = [0; 56];
    let next = [0_u8; 8];
    attr[8..16].copy_from_slice(&(next.as_ptr() as u64).to_le_bytes());
    attr[16..24].copy_from_slice(&keys.to_le_bytes());
    attr[24..32].copy_from_slice(&values.to_le_bytes());
    attr[32..36].copy_from_slice(&count.to_le_bytes());
    attr[36..40].copy_from_slice(&map.to_le_bytes());
    let (at, len) = (attr.as_mut_ptr(), attr.len());
    let answer = errno(unsafe { libc::syscall(libc::SYS_bpf, command, at, len) });
    (
        answer,
        u32::from_le_bytes([attr[32], attr[33], attr[34], attr[35]]),
    )
}

pub fn run() {
    let places = (zeros(16 << 30), zeros(32 << 30));
    let array = map(2, 4, 8, 1);
    println!("update {:?}", batch(UPDATE, array, places, u32::MAX));
    println!("delete {:?}", batch(DELETE, array, places, u32::MAX));
    let hash = map(1, 4, 8, 8);
    let keys = [1_u32, 2, 3];
    let few = (keys.as_ptr() as u64, places.1);
    println!("few {:?}", batch(UPDATE, hash, few, 3));
    println!("all {:?}", batch(LOOKUP, hash, places, u32::MAX));
    println!(
        "taken {:?}",
        batch(LOOKUP_AND_DELETE, hash, places, u32::MAX)
    );
    println!("none {:?}", batch(LOOKUP, hash, places, u32::MAX));
    // A program with more records than instructions: 2^32 of 2^32 bytes each.
    let mut attr = [0; 128];
    let code = [0x95_u64; 2];
    let license = c"GPL";
    attr[..4].copy_from_slice(&31_u32.to_le_bytes());
    attr[4..8].copy_from_slice(&2_u32.to_le_bytes());
    attr[8..16].copy_from_slice(&(code.as_ptr() as u64).to_le_bytes());
    attr[16..24].copy_from_slice(&(license.as_ptr() as u64).to_le_bytes());
    for at in [76, 88, 92, 104] {
        attr[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    }
    println!("records {}", errno(bpf(5, &attr)));
}
