//! The pages of every verb: what each begins with, that it needs nothing else, that nothing from
//! outside leaves its place, and what a browser makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// An empty folder of the test `name`.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("pages")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder for tests is writable");
    folder
}

fn runslice(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("runslice starts")
}

/// What a command that ends with `status` prints on standard output.
fn said(folder: &Path, arguments: &str, status: i32) -> String {
    let output = runslice(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments}: {stderr}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn read(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A page of each verb that can be made without a kernel, from one folder: file and command.
const PAGES: [(&str, &str); 6] = [
    ("sim.html", "sim fifo mlfq -w desk --duration 1s"),
    (
        "many.html",
        "sim fifo mlfq -w desk --duration 300ms --runs 6",
    ),
    (
        "report.html",
        "report e.fifo.jsonl e.mlfq.jsonl s.fifo.stat",
    ),
    ("compare.html", "compare runs.json"),
    ("sweep.html", "sweep sweep.toml"),
    ("reproduce.html", "reproduce --quick 000-rules"),
];

/// All pages in a folder, and what was said on standard output of each.
fn pages(name: &str) -> (PathBuf, BTreeMap<&'static str, (String, String)>) {
    let folder = folder(name);
    let files = "--events e.jsonl --schedstat s.stat --schedstat-every 100ms";
    said(
        &folder,
        &format!("sim fifo mlfq -w desk --duration 500ms {files}"),
        0,
    );
    let runs = "sim fifo mlfq -w desk --duration 500ms --runs 8 -o runs.json";
    said(&folder, runs, 0);
    fs::write(
        folder.join("sweep.toml"),
        "policy = [\"fifo\", \"mlfq\"]\nworkload = [\"desk\"]\nduration = \"300ms\"\nseeds = 6\n\
         cpus = [2, 4]\n",
    )
    .expect("writable");
    let pages = PAGES.map(|(file, command)| {
        let out = said(&folder, &format!("{command} -o {file}"), 0);
        (file, (read(&folder, file), out))
    });
    (folder, pages.into_iter().collect())
}

/// The values of an attribute, in order.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let mark = format!(" {attribute}=\"");
    let rest = page.split(&mark as &str).skip(1);
    rest.map(|it| it.split('"').next().unwrap_or_default())
        .collect()
}

/// The page without its script.
fn without_script(page: &str) -> String {
    let (before, rest) = page.split_once("<script>").expect("a script");
    let (_, after) = rest.split_once("</script>").expect("its end");
    format!("{before}{after}")
}

/// The verdict's first sentence.
fn verdict(page: &str) -> &str {
    let (_, rest) = page.split_once("<p class=\"first\">").expect("a verdict");
    rest.split("</p>").next().unwrap_or_default()
}

/// Nothing else is loaded, and no script runs but that of the program.
fn needs_nothing_else(name: &str, page: &str) {
    let rest = without_script(page).replace("http://www.w3.org/2000/svg", "");
    for way_out in [
        "<script",
        "<link",
        "<img",
        "<iframe",
        "src=",
        "url(",
        "@import",
        "http:",
        "https:",
        "javascript:",
        "onload",
        "onclick",
    ] {
        assert!(!rest.contains(way_out), "{name}: {way_out}");
    }
    assert!(page.contains("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"));
}

#[test]
fn every_page_begins_with_a_verdict_and_two_pictures_and_needs_nothing_else() {
    let (_, pages) = pages("design");
    for (name, (page, out)) in &pages {
        let at = |mark: &str| {
            page.find(mark)
                .unwrap_or_else(|| panic!("{name}: no {mark}"))
        };
        let (verdict_at, pictures) = (at("id=\"verdict\""), at("id=\"pictures\""));
        assert!(
            verdict_at < pictures && pictures < at("id=\"details\""),
            "{name}"
        );
        let sentence = verdict(page);
        assert!(
            sentence.len() > 20 && sentence.ends_with('.'),
            "{name}: {sentence}"
        );
        let words = sentence.split_whitespace().count();
        let has_headline = !matches!(*name, "report.html" | "reproduce.html");
        assert!(words <= 20 || !has_headline, "{name}: {sentence}");
        let shown = &page[pictures..at("id=\"details\"")];
        let figures = shown.matches("<figure ").count();
        // Of several machines there is a table, whose cells open the pictures.
        let cells = page.matches("href=\"#tables").count();
        let wanted = if cells > 0 { 0..=0 } else { 1..=3 };
        assert!(wanted.contains(&figures), "{name}: {figures} pictures");
        assert_eq!(cells > 0, *name == "sweep.html", "{name}");
        // Each is there for wide and for narrow screens, with a title and a description; those that
        // a cell opens are drawn once.
        let small = page.matches("<figure class=\"small\"").count();
        assert_eq!(
            page.matches("<svg xmlns").count(),
            2 * page.matches("<figure ").count() - small
        );
        assert!(page.matches("<desc id=").count() == page.matches("<svg xmlns").count());
        assert_eq!(
            page.matches("<svg ").count(),
            page.matches("</svg>").count(),
            "{name}"
        );
        needs_nothing_else(name, page);
        // Ids are unique, or descriptions would be those of other figures.
        let ids = values(page, "id");
        let unique: BTreeSet<_> = ids.iter().collect();
        let twice: Vec<_> = ids
            .iter()
            .filter(|id| ids.iter().filter(|it| it == id).count() > 1)
            .collect();
        assert_eq!(ids.len(), unique.len(), "{name}: {twice:?}");
        // The command line is on the page, and the page's name on the terminal.
        assert!(page.contains("<dt>command</dt><dd>runslice "), "{name}");
        assert!(
            out.trim_end().ends_with(&format!("Pictures: {name}")),
            "{name}: {out}"
        );
    }
    // The terminal says the same, in lines that have room there.
    let (page, out) = &pages["sim.html"];
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(&format!("In short: {}", verdict(page))),
        "{out}"
    );
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    assert!(
        verdict(&pages["compare.html"].0).starts_with("mlfq is "),
        "{}",
        verdict(&pages["compare.html"].0)
    );
}

