//! The questions of runslice for a page in a browser: bytes in, bytes out.
//!
//! The page writes a request to [`input`], calls [`answer`], and reads so many bytes at
//! [`output`]. A request is the length of its head as four bytes, little-endian; the head, which is
//! JSON ([`request::Request`]); and the bytes of the files that the head names, in its order. The
//! answer is JSON, with `error` where there is none.
//!
//! Nothing is computed here: `ask` answers and `show` writes, as for the command line. There are
//! no files but those of the page, no threads and no clock. A run that is not wanted any more ends
//! with its worker.

#![deny(unsafe_code)]

pub mod bars;
mod catalogue;
mod files;
pub mod request;

use std::cell::RefCell;

use model::Advice as _;
use serde_json::{Value, json};

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Room for a request of `length` bytes: where the page writes it.
#[expect(unsafe_code, reason = "a page finds it by its name")]
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|bytes| {
        bytes.clear();
        bytes.resize(length, 0);
        bytes.as_mut_ptr()
    })
}

/// Answers the request. The number of bytes of the answer.
#[expect(unsafe_code, reason = "a page finds it by its name")]
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    // A panic ends the instance. What it says is the answer then.
    std::panic::set_hook(Box::new(|panic| {
        keep(&json!({ "error": { "kind": "defect", "message": panic.to_string() } }));
    }));
    let request = INPUT.take();
    keep(&answered(&request));
    length()
}

/// Where the answer stands.
#[expect(unsafe_code, reason = "a page finds it by its name")]
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(Vec::as_ptr)
}

/// The number of bytes of the answer; of what a panic said, if the last call has not returned.
#[expect(unsafe_code, reason = "a page finds it by its name")]
#[unsafe(no_mangle)]
pub extern "C" fn length() -> usize {
    OUTPUT.with_borrow(Vec::len)
}

fn keep(answer: &Value) {
    OUTPUT.set(answer.to_string().into_bytes());
}

/// The answer to the bytes of a request.
#[must_use]
pub fn answered(request: &[u8]) -> Value {
    let answer = request::Request::read(request).and_then(|request| request.answer());
    answer.unwrap_or_else(|error| {
        let error = ask::Error::from(error);
        let advice = error.advice();
        let kind = match error.kind() {
            ask::ErrorKind::Usage => "usage",
            ask::ErrorKind::Unsupported => "unsupported",
            ask::ErrorKind::Input | ask::ErrorKind::Cancelled => "input",
        };
        let message = format!("{:#}", error.into_cause());
        json!({ "error": { "kind": kind, "message": message, "advice": advice } })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(head: &Value, files: &[&[u8]]) -> Value {
        let head = head.to_string();
        let mut bytes = u32::try_from(head.len()).unwrap().to_le_bytes().to_vec();
        bytes.extend(head.as_bytes());
        files.iter().for_each(|file| bytes.extend(*file));
        answered(&bytes)
    }

    #[test]
    fn a_page_is_told_what_there_is() {
        let list = ask(&json!({ "list": true }), &[]);
        let policies = list["policies"].as_array().unwrap();
        let mlfq = policies.iter().find(|it| it["name"] == "mlfq").unwrap();
        assert!(
            mlfq["knobs"]
                .as_array()
                .unwrap()
                .iter()
                .any(|it| it["name"] == "queues")
        );
        assert!(mlfq["text"].as_str().unwrap().contains("mlfq_enqueue"));
        assert!(
            list["loads"]
                .as_array()
                .unwrap()
                .iter()
                .any(|it| it["name"] == "desk")
        );
    }

    #[test]
    fn a_run_gets_the_bytes_and_the_events_of_the_command_line() {
        let load = b"[workload]\nname = \"mine\"\n[machine]\ncpus = 1\n\
            [task.a]\ncount = 2\ndo = \"loop(5)[ run(3ms), sleep(1ms) ]\"\n";
        let head = json!({
            "policies": ["fifo", "fcfs"], "workload": "mine.toml", "seed": 7,
            "want": ["text", "json", "hash", "bars", "decisions", "explain", "page"],
            "files": [["mine.toml", load.len()]],
        });
        let answer = ask(&head, &[load]);
        assert_eq!(answer.get("error"), None, "{answer}");
        let text = answer["text"].as_str().unwrap();
        assert!(text.contains("fifo") && text.contains("fcfs"), "{text}");
        let run = &answer["runs"][0];
        assert_eq!(run["hash"].as_str().unwrap().len(), 16);
        let bars = &run["bars"];
        assert_eq!(bars["tasks"], json!(["a.0", "a.1"]));
        let switches = bars["switches"].as_array().unwrap();
        assert_eq!(switches[0][2], 0, "the first task runs first");
        let end = bars["end"].as_u64().unwrap();
        assert!((30_000_000..40_000_000).contains(&end), "{end}");
        let decisions = bars["decisions"].as_array().unwrap();
        assert!(decisions.iter().any(|it| it[2] == "insert"));
        assert!(
            run["explain"]
                .as_str()
                .unwrap()
                .starts_with("Nothing to explain")
        );
        assert!(
            answer["page"]
                .as_str()
                .unwrap()
                .starts_with("<!DOCTYPE html>")
        );
        let command = answer["command"].as_str().unwrap();
        assert_eq!(
            command,
            "runslice sim fifo fcfs --workload mine.toml --seed 7"
        );
    }

    #[test]
    fn what_is_wrong_is_said_in_the_words_of_the_command_line() {
        let message = |head: &Value| {
            let answer = ask(head, &[]);
            answer["error"]["message"].as_str().map(str::to_owned)
        };
        let no_policy = json!({ "policies": ["nope"], "workload": "desk" });
        assert_eq!(message(&no_policy).unwrap(), "no policy is called `nope`");
        let file = json!({ "policies": ["fifo"], "workload": "there.toml" });
        assert!(message(&file).unwrap().contains("drop it onto the page"));
        assert!(
            message(&json!({ "polices": [] }))
                .unwrap()
                .contains("polices")
        );
        let cut = answered(&[9, 0, 0, 0, 1]);
        assert_eq!(cut["error"]["message"], "the request is cut");
        assert_eq!(answered(&[])["error"]["message"], "the request is cut");
    }
}
