//! All published experiments, rerun: every statement is judged, a second run from nothing gives the
//! same bytes, and the chapters of the guide print what came of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Verdicts as JSON names them and as pages do, the best first.
const VERDICTS: [(&str, &str); 8] = [
    ("reproduced", "reproduced"),
    ("same-direction", "same direction"),
    ("undecided", "undecided"),
    ("opposite-direction", "opposite direction"),
    ("not-reproduced", "not reproduced"),
    ("cannot-tell", "cannot tell here"),
    ("cannot-fail", "cannot fail here"),
    ("not-testable", "not testable here"),
];

/// Each document's chapter of the guide.
const CHAPTERS: [(&str, &str); 5] = [
    ("000", "santosa-2005.md"),
    ("001", "kolivas-2004.md"),
    ("002", "torrey-2007.md"),
    ("003", "molloy-2001.md"),
    ("004", "lindsley-2004.md"),
];

/// The heading of a chapter's part, and what stands above its table.
struct Part {
    heading: &'static str,
    /// Of the marks around its table.
    name: &'static str,
    lead: fn(&str) -> String,
    /// Of the part, its document and its statements.
    text: fn(&Self, &str, &[(String, Value)]) -> String,
}

impl Part {
    fn begin(&self) -> String {
        format!(
            "<!-- {}: written by `UPDATE_GOLDEN=1 make test-long` -->\n",
            self.name
        )
    }

    fn end(&self) -> String {
        format!("<!-- end of {} -->\n", self.name)
    }
}

const SIMULATED: Part = Part {
    heading: "## Results",
    name: "results",
    text: full_part,
    lead: |document| {
        format!(
            "`runslice reproduce --document {document}` prints the published figures beside its \
             own; `-o report.html` draws them.\nEach statement is judged as if alone: \
             [verdicts](../../../experiments/README.md#verdicts),\n\
             [experiments](../../../experiments/README.md#coverage).\n"
        )
    },
};

const IN_A_GUEST: Part = Part {
    heading: "## On a kernel",
    name: "results on a kernel",
    text: short_part,
    lead: |document| {
        format!(
            "`runslice reproduce --document {document} --machine vm --quick` runs real programs, \
             once or three times each,\nand says at most \"same direction\" or \"opposite \
             direction\":"
        )
    },
};

