//! The program, asked by a client of the protocol's own authors.

use std::future::Future;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rmcp::model::{CallToolRequestParams, CallToolResult, ReadResourceRequestParams};
use rmcp::model::{ErrorCode, ResourceContents};
use rmcp::service::{RunningService, ServiceError};
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_runslice-mcp");

type Client = RunningService<RoleClient, ()>;

/// Has a client that started the program with `options` in `folder` do `session`.
fn client<F: Future<Output = ()>>(
    folder: &Path,
    options: &[&str],
    session: impl FnOnce(Client) -> F,
) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut command = tokio::process::Command::new(PROGRAM);
        command.args(options).current_dir(folder);
        let child = TokioChildProcess::new(command).expect("it starts");
        let client = ().serve(child).await.expect("it shakes hands");
        session(client).await;
    });
}

async fn called(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().expect("an object").clone();
    let request = CallToolRequestParams::new(tool).with_arguments(arguments);
    client.call_tool(request).await.expect("the tool is there")
}

/// The whole reply of a tool that answers.
async fn reply(client: &Client, tool: &'static str, arguments: Value) -> Value {
    let result = called(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(false), "{result:?}");
    result.structured_content.expect("an answer is structured")
}

/// Kind and message of a tool that does not answer.
async fn refused(client: &Client, tool: &'static str, arguments: Value) -> (String, String) {
    let result = called(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(true), "{result:?}");
    let content = result.structured_content.expect("so is an error");
    let of = |key: &str| content["error"][key].as_str().expect("a text").to_owned();
    (of("kind"), of("message"))
}

