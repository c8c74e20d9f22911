//! Which modules of a crate use each other in a cycle, read from its sources.
//!
//! A module uses what its paths lead to: `crate::…`, `self::…` and `super::…`, in a `use` or
//! elsewhere, names below `super::*`, and macros that another module of the crate defines. A name
//! that a module only passes on, by a `use` of its own, leads to where that has it from.
//! Comments, texts and what only tests are compiled with do not count. A use between two modules
//! counts for the siblings that hold them, at the level where their paths part; a module and its
//! descendants may use each other.
//!
//! Sources are read as tokens, not parsed, so a path that a macro puts together goes unseen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::slice;

/// A module, by its path from the crate's root, which is the empty one.
type Module = Vec<String>;

/// Modules with the same parent, each of which uses the next directly or through others, and the
/// last the first.
#[derive(Debug)]
pub(crate) struct Cycle {
    /// `trace::file::{reader, stats}`.
    pub(crate) name: String,
    /// The uses that make it, as `file:line uses module`.
    pub(crate) uses: Vec<String>,
}

/// The cycles of the crate whose sources are in a directory.
pub(crate) fn cycles(name: &str, directory: &Path) -> Vec<Cycle> {
    let mut files = Vec::new();
    read(directory, &mut Vec::new(), &mut files);
    cycles_of(name, &files)
}

/// Reads all sources below a directory, each with its path.
fn read(directory: &Path, at: &mut Vec<String>, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        at.push(name);
        if path.is_dir() {
            read(&path, at, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push((at.join("/"), fs::read_to_string(&path).expect("a source")));
        }
        at.pop();
    }
}

/// The cycles of a crate of these sources, by their paths below its root.
fn cycles_of(name: &str, files: &[(String, String)]) -> Vec<Cycle> {
    let sources: Vec<Source> = files.iter().map(|(file, text)| Source::new(file, text)).collect();
    let for_tests: BTreeSet<&Module> =
        sources.iter().flat_map(|source| &source.for_tests).collect();
    let counts = |source: &&Source| {
        (1..=source.module.len()).all(|n| !for_tests.contains(&source.module[..n].to_vec()))
    };
    let sources: Vec<&Source> = sources.iter().filter(counts).collect();
    let known = Crate {
        modules: sources.iter().map(|source| (&source.module, source.passed_on())).collect(),
        macros: sources
            .iter()
            .flat_map(|source| source.macros.iter().map(|name| (name.as_str(), &source.module)))
            .collect(),
    };

    // By parent: which of its children uses which, and where.
    let mut uses: BTreeMap<Module, BTreeMap<(String, String), Vec<String>>> = BTreeMap::new();
    for source in sources {
        for (line, used) in source.used(&known) {
            let n = source.module.iter().zip(&used).take_while(|(one, two)| one == two).count();
            let (Some(user), Some(of)) = (source.module.get(n), used.get(n)) else { continue };
            let place = format!("{}:{line} uses {}", source.file, used.join("::"));
            let siblings = uses.entry(used[..n].to_vec()).or_default();
            siblings.entry((user.clone(), of.clone())).or_default().push(place);
        }
    }
    let of_parent = |(parent, uses): (&Module, &BTreeMap<(String, String), Vec<String>>)| {
        let path: Vec<&str> = [name].into_iter().chain(parent.iter().map(String::as_str)).collect();
        components(uses.keys())
            .into_iter()
            .map(|members| Cycle {
                name: format!("{}::{{{}}}", path.join("::"), members.join(", ")),
                uses: uses
                    .iter()
                    .filter(|((one, two), _)| members.contains(one) && members.contains(two))
                    .flat_map(|(_, places)| places.clone())
                    .collect(),
            })
            .collect::<Vec<_>>()
    };
    uses.iter().flat_map(of_parent).collect()
}