/// Names a folder with the reports of an earlier call, `all-vm.json` and so on, to hold the guide
/// against without making the runs again.
const AGAIN: &str = "RUNSLICE_REPRODUCED";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What `reproduce --all` writes as JSON, with results in an empty folder of this name.
fn reproduce(name: &str, arguments: &[&str]) -> String {
    if let Some(earlier) = std::env::var_os(AGAIN) {
        let path = Path::new(&earlier).join(name).with_extension("json");
        return fs::read_to_string(&path).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    let output = Command::new(env!("CARGO_BIN_EXE_runslice-reproduce"))
        .args(["--all", "--format", "json", "--folder"])
        .arg(&folder)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("runslice starts");
    assert!(output.status.success(), "{arguments:?}: {}", output.status);
    String::from_utf8(output.stdout).expect("JSON is text")
}

/// Each document's statements, each with the name of its experiment, by letter and number.
fn statements(report: &str) -> BTreeMap<String, Vec<(String, Value)>> {
    let report: Value = serde_json::from_str(report).expect("a document");
    let mut all: BTreeMap<String, Vec<(String, Value)>> = BTreeMap::new();
    for experiment in report["experiments"].as_array().expect("experiments") {
        let document = experiment["document"].as_str().expect("a document");
        let name = experiment["name"].as_str().expect("a name");
        for statement in experiment["statements"].as_array().expect("statements") {
            let of_document = all.entry(document.to_owned()).or_default();
            of_document.push((name.to_owned(), statement.clone()));
        }
    }
    for of_document in all.values_mut() {
        of_document.sort_by_key(|(_, statement)| {
            let id = statement["id"].as_str().expect("an id");
            (id.as_bytes()[0], id[1..].parse::<u32>().expect("a number"))
        });
    }
    all
}

/// Words that fit into one cell of a table.
fn cell(words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}

/// The first letter as a capital, and a full stop.
fn sentence(words: &str) -> String {
    let mut letters = words.trim_end_matches(['.', ';']).chars();
    let first = letters.next().map(char::to_uppercase);
    let words: String = first.into_iter().flatten().chain(letters).collect();
    format!("{words}.")
}

/// Why a statement is not more: the cause that its experiment gives, or else what the first part
/// with its verdict says in words, or else its numbers.
fn why(statement: &Value) -> String {
    let verdict = &statement["verdict"];
    if verdict == "reproduced" || verdict == "same-direction" && statement["cause"].is_null() {
        return String::new();
    }
    let parts = statement["parts"].as_array().into_iter().flatten();
    let part = parts.into_iter().find(|part| part["verdict"] == *verdict);
    let words = part.map_or("", |part| part["words"].as_str().unwrap_or_default());
    let untold = (statement["cannot_tell"].as_str()).filter(|_| verdict == "cannot-tell");
    let cause = untold.or_else(|| statement["cause"].as_str().filter(|it| !it.is_empty()));
    let text = match (cause, part) {
        (_, Some(_)) if verdict == "not-testable" && !words.is_empty() => words.to_owned(),
        (Some(cause), _) => cause.to_owned(),
        (None, Some(_)) if !words.is_empty() => sentence(words),
        (None, Some(part)) => numbers(part),
        (None, None) => String::new(),
    };
    cell(&text)
}

/// The numbers of a test.
fn numbers(part: &Value) -> String {
    let numbers = part["numbers"].as_array().into_iter().flatten();
    let numbers = numbers.map(|it| {
        let value = it["value"].as_f64().unwrap_or(f64::NAN);
        format!("{} is {value:.3}", it["name"].as_str().unwrap_or_default())
    });
    let numbers: Vec<String> = numbers.collect();
    if numbers.is_empty() {
        return "No numbers.".to_owned();
    }
    sentence(&numbers.join("; "))
}

/// Statements, their verdict, and why it is not more. Those without a reason share a row with the
/// others of their verdict.
fn rows(statements: &[(String, Value)]) -> Vec<(String, &'static str, String)> {
    let mut rows: Vec<(String, &str, String)> = Vec::new();
    for (_, statement) in statements {
        let verdict = VERDICTS
            .iter()
            .find(|(name, _)| statement["verdict"] == *name);
        let verdict = verdict.expect("one of the verdicts").1;
        let id = statement["id"].as_str().expect("an id");
        let why = why(statement);
        let alike = rows
            .iter_mut()
            .find(|row| why.is_empty() && row.1 == verdict && row.2.is_empty());
        match alike {
            Some((ids, ..)) => *ids += &format!(" {id}"),
            None => rows.push((id.to_owned(), verdict, why)),
        }
    }
    rows
}

/// What a chapter says of statements with these verdicts, the failed as plainly as the others.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Hold here", &["reproduced", "same-direction"]),
    (
        "Do not hold here",
        &["opposite-direction", "not-reproduced"],
    ),
    ("Undecided", &["undecided"]),
    (
        "Say nothing here",
        &["cannot-tell", "cannot-fail", "not-testable"],
    ),
];

/// The part of a chapter that tells a document's verdicts, each with the statement.
fn full_part(of: &Part, document: &str, statements: &[(String, Value)]) -> String {
    let (ours, published): (Vec<_>, Vec<_>) =
        statements.iter().partition(|(_, it)| it["ours"] == true);
    let group = |all: &[&(String, Value)], verdicts: &[&str]| -> Vec<Value> {
        let is_of =
            |it: &&&(String, Value)| verdicts.iter().any(|verdict| it.1["verdict"] == *verdict);
        all.iter().filter(is_of).map(|it| it.1.clone()).collect()
    };
    let counts = GROUPS.iter().map(|(heading, verdicts)| {
        let heading = heading.to_lowercase();
        format!("{} {heading}", group(&published, verdicts).len())
    });
    let counts: Vec<String> = counts.collect();
    let mut text = format!(
        "{}\n\n{}\nOf {} statements: {}.\n\n{}",
        of.heading,
        (of.lead)(document),
        published.len(),
        counts.join(", "),
        of.begin(),
    );
    for (heading, verdicts) in GROUPS {
        text += &table_of(heading, &group(&published, verdicts));
    }
    let all: Vec<&str> = VERDICTS.iter().map(|(verdict, _)| *verdict).collect();
    text += &table_of("Asked by runslice, in no document", &group(&ours, &all));
    text.push('\n');
    text + &of.end()
}

