//! Programs that say in their first lines what raddle has to find out about them.
//!
//! A directive is a line `// Name: value`, with a name of one word. A mark is a comment
//! `/* mark */`, or `// mark` at the end of a line.

use std::fs;
use std::path::{Path, PathBuf};

/// The text of a program.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name of the file, without its directory.
    pub name: String,
    /// Where the file is.
    pub path: PathBuf,
    text: String,
}

impl Source {
    /// Reads a program.
    ///
    /// # Panics
    /// If the file cannot be read.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path);
        Self {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            path: path.to_owned(),
            text: text.unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display())),
        }
    }

    /// The value of the first directive with this name.
    #[must_use]
    pub fn directive(&self, name: &str) -> Option<&str> {
        self.directives().find(|(its, _)| *its == name).map(|(_, value)| value)
    }

    /// The words of all directives with this name. Commas and blanks separate words.
    #[must_use]
    pub fn words(&self, name: &str) -> Vec<String> {
        let values = self.directives().filter(|(its, _)| *its == name);
        let words = values.flat_map(|(_, value)| value.split([' ', ',']));
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// Names and values of the directives: those of the comment that opens the file.
    pub fn directives(&self) -> impl Iterator<Item = (&str, &str)> {
        let header = self.text.lines().map_while(|line| line.strip_prefix("//"));
        header.filter_map(|line| {
            let (name, value) = line.strip_prefix(' ')?.split_once(": ")?;
            let is_name = name.starts_with(|first: char| first.is_ascii_uppercase())
                && name.chars().all(|char| char.is_ascii_alphabetic());
            is_name.then_some((name, value))
        })
    }

    /// Complains about a directive that is none of these, which nobody would read.
    ///
    /// # Errors
    /// The first such directive.
    pub fn knows_only(&self, known: &[&str]) -> Result<(), String> {
        match self.directives().find(|(name, _)| !known.contains(name)) {
            Some((name, _)) => Err(format!("there is no directive `{name}`, only {known:?}")),
            None => Ok(()),
        }
    }

    /// The numbers of the lines with this mark.
    #[must_use]
    pub fn marked(&self, mark: &str) -> Vec<u64> {
        let (inside, end) = (format!("/* {mark} */"), format!("// {mark}"));
        let is_marked = |line: &str| line.contains(&inside) || line.trim_end().ends_with(&end);
        self.lines().filter(|(_, line)| is_marked(line)).map(|(number, _)| number).collect()
    }

    /// The lines that are marked guilty.
    ///
    /// # Panics
    /// If they are not as many as the directive `Guilty` says.
    #[must_use]
    pub fn guilty(&self) -> Vec<u64> {
        let guilty = self.marked("guilty");
        let n = self.words("Guilty").first().and_then(|n| n.parse().ok());
        assert_eq!(n, Some(guilty.len()), "guilty lines of {}", self.name);
        guilty
    }

    /// The number of the first line that holds this text.
    #[must_use]
    pub fn line(&self, text: &str) -> Option<u64> {
        self.lines().find(|(_, line)| line.contains(text)).map(|(number, _)| number)
    }

    /// The lines with their numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (u64, &str)> {
        (1..).zip(self.text.lines())
    }
}

/// The programs of a directory of raddle's tests, by name.
///
/// # Panics
/// If the directory cannot be read, or holds no program.
#[must_use]
pub fn sources(directory: &str) -> Vec<Source> {
    let directory = path(directory);
    let entries = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", directory.display()));
    let mut sources: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension != "md"))
        .map(|path| Source::read(&path))
        .collect();
    assert!(!sources.is_empty(), "{} holds no program", directory.display());
    sources.sort_by(|one, two| one.name.cmp(&two.name));
    sources
}

/// A file or directory of raddle's tests.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("raddle").join("tests").join(name)
}

#[cfg(test)]
mod tests {
    use super::Source;

    fn source(text: &str) -> Source {
        Source { name: "it.c".into(), path: "it.c".into(), text: text.into() }
    }

    #[test]
    fn only_the_comment_that_opens_a_file_holds_directives() {
        let source = source("// What is wrong: it.\n// Kind: a, b\nint x;\n// Kind: c\n");
        assert_eq!(source.words("Kind"), ["a", "b"]);
        assert_eq!(source.directives().collect::<Vec<_>>(), [("Kind", "a, b")]);
    }

    #[test]
    fn a_directive_may_go_on_in_a_second_one() {
        let source = source("// Covers: a,\n// Covers: b\n");
        assert_eq!(source.words("Covers"), ["a", "b"]);
        assert_eq!(source.directive("Covers"), Some("a,"));
    }

    #[test]
    fn a_misspelled_directive_is_an_error() {
        let source = source("// Knid: race\n");
        let why = source.knows_only(&["Kind"]).expect_err("misspelled");
        assert!(why.contains("no directive `Knid`"), "{why}");
        assert_eq!(source.knows_only(&["Knid"]), Ok(()));
    }

    #[test]
    fn marks_are_inside_or_at_the_end_of_a_line() {
        let source =
            source("x = 1; /* guilty */ /* head */\nx = 2; // guilty\n// not guilty here\n");
        assert_eq!(source.marked("guilty"), [1, 2]);
        assert_eq!(source.marked("head"), [1]);
    }
}
