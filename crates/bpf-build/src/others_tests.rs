//! Sources that try to read, write or take what is not theirs.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use seccompiler::{SeccompAction, SeccompFilter};

use super::clang::Clang;
use super::others::{compile_in, reason};
use super::place::PreparedSource;
use super::runtime::{Runtime, libraries, listed};
use super::tests::Folder;
use super::walls::{self, Reach};
use super::watch::{self, CompilerEnd, Most};
use super::{Built, Error, Readable};

/// What must appear in no object and no message.
const SECRET: &str = "CANARY_that_nobody_reads";

/// A folder `own` with a source in it, and beside it what it may not read.
struct Scene(Folder);

impl Scene {
    fn new(name: &str) -> Self {
        let scene = Self(Folder::new(name));
        fs::create_dir_all(scene.0.0.join("own/below")).unwrap();
        fs::create_dir_all(scene.0.0.join("sol")).unwrap();
        scene.0.write("own/near.h", "#define NEAR 1\n");
        scene.0.write("own/below/deep.h", "#define DEEP 2\n");
        scene.0.write(
            "include/far.h",
            "static inline int far(void) { return 3; }\n",
        );
        scene.0.write("secret.txt", &format!("\"{SECRET}\"\n"));
        scene.0.write(
            "sol/solution.h",
            &format!("static const char {SECRET}[] = \"x\";\n"),
        );
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.0.join(name)
    }

    fn source(&self, text: &str) -> PathBuf {
        self.0.write(
            "own/a.bpf.c",
            &text.replace("HERE", self.0.0.to_str().unwrap()),
        )
    }

    fn build(&self, text: &str, may: &Readable) -> Result<Built, Error> {
        self.compile(&self.source(text), may)
    }

    fn compile(&self, source: &Path, may: &Readable) -> Result<Built, Error> {
        self.compile_within(source, may, &watch::MOST)
    }

