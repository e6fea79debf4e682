//! A tree of C sources to build: the same seed gives the same bytes, and nothing is downloaded.
//!
//! The files include nothing, so that any C compiler builds them without headers, and the last
//! step joins the objects into one, which needs no C library either.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use model::Rng;

use super::LoadError;

/// A tree of sources.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Where it lies.
    pub folder: PathBuf,
    /// C files, at least 1.
    pub files: u32,
    /// Functions of each file, at least 1.
    pub functions: u32,
    /// Decides what the functions compute.
    pub seed: u64,
}

/// The file by whose presence the tree is known to be whole: it is written last.
const LAST: &str = "Makefile";

impl Tree {
    /// Writes the files, if they are not there.
    ///
    /// # Errors
    /// When a size cannot be, or a file cannot be written.
    pub fn write(&self) -> Result<(), LoadError> {
        if self.files == 0 || self.functions == 0 {
            let wrong = "a tree of sources has at least one file and one function";
            return Err(LoadError::Size(wrong.to_owned()));
        }
        let makefile = self.makefile();
        if fs::read_to_string(self.folder.join(LAST)).is_ok_and(|text| text == makefile) {
            return Ok(());
        }
        fs::create_dir_all(&self.folder).map_err(LoadError::file("make", &self.folder))?;
        let write = |name: &str, text: &str| {
            let path = self.folder.join(name);
            fs::write(&path, text).map_err(LoadError::file("write", &path))
        };
        for file in 0..self.files {
            write(&format!("{}.c", stem(file)), &self.source(file))?;
        }
        write(LAST, &makefile)
    }

    /// The files of sources, in order.
    #[must_use]
    pub fn sources(&self) -> Vec<PathBuf> {
        (0..self.files)
            .map(|file| self.folder.join(format!("{}.c", stem(file))))
            .collect()
    }

    /// Where the tree lies.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A rule for each object, so that `make -j` has something to choose from, and one that joins
    /// them. The first line tells trees of other seeds and sizes apart.
    fn makefile(&self) -> String {
        let Self {
            files,
            functions,
            seed,
            ..
        } = self;
        let objects: Vec<String> = (0..*files)
            .map(|file| format!("{}.o", stem(file)))
            .collect();
        format!(
            "# {files} files of {functions} functions, seed {seed}\nCC = cc\nCFLAGS = -O0\n\
             OBJECTS = {}\n\nall.o: $(OBJECTS)\n\t$(CC) -nostdlib -r -o $@ $(OBJECTS)\n\n\
             %.o: %.c\n\t$(CC) $(CFLAGS) -c -o $@ $<\n\nclean:\n\trm -f *.o\n\n.PHONY: clean\n\
             .SUFFIXES:\n",
            objects.join(" ")
        )
    }

    fn source(&self, file: u32) -> String {
        let mut rng = Rng::new(self.seed, u64::from(file));
        let mut text = String::from("struct item { unsigned key; unsigned value[4]; };\n");
        for function in 0..self.functions {
            let name = format!("{}_{function}", stem(file));
            let _ = writeln!(
                text,
                "\nunsigned {name}(struct item *items, unsigned count)\n{{"
            );
            let _ = writeln!(text, "\tunsigned at, sum = {}u;\n", rng.below(1 << 32));
            let _ = writeln!(text, "\tfor (at = 0; at < count; at++) {{");
            for _ in 0..4 + rng.below(8) {
                let _ = writeln!(text, "\t\t{}", statement(&mut rng));
            }
            let _ = writeln!(text, "\t}}\n\treturn sum;\n}}");
        }
        text
    }
}

fn stem(file: u32) -> String {
    format!("part{file:04}")
}

/// One of the statements that a function's loop is made of.
fn statement(rng: &mut Rng) -> String {
    let (number, place) = (rng.below(1 << 16), rng.below(4));
    match rng.below(4) {
        0 => format!("sum += items[at].value[{place}] * {number}u;"),
        1 => format!(
            "if (items[at].key % {}u == {place}u) sum ^= {number}u;",
            number + 1
        ),
        2 => format!("items[at].value[{place}] = sum >> {place} | {number}u;"),
        _ => format!(
            "switch (sum & 3u) {{ case {place}u: sum -= {number}u; break; default: sum++; }}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, seed: u64) -> Tree {
        let name = format!("runslice-tree-{name}-{}", std::process::id());
        Tree {
            folder: std::env::temp_dir().join(name),
            files: 3,
            functions: 4,
            seed,
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_sources_and_another_gives_others() {
        let (one, two) = (tree("a", 7), tree("b", 8));
        assert_eq!(one.source(1), tree("c", 7).source(1));
        assert_ne!(one.source(1), one.source(2));
        assert_ne!(one.source(1), two.source(1));
        assert_eq!(one.source(0).matches("return sum;").count(), 4);
    }

    #[test]
    fn a_tree_of_other_sizes_is_written_anew_and_one_that_is_there_stays() {
        let one = tree("stays", 7);
        one.write().unwrap();
        let path = &one.sources()[2];
        fs::write(path, "kept").unwrap();
        one.write().unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "kept");
        let other = Tree {
            seed: 8,
            ..one.clone()
        };
        other.write().unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), other.source(2));
        fs::remove_dir_all(one.folder()).unwrap();
        assert!(Tree { files: 0, ..one }.write().is_err());
    }

    #[test]
    fn the_sources_are_c_that_a_compiler_takes() {
        let tree = tree("builds", 7);
        tree.write().unwrap();
        let made = std::process::Command::new("make")
            .args(["-s", "-C"])
            .arg(tree.folder())
            .output()
            .expect("make is there: it is needed to build this project");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        assert!(tree.folder().join("all.o").is_file());
        fs::remove_dir_all(tree.folder()).unwrap();
    }
}