/// The classes of all that is drawn for a scheduler in figures with curves, or with dots.
fn colours(page: &str, scheduler: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in page.split("<path ").skip(1) {
        let tag = path.split('>').next().unwrap_or_default();
        if tag.contains(&format!("data-n=\"{scheduler}\"")) {
            found.extend(
                values(&format!(" {tag}"), "class")
                    .iter()
                    .map(|it| it[1..].to_owned()),
            );
        }
    }
    for circle in page.split("<circle ").skip(1) {
        let (tag, rest) = circle.split_once('>').expect("a tag");
        if rest.starts_with(&format!("<title>{scheduler}: ")) {
            found.extend(
                values(&format!(" {tag}"), "class")
                    .iter()
                    .map(|it| it[1..].to_owned()),
            );
        }
    }
    found
}

#[test]
fn a_scheduler_has_one_colour_on_every_page() {
    let (_, pages) = pages("colours");
    let mut of: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for name in [
        "sim.html",
        "many.html",
        "report.html",
        "compare.html",
        "sweep.html",
    ] {
        for scheduler in ["fifo", "mlfq"] {
            let found = colours(&pages[name].0, scheduler);
            assert_eq!(found.len(), 1, "{name}: {scheduler}: {found:?}");
            of.entry(scheduler).or_default().extend(found);
        }
    }
    assert!(of.values().all(|colours| colours.len() == 1), "{of:?}");
    assert_ne!(of["fifo"], of["mlfq"]);
}

