use super::Formats;
use crate::foreign::Error;
use crate::foreign::cursor::Endian;
use crate::foreign::record::{Comm, CpuContext, Left, RecordWhat};

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                      \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                      \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";

/// A kernel of before 4.14, in which `x` is 0x40 and `Z` is 0x10.
const STATES: &str = "{ 1, \"S\"} , { 2, \"D\" }, { 16, \"Z\" }, { 32, \"X\" }, { 64, \"x\" }";

fn switch(states: &str) -> String {
    format!(
        "name: sched_switch\nID: 5\nformat:\n{COMMON}\n\
         \tfield:char prev_comm[4];\toffset:8;\tsize:4;\tsigned:1;\n\
         \tfield:pid_t prev_pid;\toffset:12;\tsize:4;\tsigned:1;\n\
         \tfield:int prev_prio;\toffset:16;\tsize:4;\tsigned:1;\n\
         \tfield:long prev_state;\toffset:20;\tsize:4;\tsigned:1;\n\
         \tfield:__data_loc char[] next_comm;\toffset:24;\tsize:4;\tsigned:1;\n\
         \tfield:pid_t next_pid;\toffset:28;\tsize:4;\tsigned:1;\n\
         \nprint fmt: \"%s\", __print_flags(REC->prev_state, \"|\", {states})\n"
    )
}

fn data(state: u8) -> Vec<u8> {
    let mut data = vec![5, 0, 0x10, 0, 9, 0, 0, 0];
    data.extend(b"abc\0\x07\0\0\0\xff\xff\xff\xff");
    data.extend([state, 0, 0, 0, 32, 0, 3, 0, 8, 0, 0, 0]);
    data.extend(b"xy\0");
    data
}

#[test]
fn fields_and_states_are_where_and_what_the_description_says() {
    let mut formats = Formats::new(Endian::Little);
    formats.add(switch(STATES).as_bytes(), 0).unwrap();
    let cases = [
        (0, Left::Runnable),
        (1, Left::Sleeping),
        (2, Left::Blocked),
        (64, Left::Dead),
        // No name: not a state that ends a turn.
        (128, Left::Runnable),
    ];
    for (bits, want) in cases {
        let (pid, context, what) = formats.decode(&data(bits)).unwrap();
        let RecordWhat::Switch { prev, left, next } = what else {
            panic!("{what:?}");
        };
        assert_eq!((pid, context, left), (9, CpuContext::Soft, want));
        assert_eq!((prev.pid, prev.prio), (7, Some(-1)));
        assert_eq!((next.pid, next.prio), (8, None));
        assert_eq!(next.comm, Comm::new(b"xy"));
    }
}

#[test]
fn a_probe_of_wakers_that_are_about_to_sleep_tells_whom_they_wake() {
    let text = format!(
        "name: sched_waking_sync\nID: 1700\nformat:\n{COMMON}\n\
         \tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n\
         \tfield:s32 pid;\toffset:16;\tsize:4;\tsigned:1;\n\
         \tfield:u32 flags;\toffset:20;\tsize:4;\tsigned:0;\n\
         \nprint fmt: \"(%lx) pid=%d flags=%u\", REC->__probe_ip, REC->pid, REC->flags\n"
    );
    let mut formats = Formats::new(Endian::Little);
    formats.add(text.as_bytes(), 0).unwrap();
    let mut data = vec![0xa4, 6, 0, 0, 9, 0, 0, 0];
    data.extend([0x80; 8]);
    data.extend([20, 0, 0, 0, 16, 0, 0, 0]);
    let (pid, context, what) = formats.decode(&data).unwrap();
    assert_eq!((pid, context), (9, CpuContext::Task));
    assert!(matches!(what, RecordWhat::WakingSync(20)), "{what:?}");
    data[20] = 8;
    assert!(formats.decode(&data).is_none(), "no such flag");
}

#[test]
fn a_record_that_is_too_short_or_unknown_is_none() {
    let mut formats = Formats::new(Endian::Little);
    formats.add(switch(STATES).as_bytes(), 0).unwrap();
    let data = data(1);
    for long in 0..data.len() {
        assert_eq!(formats.decode(&data[..long]), None, "{long}");
    }
    assert_eq!(formats.decode(&[6, 0, 0, 0, 0, 0, 0, 0]), None);
}

#[test]
fn a_description_without_a_field_is_an_error_that_names_it() {
    let mut formats = Formats::new(Endian::Little);
    let text = switch(STATES).replace("prev_state;", "other;");
    let error = formats.add(text.as_bytes(), 77).unwrap_err();
    let want = "byte 77: the description of `sched_switch` has no usable field `prev_state`";
    assert_eq!(error.to_string(), want);
    let nameless = formats.add(b"ID: 5\n", 3).unwrap_err();
    assert!(matches!(nameless, Error::Malformed { offset: 3, .. }));
    // What nobody asks for may look as it likes.
    formats.add(b"name: other\nID: 6\nformat:\n", 0).unwrap();
}

#[test]
fn a_rename_that_does_not_say_whom_is_of_the_thread_that_ran() {
    let rename = |pid: &str| {
        format!(
            "name: task_rename\nID: 7\nformat:\n{COMMON}\n{pid}\
             \tfield:char newcomm[4];\toffset:8;\tsize:4;\tsigned:1;\n"
        )
    };
    let data = *b"\x07\0\0\0\x09\0\0\0abc\0\x05\0\0\0";
    for (pid, want) in [
        ("", 9),
        ("\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n", 5),
    ] {
        let mut formats = Formats::new(Endian::Little);
        formats.add(rename(pid).as_bytes(), 0).unwrap();
        let (_, _, what) = formats.decode(&data).unwrap();
        let RecordWhat::Rename(who) = what else {
            panic!("{what:?}");
        };
        assert_eq!((who.pid, who.comm), (want, Comm::new(b"abc")));
    }
}
