//! What a client may read: the documents of the project, and what is built in.

use std::borrow::Cow;
use std::sync::OnceLock;

use ask::workload_arg::SHIPPED;
use model::Hardware;

/// Something to read.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its address.
    pub uri: String,
    /// Its name, such as `fifo`.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// The type of its text.
    pub mime: &'static str,
    /// All of it.
    pub text: Cow<'static, str>,
}

/// A document of `docs/` by its name.
macro_rules! pages {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../docs/", $name, ".md")))),+]
    };
}

/// The documents that a client may need; `tests` compares them with the folder.
const PAGES: [(&str, &str); 20] = pages![
    "cases",
    "choose",
    "comparing",
    "evaluate",
    "events",
    "explain",
    "fidelity",
    "figures",
    "glossary",
    "hardware",
    "import",
    "live",
    "loads",
    "profiles",
    "python",
    "races",
    "score",
    "sweep",
    "workload",
    "your-scheduler",
];

/// Everything, in the order of a list.
pub fn all() -> &'static [Document] {
    static ALL: OnceLock<Vec<Document>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all: Vec<Document> = PAGES.iter().map(|(name, text)| page(name, text)).collect();
        let lessons = policies::LESSONS.iter().chain(policies::CID_LESSONS);
        for policy in policies::ALL.iter().chain(lessons) {
            let file = format!("policies/{}.bpf.c", policy.name);
            all.push(built_in(
                &file,
                (policy.name, policy.summary.into()),
                policy.text,
            ));
        }
        for load in SHIPPED {
            let file = format!("workloads/{}.toml", load.name);
            all.push(built_in(&file, (load.name, load.summary()), load.text));
        }
        for (name, text) in Hardware::shipped() {
            let file = format!("machines/{name}.toml");
            let first = text.lines().next().unwrap_or_default();
            let about = first.trim_start_matches(['#', ' ']).to_owned();
            all.push(built_in(&file, (name, about), text));
        }
        all
    })
}

/// The document at this address.
pub fn find(uri: &str) -> Option<Document> {
    all().iter().find(|it| it.uri == uri).cloned()
}

fn page(name: &str, text: &'static str) -> Document {
    let title = text.lines().next().unwrap_or_default();
    Document {
        uri: format!("runslice://docs/{name}.md"),
        name: format!("{name}.md"),
        about: title.trim_start_matches(['#', ' ']).to_owned(),
        mime: "text/markdown",
        text: text.into(),
    }
}

fn built_in(file: &str, (name, about): (&str, String), text: &'static str) -> Document {
    let is_source = file.ends_with(".c");
    Document {
        uri: format!("runslice://{file}"),
        name: name.to_owned(),
        about,
        mime: if is_source {
            "text/x-c"
        } else {
            "application/toml"
        },
        text: text.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    /// Documents for whoever works on the project itself.
    const OF_AUTHORS: [&str; 5] = [
        "decisions",
        "fuzzing",
        "libraries",
        "performance",
        "schedstat",
    ];

    #[test]
    fn every_document_for_users_can_be_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/docs");
        let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
        let files = files.filter(|it| it.extension().is_some_and(|it| it == "md"));
        let names = files.map(|it| it.file_stem().unwrap().to_str().unwrap().to_owned());
        let known = PAGES.iter().map(|it| it.0).chain(OF_AUTHORS);
        let known: BTreeSet<String> = known.map(str::to_owned).collect();
        assert_eq!(names.collect::<BTreeSet<_>>(), known);
    }

    #[test]
    fn every_address_is_that_of_one_document_with_a_text() {
        let addresses: BTreeSet<&str> = all().iter().map(|it| &*it.uri).collect();
        assert_eq!(addresses.len(), all().len());
        for document in all() {
            assert!(
                !document.text.is_empty() && !document.about.is_empty(),
                "{}",
                document.uri
            );
        }
        let fifo = find("runslice://policies/fifo.bpf.c").unwrap();
        assert_eq!(fifo.text, policies::find("fifo").unwrap().text);
        assert!(find("runslice://policies/../docs/evaluate.md").is_none());
    }
}