#[test]
fn values_of_a_run_that_stands_alone_are_words_and_no_dots_on_axes() {
    let folder = folder("alone");
    let page = |policies: &str| {
        let asked = format!("sim {policies} -w desk --duration 300ms -o page.html");
        said(&folder, &asked, 0);
        read(&folder, "page.html")
    };
    let alone = page("mlfq");
    assert!(alone.contains("pointer: late moves"), "{alone}");
    assert!(!alone.contains("id=\"figure-runs\""));
    assert!(page("fifo mlfq").contains("id=\"figure-runs\""));
}

#[test]
fn every_run_of_a_comparison_is_a_dot_and_every_difference_has_its_interval() {
    let (_, pages) = pages("dots");
    let page = &pages["compare.html"].0;
    let (_, figure) = page
        .split_once("id=\"figure-runs\"")
        .expect("the figure of all runs");
    let wide = figure.split("</svg>\n<svg").next().expect("a drawing");
    let wide = wide.split("class=\"narrow\"").next().expect("a drawing");
    let goals = wide.matches("font-weight=\"600\" fill").count() - 1;
    assert!(goals >= 3, "{goals}");
    // Eight runs of each of two schedulers at each goal.
    assert_eq!(wide.matches("<circle ").count(), goals * 16);
    assert!(wide.contains("seed "), "a dot says which run it is");
    assert!(page.contains("id=\"figure-changes\""));
    assert!(page.contains("mlfq against fifo: "));
}

/// A workload whose names are what a page must not obey.
const HOSTILE: &str = "<img src=x onerror=alert(1)>";

#[test]
fn names_from_outside_stay_text_on_every_page() {
    let folder = folder("hostile");
    said(
        &folder,
        "sim fifo mlfq -w desk --duration 200ms --events e.jsonl",
        0,
    );
    for policy in ["fifo", "mlfq"] {
        let name = format!("e.{policy}.jsonl");
        let events = read(&folder, &name);
        let (header, rest) = events.split_once('\n').expect("a header");
        let header = header.replace("\"pointer\"", &format!("\"{HOSTILE}\""));
        let header = header.replace("\"desk\"", "\"</title><script>alert(2)</script>\"");
        assert!(header.contains("onerror"), "{header}");
        fs::write(folder.join(&name), format!("{header}\n{rest}")).expect("writable");
    }
    said(&folder, "report e.fifo.jsonl e.mlfq.jsonl -o page.html", 0);
    let page = read(&folder, "page.html");
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("<img").count(), 0);
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"));
    // The same for results that `compare` reads.
    said(
        &folder,
        "sim fifo mlfq -w desk --duration 200ms --runs 6 -o runs.json",
        0,
    );
    let runs = read(&folder, "runs.json");
    // Runs stand in a line each, without spaces.
    let hostile = runs.replace("\"policy\":\"mlfq\"", &format!("\"policy\":\"{HOSTILE}\""));
    assert_ne!(runs, hostile);
    let runs = hostile;
    fs::write(folder.join("runs.json"), runs).expect("writable");
    let status = runslice(&folder, "compare runs.json -o compare.html")
        .status
        .code();
    assert!(matches!(status, Some(0 | 6)), "{status:?}");
    let page = read(&folder, "compare.html");
    assert_eq!(
        (
            page.matches("<script").count(),
            page.matches("<img").count()
        ),
        (1, 0)
    );
    assert!(page.contains("&lt;img src=x"));
}

