//! Masks that programs create and combine. Source: `kernel/bpf/cpumask.c`, kernel 6.18.

use bpf::Stop;
use model::CpuId;

use super::{Ctx, Line, Return, s32};
use crate::flags::errno;
use crate::idle::rotate;
use crate::mask::Mask;
use crate::mirror::{MASK_BYTES, read_mask, write_mask};

pub(super) const TABLE: &[Line] = &lines![
    ("bpf_cpumask_create", "ptr()", create),
    ("bpf_cpumask_acquire", "ptr(ptr)", acquire),
    ("bpf_cpumask_release", "void(ptr)", release),
    ("bpf_cpumask_first", "u32(ptr)", first),
    ("bpf_cpumask_first_zero", "u32(ptr)", first_zero),
    ("bpf_cpumask_first_and", "u32(ptr,ptr)", first_and),
    ("bpf_cpumask_set_cpu", "void(u32,ptr)", set_cpu),
    ("bpf_cpumask_clear_cpu", "void(u32,ptr)", clear_cpu),
    ("bpf_cpumask_test_cpu", "bool(u32,ptr)", test_cpu),
    (
        "bpf_cpumask_test_and_set_cpu",
        "bool(u32,ptr)",
        test_and_set_cpu,
    ),
    (
        "bpf_cpumask_test_and_clear_cpu",
        "bool(u32,ptr)",
        test_and_clear_cpu,
    ),
    ("bpf_cpumask_setall", "void(ptr)", setall),
    ("bpf_cpumask_clear", "void(ptr)", clear),
    ("bpf_cpumask_and", "bool(ptr,ptr,ptr)", and),
    ("bpf_cpumask_or", "void(ptr,ptr,ptr)", or),
    ("bpf_cpumask_xor", "void(ptr,ptr,ptr)", xor),
    ("bpf_cpumask_equal", "bool(ptr,ptr)", equal),
    ("bpf_cpumask_intersects", "bool(ptr,ptr)", intersects),
    ("bpf_cpumask_subset", "bool(ptr,ptr)", subset),
    ("bpf_cpumask_empty", "bool(ptr)", empty),
    ("bpf_cpumask_full", "bool(ptr)", full),
    ("bpf_cpumask_copy", "void(ptr,ptr)", copy),
    ("bpf_cpumask_any_distribute", "u32(ptr)", any_distribute),
    (
        "bpf_cpumask_any_and_distribute",
        "u32(ptr,ptr)",
        any_and_distribute,
    ),
    ("bpf_cpumask_weight", "u32(ptr)", weight),
    ("bpf_cpumask_populate", "s32(ptr,ptr,u64)", populate),
];

fn read(ctx: &mut Ctx<'_>, at: u64) -> Mask {
    read_mask(ctx.vm.memory(), at, ctx.host.spec.cpus)
}

/// Writes a mask that the program has created, or that lies in memory which the program may write.
/// The kernel's own masks are not for writing.
///
/// Source: kernel 6.18, `kernel/bpf/verifier.c`, `get_kfunc_ptr_arg_type()`: a structure of nothing
/// but numbers may lie in any memory of its size.
fn write(ctx: &mut Ctx<'_>, at: u64, mask: &Mask) -> Result<(), Stop> {
    if ctx.host.mirror.masks.contains_key(&at) {
        write_mask(ctx.vm.memory(), at, mask);
        return Ok(());
    }
    let bytes: Vec<u8> = mask.words().iter().flat_map(|w| w.to_le_bytes()).collect();
    let written = ctx.vm.deliver(at, &bytes);
    written.map_err(|_| Stop::Refused(format!("{at:#x} is no `struct bpf_cpumask`")))
}

fn create(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    let Ok(at) = ctx.vm.memory().alloc_object(MASK_BYTES + 8, 8) else {
        ctx.vm.memory().within_limit()?;
        return Ok(0);
    };
    ctx.vm.memory().write(at, &[0; MASK_BYTES as usize + 8]);
    ctx.host.mirror.masks.insert(at, 1);
    Ok(at)
}

fn acquire(ctx: &mut Ctx<'_>, [at, ..]: [u64; 5]) -> Return {
    match ctx.host.mirror.masks.get_mut(&at) {
        Some(count) => *count += 1,
        None => return Err(Stop::Refused(format!("{at:#x} is no `struct bpf_cpumask`"))),
    }
    Ok(at)
}

fn release(ctx: &mut Ctx<'_>, [at, ..]: [u64; 5]) -> Return {
    if !ctx.host.release_mask(ctx.vm.memory(), at) {
        return Err(Stop::Refused(format!("{at:#x} is no `struct bpf_cpumask`")));
    }
    Ok(0)
}

/// The number of a CPU, or the number of CPUs when there is none.
fn number(ctx: &Ctx<'_>, cpu: Option<CpuId>) -> u64 {
    u64::from(cpu.map_or(ctx.host.spec.cpus, |cpu| cpu.0))
}

fn first(ctx: &mut Ctx<'_>, [at, ..]: [u64; 5]) -> Return {
    let found = read(ctx, at).first();
    Ok(number(ctx, found))
}

fn first_zero(ctx: &mut Ctx<'_>, [at, ..]: [u64; 5]) -> Return {
    let mask = read(ctx, at);
    let found = Mask::all(ctx.host.spec.cpus)
        .iter()
        .find(|&cpu| !mask.has(cpu));
    Ok(number(ctx, found))
}

fn first_and(ctx: &mut Ctx<'_>, [a, b, ..]: [u64; 5]) -> Return {
    let found = read(ctx, a).and(&read(ctx, b)).first();
    Ok(number(ctx, found))
}

fn cpu(ctx: &Ctx<'_>, number: u64) -> Option<CpuId> {
    let number = number as u32;
    ctx.host
        .has_cpu(i64::from(number))
        .then_some(CpuId(number as u16))
}

