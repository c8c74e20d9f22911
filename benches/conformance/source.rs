//! glibc's source, from the package manager.
//!
//! Few machines have source packages enabled, so apt gets a configuration of its own: the
//! machine's sources with `deb` replaced by `deb-src`, and lists and caches below `target`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

const APT: &str = "/etc/apt";

/// The directory with glibc's source, unpacked below `directory` on the first call.
pub(crate) fn fetch(directory: &Path) -> Result<PathBuf> {
    let source = directory.join("source");
    if let Some(glibc) = unpacked(&source) {
        return Ok(glibc);
    }
    eprintln!("fetching glibc's source");
    // Under another name until it is complete.
    let part = directory.join("source.part");
    if part.exists() {
        fs::remove_dir_all(&part).with_context(|| format!("cannot remove {}", part.display()))?;
    }
    fs::create_dir_all(&part).with_context(|| format!("cannot make {}", part.display()))?;
    let apt = Apt::new(&directory.join("apt"))?;
    // Some of the machine's sources may have no source packages. What counts is the next command.
    let updated = apt.get(directory, &["update"])?;
    if !apt.get(&part, &["source", "glibc"])? {
        bail!(
            "apt-get cannot fetch glibc's source{}; its words are above, and dpkg-dev has to be installed",
            if updated { "" } else { ", nor update its lists" }
        );
    }
    fs::rename(&part, &source).context("cannot rename glibc's source")?;
    unpacked(&source).context("apt-get has not unpacked glibc's source")
}

fn unpacked(source: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(source).ok()?;
    entries.filter_map(|entry| Some(entry.ok()?.path())).find(|path| path.join("nptl").is_dir())
}

/// apt with a configuration of our own.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn new(directory: &Path) -> Result<Self> {
        let parts = directory.join("sources.list.d");
        for needed in ["sources.list.d", "lists/partial", "cache/archives/partial"] {
            let path = directory.join(needed);
            fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        }
        let own = Path::new(APT);
        let mut files = vec![own.join("sources.list")];
        if let Ok(entries) = fs::read_dir(own.join("sources.list.d")) {
            files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
        }
        for file in files {
            let Some(name) = file.file_name() else { continue };
            let sources = match file.extension().and_then(OsStr::to_str) {
                Some("list") => line_sources,
                Some("sources") => stanza_sources,
                // apt reads nothing else.
                _ => continue,
            };
            let Ok(text) = fs::read_to_string(&file) else { continue };
            fs::write(parts.join(name), sources(&text))
                .with_context(|| format!("cannot write to {}", parts.display()))?;
        }
        let options = [
            "Dir::Etc::sourcelist=/dev/null".to_owned(),
            format!("Dir::Etc::sourceparts={}", parts.display()),
            format!("Dir::State::lists={}", directory.join("lists").display()),
            format!("Dir::Cache={}", directory.join("cache").display()),
            // Its own user could not write to our directories.
            "APT::Sandbox::User=root".to_owned(),
        ];
        Ok(Self { options: options.into() })
    }

    /// Whether the command succeeds. What it prints goes to standard error.
    fn get(&self, directory: &Path, words: &[&str]) -> Result<bool> {
        let mut command = Command::new("apt-get");
        command.current_dir(directory).stdin(Stdio::null()).stdout(std::io::stderr());
        command.arg("-qq").args(self.options.iter().flat_map(|option| ["-o", option]));
        let status = command.args(words).status();
        Ok(status.context("cannot start apt-get, which fetches glibc's source")?.success())
    }
}

/// The source packages of a file with a source per line.
fn line_sources(text: &str) -> String {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("deb "));
    lines.map(|rest| format!("deb-src {rest}\n")).collect()
}

/// The source packages of a file in stanzas.
fn stanza_sources(text: &str) -> String {
    let line = |line: &str| match line.starts_with("Types:") {
        true => "Types: deb-src\n".to_owned(),
        false => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_packages_become_source_packages() {
        assert_eq!(
            line_sources(
                "# main\ndeb [arch=amd64] mirror stable main\ndeb-src mirror stable main\n"
            ),
            "deb-src [arch=amd64] mirror stable main\n"
        );
        assert_eq!(
            stanza_sources("Types: deb\nURIs: mirror\n\nTypes: deb deb-src\nURIs: other\n"),
            "Types: deb-src\nURIs: mirror\n\nTypes: deb-src\nURIs: other\n"
        );
    }
}