/// Asserts of each case that its tool does not answer, and says these words. Gives the kinds of the
/// errors.
async fn all_refused(
    client: &Client,
    cases: impl IntoIterator<Item = (&'static str, Value, &str)>,
) -> Vec<String> {
    let mut kinds = Vec::new();
    for (tool, arguments, want) in cases {
        let (kind, message) = refused(client, tool, arguments.clone()).await;
        assert!(message.contains(want), "{tool} {arguments}: {message}");
        kinds.push(kind);
    }
    kinds
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder of the test")
}

#[test]
fn a_client_lists_ten_tools_with_their_schemas_and_all_resources() {
    let folder = folder();
    client(folder.path(), &[], async |client| {
        let tools = client.list_all_tools().await.expect("tools");
        let names: Vec<&str> = tools.iter().map(|it| &*it.name).collect();
        let all = [
            "list", "sim", "compare", "explain", "hunt", "evaluate", "gate", "choose", "score",
            "bundle",
        ];
        assert_eq!(names, all);
        let sim = &tools[1].input_schema;
        assert_eq!(sim["required"], json!(["policies"]));
        assert_eq!(sim["properties"]["policies"]["type"], "array");
        assert!(sim["properties"]["cpus"]["description"].is_string());
        assert!(tools.iter().all(|it| it.output_schema.is_some()));

        let resources = client.list_all_resources().await.expect("resources");
        let uri = "runslice://docs/evaluate.md";
        assert!(resources.iter().any(|it| it.uri == uri));
        let read = ReadResourceRequestParams::new(uri);
        let read = client.read_resource(read).await.expect("it is there");
        let ResourceContents::TextResourceContents { text, .. } = &read.contents[0] else {
            panic!("a page is a text");
        };
        assert!(text.starts_with("# Policies that programs write"), "{text}");
        let none = ReadResourceRequestParams::new("runslice://policies/none.bpf.c");
        let error = client
            .read_resource(none)
            .await
            .expect_err("it is not there");
        assert!(
            error.to_string().contains("there is no resource"),
            "{error}"
        );
    });
}

#[test]
fn answers_are_the_documents_of_the_command_line() {
    let folder = folder();
    client(folder.path(), &[], async |client| {
        let list = reply(&client, "list", json!({ "name": "mlfq" })).await;
        assert_eq!(list["answer"]["policy"], "mlfq");
        assert!(!list["answer"]["knobs"].as_array().unwrap().is_empty());

        let run = json!({ "workload": "desk", "duration": "500ms", "cpus": 2, "seed": 3 });
        let mut sim = run.clone();
        sim["policies"] = json!(["fifo", "mlfq:queues=4"]);
        let sim = reply(&client, "sim", sim).await;
        assert_eq!(sim["answer"]["runslice_results"], 2);
        assert_eq!(sim["answer"]["machine"]["cpus"], 2);
        assert_eq!(sim["cut"], json!([]));
        let words = sim["answer"]["command"].to_string();
        assert!(
            words.contains(r#""sim","fifo","mlfq:queues=4","--cpus","2""#),
            "{words}"
        );

        let mut compare = run.clone();
        compare["policies"] = json!(["fifo", "mlfq"]);
        compare["runs"] = json!(6);
        let compare = reply(&client, "compare", compare).await;
        assert_eq!(compare["answer"]["runslice_comparison"], 2);
        // `compare` of the command line makes no runs.
        let line = "runslice sim fifo mlfq --cpus 2 --duration 500ms --runs 6 --seed 3 \
                    --workload desk --format json | runslice compare -";
        assert_eq!(compare["answer"]["command"], json!(["sh", "-c", line]));

        let mut explain = run.clone();
        explain["policy"] = json!("fifo");
        explain["worst"] = json!(1);
        let explain = reply(&client, "explain", explain).await;
        assert_eq!(explain["answer"]["runslice_explanation"], 1);

        let choose = json!({
            "candidates": ["mlfq"], "baseline": "fifo", "workload": "desk",
            "duration": "500ms", "runs": 6
        });
        let choose = reply(&client, "choose", choose).await;
        assert_eq!(choose["answer"]["runslice_choice"], 2);
    });
}

const SPEC: &str =
    "baseline = \"fifo\"\ndraws = 6\nduration = \"200ms\"\n[[load]]\nload = \"desk\"\n";

#[test]
fn a_source_that_is_on_no_disk_is_scored_and_a_changed_file_is_compiled_anew() {
    let folder = folder();
    let fifo = policies::find("fifo")
        .expect("it is built in")
        .text
        .to_owned();
    let path = folder.path().join("mine.bpf.c");
    client(folder.path(), &[], async |client| {
        let bad = fifo.replace("scx_bpf_dsq_move_to_local(QUEUE);", "scx_no_such(QUEUE);");
        assert_ne!(bad, fifo);
        let files = json!({ "e.toml": SPEC, "a.bpf.c": fifo, "b.bpf.c": bad });
        let ask = json!({ "spec": "e.toml", "candidates": ["a.bpf.c", "b.bpf.c"], "files": files });
        let evaluated = reply(&client, "evaluate", ask).await;
        let answer = &evaluated["answer"];
        assert_eq!(
            (&evaluated["status"], &answer["held_out"]),
            (&json!(3), &json!(false))
        );
        assert_eq!(answer["candidates"][0]["status"], "scored", "{answer}");
        assert_eq!(answer["candidates"][1]["stage"], "compile");

        let sim = json!({ "policies": ["mine.bpf.c"], "workload": "desk", "duration": "50ms" });
        std::fs::write(&path, &fifo).unwrap();
        reply(&client, "sim", sim.clone()).await;
        std::fs::write(&path, &bad).unwrap();
        let (kind, message) = refused(&client, "sim", sim).await;
        assert_eq!(kind, "failure");
        assert!(message.contains("mine.bpf.c:"), "{message}");
    });
}

/// A run of a policy that takes nobody below it, with these to attach there.
fn below(subs: &[&str]) -> Value {
    let load = "[workload]\nname = \"load\"\nstop = \"duration:1s\"\n[cgroup.app]\n\
                [task.t]\ncgroup = \"/app\"\ndo = \"run(1ms)\"\n";
    json!({
        "policies": ["partition"], "files": { "load.toml": load }, "workload": "load.toml",
        "kernel": "7.3", "sub": subs,
    })
}

#[test]
fn mistakes_are_told_with_what_where_and_what_to_do() {
    let folder = folder();
    client(folder.path(), &[], async |client| {
        let cases = [
            (
                "sim",
                json!({}),
                "the argument `policies` is missing\n  `policies`: Policies",
            ),
            (
                "sim",
                json!({ "polices": ["fifo"] }),
                "there is no argument `polices`\n  did you",
            ),
            (
                "sim",
                json!({ "policies": "fifo" }),
                "`policies`: invalid type: string \"fifo\"",
            ),
            (
                "sim",
                json!({ "policies": [] }),
                "`policies` is empty\n  name one",
            ),
            (
                "sim",
                json!({ "policies": ["fif"], "workload": "desk" }),
                "fif",
            ),
            (
                "sim",
                json!({ "policies": ["fifo"], "workload": "desk", "cpus": 0 }),
                "invalid value `0` for `cpus`\n  give a number from 1 to 1024",
            ),
            (
                "sim",
                json!({ "policies": ["fifo"], "workload": "desk", "hz": 7 }),
                "invalid value `7` for `hz`\n  a kernel ticks",
            ),
            (
                "explain",
                json!({}),
                "give one of `policy`, `events` and `dump`",
            ),
            ("compare", json!({}), "give either `sets` or `policies`"),
            (
                "list",
                json!({ "name": "mlfg" }),
                "nothing built in is called `mlfg`\n  did you mean",
            ),
            (
                "evaluate",
                json!({ "spec": "no.toml", "candidates": ["fifo"] }),
                "no.toml",
            ),
            ("score", json!({ "recording": "-" }), "no plain file"),
            (
                "bundle",
                json!({ "policy": "fifo", "output": "a.bundle" }),
                "nothing may be written\n  start runslice-mcp with --write DIR",
            ),
        ];
        all_refused(&client, cases).await;
    });
}

#[test]
fn mistakes_of_schedulers_below_the_root_are_told() {
    let folder = folder();
    client(folder.path(), &[], async |client| {
        let hunt = json!({ "policy": "partition", "sub": ["app=partition"] });
        let cases = [
            ("sim", below(&["app"]), "is no cgroup and policy"),
            ("sim", below(&["app=partition"]), "has no sub_attach"),
            ("hunt", hunt, "has no sub_attach"),
        ];
        all_refused(&client, cases).await;
    });
}

#[test]
fn arguments_of_a_run_are_refused_where_nothing_is_run() {
    let folder = folder();
    client(folder.path(), &[], async |client| {
        let compare = json!({ "sets": ["runs.json"], "cpus": 4 });
        let explain = json!({ "dump": "text", "workload": "desk" });
        let cases = [
            (
                "compare",
                compare,
                "`cpus` has no effect: `sets` are results",
            ),
            ("explain", explain, "`workload` has no effect: a `dump` is"),
        ];
        assert_eq!(all_refused(&client, cases).await, ["usage"; 2]);
    });
}

#[test]
fn a_tool_that_is_not_there_is_an_error_of_the_protocol() {
    let folder = folder();
    client(folder.path(), &[], async |client| {
        let unknown = client
            .call_tool(CallToolRequestParams::new("simulate"))
            .await;
        let Err(ServiceError::McpError(error)) = unknown else {
            panic!("there is no such tool: {unknown:?}");
        };
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
        assert!(error.message.contains("there are: list, sim"), "{error:?}");
    });
}

#[test]
fn what_is_found_or_saved_is_written_below_one_folder_alone() {
    let folder = folder();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/policies");
    for name in ["faulty-drops.bpf.c", "faulty.h"] {
        std::fs::copy(sources.join(name), folder.path().join(name)).unwrap();
    }
    client(folder.path(), &["--write", "out"], async |client| {
        let bundle = json!({ "policy": "mlfq:queues=4", "output": "a.bundle", "cpus": 4 });
        let saved = reply(&client, "bundle", bundle.clone()).await;
        assert_eq!(saved["answer"]["file"], "out/a.bundle");
        let (_, again) = refused(&client, "bundle", bundle).await;
        assert!(again.contains("is there already"), "{again}");
        let outside = json!({ "policy": "fifo", "output": "../a.bundle" });
        let (_, message) = refused(&client, "bundle", outside).await;
        assert!(message.contains("no name of a file"), "{message}");

        let hunt = json!({ "policy": "faulty-drops.bpf.c", "trials": 64 });
        let hunted = reply(&client, "hunt", hunt.clone()).await;
        assert_eq!(hunted["status"], 3, "{hunted}");
        let capsule = hunted["answer"]["found"][0]["capsule"].as_str().unwrap();
        assert!(capsule.starts_with("out/"), "{capsule}");
        let explained = reply(&client, "explain", json!({ "policy": capsule })).await;
        assert_eq!(explained["status"], 3, "{explained}");
        // The run of another policy of that name is another file.
        let source = folder.path().join("faulty-drops.bpf.c");
        let text = std::fs::read_to_string(&source).unwrap();
        std::fs::write(&source, format!("\n{text}")).unwrap();
        let changed = reply(&client, "hunt", hunt).await;
        let other = changed["answer"]["found"][0]["capsule"].as_str().unwrap();
        assert_ne!(other, capsule);
    });
    let mut names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["faulty-drops.bpf.c", "faulty.h", "out"]);
}

#[test]
fn a_gate_refuses_a_version_that_drops_tasks_and_keeps_the_run() {
    let folder = folder();
    let fifo = policies::find("fifo").expect("it is built in").text;
    let queued = "\tscx_bpf_dsq_insert(p, QUEUE, slice_ns, enq_flags);";
    let drops = fifo.replace(queued, &format!("\tif (p->pid & 1) return;\n{queued}"));
    assert_ne!(drops, fifo);
    client(folder.path(), &["--write", "out"], async |client| {
        let files = json!({ "old.bpf.c": fifo, "new.bpf.c": drops });
        let ask = json!({
            "new": "new.bpf.c", "against": "old.bpf.c", "workloads": ["chat"], "trials": 0,
            "files": files
        });
        let gated = reply(&client, "gate", ask.clone()).await;
        let answer = &gated["answer"];
        assert_eq!(
            (&gated["status"], &answer["answer"]),
            (&json!(3), &json!("refused"))
        );
        assert_eq!(
            (&answer["new"], &answer["trials"]),
            (&json!("new.bpf.c"), &json!(0))
        );
        let capsules = answer["limits"].as_array().expect("limits").iter();
        let mut capsules = capsules.filter_map(|it| it["capsule"].as_str());
        let capsule = capsules.next().expect("a run shows it").to_owned();
        assert!(capsule.starts_with("out/"), "{capsule}");
        let explained = reply(&client, "explain", json!({ "policy": capsule })).await;
        assert_eq!(explained["status"], 3, "{explained}");
        // The same question finds the file of the first one.
        assert_eq!(reply(&client, "gate", ask).await, gated);

        let same = json!({ "new": "fifo", "against": "fifo", "workloads": ["chat"], "trials": 2 });
        let same = reply(&client, "gate", same).await;
        assert_eq!(
            (&same["status"], &same["answer"]["answer"]),
            (&json!(0), &json!("passed"))
        );
        let (_, message) = refused(&client, "gate", json!({ "new": "fifo" })).await;
        assert!(message.contains("`against` is missing"), "{message}");
    });
}

#[test]
fn a_long_answer_is_cut_and_a_long_question_given_up() {
    let folder = folder();
    client(
        folder.path(),
        &["--bytes", "2000", "--seconds", "1"],
        async |client| {
            let sim = json!({ "policies": ["fifo"], "workload": "desk", "duration": "50ms" });
            let cut = reply(&client, "sim", sim).await;
            assert!(cut["answer"].to_string().len() <= 2000, "{cut}");
            let [at, kept, of] = ["at", "kept", "of"].map(|it| &cut["cut"][0][it]);
            assert!(
                at.as_str().unwrap().starts_with('/') && kept.as_u64() < of.as_u64(),
                "{cut}"
            );

            let long = json!({ "policies": ["fifo"], "workload": "desk", "runs": 1_000_000 });
            let (kind, message) = refused(&client, "sim", long).await;
            assert_eq!(kind, "late");
            assert!(
                message.contains("no answer after 1 s\n  ask for fewer runs"),
                "{message}"
            );
            // The next question is answered.
            reply(&client, "list", json!({ "what": "workloads" })).await;
        },
    );
}

#[test]
fn a_client_that_says_nothing_sensible_harms_nothing() {
    let mut program = Command::new(PROGRAM)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut to = program.stdin.take().expect("a pipe");
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" }
        }
    });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let long = "x".repeat(1 << 20);
    writeln!(
        to,
        "{hello}\n{ready}\nno JSON\n{{\"id\":[]}}\n{long}\n{list}"
    )
    .expect("it reads");
    drop(to);
    let output = program.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).expect("text");
    let answers: Vec<Value> = lines
        .lines()
        .map(|it| serde_json::from_str(it).expect("every line is JSON"))
        .collect();
    let tools = answers.iter().find(|it| it["id"] == 2).expect("an answer");
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(10));
}

/// Needs nothing but the lock file: what `cargo tree` prints comes from it.
#[test]
fn the_runtime_of_the_protocol_is_in_no_other_program() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let lock: toml::Table = std::fs::read_to_string(lock).unwrap().parse().unwrap();
    let packages = lock["package"].as_array().unwrap();
    let needs = |name: &str| -> Vec<String> {
        let named = packages
            .iter()
            .filter(|it| it["name"].as_str() == Some(name));
        let lists = named.filter_map(|it| it.get("dependencies")?.as_array());
        let words = lists.flatten().filter_map(toml::Value::as_str);
        words
            .map(|it| it.split(' ').next().unwrap_or(it).to_owned())
            .collect()
    };
    let mut reached = vec!["runslice".to_owned(), "runslice-reproduce".to_owned()];
    let mut at = 0;
    while at < reached.len() {
        for name in needs(&reached[at]) {
            if !reached.contains(&name) {
                reached.push(name);
            }
        }
        at += 1;
    }
    assert!(reached.len() > 100, "{} crates", reached.len());
    assert!(
        !reached.iter().any(|it| it == "rmcp" || it == "tokio"),
        "{reached:?}"
    );
    assert!(needs("runslice-mcp").iter().any(|it| it == "rmcp"));
}