    /// The headers stay in their place; `scratch` is new for each.
    fn compile_within(&self, source: &Path, may: &Readable, most: &Most) -> Result<Built, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let scratch = self.path(&format!("scratch{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&scratch).unwrap();
        let place = PreparedSource::prepare(source, may, &self.path("include"), &scratch)?;
        compile_in(&place, source, &scratch, most)
    }
}

fn own() -> Readable {
    Readable::own_folder()
}

fn alone() -> Readable {
    Readable::source_alone()
}

fn has_secret(bytes: &[u8]) -> bool {
    bytes
        .windows(SECRET.len())
        .any(|it| it == SECRET.as_bytes())
}

/// Older compilers do not know `#embed`.
fn has_embed() -> bool {
    Clang::find().unwrap().version() >= 19
}

/// That it is refused for what it asks for, in both ways.
fn refused(text: &str, wanted: &str) {
    let scene = Scene::new("refused");
    let wanted = wanted.replace("HERE", scene.0.0.to_str().unwrap());
    for may in [own(), alone()] {
        let error = scene.build(text, &may).unwrap_err();
        let is_named = matches!(error, Error::Outside { .. } | Error::Alone { .. });
        let said = error.to_string();
        assert!(is_named && !said.contains(SECRET), "{text}: {said}");
        assert!(
            said.contains(&format!("cannot include {wanted}: ")),
            "{text}: {said}"
        );
    }
}

/// That it compiles without what it asks for, in both ways.
fn blind(text: &str) {
    let scene = Scene::new("blind");
    for may in [own(), alone()] {
        let built = scene
            .build(text, &may)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(built.is_walled);
        assert!(
            !has_secret(&built.object) && !built.warnings.contains(SECRET),
            "{text}"
        );
    }
}

#[test]
fn others_find_headers_beside_them_and_their_objects_depend_on_no_folder() {
    let text = "#include \"near.h\"\n#include \"below/deep.h\"\n#include <far.h>\n\
                int f(void) { return NEAR + DEEP + far(); }\n";
    let [short, long] = [Scene::new("o"), Scene::new("others-in-a-longer-folder")];
    let built = short.build(text, &own()).unwrap();
    assert_eq!(built, long.build(text, &own()).unwrap());
    assert_eq!(built.warnings, "");
    assert!(built.clang >= 16 && built.is_walled);
    let line = b"return NEAR + DEEP + far();";
    assert!(
        built.object.windows(line.len()).any(|it| it == line),
        "lines are quoted"
    );
}

#[test]
fn the_walls_leave_no_trace_in_an_object() {
    let text = "#include \"near.h\"\n#include <far.h>\nint f(void) { return NEAR + far(); }\n";
    let scene = Scene::new("trace");
    let built = scene.build(text, &own()).unwrap();
    let headers = scene.path("include").canonicalize().unwrap();
    let mut command = Command::new(Clang::find().unwrap().path());
    command.args(super::FLAGS).arg(super::others::MACHINE);
    command.arg(format!("-ffile-prefix-map={}=runslice", headers.display()));
    command
        .arg("-I")
        .arg(headers)
        .args(["-o", "-", "-c", "--", "a.bpf.c"]);
    let plain = command.current_dir(scene.path("own")).output().unwrap();
    assert!(plain.status.success());
    assert!(plain.stdout == built.object);
}

#[test]
fn a_source_without_headers_of_its_own_is_the_same_object_alone() {
    let text = "#include <far.h>\nint f(void) { return far(); }\n";
    let scene = Scene::new("same");
    let built = scene.build(text, &alone()).unwrap();
    assert_eq!(built, scene.build(text, &own()).unwrap());
}

#[test]
fn a_folder_that_is_named_may_be_read_by_any_name() {
    let scene = Scene::new("named");
    let may = own().with(&scene.path("sol"));
    for text in [
        "#include <solution.h>\n",
        "#include \"../sol/solution.h\"\n",
        "#include \"HERE/sol/solution.h\"\n",
    ] {
        scene
            .build(text, &may)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    let may = alone().with(&scene.path("sol"));
    scene.build("#include <solution.h>\n", &may).unwrap();
    assert!(scene.build("#include \"near.h\"\n", &may).is_err());
    assert!(
        scene
            .build(
                "#include \"../secret.txt\"\n",
                &own().with(&scene.path("sol"))
            )
            .is_err()
    );
}

#[test]
fn a_path_above_the_folder_and_a_whole_path_are_refused_by_name() {
    refused("#include \"../sol/solution.h\"\n", "../sol/solution.h");
    refused(
        "#include \"below/../../sol/solution.h\"\n",
        "below/../../sol/solution.h",
    );
    refused("#include \"HERE/sol/solution.h\"\n", "HERE/sol/solution.h");
    refused("#import \"../sol/solution.h\"\n", "../sol/solution.h");
    refused("#include_next \"../sol/solution.h\"\n", "../sol/solution.h");
    refused(
        "#define X \"../sol/solution.h\"\n#include X\n",
        "../sol/solution.h",
    );
    if has_embed() {
        refused(
            "const char s[] = {\n#embed \"../secret.txt\"\n};\n",
            "../secret.txt",
        );
        refused(
            "const char s[] = {\n#embed \"HERE/secret.txt\"\n};\n",
            "HERE/secret.txt",
        );
    }
    refused(
        "#pragma GCC dependency \"../sol/solution.h\"\n",
        "../sol/solution.h",
    );
    refused("#include \"/proc/self/environ\"\n", "/proc/self/environ");
    refused("#include \"/dev/stdin\"\n", "/dev/stdin");
    refused("#include \"/proc/self/fd/0\"\n", "/proc/self/fd/0");
    refused(
        "__asm__(\".incbin \\\"HERE/secret.txt\\\"\\n\");\n",
        "HERE/secret.txt",
    );
    refused(
        "__asm__(\".incbin \\\"../secret.txt\\\"\\n\");\n",
        "../secret.txt",
    );
    refused(
        "__asm__(\".include \\\"../secret.txt\\\"\\n\");\n",
        "../secret.txt",
    );
    refused(
        "int f(void) { __asm__ volatile(\".incbin \\\"../secret.txt\\\"\"); return 0; }\n",
        "../secret.txt",
    );
}

#[test]
fn the_message_names_the_line_and_the_file_that_asks() {
    let scene = Scene::new("line");
    let error = scene
        .build("\n\n#include \"../sol/solution.h\"\n", &own())
        .unwrap_err();
    let file = scene.path("own/a.bpf.c");
    let want = format!(
        "{}:3: cannot include ../sol/solution.h: it lies outside of the source's folder",
        file.display()
    );
    assert_eq!(error.to_string(), want);
    scene
        .0
        .write("own/near.h", "\n#include \"../sol/solution.h\"\n");
    let error = scene
        .build("#include \"near.h\"\n", &own())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("./near.h:2: cannot include ../sol/solution.h: "),
        "{error}"
    );
    let error = scene
        .build("#include \"near.h\"\n", &alone())
        .unwrap_err()
        .to_string();
    assert!(error.contains("a.bpf.c:1: cannot include near.h: the source is compiled alone"));
}

#[test]
fn a_header_that_is_not_there_is_the_compilers_affair() {
    for text in ["#include <stdio.h>\n", "#include \"nowhere.h\"\n"] {
        let error = Scene::new("gone").build(text, &own()).unwrap_err();
        assert!(matches!(error, Error::Compile { .. }), "{error}");
        assert!(error.to_string().contains("file not found"), "{error}");
    }
}

#[test]
fn a_link_in_the_folder_leads_nowhere_else() {
    let scene = Scene::new("link");
    symlink("../sol/solution.h", scene.path("own/link.h")).unwrap();
    symlink("../sol", scene.path("own/linked")).unwrap();
    symlink("near.h", scene.path("own/other.h")).unwrap();
    for wanted in ["link.h", "linked/solution.h"] {
        let error = scene
            .build(&format!("#include \"{wanted}\"\n"), &own())
            .unwrap_err();
        assert!(matches!(error, Error::Outside { .. }), "{error}");
        assert!(error.to_string().contains(wanted), "{error}");
    }
    scene
        .build("#include \"other.h\"\nint x = NEAR;\n", &own())
        .unwrap();
    let text = "__asm__(\".incbin \\\"link.h\\\"\\n\");\n";
    let error = scene.build(text, &own()).unwrap_err().to_string();
    assert!(!error.contains(SECRET), "{error}");
}

#[test]
fn a_source_that_is_a_link_is_followed_only_for_its_own_user() {
    let scene = Scene::new("linked-source");
    symlink("../sol/solution.h", scene.path("own/b.bpf.c")).unwrap();
    scene.compile(&scene.path("own/b.bpf.c"), &own()).unwrap();
    let error = scene
        .compile(&scene.path("own/b.bpf.c"), &alone())
        .unwrap_err();
    assert!(
        error.to_string().ends_with("b.bpf.c: it is a link"),
        "{error}"
    );
}

/// What is there and what is not must not be told apart.
#[test]
fn no_question_tells_whether_a_file_exists() {
    let mut text = "int x;\n".to_owned();
    for name in [
        "../secret.txt",
        "../sol",
        "HERE/secret.txt",
        "/etc/passwd",
        "/",
        "../no",
    ] {
        let questions = ["__has_include", "__has_include_next", "__has_embed"];
        for question in &questions[..if has_embed() { 3 } else { 2 }] {
            text += &format!("#if {question}(\"{name}\")\n#error it is there\n#endif\n");
        }
    }
    blind(&text);
    // The questions have answers.
    let text =
        "#if !__has_include(\"near.h\") || !__has_include(<far.h>)\n#error\n#endif\nint x;\n";
    Scene::new("answered").build(text, &own()).unwrap();
    let said = |name: &str, what: &str| {
        let scene = Scene::new("oracle");
        let text = what.replace("NAME", &format!("HERE/{name}"));
        let error = scene.build(&text, &own()).unwrap_err().to_string();
        error
            .replace(scene.0.0.to_str().unwrap(), "")
            .replace(name, "")
    };
    for what in [
        "#include \"NAME\"\n",
        "__asm__(\".incbin \\\"NAME\\\"\\n\");\n",
    ] {
        assert_eq!(said("secret.txt", what), said("absent.txt", what));
    }
}

/// Line information quotes the file that a line names.
#[test]
fn a_line_that_names_another_file_does_not_quote_it() {
    blind("#line 1 \"HERE/secret.txt\"\nint f(int a) { return a + 1; }\n");
    blind("#line 1 \"../secret.txt\"\nint f(int a) { return a + 1; }\n");
}

#[test]
fn the_environment_and_the_standard_input_bring_no_file() {
    let scene = Scene::new("environment");
    let program = std::env::current_exe().unwrap();
    let status = Command::new(program)
        .args(["--exact", "others_tests::in_a_bad_environment", "--ignored"])
        .envs(["CPATH", "C_INCLUDE_PATH"].map(|it| (it, scene.path("sol"))))
        .env(
            "CCC_OVERRIDE_OPTIONS",
            format!("+-I{}", scene.path("sol").display()),
        )
        .env("CLANG_CONFIG_FILE_USER_DIR", scene.path("sol"))
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
}

#[test]
#[ignore = "runs in another test, with an environment of its own"]
fn in_a_bad_environment() {
    blind("#if __has_include(<solution.h>)\n#error it is there\n#endif\nint x;\n");
}

#[test]
fn a_pipe_in_the_folder_is_not_waited_for() {
    let scene = Scene::new("pipe");
    let make = |name: &str| {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(
            rustix::fs::CWD,
            scene.path(name),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
    };
    make("own/pipe.bpf.c");
    for may in [own(), alone()] {
        let error = scene
            .compile(&scene.path("own/pipe.bpf.c"), &may)
            .unwrap_err();
        assert!(matches!(error, Error::Source { .. }), "{error}");
    }
    let error = scene
        .compile(&scene.path("own"), &own())
        .unwrap_err()
        .to_string();
    assert!(error.contains("no file but a folder"), "{error}");
}

#[test]
fn a_warning_about_others_is_told_and_stops_nothing() {
    let text = "int f(void)\n{\n\tint unused;\n\treturn 0;\n}\n";
    let built = Scene::new("told").build(text, &alone()).unwrap();
    assert!(built.warnings.contains("a.bpf.c:3:6"), "{}", built.warnings);
    assert_eq!(built.object[..4], *b"\x7fELF");
}

#[test]
fn a_mistake_of_others_names_file_and_line() {
    let error = Scene::new("mistake").build("\nint f(void) { return x; }\n", &alone());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("a.bpf.c:2:"), "{error}");
}

#[test]
fn a_source_that_includes_itself_comes_to_an_end() {
    let error = Scene::new("self")
        .build("#include __FILE__\n", &alone())
        .unwrap_err();
    assert!(matches!(error, Error::Compile { .. }), "{error}");
    assert!(error.to_string().len() < watch::MOST.said + 1000);
}

#[test]
fn no_frame_of_the_compilers_stack_is_shown_as_its_reason() {
    let stack = "PLEASE submit a bug report.\nStack dump:\n0.\tProgram arguments: clang error.c\n \
                 #0 0x7f llvm::sys::PrintStackTrace\n #9 0x7f llvm::report_fatal_error()\n";
    assert_eq!(reason(stack), None);
    let said = format!("{stack}clang: error: unable to execute command\n");
    assert_eq!(
        reason(&said),
        Some("clang: error: unable to execute command")
    );
    for words in ["LLVM ERROR: out of memory", "what():  std::bad_alloc"] {
        assert_eq!(reason(&format!("{words}\n{stack}")), Some("out of memory"));
    }
}

/// Macros that become 16 to the power of 8 tokens.
#[test]
fn a_macro_that_takes_all_memory_is_an_error_that_says_the_limit() {
    let mut text = "#define M0 1,\n".to_owned();
    for level in 1..9 {
        let before = format!("M{} ", level - 1).repeat(16);
        text += &format!("#define M{level} {before}\n");
    }
    text += "int a[] = { M8 };\n";
    let scene = Scene::new("macro");
    let most = Most {
        memory: 600 << 20,
        ..watch::MOST
    };
    let error = scene
        .compile_within(&scene.source(&text), &alone(), &most)
        .unwrap_err();
    assert!(matches!(error, Error::Broken { .. }), "{error}");
    let expected = "clang broke down (out of memory) (it may take 600 MiB of memory";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn an_object_without_an_end_is_an_error_that_says_the_limit() {
    let scene = Scene::new("array");
    let most = Most {
        object: 1 << 20,
        ..watch::MOST
    };
    let source = scene.source("char a[20 << 20] = { 1 };\n");
    let error = scene.compile_within(&source, &alone(), &most).unwrap_err();
    assert!(matches!(error, Error::TooLong { most: 1, .. }), "{error}");
}

#[test]
fn a_million_messages_are_cut() {
    let scene = Scene::new("messages");
    let error = scene
        .build(&"x!\n".repeat(1_000_000), &alone())
        .unwrap_err();
    assert!(error.to_string().len() < watch::MOST.said + 1000);
    // Of warnings the compiler itself has no limit.
    let built = scene
        .build(&"#warning much\n".repeat(20_000), &alone())
        .unwrap();
    assert!(
        built.warnings.len() < watch::MOST.said + 1000,
        "{}",
        built.warnings.len()
    );
    assert!(
        built
            .warnings
            .contains(" more bytes of messages are left out")
    );
}

/// A shell that is started as the compiler is: in a group of its own, its outputs in pipes.
fn child(shell: &Path, script: &str) -> Command {
    let mut command = Command::new(shell);
    command.args(["-c", script]).process_group(0);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ended(script: &str, most: &Most) -> CompilerEnd {
    let child = child(Path::new("sh"), script).spawn().unwrap();
    watch::until_end(child, most).unwrap()
}

#[test]
fn a_compiler_without_an_end_is_stopped_with_all_that_it_started() {
    let most = Most {
        patience: Duration::from_millis(50),
        ..watch::MOST
    };
    assert!(ended("sleep 1000 & sleep 1000", &most).status.is_none());
    // What stays behind would keep the pipe open, and this would wait for it.
    let ended = ended("sleep 1000 & echo x", &watch::MOST);
    assert_eq!(
        (ended.status.is_some(), &*ended.object),
        (true, &b"x\n"[..])
    );
}

#[test]
fn a_compiler_writes_no_file_and_takes_no_more_time_than_it_may() {
    let scene = Scene::new("limits");
    let script = format!("echo x > {}", scene.path("written").display());
    let written = ended(&format!("sleep 0.2; {script}"), &watch::MOST);
    assert!(!written.status.unwrap().success());
    assert_eq!(fs::read(scene.path("written")).unwrap_or_default(), b"");
    let most = Most {
        cpu_s: 1,
        ..watch::MOST
    };
    let endless = ended("while :; do :; done", &most);
    assert!(!endless.status.unwrap().success());
}

/// A shell stands for a compiler that a source has taken over.
#[test]
fn a_program_inside_of_the_walls_reaches_nothing_outside() {
    let scene = Scene::new("taken-over");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let script = "shopt -s execfail; echo begun\n\
        { echo x > HERE/written; } && echo written\n\
        { echo x > HERE/own/a.bpf.c; } && echo overwritten\n\
        { read -r line < HERE/secret.txt; } && echo read\n\
        { read -r line < /proc/self/environ; } && echo environ\n\
        { read -r line < HERE/own/near.h; } && echo \"$line\"\n\
        { exec 3<>/dev/tcp/127.0.0.1/PORT; } && echo connected\n\
        kill -0 $PPID && echo signalled\n\
        ulimit -f unlimited && echo unlimited\n\
        exec /bin/true && echo started\n\
        (echo forked)\n";
    let port = listener.local_addr().unwrap().port().to_string();
    let here = scene.0.0.to_str().unwrap();
    let script = script.replace("HERE", here).replace("PORT", &port);
    let shell = Path::new("/bin/bash").canonicalize().unwrap();
    let runtime = Runtime {
        libraries: libraries(&shell),
        program: shell,
        version: 0,
    };
    let source = scene.source("int x;\n");
    fs::create_dir(scene.path("scratch")).unwrap();
    let place = PreparedSource::prepare(
        &source,
        &own(),
        &scene.path("include"),
        &scene.path("scratch"),
    );
    let reach = Reach {
        runtime: &runtime,
        place: &place.unwrap(),
        view: None,
    };
    let mut command = child(&runtime.program, &script);
    command
        .env_clear()
        .stdin(fs::File::open("/dev/null").unwrap());
    let started = walls::start(&mut command, &reach, true).unwrap();
    let ended = watch::until_end(started.child, &watch::MOST).unwrap();
    let out = String::from_utf8(ended.object).unwrap();
    assert_eq!(out, "begun\n#define NEAR 1\n", "{}", ended.said);
    assert_eq!(fs::read_to_string(&source).unwrap(), "int x;\n");
}

/// Makes this thread one of a kernel without Landlock.
fn without_landlock() {
    let absent = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let rules = [(libc::SYS_landlock_create_ruleset, Vec::new())].into();
    let machine = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, absent, machine).unwrap();
    let filter: seccompiler::BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&filter).unwrap();
}

#[test]
fn without_walls_others_are_not_compiled_and_own_sources_include_nothing_outside() {
    let test = || {
        without_landlock();
        let scene = Scene::new("no-walls");
        let error = scene.build("int x;\n", &alone()).unwrap_err();
        assert!(matches!(error, Error::NoWalls { .. }), "{error}");
        let built = scene
            .build("#include \"near.h\"\nint x = NEAR;\n", &own())
            .unwrap();
        assert!(!built.is_walled);
        for text in [
            "#include \"../sol/solution.h\"\n",
            "#include \"HERE/sol/solution.h\"\n",
            "#pragma GCC dependency \"../sol/solution.h\"\n",
        ] {
            let error = scene.build(text, &own()).unwrap_err();
            assert!(matches!(error, Error::Outside { .. }), "{error}");
        }
    };
    std::thread::spawn(test).join().unwrap();
}

#[test]
fn a_missing_folder_of_headers_is_named() {
    let may = own().with(Path::new("/nonexistent/include"));
    let error = Scene::new("no-folder").build("int x;\n", &may).unwrap_err();
    assert!(
        error.to_string().starts_with("/nonexistent/include: "),
        "{error}"
    );
}

#[test]
fn names_of_all_kinds_are_names_of_sources() {
    use std::os::unix::ffi::OsStringExt as _;
    let scene = Scene::new("names");
    for name in [
        &b"a \"b\\c\n\t.bpf.c"[..],
        b"-o.bpf.c",
        b"@x.bpf.c",
        b"caf\xe9.bpf.c",
    ] {
        let folder = scene
            .path("own")
            .join(std::ffi::OsString::from_vec(name.to_vec()));
        fs::create_dir(&folder).unwrap();
        let source = folder.join(std::ffi::OsString::from_vec(name.to_vec()));
        fs::write(folder.join("mine.h"), "#define MINE 1\n").unwrap();
        fs::write(&source, "#include \"mine.h\"\nint x = MINE;\n").unwrap();
        let built = scene.compile(&source, &own());
        built.unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        fs::write(&source, "int x;\n").unwrap();
        scene.compile(&source, &alone()).unwrap();
        fs::write(&source, "#include \"../../sol/solution.h\"\n").unwrap();
        assert!(scene.compile(&source, &own()).is_err());
    }
}

#[test]
fn a_wrapper_is_gone_round_on_the_path_and_refused_where_it_was_asked_for() {
    use std::os::unix::fs::PermissionsExt as _;
    let clang = Clang::find().unwrap();
    let scene = Scene::new("wrapper");
    let script = format!("#!/bin/sh\nexec {} \"$@\"\n", clang.path().display());
    let path = scene.0.write("clang", &script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let wrapper = Clang::choose(Some(path), &[]).unwrap();
    let error = Runtime::of(&wrapper, true).unwrap_err();
    assert!(matches!(error, Error::Wrapper { .. }), "{error}");
    let behind = Runtime::of(&wrapper, false).unwrap();
    assert_eq!(behind, Runtime::of(&clang, false).unwrap());
}

#[test]
fn the_loaders_list_is_read_whether_a_library_has_a_name_or_a_path() {
    let text = "\tlinux-vdso.so.1 (0x00007f75)\n\tlibm.so.6 => /lib/x/libm.so.6 (0x00007f75)\n\
                \tlibno.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f75)\n";
    let want = ["/lib/x/libm.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
    assert_eq!(listed(text), want);
    assert!(listed("clang version 19.1.7\n").is_empty());
}
