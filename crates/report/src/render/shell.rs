//! Commands that the user can paste into a shell.

use std::ffi::OsStr;

/// A word as a shell reads it.
#[must_use]
pub fn word(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+=./:,@%^".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn only_what_needs_it_is_quoted() {
        assert_eq!(word("./bank"), "./bank");
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word("it's"), r"'it'\''s'");
        assert_eq!(word(""), "''");
    }
}
