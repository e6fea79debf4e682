//! Dumps as people mail them: quoted, with what a log puts before each line, or with the last line
//! first.

/// The lines of a text, in the order in which the kernel wrote them, without marks of quotes and
/// without the fronts of a log.
pub(super) fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().map(bare).collect();
    if is_reversed(&lines) {
        lines.reverse();
    }
    lines
}

fn bare(line: &str) -> &str {
    // A byte order mark, or the colour that a terminal gave a line.
    let line = without_colour(line.trim_start_matches('\u{feff}'));
    without_front(without_quotes(line))
}

/// `ESC [ 0;31m`, at the begin of a line.
fn without_colour(line: &str) -> &str {
    let mut line = line;
    while let Some(rest) = line.strip_prefix("\u{1b}[") {
        let end = rest.find(|it: char| !it.is_ascii_digit() && it != ';');
        match end.map(|end| rest.split_at(end)) {
            Some((_, rest)) if rest.starts_with('m') => line = &rest[1..],
            _ => break,
        }
    }
    line
}

/// `> `, `>> ` and `> > ` of mails and comments.
fn without_quotes(line: &str) -> &str {
    let mut line = line;
    while let Some(rest) = line.strip_prefix('>') {
        line = match rest.strip_prefix(' ') {
            // Mails put a space between the marks, too.
            Some(after) if after.starts_with('>') => after,
            Some(after) => return after,
            None => rest,
        };
    }
    line
}

/// Leaves out what the kernel's log, its trace, or a journal puts before a line.
fn without_front(line: &str) -> &str {
    // `sched_ext_dump` is the tracepoint to which SysRq-D dumps (kernel 6.18, kernel/sched/ext.c).
    if let Some((_, rest)) = line.split_once(" sched_ext_dump: ") {
        return rest;
    }
    if let Some(rest) = without_stamp(line) {
        return without_program(rest)
            .or_else(|| without_tag(rest))
            .unwrap_or(rest);
    }
    without_tag(line).unwrap_or(line)
}

/// `[  812.345678] `, and the caller that some kernels add, `[   T42] `; `[Sat Jul 13 00:36:54
/// 2025] ` and `[  +0.000012] ` of `dmesg`; `<6>` before it; `1752359814.123456 ` of a journal.
fn without_stamp(line: &str) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let is_seconds = |text: &str| {
        let parts = text.trim_start_matches('+').split_once('.');
        parts.is_some_and(|(seconds, part)| is_number(seconds) && is_number(part))
    };
    let level = line.strip_prefix('<').and_then(|it| it.split_once('>'));
    let line = level
        .filter(|(level, _)| is_number(level))
        .map_or(line, |(_, rest)| rest);
    let Some(rest) = line.strip_prefix('[') else {
        let (first, rest) = line.split_once(' ')?;
        // Only a journal has a program behind such a time.
        return without_program(rest)
            .filter(|_| is_seconds(first))
            .map(|_| rest);
    };
    let (stamp, rest) = rest.split_once(']')?;
    let stamp = stamp.trim();
    if !is_seconds(stamp) && !stamp.split(' ').any(is_time) {
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

/// `host bash[8799]: `, behind a stamp.
fn without_program(line: &str) -> Option<&str> {
    let (computer, rest) = line.split_once(' ')?;
    let (program, said) = rest.split_once(": ").or_else(|| rest.split_once(':'))?;
    let is_word = |word: &str| !word.is_empty() && !word.contains([' ', '\t', ':']);
    let has_pid = program == "kernel" || program.ends_with(']');
    (is_word(computer) && is_word(program) && has_pid).then_some(said)
}

/// `00:36:54`, also behind a date and before a zone.
fn is_time(word: &str) -> bool {
    let after_day = word.rsplit('T').next().unwrap_or(word);
    let mut parts = after_day.split(':');
    let is_two =
        |part: &str| part.len() >= 2 && part.as_bytes()[..2].iter().all(u8::is_ascii_digit);
    parts.clone().count() >= 3 && parts.all(is_two)
}

/// `Jul 13 00:36:54 host bash[8799]: `: a date with a time of day, a computer, a program.
fn without_tag(line: &str) -> Option<&str> {
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    let words = line.split(' ').filter(|word| !word.is_empty());
    let time = words.take(4).find(|word| is_time(word))?;
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
            "<6>[  812.345678] ",
            "[  +0.000012] ",
            "[Sat Jul 13 00:36:54 2025] ",
            "[  812.345678] host bash[8799]: ",
            "1752359814.123456 host bash[8799]: ",
            "Jul  3 00:36:54 host bash[8799]: ",
            "Sat 2025-07-13 00:36:54 CEST host bash[8799]: ",
            "cze 22 09:54:09 host scx_loader[57]: ",
            "2025-07-13T00:36:54.123456+02:00 host bash[8799]: ",
            "00:36:54 host kernel: ",
            "kworker/u8:0-12 [001] d..2. 812.345678: sched_ext_dump: ",
        ] {
            for quote in ["", "> ", ">> ", "> > ", "\u{1b}[0m", "\u{1b}[1;31m"] {
                assert_eq!(
                    bare(&format!("{quote}{front}{line}")),
                    line,
                    "{quote}{front}"
                );
            }
        }
        for line in [
            line,
            "CPU 0   : nr_run=3 flags=0x1",
            "CPU 1000: nr_run=3 flags=0x1",
            "[x] y",
            "      dsq_id=0x1: 00:00:00",
            "faulty: root",
            "",
        ] {
            assert_eq!(bare(line), line);
        }
        assert_eq!(bare("Jul  3 00:36:54 host bash[8799]:"), "");
        assert_eq!(bare(">"), "");
    }
}
