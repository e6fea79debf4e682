//! The operations of a task as a tree of which parts can be left out.
//!
//! Only brackets and separators are read. Whether a tree with less in it still means something is
//! for the workload's own reader to say.

use std::ops::Range;

/// Operations, one after the other.
pub type Ops = Vec<OperationWords>;

/// One operation: its words, with lists of others between them.
pub type OperationWords = Vec<Piece>;

/// A part of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Words as they stand.
    Words(String),
    /// `[...]` with operations in it.
    List(Ops),
}

/// Lists within lists that are read; the workload's own reader has a limit, too.
const DEEPEST: usize = 64;

/// Reads a text; `None` if its brackets do not match or are too deep.
pub fn read(text: &str) -> Option<Ops> {
    let mut rest = text.chars().peekable();
    let ops = list(&mut rest, DEEPEST)?;
    rest.next().is_none().then_some(ops)
}

fn list(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, deep: usize) -> Option<Ops> {
    let mut ops = Vec::new();
    let mut op: OperationWords = Vec::new();
    let mut words = String::new();
    let mut open = 0_usize;
    while let Some(&letter) = rest.peek() {
        if letter == ']' && open == 0 {
            break;
        }
        rest.next();
        match letter {
            ',' | ';' if open == 0 => {
                close(&mut words, &mut op);
                ops.push(std::mem::take(&mut op));
            }
            '[' if open == 0 && begins_a_list(&words) => {
                close(&mut words, &mut op);
                op.push(Piece::List(list(rest, deep.checked_sub(1)?)?));
                if rest.next() != Some(']') {
                    return None;
                }
            }
            _ => {
                match letter {
                    '(' | '[' | '{' => open += 1,
                    ')' | ']' | '}' => open = open.checked_sub(1)?,
                    _ => {}
                }
                words.push(letter);
            }
        }
    }
    close(&mut words, &mut op);
    ops.push(op);
    ops.retain(|op| !op.is_empty());
    (open == 0).then_some(ops)
}

/// Behind `loop(n)`, `if(e)`, `for(i, n)`, `while(e)` and `else` stand operations; behind a name,
/// an index.
fn begins_a_list(words: &str) -> bool {
    let words = words.trim_end();
    words.ends_with(')') || words.ends_with("else") || words.is_empty()
}

fn close(words: &mut String, op: &mut OperationWords) {
    let taken = std::mem::take(words);
    if !taken.trim().is_empty() {
        op.push(Piece::Words(taken.trim().to_owned()));
    }
}

/// The text of operations.
pub fn text(ops: &[OperationWords]) -> String {
    let ops = ops.iter().map(|op| {
        let pieces = op.iter().map(|piece| match piece {
            Piece::Words(words) => words.clone(),
            Piece::List(ops) => format!("[ {} ]", text(ops)),
        });
        pieces.collect::<Vec<_>>().join(" ")
    });
    ops.collect::<Vec<_>>().join(", ")
}

/// How many operations there are, those within others included.
pub fn count(ops: &[OperationWords]) -> usize {
    let of = |piece: &Piece| match piece {
        Piece::Words(_) => 0,
        Piece::List(ops) => count(ops),
    };
    ops.iter()
        .map(|op| 1 + op.iter().map(of).sum::<usize>())
        .sum()
}

/// What to leave out of `len` things: all, halves, quarters, down to single ones.
pub fn chunks(len: usize) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut size = len;
    while size > 0 {
        let begins = (0..len).step_by(size);
        all.extend(begins.map(|begin| begin..(begin + size).min(len)));
        if size == 1 {
            break;
        }
        size = size.div_ceil(2);
    }
    all
}

/// Operations with less in them: without some, or with what is in a list in the place of the
/// operation that has it.
pub fn smaller(ops: &[OperationWords]) -> Vec<Ops> {
    let mut variants: Vec<Ops> = chunks(ops.len())
        .into_iter()
        .filter(|gone| gone.len() < ops.len())
        .map(|gone| [&ops[..gone.start], &ops[gone.end..]].concat())
        .collect();
    for (at, op) in ops.iter().enumerate() {
        for (inner_at, piece) in op.iter().enumerate() {
            let Piece::List(inner) = piece else { continue };
            variants.push([&ops[..at], inner, &ops[at + 1..]].concat());
            variants.extend(smaller(inner).into_iter().map(|inner| {
                let mut changed = ops.to_vec();
                changed[at][inner_at] = Piece::List(inner);
                changed
            }));
        }
    }
    variants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_with_their_lists_and_not_their_indices() {
        let ops =
            read("loop(inf)[ send(c[self], 3), if(a < 2)[ yield ] else [ exit; exit ] ]; run(1ms)")
                .unwrap();
        assert_eq!((ops.len(), count(&ops)), (2, 7));
        let again = read(&text(&ops)).unwrap();
        assert_eq!(again, ops);
        for wrong in ["run(1ms", "run)1", "loop(2)[ run(1ms)", "yield ]"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let deep = "loop(1)[".repeat(10_000) + &"]".repeat(10_000);
        assert_eq!(read(&deep), None);
    }

    #[test]
    fn smaller_ones_leave_out_or_unwrap() {
        let ops = read("a, loop(2)[ b, c ]").unwrap();
        let texts: Vec<_> = smaller(&ops).iter().map(|ops| text(ops)).collect();
        assert_eq!(
            texts,
            [
                "loop(2) [ b, c ]",
                "a",
                "a, b, c",
                "a, loop(2) [ c ]",
                "a, loop(2) [ b ]"
            ]
        );
    }

    #[test]
    fn chunks_are_all_halves_and_so_on() {
        assert_eq!(chunks(0), []);
        assert_eq!(chunks(3), [0..3, 0..2, 2..3, 0..1, 1..2, 2..3]);
    }
}