/// The strongly connected components of more than one member, each sorted.
fn components<'a>(edges: impl Iterator<Item = &'a (String, String)> + Clone) -> Vec<Vec<String>> {
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, _) in edges.clone() {
        let mut left = vec![from.as_str()];
        let seen = reached.entry(from).or_default();
        while let Some(at) = left.pop() {
            let next = edges.clone().filter(|(one, _)| one == at).map(|(_, two)| two.as_str());
            left.extend(next.filter(|next| seen.insert(next)));
        }
    }
    let reaches = |one: &str, two: &str| reached.get(one).is_some_and(|all| all.contains(two));
    let in_cycle = reached.keys().filter(|one| reaches(one, one));
    let components: BTreeSet<Vec<String>> = in_cycle
        .map(|one| {
            let both_ways = |two: &&&str| reaches(one, two) && reaches(two, one);
            reached.keys().filter(both_ways).map(|two| (*two).to_owned()).collect()
        })
        .collect();
    components.into_iter().collect()
}

/// A source file.
struct Source {
    file: String,
    module: Module,
    tokens: Vec<Token>,
    /// Macros that it defines.
    macros: Vec<String>,
    /// Files of modules that only tests have.
    for_tests: Vec<Module>,
}

#[derive(Clone, Debug, PartialEq)]
struct Token {
    line: usize,
    text: String,
}

/// A path in a source.
#[derive(Clone, Debug)]
struct Used {
    line: usize,
    segments: Vec<String>,
    /// Modules of the file itself that it is inside of.
    n_inline: usize,
    /// What a `use` calls it.
    name: String,
}

/// What is known of a crate.
struct Crate<'a> {
    /// Its modules, each with the names that it has from elsewhere.
    modules: BTreeMap<&'a Module, BTreeMap<String, Used>>,
    /// Where macros are defined.
    macros: BTreeMap<&'a str, &'a Module>,
}

impl Crate<'_> {
    /// The module that has what a path in a module leads to.
    fn resolved(&self, module: &Module, used: &Used) -> Module {
        let mut at = module.clone();
        let mut n_inline = used.n_inline;
        for segment in &used.segments {
            match segment.as_str() {
                "crate" => (at, n_inline) = (Vec::new(), 0),
                "self" => {}
                "super" if n_inline > 0 => n_inline -= 1,
                "super" => drop(at.pop()),
                _ if n_inline > 0 => break,
                name => {
                    at.push(name.to_owned());
                    if self.modules.contains_key(&at) {
                        continue;
                    }
                    at.pop();
                    let passed_on = self.modules.get(&at).and_then(|names| names.get(name));
                    // What a module has from outside of the crate it has itself.
                    return match passed_on.filter(|_| at != *module) {
                        Some(used) => self.resolved(&at, used),
                        None => at,
                    };
                }
            }
        }
        at
    }
}

