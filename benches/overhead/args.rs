//! The command line.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

/// What `--help` prints.
pub(crate) const HELP: &str = "\
Measures what raddle costs, next to native runs and to ThreadSanitizer

Usage: raddle-bench [OPTIONS]

Options:
      --rounds N      How often everything is run [default: 5]
      --program NAME  Only this program: sort, hash, matrix or queue
      --quick         One round and fewer trials, to see that it works
      --raddle PATH   The raddle to measure [default: the one beside this executable]
  -h, --help          Print help
";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) n_rounds: u32,
    pub(crate) n_trials: u32,
    pub(crate) program: Option<String>,
    pub(crate) raddle: Option<PathBuf>,
    pub(crate) help: bool,
}

/// What the words after the command's name ask for.
pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Args> {
    let mut args = Args { n_rounds: 5, n_trials: 300, program: None, raddle: None, help: false };
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--rounds" => args.n_rounds = positive(&value()?)?,
            "--program" => args.program = Some(value()?),
            "--quick" => (args.n_rounds, args.n_trials) = (1, 60),
            "--raddle" => args.raddle = Some(value()?.into()),
            "-h" | "--help" => args.help = true,
            _ => bail!("unexpected argument {word}; see raddle-bench --help"),
        }
    }
    Ok(args)
}

fn positive(text: &str) -> Result<u32> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => bail!("--rounds needs a whole number from 1 on, not {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Args, String> {
        parse(line.split_whitespace().map(str::to_owned)).map_err(|error| error.to_string())
    }

    #[test]
    fn rounds_can_be_set_behind_quick() {
        let args = parsed("--quick --rounds 3").expect("fine");
        assert_eq!((args.n_rounds, args.n_trials), (3, 60));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, error) in [
            ("--rounds 0", "--rounds needs a whole number from 1 on, not 0"),
            ("--raddle", "--raddle needs a value"),
            ("sort", "unexpected argument sort; see raddle-bench --help"),
        ] {
            assert_eq!(parsed(line), Err(error.to_owned()));
        }
    }
}
