//! Text from a format and its values, as programs print it.

use std::fmt::Write as _;

use crate::{Errno, Memory};

/// Longest format or string that is read, bytes.
const MAX_TEXT: usize = 4096;

/// One conversion of a format.
#[derive(Clone, Copy, Debug, Default)]
struct Conversion {
    left: bool,
    zeros: bool,
    sign: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    /// Whether the value has 64 bits.
    long: bool,
}

/// The text that the kernel's `bstr` functions make of the format at `pattern`, at most `size`
/// bytes long, and its values.
///
/// Understood are `%d %i %u %x %X %p %s %c %%` with flags, width, precision and the lengths
/// `h`, `l`, `ll` and `z`. Pointers print as plain numbers, also for `%pK %px %ps %pS %pB`.
///
/// # Errors
/// [`Errno::EINVAL`] for another conversion or too few values, as the kernel has it.
pub fn format(memory: &Memory, pattern: u64, size: u64, values: &[u64]) -> Result<String, Errno> {
    let max = usize::try_from(size).unwrap_or(MAX_TEXT).min(MAX_TEXT);
    let pattern = string(memory, pattern, max);
    let mut text = String::new();
    let mut values = values.iter().copied();
    let mut rest = pattern.chars().peekable();
    while let Some(char) = rest.next() {
        if char != '%' {
            text.push(char);
            continue;
        }
        let conversion = conversion(&mut rest)?;
        let kind = rest.next().ok_or(Errno::EINVAL)?;
        if kind == '%' {
            text.push('%');
            continue;
        }
        let value = values.next().ok_or(Errno::EINVAL)?;
        if kind == 'p' {
            skip_pointer_kind(&mut rest);
        }
        conversion.write(&mut text, kind, value, memory)?;
    }
    Ok(text)
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn conversion(rest: &mut Rest<'_>) -> Result<Conversion, Errno> {
    let mut conversion = Conversion::default();
    while let Some(flag) = rest.next_if(|char| "-0+ #".contains(*char)) {
        match flag {
            '-' => conversion.left = true,
            '0' => conversion.zeros = true,
            '+' => conversion.sign = true,
            '#' => conversion.alternate = true,
            _ => {}
        }
    }
    conversion.width = number(rest)?.unwrap_or(0);
    if rest.next_if_eq(&'.').is_some() {
        conversion.precision = Some(number(rest)?.unwrap_or(0));
    }
    while let Some(length) = rest.next_if(|char| "hlz".contains(*char)) {
        conversion.long |= length != 'h';
    }
    Ok(conversion)
}

fn number(rest: &mut Rest<'_>) -> Result<Option<usize>, Errno> {
    let mut number = None;
    while let Some(digit) = rest.next_if(char::is_ascii_digit) {
        let digit = digit as usize - '0' as usize;
        number = Some(number.unwrap_or(0) * 10 + digit);
        if number > Some(MAX_TEXT) {
            return Err(Errno::EINVAL);
        }
    }
    Ok(number)
}

/// `%px` and its like say which pointer is meant; addresses are all that we have.
fn skip_pointer_kind(rest: &mut Rest<'_>) {
    rest.next_if(|char| "KxsSB".contains(*char));
}

impl Conversion {
    fn write(
        self,
        text: &mut String,
        kind: char,
        value: u64,
        memory: &Memory,
    ) -> Result<(), Errno> {
        let value = if self.long || "sp".contains(kind) {
            value
        } else {
            value & 0xffff_ffff
        };
        let signed = if self.long {
            value.cast_signed()
        } else {
            i64::from(value as i32)
        };
        let body = match kind {
            'd' | 'i' if self.sign => format!("{signed:+}"),
            'd' | 'i' => signed.to_string(),
            'u' => value.to_string(),
            'x' if self.alternate => format!("{value:#x}"),
            'x' => format!("{value:x}"),
            'X' => format!("{value:X}"),
            'p' => format!("{value:016x}"),
            'c' => char::from(value as u8).to_string(),
            's' => string(memory, value, self.precision.unwrap_or(MAX_TEXT)),
            _ => return Err(Errno::EINVAL),
        };
        self.pad(text, &body, "diuxX".contains(kind));
        Ok(())
    }

    fn pad(self, text: &mut String, body: &str, is_number: bool) {
        let width = self.width;
        let result = if self.left {
            write!(text, "{body:<width$}")
        } else if self.zeros && is_number {
            let signs = body.len() - body.trim_start_matches(['-', '+']).len();
            let (sign, digits) = body.split_at(signs);
            write!(
                text,
                "{sign}{digits:0>width$}",
                width = width.saturating_sub(signs)
            )
        } else {
            write!(text, "{body:>width$}")
        };
        result.expect("writing to a string cannot fail");
    }
}

/// Text from memory. What is no UTF-8 becomes a replacement character.
fn string(memory: &Memory, address: u64, max: usize) -> String {
    String::from_utf8_lossy(memory.text(address, max)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pattern: &str, values: &[u64]) -> Result<String, Errno> {
        let mut memory = Memory::reserve(1 << 16, None).unwrap();
        let at = memory.alloc_map(256).unwrap();
        memory.write(at, pattern.as_bytes());
        memory.write(at + 200, b"name\0");
        let values: Vec<u64> = values
            .iter()
            .map(|v| if *v == 777 { at + 200 } else { *v })
            .collect();
        format(&memory, at, 200, &values)
    }

    #[test]
    fn numbers_print_with_sign_width_and_base() {
        let minus = (-5_i64).cast_unsigned();
        assert_eq!(
            text("%d|%5d|%-4d|%05d", &[minus, 7, 7, minus]).unwrap(),
            "-5|    7|7   |-0005"
        );
        assert_eq!(
            text("%u %lu", &[minus, minus]).unwrap(),
            "4294967291 18446744073709551611"
        );
        assert_eq!(
            text("%x %#lx %08llX%%", &[255, 255, 255]).unwrap(),
            "ff 0xff 000000FF%"
        );
        assert_eq!(text("%lld", &[minus]).unwrap(), "-5");
    }

    #[test]
    fn strings_are_read_from_memory_and_cut_to_their_precision() {
        assert_eq!(
            text("[%s] [%.2s] [%6s]", &[777, 777, 777]).unwrap(),
            "[name] [na] [  name]"
        );
        assert_eq!(text("%s", &[0]).unwrap(), "");
    }

    #[test]
    fn an_unknown_conversion_and_a_missing_value_are_errors() {
        assert_eq!(text("%f", &[1]), Err(Errno::EINVAL));
        assert_eq!(text("%d %d", &[1]), Err(Errno::EINVAL));
        assert_eq!(text("100%", &[]), Err(Errno::EINVAL));
    }
}
