//! How a policy ends itself, and what it dumps.

use model::ExitKind;

use super::{Ctx, Line, Return, note_place};

pub(super) const TABLE: &[Line] = &lines![
    ("scx_bpf_error_bstr", "void(ptr,ptr,u32)", error),
    ("scx_bpf_exit_bstr", "void(s64,ptr,ptr,u32)", exit),
    ("scx_bpf_dump_bstr", "void(ptr,ptr,u32)", dump),
];

/// Most values that a message may have (`MAX_BPRINTF_VARARGS`, kernel 6.18).
const MOST_VALUES: u32 = 12;

/// The text of a format and its values; a malformed one is itself an error.
///
/// Source: `__bstr_format()`, kernel 6.18.
pub(super) fn text(ctx: &mut Ctx<'_>, pattern: u64, data: u64, size: u32) -> Option<String> {
    if !size.is_multiple_of(8) || size / 8 > MOST_VALUES || size > 0 && data == 0 {
        ctx.host
            .error(format!("invalid data={data:#x} and data__sz={size}"));
        return None;
    }
    let memory = ctx.vm.memory();
    let values: Vec<u64> = (0..u64::from(size / 8))
        .map(|at| memory.load_u64(data.wrapping_add(8 * at)))
        .collect();
    match bpf::format(memory, pattern, u64::MAX, &values) {
        Ok(text) => Some(text),
        Err(error) => {
            let number = error.to_r0().cast_signed();
            ctx.host
                .error(format!("format preparation failed ({number})"));
            None
        }
    }
}

fn error(ctx: &mut Ctx<'_>, [pattern, data, size, ..]: [u64; 5]) -> Return {
    note_place(ctx);
    if let Some(text) = text(ctx, pattern, data, size as u32) {
        end(ctx, ExitKind::ErrorBpf, 0, text);
    }
    Ok(0)
}

fn exit(ctx: &mut Ctx<'_>, [code, pattern, data, size, _]: [u64; 5]) -> Return {
    note_place(ctx);
    if let Some(text) = text(ctx, pattern, data, size as u32) {
        end(ctx, ExitKind::UnregBpf, code.cast_signed(), text);
    }
    Ok(0)
}

/// Ends the policy, if there is one: a set-up program may run before it is attached.
fn end(ctx: &mut Ctx<'_>, kind: ExitKind, code: i64, text: String) {
    let caller = ctx.host.caller();
    if ctx.host.scheds[caller].attachment.is_enabling() {
        ctx.host.eject(caller, kind, code, text);
    }
}

/// Only dump callbacks may print a dump, and this machine asks for none.
fn dump(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    ctx.host
        .error("scx_bpf_dump() must only be called from ops.dump() and friends");
    Ok(0)
}
