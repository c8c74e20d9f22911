//! What a run may do, by the words of `--allow`: where the functions are that they name.

use std::ops::Range;
use std::path::Path;

use anyhow::{Result, anyhow};
use raddle_code::elf::Files;
use raddle_code::program;
use raddle_symbols::{Cache, functions};
use raddle_trace::allow::Allowed;
use raddle_trace::id::Site;
use raddle_trace::run::Module;
use raddle_trial::plan::Allow;

use crate::args::AllowArgs;

/// Functions that an error suggests.
const ALIKE_MAX: usize = 3;

/// What was typed, for this program.
pub(crate) fn typed(args: &AllowArgs, program: &Path, files: &Files) -> Result<Allow> {
    more(&[], args, program, files)
}

/// The same beside these words, those of a clip.
pub(crate) fn more(
    words: &[Allowed],
    args: &AllowArgs,
    program: &Path,
    files: &Files,
) -> Result<Allow> {
    let mut words = words.to_vec();
    for word in args.allow.iter().flat_map(|list| &list.0) {
        if !words.contains(word) {
            words.push(word.clone());
        }
    }
    let mut code = None;
    Ok(Allow::new(words, |function| {
        code.get_or_insert_with(|| Code::new(program, files)).of(function)
    })?)
}

/// The code of a program: of its executable, and of its own libraries that it is linked with.
struct Code {
    modules: Vec<Module>,
    cache: Cache,
}

impl Code {
    fn new(program: &Path, files: &Files) -> Self {
        // The runtime knows the executable by its real name, and libraries as the loader does.
        let executable = program.canonicalize().unwrap_or_else(|_| program.to_owned());
        let libraries = program::own_libraries(&executable);
        let module = |path: &Path| Module {
            path: path.to_string_lossy().into_owned(),
            build_id: String::new(),
            base: 0,
            low: 0,
            high: u64::MAX,
        };
        let paths = std::iter::once(&executable).chain(&libraries);
        Self { modules: paths.map(|path| module(path)).collect(), cache: Cache::new(files.clone()) }
    }

    /// The code of a function.
    fn of(&self, function: &str) -> Result<Vec<Range<Site>>> {
        let mut code = Vec::new();
        for module in &self.modules {
            let site = |offset: u64| Site::new(module.path.as_bytes(), offset);
            let ranges = functions::code_of(module, function, &self.cache);
            code.extend(ranges.into_iter().map(|range| site(range.start)..site(range.end)));
        }
        if code.is_empty() { Err(self.unknown(function)) } else { Ok(code) }
    }

    fn unknown(&self, function: &str) -> anyhow::Error {
        let program = self.modules.first().map_or("the program", |module| &module.path);
        let mut alike: Vec<String> = self
            .modules
            .iter()
            .flat_map(|module| functions::alike(module, function, ALIKE_MAX, &self.cache))
            .collect();
        alike.truncate(ALIKE_MAX);
        let advice = match &alike[..] {
            [] => "write it as raddle prints it".to_owned(),
            alike => format!("there is {}", alike.join(", ")),
        };
        anyhow!("--allow: no function of {program} has the name {function}; {advice}")
    }
}
