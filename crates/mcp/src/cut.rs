//! Documents that are longer than a client wants: their largest lists, texts and tables become
//! shorter, and it is said which.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Something that became shorter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cut {
    /// Where in `answer` it is, as a JSON pointer.
    pub at: String,
    /// How many elements of a list, bytes of a text or entries of an object are there.
    pub kept: usize,
    /// How many there were.
    pub of: usize,
}

/// Makes `document` fit into `most` bytes as compact JSON, as far as something can be shortened.
pub fn fit(document: &mut Value, most: usize) -> Vec<Cut> {
    let mut cuts: BTreeMap<String, Cut> = BTreeMap::new();
    loop {
        let have = size(document);
        if have <= most {
            break;
        }
        let mut at = String::new();
        let place = largest(document, &mut at);
        let Some((of, kept)) = shorten(place, have - most) else {
            break;
        };
        // What is inside of something that is gone is not told.
        let inside = format!("{at}/");
        cuts.retain(|it, cut| !it.starts_with(&inside) || is_there(document, &cut.at));
        let cut = cuts.entry(at.clone()).or_insert(Cut { at, kept, of });
        cut.kept = kept;
    }
    cuts.into_values().collect()
}

fn is_there(document: &Value, at: &str) -> bool {
    document.pointer(at).is_some()
}

/// Bytes of a value as compact JSON.
fn size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Nothing that counts refuses a value.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// The innermost value that has most of the bytes of all around it: its way is added to `at`.
fn largest<'a>(value: &'a mut Value, at: &mut String) -> &'a mut Value {
    let whole = size(value);
    let found = match value {
        Value::Array(items) => {
            let sizes = items.iter().map(size).enumerate();
            sizes
                .max_by_key(|it| it.1)
                .map(|it| (it.0.to_string(), it.1))
        }
        Value::Object(entries) => {
            let sizes = entries.iter().map(|(name, it)| (name.clone(), size(it)));
            sizes.max_by_key(|it| it.1)
        }
        _ => None,
    };
    // A list of many alike is shortened as a whole.
    let Some((name, _)) = found.filter(|(_, part)| part * 2 > whole) else {
        return value;
    };
    *at += "/";
    *at += &name.replace('~', "~0").replace('/', "~1");
    let inner = match value {
        Value::Array(items) => name.parse().ok().and_then(|it: usize| items.get_mut(it)),
        Value::Object(entries) => entries.get_mut(&name),
        _ => None,
    };
    largest(inner.expect("it was found there"), at)
}

/// Makes a value shorter by `excess` bytes or by half; how long it was and is.
fn shorten(value: &mut Value, excess: usize) -> Option<(usize, usize)> {
    let bytes = size(value).max(1);
    // A part of the elements has that part of the bytes, more or less.
    let less = |count: usize| {
        let kept = count - (count * excess.min(bytes)).div_ceil(bytes);
        kept.min(count.saturating_sub(1))
    };
    match value {
        Value::Array(items) if !items.is_empty() => {
            let of = items.len();
            items.truncate(less(of));
            Some((of, items.len()))
        }
        Value::String(text) if !text.is_empty() => {
            let of = text.len();
            let mut kept = less(of);
            while !text.is_char_boundary(kept) {
                kept -= 1;
            }
            text.truncate(kept);
            Some((of, kept))
        }
        Value::Object(entries) if !entries.is_empty() => {
            let of = entries.len();
            let kept = less(of);
            *entries = std::mem::take(entries).into_iter().take(kept).collect();
            Some((of, kept))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_that_fits_stays_as_it_is() {
        let mut document = json!({ "rows": [1, 2, 3], "words": "x" });
        let whole = document.clone();
        assert_eq!(fit(&mut document, 100), []);
        assert_eq!(document, whole);
    }

    #[test]
    fn the_longest_list_becomes_shorter_and_the_rest_stays() {
        let rows: Vec<_> = (0..1000)
            .map(|it| json!({ "n": it, "name": "task" }))
            .collect();
        let mut document = json!({ "policies": [{ "name": "fifo", "tasks": rows }], "seed": 1 });
        let cuts = fit(&mut document, 2_000);
        assert!(size(&document) <= 2_000, "{}", size(&document));
        let kept = document["policies"][0]["tasks"].as_array().unwrap().len();
        assert!(kept > 30, "{kept}");
        let at = "/policies/0/tasks".to_owned();
        assert_eq!(cuts, [Cut { at, kept, of: 1000 }]);
        assert_eq!(document["seed"], 1);
    }

    #[test]
    fn a_long_text_is_cut_between_two_letters() {
        let mut document = json!({ "a/b": "\u{e9}".repeat(10_000) });
        let cuts = fit(&mut document, 1_001);
        assert!(size(&document) <= 1_001);
        assert_eq!((&*cuts[0].at, cuts[0].of), ("/a~1b", 20_000));
        assert_eq!(cuts[0].kept, document["a/b"].as_str().unwrap().len());
    }

    #[test]
    fn nothing_is_left_that_could_not_become_smaller() {
        let entries = (0..5_000).map(|it| (format!("name{it}"), json!(it)));
        let mut document = Value::Object(entries.collect());
        let cuts = fit(&mut document, 500);
        assert!(size(&document) <= 500);
        assert_eq!((&*cuts[0].at, cuts[0].of), ("", 5_000));
        let mut many = json!([vec!["x".repeat(500); 40], vec!["y".repeat(500); 40]]);
        fit(&mut many, 3);
        assert!(size(&many) <= 3, "{many}");
    }
}