fn set_cpu(ctx: &mut Ctx<'_>, args: [u64; 5]) -> Return {
    test_and_set_cpu(ctx, args).map(|_| 0)
}

fn clear_cpu(ctx: &mut Ctx<'_>, args: [u64; 5]) -> Return {
    test_and_clear_cpu(ctx, args).map(|_| 0)
}

fn test_cpu(ctx: &mut Ctx<'_>, [n, at, ..]: [u64; 5]) -> Return {
    let Some(cpu) = cpu(ctx, n) else { return Ok(0) };
    let word = ctx
        .vm
        .memory()
        .load_u64(at.wrapping_add(u64::from(cpu.0 / 64) * 8));
    Ok(word >> (cpu.0 % 64) & 1)
}

fn test_and_set_cpu(ctx: &mut Ctx<'_>, [n, at, ..]: [u64; 5]) -> Return {
    let Some(cpu) = cpu(ctx, n) else { return Ok(0) };
    let mut mask = read(ctx, at);
    let was = mask.has(cpu);
    mask.insert(cpu);
    write(ctx, at, &mask)?;
    Ok(u64::from(was))
}

fn test_and_clear_cpu(ctx: &mut Ctx<'_>, [n, at, ..]: [u64; 5]) -> Return {
    let Some(cpu) = cpu(ctx, n) else { return Ok(0) };
    let mut mask = read(ctx, at);
    let was = mask.has(cpu);
    mask.remove(cpu);
    write(ctx, at, &mask)?;
    Ok(u64::from(was))
}

fn setall(ctx: &mut Ctx<'_>, [at, ..]: [u64; 5]) -> Return {
    let all = Mask::all(ctx.host.spec.cpus);
    write(ctx, at, &all).map(|()| 0)
}

fn clear(ctx: &mut Ctx<'_>, [at, ..]: [u64; 5]) -> Return {
    let none = Mask::empty(ctx.host.spec.cpus);
    write(ctx, at, &none).map(|()| 0)
}

fn combine(ctx: &mut Ctx<'_>, [dst, a, b]: [u64; 3], op: fn(u64, u64) -> u64) -> Return {
    let (mut left, right) = (read(ctx, a), read(ctx, b));
    for (left, right) in left.words_mut().iter_mut().zip(right.words()) {
        *left = op(*left, *right);
    }
    write(ctx, dst, &left)?;
    Ok(u64::from(!left.is_empty()))
}

fn and(ctx: &mut Ctx<'_>, [dst, a, b, ..]: [u64; 5]) -> Return {
    combine(ctx, [dst, a, b], |a, b| a & b)
}

fn or(ctx: &mut Ctx<'_>, [dst, a, b, ..]: [u64; 5]) -> Return {
    combine(ctx, [dst, a, b], |a, b| a | b).map(|_| 0)
}

fn xor(ctx: &mut Ctx<'_>, [dst, a, b, ..]: [u64; 5]) -> Return {
    combine(ctx, [dst, a, b], |a, b| a ^ b).map(|_| 0)
}

fn equal(ctx: &mut Ctx<'_>, [a, b, ..]: [u64; 5]) -> Return {
    Ok(u64::from(read(ctx, a) == read(ctx, b)))
}

fn intersects(ctx: &mut Ctx<'_>, [a, b, ..]: [u64; 5]) -> Return {
    Ok(u64::from(!read(ctx, a).and(&read(ctx, b)).is_empty()))
}

fn subset(ctx: &mut Ctx<'_>, [a, b, ..]: [u64; 5]) -> Return {
    Ok(u64::from(read(ctx, a).is_subset(&read(ctx, b))))
}

fn empty(ctx: &mut Ctx<'_>, [at, ..]: [u64; 5]) -> Return {
    Ok(u64::from(read(ctx, at).is_empty()))
}

fn full(ctx: &mut Ctx<'_>, [at, ..]: [u64; 5]) -> Return {
    let all = Mask::all(ctx.host.spec.cpus);
    Ok(u64::from(read(ctx, at) == all))
}

fn copy(ctx: &mut Ctx<'_>, [dst, src, ..]: [u64; 5]) -> Return {
    let mask = read(ctx, src);
    write(ctx, dst, &mask).map(|()| 0)
}

fn distribute(ctx: &mut Ctx<'_>, a: &Mask, b: &Mask) -> u64 {
    let exec = ctx.host.turn.exec;
    let found = rotate(&mut ctx.host.cpus[exec].rotor, a, b);
    number(ctx, found)
}

fn any_distribute(ctx: &mut Ctx<'_>, [at, ..]: [u64; 5]) -> Return {
    let mask = read(ctx, at);
    Ok(distribute(ctx, &mask, &mask))
}

fn any_and_distribute(ctx: &mut Ctx<'_>, [a, b, ..]: [u64; 5]) -> Return {
    let (a, b) = (read(ctx, a), read(ctx, b));
    Ok(distribute(ctx, &a, &b))
}

fn weight(ctx: &mut Ctx<'_>, [at, ..]: [u64; 5]) -> Return {
    Ok(u64::from(read(ctx, at).count()))
}

/// Sets a mask from words in the program's memory, which must be there for every CPU.
///
/// Source: `bpf_cpumask_populate()`, kernel 6.18: too small a buffer is `-EACCES`.
fn populate(ctx: &mut Ctx<'_>, [dst, src, size, ..]: [u64; 5]) -> Return {
    let words = u64::from(ctx.host.spec.cpus).div_ceil(64);
    if size < 8 * words {
        return Ok(s32(errno::EACCES));
    }
    let mask = read(ctx, src);
    write(ctx, dst, &mask).map(|()| 0)
}
