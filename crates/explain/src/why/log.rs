//! Dumps as people mail them: with what a log puts before each line, or with the last line first.

/// The lines of a text, in the order in which the kernel wrote them, without the fronts of a log.
pub(super) fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().map(without_front).collect();
    if is_reversed(&lines) {
        lines.reverse();
    }
    lines
}

/// Leaves out what the kernel's log, its trace, or a journal puts before a line.
fn without_front(line: &str) -> &str {
    // `sched_ext_dump` is the tracepoint to which SysRq-D dumps (kernel 6.18, kernel/sched/ext.c).
    if let Some((_, rest)) = line.split_once(" sched_ext_dump: ") {
        return rest;
    }
    let line = without_stamp(line).unwrap_or(line);
    without_tag(line).unwrap_or(line)
}

/// `[  812.345678] `, and the caller that some kernels add, `[   T42] `.
fn without_stamp(line: &str) -> Option<&str> {
    let (stamp, rest) = line.strip_prefix('[')?.split_once(']')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let (seconds, part) = stamp.trim().split_once('.')?;
    if !is_number(seconds) || !is_number(part) {
        return None;
    }
    let is_caller = |text: &&str| {
        let digits = text.trim().strip_prefix(['T', 'C']);
        digits.is_some_and(is_number)
    };
    let caller = rest.trim_start().strip_prefix('[');
    let caller = caller.and_then(|it| it.split_once(']'));
    let rest = caller
        .filter(|(caller, _)| is_caller(caller))
        .map_or(rest, |(_, rest)| rest);
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// `Jul 13 00:36:54 host bash[8799]: `: a date with a time of day, a computer, a program.
fn without_tag(line: &str) -> Option<&str> {
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    let has_time = |word: &&str| {
        let after_day = word.rsplit('T').next().unwrap_or(word);
        let mut parts = after_day.split(':');
        let is_two =
            |part: &str| part.len() >= 2 && part.as_bytes()[..2].iter().all(u8::is_ascii_digit);
        parts.clone().count() >= 3 && parts.all(is_two)
    };
    let time = line
        .split(' ')
        .filter(|word| !word.is_empty())
        .take(3)
        .find(has_time)?;
    let rest = &line[line.find(time)? + time.len()..];
    // A journal cuts the space of an empty line.
    let (_, said) = rest.split_once(": ").or_else(|| rest.split_once(':'))?;
    Some(said)
}

/// Whether what the kernel writes below a task's first line stands above it: `journalctl -r`.
fn is_reversed(lines: &[&str]) -> bool {
    let is_below = |line: &&str| line.trim_start().starts_with("scx_state/flags=");
    let is_first = |line: &&str| line.trim_end().ends_with("ms") && line.contains('[');
    let pairs = || lines.windows(2);
    let forth = pairs().filter(|pair| is_first(&pair[0]) && is_below(&pair[1]));
    let back = pairs().filter(|pair| is_below(&pair[0]) && is_first(&pair[1]));
    back.count() > forth.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_log_puts_before_a_line_is_left_out_and_nothing_else() {
        let line = "  R hog two[78] -100ms";
        for front in [
            "[  812.345678] ",
            "[812.345678][  T42] ",
            "Jul  3 00:36:54 host bash[8799]: ",
            "2025-07-13T00:36:54.123456+02:00 host bash[8799]: ",
            "00:36:54 host kernel: ",
            "kworker/u8:0-12 [001] d..2. 812.345678: sched_ext_dump: ",
        ] {
            assert_eq!(without_front(&format!("{front}{line}")), line, "{front}");
        }
        for line in [
            line,
            "CPU 0   : nr_run=3 flags=0x1",
            "[x] y",
            "      dsq_id=0x1: 00:00:00",
            "",
        ] {
            assert_eq!(without_front(line), line);
        }
        assert_eq!(without_front("Jul  3 00:36:54 host bash[8799]:"), "");
    }
}
