//! Exams and grades for students, whose names and files come from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use runslice_tests::folder;

fn run(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("runslice starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file of the folder `teach/`, or of the tests for it.
fn taught(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is a folder");
    let names = entries.map(|it| {
        it.expect("readable")
            .file_name()
            .into_string()
            .expect("text")
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

// ---- A lecture ----

/// The turnaround that the line of the means has.
fn mean_turnaround(folder: &Path, words: &str) -> String {
    let made = run(folder, &words.split(' ').collect::<Vec<_>>());
    let said = text(&made.stdout);
    let line = said.lines().find(|it| it.starts_with("mean "));
    let line = line.unwrap_or_else(|| panic!("{words}: {said}{}", text(&made.stderr)));
    let words: Vec<&str> = line.split_whitespace().collect();
    words[2..4].join(" ")
}

#[test]
fn commands_of_the_lecture_run_and_its_loads_show_what_it_asks() {
    let folder = folder!("lecture");
    for name in ["convoy.toml", "mixed.toml", "cheat.toml"] {
        fs::copy(taught("teach").join(name), folder.join(name)).expect("it is there");
    }
    let solution = taught("tests/teach/solution.bpf.c");
    fs::copy(solution, folder.join("YOUR-NAME.bpf.c")).expect("it is there");
    for page in ["lecture.md", "exercise.md"] {
        let page = fs::read_to_string(taught("teach").join(page)).expect("text");
        let commands = page
            .split('`')
            .filter_map(|it| it.strip_prefix("runslice "));
        let commands: Vec<&str> = commands.collect();
        assert!(commands.len() >= 2, "{page}");
        for command in commands {
            let made = run(&folder, &command.split(' ').collect::<Vec<_>>());
            assert!(made.status.success(), "{command}: {}", text(&made.stderr));
        }
    }
    let mean = |words: &str| mean_turnaround(&folder, words);
    // A lecture asks for turnaround, so that is what the first lines say.
    let made = "sim fcfs srtf -w convoy.toml --machine textbook -o page.html";
    let made = run(&folder, &made.split(' ').collect::<Vec<_>>());
    let first = "turnaround mean  best srtf 7.67 ms, worst fcfs 13.7 ms\n";
    assert!(text(&made.stdout).contains(first), "{}", text(&made.stdout));
    let page = fs::read_to_string(folder.join("page.html")).expect("a page");
    assert!(
        page.contains("machine textbook, kernel") && !page.contains("HZ "),
        "no ticks"
    );
    // A job arrives just when a quantum ends.
    let rr = "sim rr:slice_ns=5ms -w mixed.toml --machine textbook";
    assert_ne!(mean(rr), mean(&format!("{rr}:arrivals=last")));
    // Where the exercise says to try it, neither the skeleton nor jobs run to their end look right.
    let asked = |policy: &str| mean(&format!("sim {policy} -w mixed.toml --machine textbook"));
    assert_eq!(asked("YOUR-NAME.bpf.c"), asked("rr:slice_ns=10ms"));
    assert_ne!(asked("fcfs"), asked("rr:slice_ns=10ms"));
}

// ---- Exams ----

fn exam(folder: &Path, names: &str) -> Output {
    fs::write(folder.join("names.csv"), names).expect("writable");
    fs::copy(taught("teach/exam.toml"), folder.join("exam.toml")).expect("it is there");
    let words = "lab --students names.csv --exam exam.toml -o out";
    run(folder, &words.split(' ').collect::<Vec<_>>())
}

#[test]
fn each_student_has_a_sheet_of_equal_difficulty() {
    let folder = folder!("exam");
    let names: String = (0..30).map(|at| format!("Student {at}\n")).collect();
    let made = exam(&folder, &names);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let said = text(&made.stdout);
    assert!(
        said.starts_with("30 sheets, each with 4 jobs and 12 questions\n"),
        "{said}"
    );
    assert!(!said.contains("nearly"), "{said}");
    assert_eq!(files(&folder.join("out/sheets")).len(), 30);
    let answers = fs::read_to_string(folder.join("out/answers.csv")).expect("it is there");
    let bars =
        |line: &&str| line.contains(",1a,") || line.contains(",2a,") || line.contains(",3a,");
    let charts: Vec<&str> = answers.lines().filter(bars).collect();
    let counts: Vec<usize> = charts
        .iter()
        .map(|line| line.matches(" to ").count() - line.matches("nobody").count())
        .collect();
    assert_eq!(charts.len(), 90);
    assert!(counts.chunks(3).all(|it| it == &counts[..3]), "{counts:?}");
    let different: std::collections::BTreeSet<&str> = charts
        .iter()
        .filter_map(|line| line.split("has the CPU.,").nth(1))
        .collect();
    assert!(
        different.len() > 80,
        "each has jobs of its own: {}",
        different.len()
    );
    // The same list and key give the same sheets.
    let booklet = fs::read(folder.join("out/booklet.html")).expect("it is there");
    exam(&folder, &names);
    assert_eq!(
        fs::read(folder.join("out/booklet.html")).expect("it is there"),
        booklet
    );
}

#[test]
fn names_of_students_do_no_harm() {
    let folder = folder!("exam-names");
    let names = "name;group\n../../x;1\n=cmd|'/C calc'!A0;1\nAda;2\nAda;2\n\"<b>]]>&\";3\n";
    let made = exam(&folder, names);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert_eq!(files(&folder), ["exam.toml", "names.csv", "out"]);
    assert_eq!(
        files(&folder.join("out/sheets")).len(),
        5,
        "two of one name are two"
    );
    let read = |name: &str| fs::read_to_string(folder.join("out").join(name)).expect("text");
    assert!(read("answers.csv").contains("\"'=cmd|"), "no formula");
    let booklet = read("booklet.html");
    assert!(booklet.contains("&lt;b&gt;") && !booklet.contains("<b>]]"));
    let moodle = read("moodle.xml");
    assert!(moodle.contains("type=\"numerical\"") && moodle.contains("type=\"category\""));
    let many_knobs = booklet.matches("<li>").count();
    assert!(
        many_knobs <= 5 * 3,
        "no sheet lists the knobs of a policy: {many_knobs}"
    );
}

#[test]
fn a_bad_list_or_exam_is_refused() {
    let folder = folder!("exam-bad");
    for (names, want) in [
        (&b"Ada\nZo\xeb\n"[..], "names.csv, line 2: no UTF-8"),
        (b"", "names.csv has no names"),
    ] {
        fs::write(folder.join("names.csv"), names).expect("writable");
        fs::copy(taught("teach/exam.toml"), folder.join("exam.toml")).expect("it is there");
        let words = "lab --students names.csv --exam exam.toml -o out";
        let refused = run(&folder, &words.split(' ').collect::<Vec<_>>());
        assert!(
            text(&refused.stderr).contains(want),
            "{}",
            text(&refused.stderr)
        );
        assert_eq!(refused.status.code(), Some(2));
        assert!(!folder.join("out").exists());
    }
    fs::write(folder.join("names.csv"), "Ada\n").expect("writable");
    let lottery = "[exam]\ntitle = \"x\"\nkey = \"k\"\npolicies = [\"lottery\"]\n";
    for (exam, want) in [
        (lottery, "`lottery` draws at random"),
        (
            "[exam]\ntitle = \"x\"\nkey = \"\"\npolicies = [\"fcfs\"]\n",
            "exam.toml:3:7: ",
        ),
        ("[exam]\n", "exam.toml:1:1: "),
    ] {
        fs::write(folder.join("exam.toml"), exam).expect("writable");
        let words = "lab --students names.csv --exam exam.toml -o out";
        let refused = run(&folder, &words.split(' ').collect::<Vec<_>>());
        assert!(
            text(&refused.stderr).contains(want),
            "{}",
            text(&refused.stderr)
        );
        assert!(!folder.join("out").exists());
    }
}

// ---- Grades ----

fn grade(folder: &Path) -> Output {
    let words = "lab --grade in --exercise exercise.toml -o results";
    run(folder, &words.split(' ').collect::<Vec<_>>())
}

#[test]
fn the_exercise_tells_the_skeleton_from_the_solution() {
    let folder = folder!("grades");
    fs::create_dir_all(folder.join("in")).expect("writable");
    fs::copy(taught("teach/exercise.toml"), folder.join("exercise.toml")).expect("it is there");
    for (from, to) in [
        ("teach/skeleton.bpf.c", "in/ada.bpf.c"),
        ("tests/teach/solution.bpf.c", "in/bob.bpf.c"),
        ("policies/lessons/srtf.bpf.c", "in/eve.bpf.c"),
    ] {
        fs::copy(taught(from), folder.join(to)).expect("it is there");
    }
    let renamed = fs::read_to_string(folder.join("in/bob.bpf.c")).expect("text");
    let renamed = renamed.replace("student", "mine").replace("QUEUE", "ROW");
    fs::write(folder.join("in/mallory.bpf.c"), renamed).expect("writable");
    fs::write(folder.join("in/zoe.bpf.c"), "int main(").expect("writable");
    let graded = grade(&folder);
    let said = text(&graded.stdout);
    assert_eq!(
        graded.status.code(),
        Some(5),
        "{said}{}",
        text(&graded.stderr)
    );
    let line = |name: &str| {
        said.lines()
            .find(|it| it.starts_with(name))
            .unwrap_or_default()
    };
    assert!(line("bob.bpf.c").contains("6 of 6"), "{said}");
    assert!(
        line("bob.bpf.c").contains("code of mallory.bpf.c"),
        "{said}"
    );
    assert!(!line("ada.bpf.c").contains("6 of 6"), "{said}");
    assert!(line("zoe.bpf.c").contains("0 of 6"), "{said}");
    // It reads the length of a job in its name.
    assert!(line("eve.bpf.c").contains("names"), "{said}");
    assert!(said.contains("code of the built-in srtf"), "{said}");
    let feedback = folder.join("results/feedback");
    let of_ada = files(&feedback)
        .into_iter()
        .find(|it| it.starts_with("ada-"))
        .expect("one");
    let of_ada = fs::read_to_string(feedback.join(of_ada)).expect("text");
    for part in [
        "NO   like rr:slice_ns=10ms",
        "yours gives the CPU to",
        "ada.bpf.c:17",
        "CPU 0",
    ] {
        assert!(of_ada.contains(part), "{part}: {of_ada}");
    }
    // What is kept is not done again, and gives the same.
    let kept = folder.join("results/kept");
    let before = files(&kept);
    fs::remove_dir_all(&feedback).expect("it is there");
    assert_eq!(text(&grade(&folder).stdout), said);
    assert_eq!((files(&feedback).len(), files(&kept)), (0, before));
}

#[test]
fn what_is_no_file_is_refused_and_another_wanted_object_grades_anew() {
    let folder = folder!("grades-odd");
    fs::create_dir_all(folder.join("in")).expect("writable");
    let copied = |name: &str, to: &str| {
        let words = ["build", name, "-o", to];
        let built = run(&folder, &words);
        assert!(built.status.success(), "{}", text(&built.stderr));
    };
    let sources = ["tests/teach/solution.bpf.c", "policies/lessons/srtf.bpf.c"];
    let [own, other] = sources.map(|it| taught(it).display().to_string());
    copied(&own, "in/ada.bpf.o");
    copied(&own, "wanted.bpf.o");
    let exercise = "[exercise]\ntitle = \"x\"\nkey = \"k\"\nmachine = \"textbook\"\n\
                    [[property]]\nis = \"like wanted.bpf.o\"\npoints = 3\n";
    fs::write(folder.join("exercise.toml"), exercise).expect("writable");
    let points = || {
        let said = text(&grade(&folder).stdout);
        let line = said.lines().find(|it| it.starts_with("ada.bpf.o"));
        line.unwrap_or(&said).to_owned()
    };
    assert!(points().contains("3 of 3"), "{}", points());
    // The same words name another policy.
    copied(&other, "wanted.bpf.o");
    assert!(points().contains("0 of 3"), "{}", points());
    // A pipe that nobody writes into keeps its reader for ever; a link may lead to it.
    let pipe = folder.join("in/pipe.bpf.o");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("it starts").success());
    std::os::unix::fs::symlink("pipe.bpf.o", folder.join("in/link.bpf.c")).expect("writable");
    let graded = grade(&folder);
    assert_eq!(graded.status.code(), Some(5), "{}", text(&graded.stderr));
    let table = fs::read_to_string(folder.join("results/grades.csv")).expect("text");
    let refused = table.matches("it is a link, a folder or a device").count();
    assert!(refused >= 2, "{table}");
    assert_eq!(files(&folder.join("results/kept")).len(), 1);
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    let folder = folder!("lab-options");
    for (line, want) in [
        ("lab srtf -o sheet.txt", "--output is for the files of"),
        ("lab --grade in -o results", "--output is for the files of"),
        ("lab --grade in --questions 3", "--questions"),
        ("lab --grade in --exercise e.toml --seed 3", "--seed"),
        (
            "lab --students n.csv --exam e.toml -o out --seed 3",
            "--seed",
        ),
        ("lab --grade in -w desk --loads 3", "--loads"),
    ] {
        let refused = run(&folder, &line.split(' ').collect::<Vec<_>>());
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(want), "{line}: {said}");
    }
    assert!(files(&folder).is_empty());
}