#[test]
fn the_ending_of_the_output_decides_its_form_for_every_verb() {
    let folder = folder("endings");
    let sim = "sim fifo mlfq -w desk --duration 300ms";
    said(&folder, &format!("{sim} --runs 6 -o runs.json"), 0);
    let json: serde_json::Value = serde_json::from_str(&read(&folder, "runs.json")).expect("JSON");
    assert_eq!(json["runslice_results"], 2);
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["command"][0], "runslice");
    assert_eq!(json["command"][1], "sim");
    fs::write(
        folder.join("s.toml"),
        "policy = [\"fifo\", \"mlfq\"]\nworkload = [\"desk\"]\nduration = \"300ms\"\nseeds = 2\n",
    )
    .expect("writable");
    for (verb, statuses) in [
        (sim, &[0][..]),
        ("compare runs.json", &[0, 6]),
        ("sweep s.toml", &[0]),
    ] {
        for (ending, begin) in [("csv", "schema,version,command,"), ("json", "{\n")] {
            let output = runslice(&folder, &format!("{verb} -o out.{ending}"));
            let status = output.status.code().expect("it ends");
            assert!(statuses.contains(&status), "{verb} {ending}: {status}");
            let text = read(&folder, &format!("out.{ending}"));
            assert!(text.starts_with(begin), "{verb}: {}", &text[..80]);
        }
        if cfg!(feature = "parquet") {
            runslice(&folder, &format!("{verb} -o out.parquet"));
            let bytes = fs::read(folder.join("out.parquet")).expect("a file");
            assert_eq!(&bytes[..4], b"PAR1", "{verb}");
        }
        // What the user says goes before what the ending says.
        runslice(&folder, &format!("{verb} --format json -o out.csv"));
        assert!(read(&folder, "out.csv").starts_with("{\n"), "{verb}");
    }
    let output = runslice(&folder, "reproduce 000-rules -o out.csv");
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let want =
        "runslice: out.csv: there are no such results as csv\n  name a file that ends in .html";
    assert!(stderr.starts_with(want), "{stderr}");
    let output = runslice(&folder, &format!("{sim} --format html"));
    assert_eq!(output.status.code(), Some(2), "a page needs a file");
}

#[test]
fn tables_and_documents_have_the_same_names_and_say_what_they_are_of() {
    let folder = folder("names");
    let sim = "sim mlfq:queues=3 -w desk --cpus 2 --seed 9 --duration 300ms";
    let csv = said(&folder, &format!("{sim} --format csv"), 0);
    let json = said(&folder, &format!("{sim} --format json"), 0);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let mut lines = csv.lines();
    let titles: Vec<&str> = lines.next().expect("titles").split(',').collect();
    let row: Vec<&str> = lines.next().expect("a row").split(',').collect();
    let cell = |title: &str| {
        let at = titles.iter().position(|it| *it == title);
        row[at.unwrap_or_else(|| panic!("no column {title}: {titles:?}"))]
    };
    for (title, want) in [
        ("schema", "runslice_results/2"),
        ("version", env!("CARGO_PKG_VERSION")),
        ("workload", "desk"),
        ("machine_cpus", "2"),
        ("machine_hz", "250"),
        ("machine_kernel", "6.18"),
        ("machine_profile", "ideal"),
        ("seed", "9"),
        ("knobs", "queues=3"),
    ] {
        assert_eq!(cell(title), want, "{title}");
    }
    assert!(
        cell("command").starts_with("runslice sim "),
        "{}",
        cell("command")
    );
    let first = &json["runs"][0]["report"]["groups"][0];
    let keys: Vec<&String> = first.as_object().expect("a row").keys().collect();
    assert!(keys.len() > 30, "{keys:?}");
    for key in keys {
        let value = match &first[key] {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null => String::new(),
            other => other.to_string(),
        };
        assert_eq!(cell(key), value, "{key}");
    }
    assert_eq!(json["runs"][0]["knobs"]["queues"], "3");
}

