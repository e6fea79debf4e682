//! A tree of C sources to build: the same seed gives the same bytes, and nothing is downloaded.
//!
//! The files include nothing, so that any C compiler builds them without headers, and the last
//! step joins the objects into one, which needs no C library either.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use model::Rng;

use super::{Error, own_folder};
use folder::OwnFolder;

/// A tree of sources, to be written.
#[derive(Clone, Debug)]
pub struct SourceTree {
    /// C files, at least 1.
    pub files: u32,
    /// Functions of each file, at least 1.
    pub functions: u32,
    /// Decides what the functions compute.
    pub seed: u64,
}

/// A tree whose files are there. Dropping it deletes them.
#[derive(Debug)]
pub struct Written {
    folder: OwnFolder,
    files: u32,
}

/// The file that says how the tree is built.
pub const MAKEFILE: &str = "Makefile";

impl SourceTree {
    /// Writes the files into a new folder below `parent`.
    ///
    /// # Errors
    /// When a size cannot be, the folder is refused (see [`OwnFolder::below`]), or a file cannot be
    /// written.
    pub fn write(&self, parent: &Path) -> Result<Written, Error> {
        if self.files == 0 || self.functions == 0 {
            let wrong = "a tree of sources has at least one file and one function";
            return Err(Error::Size(wrong.to_owned()));
        }
        let folder = own_folder(parent)?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(Error::file("write", &path))
        };
        for file in 0..self.files {
            write(&format!("{}.c", stem(file)), &self.source(file))?;
        }
        write(MAKEFILE, &self.makefile())?;
        Ok(Written {
            folder,
            files: self.files,
        })
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

impl Written {
    /// The files of sources, in order.
    #[must_use]
    pub fn sources(&self) -> Vec<PathBuf> {
        let path = |file| self.folder.join(&format!("{}.c", stem(file)));
        (0..self.files).map(path).collect()
    }

    /// Where the tree lies.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
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

    fn tree(seed: u64) -> SourceTree {
        SourceTree {
            files: 3,
            functions: 4,
            seed,
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_sources_and_another_gives_others() {
        let (one, two) = (tree(7), tree(8));
        assert_eq!(one.source(1), tree(7).source(1));
        assert_ne!(one.source(1), one.source(2));
        assert_ne!(one.source(1), two.source(1));
        assert_eq!(one.source(0).matches("return sum;").count(), 4);
    }

    #[test]
    fn each_tree_has_a_folder_of_its_own_which_goes_with_it() {
        let parent = OwnFolder::new().unwrap();
        let [one, two] = [7, 7].map(|seed| tree(seed).write(parent.path()).unwrap());
        assert_ne!(one.folder(), two.folder());
        let third = &one.sources()[2];
        assert_eq!(fs::read_to_string(third).unwrap(), tree(7).source(2));
        drop((one, two));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
        let none = SourceTree {
            files: 0,
            ..tree(7)
        };
        assert!(none.write(parent.path()).is_err());
    }

    #[test]
    fn the_sources_are_c_that_a_compiler_takes() {
        let tree = tree(7).write(&std::env::temp_dir()).unwrap();
        let made = std::process::Command::new("make")
            .args(["-s", "-f", MAKEFILE, "-C"])
            .arg(tree.folder())
            .output()
            .expect("make is there: it is needed to build this project");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        assert!(tree.folder().join("all.o").is_file());
    }
}