impl Source {
    fn new(file: &str, text: &str) -> Self {
        let mut module: Module = file.trim_end_matches(".rs").split('/').map(Into::into).collect();
        if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
            module.pop();
        }
        let (tokens, names) = without_tests(tokens(text));
        let macros = tokens
            .windows(3)
            .filter(|three| three[0].text == "macro_rules" && three[1].text == "!")
            .map(|three| three[2].text.clone())
            .collect();
        let child = |name: String| module.iter().cloned().chain([name]).collect();
        let for_tests = names.into_iter().map(child).collect();
        Self { file: file.to_owned(), module, tokens, macros, for_tests }
    }

    fn is(&self, at: usize, text: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.text == text)
    }

    /// The names that it has from elsewhere in the crate.
    fn passed_on(&self) -> BTreeMap<String, Used> {
        self.paths().into_iter().map(|used| (used.name.clone(), used)).collect()
    }

    /// The modules that it uses, and in which lines.
    fn used(&self, known: &Crate<'_>) -> BTreeSet<(usize, Module)> {
        let mut found = BTreeSet::new();
        let mut globs = Vec::new();
        for used in self.paths() {
            let module = known.resolved(&self.module, &used);
            if used.name == "*" {
                globs.push(module.clone());
            }
            found.insert((used.line, module));
        }
        for (at, token) in self.tokens.iter().enumerate() {
            let is_head = at == 0 || !self.is(at - 1, "::") && !self.is(at - 1, ".");
            if is_head && self.is(at + 1, "::") {
                let below = |glob: &Module| [glob, slice::from_ref(&token.text)].concat();
                let is_module = |module: &Module| known.modules.contains_key(module);
                let named = globs.iter().map(below).filter(is_module);
                found.extend(named.map(|module| (token.line, module)));
            }
            let is_call = self.is(at + 1, "!");
            if let Some(&module) = known.macros.get(token.text.as_str()).filter(|_| is_call) {
                found.insert((token.line, module.clone()));
            }
        }
        found
    }

    /// All paths that begin with `crate`, `self` or `super`, and those of each `use`.
    fn paths(&self) -> Vec<Used> {
        let mut paths = Vec::new();
        // Per open brace: whether it is a module's.
        let mut braces: Vec<bool> = Vec::new();
        for (at, token) in self.tokens.iter().enumerate() {
            let is_head = self.is(at + 1, "::")
                && is_word(&token.text)
                && (at == 0 || !self.is(at - 1, "::"));
            match token.text.as_str() {
                "{" => braces.push(at >= 2 && self.is(at - 2, "mod")),
                "}" => drop(braces.pop()),
                text if is_head => {
                    let is_ours = matches!(text, "crate" | "self" | "super");
                    if is_ours || at > 0 && self.is(at - 1, "use") {
                        let n_inline = braces.iter().filter(|is_module| **is_module).count();
                        self.tree(at, &[], n_inline, &mut paths);
                    }
                }
                _ => {}
            }
        }
        paths
    }

    /// The paths of a tree of `use`, which may be one path; gives where it ends.
    fn tree(&self, at: usize, before: &[String], n_inline: usize, into: &mut Vec<Used>) -> usize {
        let mut at = at;
        let mut segments = before.to_vec();
        let line = self.tokens[at].line;
        while let Some(token) = self.tokens.get(at) {
            if token.text == "{" {
                at += 1;
                while at < self.tokens.len() && !self.is(at, "}") {
                    at = self.tree(at, &segments, n_inline, into);
                    at += usize::from(self.is(at, ","));
                }
                return at + 1;
            }
            if token.text != "*" && !is_word(&token.text) {
                break;
            }
            segments.push(token.text.clone());
            at += 1;
            if !self.is(at, "::") {
                break;
            }
            at += 1;
        }
        let mut named = segments.iter().rev().filter(|name| *name != "self");
        let mut name = named.next().cloned().unwrap_or_default();
        if self.is(at, "as") {
            name.clone_from(&self.tokens[at + 1].text);
            at += 2;
        }
        into.push(Used { line, segments, n_inline, name });
        at
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Leaves out the items that only tests have; gives the names of those that are files.
fn without_tests(tokens: Vec<Token>) -> (Vec<Token>, Vec<String>) {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut files) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        let marked = tokens[at..].iter().map(|token| token.text.as_str()).take(MARK.len());
        if !marked.eq(MARK) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        at += MARK.len();
        let mut depth = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                ";" if depth == 0 => {
                    if at >= 3 && tokens[at - 3].text == "mod" {
                        files.push(tokens[at - 2].text.clone());
                    }
                    break;
                }
                _ => continue,
            }
            if depth == 0 {
                break;
            }
        }
    }
    (kept, files)
}

/// Words, `::`, and other characters one by one, without comments and texts.
fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let starts = |at: usize, with: &str| {
        with.chars().enumerate().all(|(n, char)| chars.get(at + n) == Some(&char))
    };
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let start = at;
        let end = if starts(at, "//") {
            (at..chars.len()).find(|&at| chars[at] == '\n').unwrap_or(chars.len())
        } else if starts(at, "/*") {
            comment_end(&chars, at)
        } else if let Some(end) = text_end(&chars, at) {
            end
        } else if chars[at].is_whitespace() {
            at + 1
        } else {
            let is_part = |at: &usize| chars[*at].is_alphanumeric() || chars[*at] == '_';
            let n_word = (at..chars.len()).take_while(is_part).count();
            let n = if starts(at, "::") { 2 } else { n_word.max(1) };
            tokens.push(Token { line, text: chars[at..at + n].iter().collect() });
            at + n
        };
        line += chars[start..end].iter().filter(|char| **char == '\n').count();
        at = end;
    }
    tokens
}

