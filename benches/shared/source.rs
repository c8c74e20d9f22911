//! Source packages, from the package manager.
//!
//! Few machines have source packages enabled, so apt gets a configuration of its own: the
//! machine's sources with `deb` replaced by `deb-src`, and lists and caches below `target`. Servers
//! do not keep everything of an older release. What is missing is taken from the stable one.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

const APT: &str = "/etc/apt";

/// The sources of packages, each unpacked once.
pub struct Sources {
    directory: PathBuf,
    own: OnceCell<Apt>,
    stable: OnceCell<Apt>,
}

/// From which release of the distribution.
#[derive(Clone, Copy)]
enum Release {
    /// That of the machine.
    Own,
    Stable,
}

impl Sources {
    /// Sources below a directory.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        let directory = directory.to_owned();
        Self { directory, own: OnceCell::new(), stable: OnceCell::new() }
    }

    /// The directory with the source of a package, unpacked on the first call.
    ///
    /// # Errors
    /// If the package manager cannot fetch it.
    pub fn fetch(&self, package: &str) -> Result<PathBuf> {
        let source = self.directory.join("sources").join(package);
        if let Some(unpacked) = unpacked(&source) {
            return Ok(unpacked);
        }
        eprintln!("fetching the source of {package}");
        // Under another name until it is complete.
        let part = source.with_extension("part");
        if !self.fetch_from(Release::Own, package, &part)?
            && !self.fetch_from(Release::Stable, package, &part)?
        {
            bail!(
                "apt-get cannot fetch the source of {package}; its words are above, and dpkg-dev has to be installed"
            );
        }
        fs::rename(&part, &source).with_context(|| format!("cannot rename {}", part.display()))?;
        unpacked(&source).with_context(|| format!("apt-get has not unpacked {package}"))
    }

    /// Whether a package could be fetched from this release.
    fn fetch_from(&self, release: Release, package: &str, part: &Path) -> Result<bool> {
        if part.exists() {
            fs::remove_dir_all(part)
                .with_context(|| format!("cannot remove {}", part.display()))?;
        }
        fs::create_dir_all(part).with_context(|| format!("cannot make {}", part.display()))?;
        let (apt, name) = match release {
            Release::Own => (&self.own, "apt"),
            Release::Stable => (&self.stable, "apt-stable"),
        };
        let apt = match apt.get() {
            Some(apt) => apt,
            None => {
                let new = Apt::new(&self.directory.join(name), release)?;
                // Some of the machine's sources may have no source packages. What counts is the
                // next command.
                new.get(&self.directory, &["update"])?;
                apt.get_or_init(|| new)
            }
        };
        apt.get(part, &["source", package])
    }
}

/// The directory that apt has unpacked.
fn unpacked(source: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(source).ok()?;
    entries.filter_map(|entry| Some(entry.ok()?.path())).find(|path| path.is_dir())
}

/// apt with a configuration of our own.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn new(directory: &Path, release: Release) -> Result<Self> {
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
            fs::write(parts.join(name), sources(&text, release))
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
        Ok(status.context("cannot start apt-get, which fetches sources")?.success())
    }
}

/// The source packages of a file with a source per line.
fn line_sources(text: &str, release: Release) -> String {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("deb "));
    let line = |rest: &str| match release {
        Release::Own => format!("deb-src {rest}\n"),
        Release::Stable => {
            // Options in brackets may contain blanks. Then come the address and the suite.
            let (options, rest) = match rest.split_once(']') {
                Some((options, rest)) => (format!("{options}] "), rest),
                None => (String::new(), rest),
            };
            let mut words: Vec<_> = rest.split_whitespace().collect();
            if let Some(suite) = words.get_mut(1) {
                *suite = "stable";
            }
            format!("deb-src {options}{}\n", words.join(" "))
        }
    };
    lines.map(line).collect()
}

/// The source packages of a file in stanzas.
fn stanza_sources(text: &str, release: Release) -> String {
    let line = |line: &str| match release {
        Release::Own | Release::Stable if line.starts_with("Types:") => {
            "Types: deb-src\n".to_owned()
        }
        Release::Stable if line.starts_with("Suites:") => "Suites: stable\n".to_owned(),
        Release::Own | Release::Stable => format!("{line}\n"),
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
                "# main\ndeb [arch=amd64] mirror old main\ndeb-src mirror old main\n",
                Release::Own
            ),
            "deb-src [arch=amd64] mirror old main\n"
        );
        assert_eq!(
            stanza_sources(
                "Types: deb\nURIs: mirror\n\nTypes: deb deb-src\nURIs: other\n",
                Release::Own
            ),
            "Types: deb-src\nURIs: mirror\n\nTypes: deb-src\nURIs: other\n"
        );
    }

    #[test]
    fn an_older_release_becomes_the_stable_one() {
        assert_eq!(
            line_sources(
                "deb [arch=amd64 x=y] mirror old main other\ndeb mirror old main\n",
                Release::Stable
            ),
            "deb-src [arch=amd64 x=y] mirror stable main other\ndeb-src mirror stable main\n"
        );
        assert_eq!(
            stanza_sources("Types: deb\nURIs: mirror\nSuites: old old-updates\n", Release::Stable),
            "Types: deb-src\nURIs: mirror\nSuites: stable\n"
        );
    }
}