/// A table of statements with their verdicts; nothing where there are none.
fn table_of(heading: &str, statements: &[Value]) -> String {
    if statements.is_empty() {
        return String::new();
    }
    let mut text = format!("\n### {heading}\n\n| | statement | verdict |\n| --- | --- | --- |\n");
    for statement in statements {
        let verdict = VERDICTS
            .iter()
            .find(|(name, _)| statement["verdict"] == *name);
        let verdict = verdict.expect("one of the verdicts").1;
        let id = statement["id"].as_str().expect("an id");
        let says = cell(statement["text"].as_str().expect("a text"));
        let why = why(statement);
        let why = if why.is_empty() {
            why
        } else {
            format!(". {}", sentence(&why))
        };
        writeln!(text, "| {id} | {says} | {verdict}{why} |").expect("memory");
    }
    text
}

/// The part of a chapter that tells a document's verdicts on a kernel, in short.
fn short_part(of: &Part, document: &str, statements: &[(String, Value)]) -> String {
    let count = |verdict: &str| {
        let same = |it: &&(String, Value)| it.1["verdict"] == verdict;
        statements.iter().filter(same).count()
    };
    let counts: Vec<String> = VERDICTS
        .iter()
        .map(|&(verdict, name)| (count(verdict), name))
        .filter(|&(number, _)| number > 0)
        .map(|(number, name)| format!("{number} {name}"))
        .collect();
    let mut text = format!(
        "{}\n\n{}\n{}.\n\n{}\n| | verdict | why it is not more |\n| --- | --- | --- |\n",
        of.heading,
        (of.lead)(document),
        counts.join(", "),
        of.begin(),
    );
    for (ids, verdict, why) in rows(statements) {
        writeln!(text, "| {ids} | {verdict} | {why} |").expect("memory");
    }
    text.push('\n');
    text + &of.end()
}

/// The heading of the part of an experiment's README that the run writes. The part is the page's
/// last.
const NUMBERS: &str = "## Simulated";