#[test]
fn a_pull_request_gets_a_test_for_each_promise_and_the_answer_in_markdown() {
    let folder = folder("merge");
    let load = "[workload]\nname = \"a&<b>|c\"\nstop = \"duration:5s\"\n[machine]\ncpus = 1\n\
        [task.a]\ndo = \"run(inf)\"\n[task.hog]\ndo = \"run(inf)\"\n";
    fs::write(folder.join("fed.toml"), load).expect("writable");
    said(&folder, "sim fifo mlfq -w fed.toml -o fed.xml", 0);
    let fed = read(&folder, "fed.xml");
    assert!(
        fed.contains("<testsuites name=\"runslice\" tests=\"4\" failures=\"0\">"),
        "{fed}"
    );
    assert!(fed.contains("under a&amp;&lt;b&gt;|c, seed "), "{fed}");
    said(
        &folder,
        "sim fcfs -w fed.toml --right weight --fail-on wait=1s -o starved.xml",
        3,
    );
    let starved = read(&folder, "starved.xml");
    assert!(starved.contains("tests=\"3\" failures=\"2\""), "{starved}");
    assert!(
        starved.contains("<failure message=\"1 task starved to the end\">hog[101] waited for "),
        "{starved}"
    );
    said(&folder, "sim fifo mlfq -w fed.toml -o fed.md", 0);
    let markdown = read(&folder, "fed.md");
    assert!(
        markdown.starts_with("### a\\&\\<b\\>\\|c: 1 CPU"),
        "{markdown}"
    );
    assert!(
        markdown.contains("\n| policy |") && markdown.contains("\n| fifo |"),
        "{markdown}"
    );
    said(
        &folder,
        "sim fcfs -w fed.toml --right weight --format markdown -o s.md",
        3,
    );
    assert!(read(&folder, "s.md").contains("- **fcfs: 1 task starved to the end**"));
}

/// What a browser said of a page.
struct Seen {
    page: String,
    console: Vec<String>,
    /// Addresses that the page itself asked for.
    requests: Vec<String>,
}

/// The browser of this machine.
fn browser() -> PathBuf {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    let programs = names
        .iter()
        .flat_map(|name| folders.iter().map(move |f| f.join(name)));
    let found = programs.into_iter().find(|program| program.is_file());
    found.expect("this test needs chromium: apt install chromium")
}

