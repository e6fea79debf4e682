//! Arithmetic for which Rust has no single name.

pub(super) const fn signed(value: u64) -> i64 {
    value.cast_signed()
}

pub(super) const fn signed32(value: u32) -> i32 {
    value.cast_signed()
}

pub(super) const fn arsh64(a: u64, b: u64) -> u64 {
    signed(a).wrapping_shr(b as u32).cast_unsigned()
}

pub(super) const fn arsh32(a: u32, b: u32) -> u32 {
    signed32(a).wrapping_shr(b).cast_unsigned()
}

pub(super) const fn sdiv64(a: u64, b: u64) -> u64 {
    if b == 0 {
        0
    } else {
        signed(a).wrapping_div(signed(b)).cast_unsigned()
    }
}

pub(super) const fn sdiv32(a: u32, b: u32) -> u32 {
    if b == 0 {
        0
    } else {
        signed32(a).wrapping_div(signed32(b)).cast_unsigned()
    }
}

pub(super) const fn smod64(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        signed(a).wrapping_rem(signed(b)).cast_unsigned()
    }
}

pub(super) const fn smod32(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        signed32(a).wrapping_rem(signed32(b)).cast_unsigned()
    }
}