/// A number with about four digits.
fn digits(value: &Value) -> String {
    let Some(value) = value.as_f64() else {
        return String::new();
    };
    let decimals = match value.abs() {
        1000.0.. => 0,
        100.0.. => 1,
        10.0.. => 2,
        0.1.. => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

/// The numbers of a test, of many the least and the largest. One that decides nothing has its
/// interval.
fn here(numbers: &[Value], is_decided: bool) -> String {
    let value = |it: &Value| digits(&it["value"]);
    match numbers {
        [one] => {
            let [value, low, high] = ["value", "low", "high"].map(|key| digits(&one[key]));
            if is_decided || low == high {
                value
            } else {
                format!("{value} [{low}, {high}]")
            }
        }
        [_, _, _, _, ..] => {
            let mut sorted: Vec<&Value> = numbers.iter().collect();
            let number = |it: &Value| it["value"].as_f64().unwrap_or(f64::NAN);
            sorted.sort_by(|a, b| number(a).total_cmp(&number(b)));
            let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
            format!("{} to {}", value(first), value(last))
        }
        few => few.iter().map(value).collect::<Vec<_>>().join("; "),
    }
}

/// Whether a test holds and has no number: a sequence that is exactly so.
fn is_exact(part: &Value) -> bool {
    let numbers = part["numbers"].as_array();
    part["verdict"] == "reproduced" && numbers.is_none_or(Vec::is_empty)
}

/// A row of that part: a test, at one point or at several that follow each other.
struct ReadmeRow {
    name: String,
    /// What tells its points from others of the test: parameters and their values.
    points: Vec<(String, Vec<String>)>,
    verdict: &'static str,
    numbers: String,
}

impl ReadmeRow {
    fn of(id: &str, part: &Value) -> Self {
        let name = part["name"].as_str().expect("a name");
        let name = name.strip_prefix(id).unwrap_or(name).trim();
        let verdict = VERDICTS.iter().find(|(it, _)| part["verdict"] == *it);
        let verdict = verdict.expect("one of the verdicts").1;
        let numbers = part["numbers"].as_array().map_or(&[][..], Vec::as_slice);
        let mut numbers = here(numbers, verdict != "undecided");
        if part["published"].is_number() {
            let _ = write!(numbers, " ({})", digits(&part["published"]));
        }
        let (name, points) = with_points(name);
        Self {
            name: name.to_owned(),
            points,
            verdict,
            numbers,
        }
    }

    /// Which of its parameters alone has another value in `other`, a row at one more point of the
    /// same test.
    fn differs_in(&self, other: &Self) -> Option<usize> {
        let is_same = self.name == other.name && self.verdict == other.verdict;
        let (own, others) = (&self.points, &other.points);
        if !is_same || own.len() != others.len() {
            return None;
        }
        let pairs = own.iter().zip(others).enumerate();
        let mut apart = pairs
            .filter(|(_, (own, other))| own != other)
            .map(|(at, _)| at);
        let at = apart.next().filter(|_| apart.next().is_none())?;
        (own[at].0 == others[at].0).then_some(at)
    }

    fn title(&self) -> String {
        let points = self.points.iter();
        let points = points.map(|(name, values)| format!(" {name} {}", values.join(", ")));
        format!("{}{}", self.name, points.collect::<Vec<_>>().join(";"))
    }
}

/// A name without the point at its end, and that point: `UP: lower rooms 5, cpus 1`.
fn with_points(name: &str) -> (&str, Vec<(String, Vec<String>)>) {
    let (mut rest, mut points) = (name, Vec::new());
    loop {
        let mut words = rest.trim_end_matches(',').rsplitn(3, ' ');
        let value = words.next().filter(|it| it.parse::<i64>().is_ok());
        let (Some(value), Some(parameter), Some(before)) = (value, words.next(), words.next())
        else {
            return (rest, points);
        };
        points.insert(0, (parameter.to_owned(), vec![value.to_owned()]));
        rest = before;
        if !rest.ends_with(',') {
            return (rest, points);
        }
    }
}

/// That part: every test with its verdict and numbers; sequences that are exactly so are counted.
fn readme_part(statements: &[&Value]) -> String {
    let mut text = format!(
        "{NUMBERS}\n\n| | test | verdict | here (published) |\n| --- | --- | --- | --- |\n"
    );
    for statement in statements {
        let id = statement["id"].as_str().expect("an id");
        let parts = statement["parts"].as_array().map_or(&[][..], Vec::as_slice);
        let (exact, others): (Vec<_>, Vec<_>) = parts.iter().partition(|part| is_exact(part));
        if !exact.is_empty() {
            let count = exact.len();
            writeln!(text, "| {id} | exact sequences: {count} | reproduced |  |").expect("memory");
        }
        let mut rows: Vec<ReadmeRow> = Vec::new();
        for part in others {
            let row = ReadmeRow::of(id, part);
            let last = rows.last_mut();
            match last.and_then(|last| Some((last.differs_in(&row)?, last))) {
                Some((at, last)) => {
                    last.points[at].1.extend(row.points[at].1.iter().cloned());
                    if !row.numbers.is_empty() {
                        let _ = write!(last.numbers, "; {}", row.numbers);
                    }
                }
                None => rows.push(row),
            }
        }
        for row in rows {
            let name = row.title();
            let line = [id, &name, row.verdict, &row.numbers].map(cell).join(" | ");
            writeln!(text, "| {line} |").expect("memory");
        }
    }
    text
}

/// The page with this as its last part, in the place of the one that it has.
fn with_part(page: &str, part: &str) -> String {
    let before = page
        .find(&format!("\n{NUMBERS}\n"))
        .map_or(page, |at| &page[..at]);
    format!("{}\n\n{part}", before.trim_end())
}

/// Holds the READMEs of the experiments against what came of them; `UPDATE_GOLDEN=1` writes them.
fn hold_readmes(report: &str) {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let all = statements(report);
    let mut by_name: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for (name, statement) in all.values().flatten() {
        by_name.entry(name).or_default().push(statement);
    }
    let mut stale = Vec::new();
    for (name, statements) in by_name {
        let path = root().join("experiments").join(name).join("README.md");
        let page = fs::read_to_string(&path).expect("the README is there");
        let part = readme_part(&statements);
        let due = with_part(&page, &part);
        if update {
            fs::write(&path, due).expect("the README is writable");
        } else if page != due {
            stale.push(format!(
                "{name}/README.md does not say what came of it:\n{part}"
            ));
        }
    }
    let stale = stale.join("\n");
    assert!(stale.is_empty(), "{stale}\nUPDATE_GOLDEN=1 writes it");
}

#[test]
fn why_a_statement_is_not_more_is_told_in_sentences() {
    let number = |name: &str, value: f64| serde_json::json!({"name": name, "value": value});
    let part = |numbers: &[Value], words: &str| {
        serde_json::json!({
            "id": "A5", "verdict": "undecided", "cause": null,
            "parts": [{
                "name": "A5 largest spread", "verdict": "undecided", "words": words,
                "numbers": numbers,
            }],
        })
    };
    let numbers = [number("a / b", 0.6481), number("a / c", 1.0)];
    assert_eq!(
        why(&part(&numbers, "the disk limits it")),
        "The disk limits it."
    );
    assert_eq!(
        why(&part(&[], "--quick leaves out the runs `r`")),
        "--quick leaves out the runs `r`."
    );
    assert_eq!(why(&part(&numbers, "")), "A / b is 0.648; a / c is 1.000.");
    assert_eq!(why(&part(&[], "")), "No numbers.");
}

fn statement(id: &str, verdict: &str, cause: &str) -> (String, Value) {
    let name = "000-rules".to_owned();
    let ours = id == "A9";
    let text = format!("{id} is | so");
    (
        name,
        serde_json::json!({
            "id": id, "verdict": verdict, "cause": cause, "text": text, "ours": ours,
        }),
    )
}

#[test]
fn statements_without_a_reason_share_a_row() {
    let statements = [
        statement("A1", "reproduced", ""),
        statement("A2", "undecided", "too few runs"),
        statement("A3", "reproduced", ""),
    ];
    let part = short_part(&IN_A_GUEST, "000", &statements);
    let table = "| A1 A3 | reproduced |  |\n| A2 | undecided | too few runs |\n\n\
                 <!-- end of results on a kernel -->\n";
    assert!(part.ends_with(table), "{part}");
}

#[test]
fn a_chapter_says_what_failed_beside_what_held_and_counts_no_question_of_ours() {
    let statements = [
        statement("A1", "reproduced", "never shown"),
        statement("A2", "not-reproduced", "the disk\nlimits it"),
        statement("A9", "reproduced", ""),
        statement("A10", "cannot-tell", ""),
    ];
    let part = full_part(&SIMULATED, "000", &statements);
    let counts =
        "Of 3 statements: 1 hold here, 1 do not hold here, 0 undecided, 1 say nothing here.";
    assert!(part.contains(counts), "{part}");
    let head = "\n\n| | statement | verdict |\n| --- | --- | --- |\n";
    for (heading, row) in [
        ("Hold here", "| A1 | A1 is \\| so | reproduced |\n"),
        (
            "Do not hold here",
            "| A2 | A2 is \\| so | not reproduced. The disk limits it. |\n",
        ),
        (
            "Say nothing here",
            "| A10 | A10 is \\| so | cannot tell here |\n",
        ),
        (
            "Asked by runslice, in no document",
            "| A9 | A9 is \\| so | reproduced |\n",
        ),
    ] {
        let due = format!("### {heading}{head}{row}");
        assert!(part.contains(&due), "{due}: {part}");
    }
    assert!(!part.contains("### Undecided"), "{part}");
}

#[test]
fn the_last_part_of_a_readme_is_what_came_of_its_experiment() {
    let statement = serde_json::json!({
        "id": "B7",
        "parts": [
            {"name": "B7 slower at 20", "verdict": "not-reproduced", "published": 1.0214,
             "numbers": [{"value": 0.99351, "low": 0.9921, "high": 0.9949}]},
            {"name": "B7 stairs", "verdict": "reproduced", "numbers": []},
            {"name": "B7 faster groups 40", "verdict": "same-direction", "published": 0.96,
             "numbers": [{"value": 0.99, "low": 0.99, "high": 0.99}]},
            {"name": "B7 faster groups 60", "verdict": "same-direction", "published": null,
             "numbers": [{"value": 0.98, "low": 0.98, "high": 0.98}]},
            {"name": "B7 faster groups 80", "verdict": "undecided", "published": null,
             "numbers": [{"value": 0.97, "low": 0.9, "high": 1.1}]},
            {"name": "B7 all | arrive", "verdict": "cannot-fail", "published": null,
             "numbers": [{"value": 0.0, "low": 0.0, "high": 0.0}]},
        ],
    });
    let part = readme_part(&[&statement]);
    let due = "# B7\n\nProse.\n\n## Simulated\n\n| | test | verdict | here (published) |\n\
               | --- | --- | --- | --- |\n\
               | B7 | exact sequences: 1 | reproduced |  |\n\
               | B7 | slower at 20 | not reproduced | 0.994 (1.021) |\n\
               | B7 | faster groups 40, 60 | same direction | 0.990 (0.960); 0.980 |\n\
               | B7 | faster groups 80 | undecided | 0.970 [0.900, 1.100] |\n\
               | B7 | all \\| arrive | cannot fail here | 0.0000 |\n";
    assert_eq!(with_part("# B7\n\nProse.\n", &part), due);
    assert_eq!(with_part(due, &part), due);
    let stale = due.replace("0.994", "0.92");
    assert_eq!(with_part(&stale, &part), due);
}

/// Holds the chapters against what came of the experiments; `UPDATE_GOLDEN=1` writes them.
fn hold_chapters(of: &Part, report: &str) {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let statements = statements(report);
    let mut stale = Vec::new();
    for (document, chapter) in CHAPTERS {
        let path = root().join("docs/guide/src").join(chapter);
        let mut page = fs::read_to_string(&path).expect("the chapter is there");
        let begin = match page.find(&format!("{}\n", of.heading)) {
            Some(begin) => begin,
            None => {
                page += &format!("\n{}\n\n{}", of.heading, of.end());
                page.rfind(of.heading).expect("just written")
            }
        };
        let end = page[begin..].find(&of.end()).expect("the part's end");
        let end = begin + end + of.end().len();
        let none = Vec::new();
        let due = (of.text)(of, document, statements.get(document).unwrap_or(&none));
        if page[begin..end] == due {
            continue;
        }
        if update {
            let page = format!("{}{due}{}", &page[..begin], &page[end..]);
            fs::write(&path, page).expect("the guide is writable");
        } else {
            stale.push(format!("{chapter} does not say what came of it:\n{due}"));
        }
    }
    assert!(
        stale.is_empty(),
        "{}\nUPDATE_GOLDEN=1 writes it",
        stale.join("\n")
    );
}

fn assert_that_all_are_judged(report: &str) {
    let file = fs::read_to_string(root().join("experiments/statements.toml")).expect("statements");
    let due = file.lines().filter(|line| line.starts_with('[')).count();
    let judged = statements(report).values().map(Vec::len).sum::<usize>();
    assert_eq!(judged, due);
}

#[test]
#[ignore = "20 minutes on two CPUs: every experiment twice"]
fn all_statements_are_judged_in_simulation_and_twice_the_same() {
    let first = reproduce("all-sim-1", &["--machine", "sim"]);
    let second = reproduce("all-sim-2", &["--machine", "sim", "--jobs", "1"]);
    assert!(
        first == second,
        "a second run from nothing says something else"
    );
    assert_that_all_are_judged(&first);
    hold_chapters(&SIMULATED, &first);
    hold_readmes(&first);
}

#[test]
#[ignore = "an hour of virtual machines: every experiment that has a vm.toml"]
fn what_a_guest_says_stands_in_the_guide() {
    let report = reproduce("all-vm", &["--machine", "vm", "--quick"]);
    hold_chapters(&IN_A_GUEST, &report);
}