/// The end of a comment, in which others may be nested.
fn comment_end(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

/// The end of a string or character, if there is one at this place.
fn text_end(chars: &[char], start: usize) -> Option<usize> {
    let after = |at: usize, quote: char| {
        let mut at = at;
        while at < chars.len() && chars[at] != quote {
            at += if chars[at] == '\\' { 2 } else { 1 };
        }
        (at + 1).min(chars.len())
    };
    match chars[start] {
        '"' => Some(after(start + 1, '"')),
        // A lifetime is no text.
        '\'' if chars.get(start + 1) == Some(&'\\') || chars.get(start + 2) == Some(&'\'') => {
            Some(after(start + 1, '\''))
        }
        'r' | 'b' | 'c' => {
            let n_prefix = if matches!(chars.get(start + 1), Some('r')) { 2 } else { 1 };
            let is_part = |char: &char| char.is_alphanumeric() || *char == '_';
            if start > 0 && is_part(&chars[start - 1])
                || !chars[start..start + n_prefix].contains(&'r')
            {
                return None;
            }
            let hashes = chars[start + n_prefix..].iter().take_while(|char| **char == '#').count();
            let open = start + n_prefix + hashes;
            if chars.get(open) != Some(&'"') {
                return None;
            }
            let close = (open + 1..chars.len()).find(|&at| {
                chars[at] == '"'
                    && chars[at + 1..].iter().take(hashes).filter(|char| **char == '#').count()
                        == hashes
            });
            Some(close.map_or(chars.len(), |close| close + 1 + hashes))
        }
        _ => None,
    }
}

fn check(files: &[(&str, &str)], cycles: &[&str]) {
    let files: Vec<_> =
        files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
    let found = cycles_of("it", &files);
    let names: Vec<&str> = found.iter().map(|cycle| cycle.name.as_str()).collect();
    assert_eq!(names, cycles, "{found:?}");
}

#[test]
fn siblings_that_use_each_other_are_a_cycle() {
    check(
        &[("a.rs", "use crate::{c, b::X};"), ("b.rs", "fn f() { super::a::g() }"), ("c.rs", "")],
        &["it::{a, b}"],
    );
    check(
        &[("a.rs", "use crate::b;"), ("b.rs", "use crate::c;"), ("c.rs", "use crate::a;")],
        &["it::{a, b, c}"],
    );
    check(
        &[("a.rs", "use super::*; fn f() { b::g() }"), ("b.rs", "use super::a;")],
        &["it::{a, b}"],
    );
    check(
        &[("a.rs", "macro_rules! say { () => {} } use crate::b;"), ("b.rs", "say!();")],
        &["it::{a, b}"],
    );
    check(
        &[("a.rs", "mod inner { use super::super::b; }"), ("b.rs", "use crate::a;")],
        &["it::{a, b}"],
    );
}

#[test]
fn a_use_counts_for_the_siblings_that_hold_both() {
    check(
        &[("a/mod.rs", ""), ("a/x.rs", "use crate::b::Y;"), ("b.rs", "use crate::a::x;")],
        &["it::{a, b}"],
    );
    check(
        &[("a/mod.rs", ""), ("a/x.rs", "use super::y;"), ("a/y.rs", "use super::x::{self as z};")],
        &["it::a::{x, y}"],
    );
}

#[test]
fn what_is_no_cycle_is_none() {
    check(&[("a.rs", "use crate::b;"), ("b.rs", "")], &[]);
    check(&[("a/mod.rs", "mod x; use self::x::X;"), ("a/x.rs", "use super::Y;")], &[]);
    check(
        &[
            ("a.rs", "use crate::b;"),
            ("b.rs", "// crate::a\n/* crate::a */ const X: &str = \"crate::a\";"),
        ],
        &[],
    );
    check(&[("a.rs", "use crate::b;"), ("b.rs", "#[cfg(test)]\nmod tests { use crate::a; }")], &[]);
    check(
        &[
            ("a.rs", "use crate::b;"),
            ("b/mod.rs", "#[cfg(test)]\nmod t;"),
            ("b/t.rs", "use crate::a;"),
        ],
        &[],
    );
    check(&[("a.rs", "use crate::b;"), ("b.rs", "mod inner { fn f() { super::a() } }")], &[]);
    check(&[("a.rs", "use crate::b;"), ("b.rs", "const X: &str = r#\"\" crate::a::x\"#;")], &[]);
}