/// Shows a page in a window of this width, after all of its scripts.
fn look(folder: &Path, file: &str, width: u32) -> Seen {
    let log = folder.join(format!("{file}.net"));
    let output = Command::new(browser())
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-quic",
        ])
        .args([
            "--disable-sync",
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args(["--enable-logging=stderr", "--dump-dom", "--timeout=20000"])
        .arg(format!("--window-size={width},900"))
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(format!("--log-net-log={}", log.display()))
        .arg(format!("file://{}", folder.join(file).display()))
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts");
    let console = String::from_utf8_lossy(&output.stderr);
    let console = console.lines().filter(|line| line.contains(":CONSOLE"));
    let net = fs::read_to_string(log).expect("the browser writes what it asked for");
    // Requests of the browser itself have `not an origin` for an initiator.
    let requests = net.split("\"initiator\":\"").skip(1).filter_map(|rest| {
        let own = rest.starts_with("not an origin");
        let url = rest.split("\"url\":\"").nth(1)?.split('"').next()?;
        (!own).then(|| url.to_owned())
    });
    Seen {
        page: String::from_utf8_lossy(&output.stdout).into_owned(),
        console: console.map(str::to_owned).collect(),
        requests: requests.collect(),
    }
}

/// What is tried on a page in a browser, and written to `data-tried` of its root: nothing is wider
/// than the window, a pointer over a figure shows values, and dragging shows a part of the time.
const TRIED: &str = r#"
const root = document.documentElement, wide = [];
for (const it of document.querySelectorAll("main *")) {
  const box = it.getBoundingClientRect();
  const inside = it.closest(".scroll") || it.closest("svg.area");
  if (box.width && !inside && box.right > innerWidth + 1) {
    wide.push(it.tagName + "." + it.getAttribute("class"));
  }
}
const small = [...document.querySelectorAll("figure svg text")].filter((it) =>
  it.getClientRects().length && it.getBoundingClientRect().height < 9).length;
for (const it of document.querySelectorAll("details")) it.open = true;
const shown = [...document.querySelectorAll("svg.area[data-zoom]")]
  .find((it) => it.getBoundingClientRect().width > 0);
const said = { wide: [...new Set(wide)], small, tip: "", before: "", after: "", reset: "" };
if (shown) {
  const box = shown.getBoundingClientRect();
  const at = (part) => ({
    clientX: box.left + part * box.width, clientY: box.top + box.height / 2,
    pointerId: 1, bubbles: true,
  });
  shown.setPointerCapture = () => {};
  shown.dispatchEvent(new PointerEvent("pointermove", at(0.5)));
  said.tip = document.getElementById("tip").textContent;
  said.before = shown.getAttribute("viewBox");
  shown.dispatchEvent(new PointerEvent("pointerdown", at(0.25)));
  shown.dispatchEvent(new PointerEvent("pointermove", at(0.5)));
  shown.dispatchEvent(new PointerEvent("pointerup", at(0.5)));
  said.after = shown.getAttribute("viewBox");
  document.getElementById("whole").click();
  said.reset = shown.getAttribute("viewBox");
}
root.dataset.tried = JSON.stringify(said);
"#;

/// A copy of the page that is tried; its policy would not let the trial run.
fn tried(folder: &Path, file: &str, width: u32) -> serde_json::Value {
    let page = read(folder, file);
    let begin = page.find("<meta http-equiv=").expect("a policy");
    let end = begin + page[begin..].find('>').expect("its end") + 1;
    let page = format!("{}{}", &page[..begin], &page[end..]);
    let page = page.replace("</body>", &format!("<script>{TRIED}</script></body>"));
    let name = format!("tried-{width}-{file}");
    fs::write(folder.join(&name), page).expect("writable");
    let seen = look(folder, &name, width);
    let said = values(&seen.page, "data-tried");
    let said = said
        .first()
        .unwrap_or_else(|| panic!("{name}: the trial ended early: {:?}", seen.console));
    serde_json::from_str(&said.replace("&quot;", "\"")).expect("JSON")
}

#[test]
#[ignore = "needs chromium, which `make test-long` runs it with"]
fn a_browser_shows_every_page_and_its_script_works() {
    let (folder, pages) = pages("browser");
    // A page that does all that ours must not do is noticed.
    let control = "<!DOCTYPE html><img src=\"http://127.0.0.1:9/x.png\">\
                   <script>console.error('an error')</script>";
    fs::write(folder.join("control.html"), control).expect("writable");
    let seen = look(&folder, "control.html", 800);
    let asked = |url: &String| url.contains("127.0.0.1:9");
    assert!(seen.requests.iter().any(asked), "{:?}", seen.requests);
    assert!(
        seen.console.iter().any(|line| line.contains("an error")),
        "{:?}",
        seen.console
    );
    for (name, (page, _)) in &pages {
        let seen = look(&folder, name, 1300);
        assert_eq!(seen.console, Vec::<String>::new(), "{name}");
        assert_eq!(seen.requests, Vec::<String>::new(), "{name}");
        // Its own policy lets the script run, and it has found every figure.
        let areas = page.matches("<svg class=\"area\"").count();
        assert_eq!(
            values(&seen.page, "data-ready"),
            [areas.to_string()],
            "{name}"
        );
        for width in [1300, 500] {
            let said = tried(&folder, name, width);
            assert_eq!(said["wide"], serde_json::json!([]), "{name} at {width}");
            assert_eq!(
                said["small"], 0,
                "{name} at {width}: letters too small to read"
            );
            if page.contains("data-zoom=\"\"") {
                let tip = said["tip"].as_str().expect("a text");
                assert!(tip.contains("s\n") || tip.contains(": "), "{name}: {tip}");
                assert_ne!(
                    said["before"], said["after"],
                    "{name}: dragging shows a part"
                );
                assert_eq!(
                    said["before"], said["reset"],
                    "{name}: and the button all of it"
                );
            }
        }
    }
}
