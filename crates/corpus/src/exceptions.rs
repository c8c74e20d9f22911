//! Lists of programs that a check does not hold for yet, which expire.
//!
//! A listed program is run and checked like the others. It has to fail the check: once it passes,
//! the test fails until the program is removed from the list.

/// Programs that a check does not hold for, each with the reason.
#[derive(Clone, Copy, Debug)]
pub struct Exceptions {
    /// The name of the list in the test's source, for messages.
    pub list: &'static str,
    /// Names and reasons.
    pub entries: &'static [(&'static str, &'static str)],
}

impl Exceptions {
    /// Why the check does not hold for this program; none if it has to hold.
    #[must_use]
    pub fn reason(&self, name: &str) -> Option<&'static str> {
        self.entries.iter().find(|(its, _)| *its == name).map(|(_, reason)| *reason)
    }

    /// The result of a check, turned around for a program that is listed.
    ///
    /// # Errors
    /// What the check says about a program that is not listed; for one that is, that it passed.
    pub fn apply(&self, name: &str, checked: Result<(), String>) -> Result<(), String> {
        match (self.reason(name), checked) {
            (None, checked) => checked,
            (Some(_), Err(_)) => Ok(()),
            (Some(reason), Ok(())) => Err(format!(
                "the check that {} excuses holds now; remove the program from the list (it says: {reason})",
                self.list
            )),
        }
    }

    /// Checks that every entry names one of these programs, once, and gives a reason.
    ///
    /// # Errors
    /// The entries that do not.
    pub fn name_only(&self, names: &[&str]) -> Result<(), String> {
        let is_wrong = |(name, reason): &&(&str, &str)| {
            let n = self.entries.iter().filter(|(other, _)| other == name).count();
            n > 1 || reason.is_empty() || !names.contains(name)
        };
        let wrong: Vec<_> = self.entries.iter().filter(is_wrong).collect();
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "{}: no such program, listed twice, or no reason: {wrong:?}",
                self.list
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Exceptions;

    const LIST: Exceptions = Exceptions { list: "LIST", entries: &[("old.c", "it is hard")] };

    #[test]
    fn a_listed_program_has_to_fail() {
        assert_eq!(LIST.apply("old.c", Err("wrong".into())), Ok(()));
        let why = LIST.apply("old.c", Ok(())).expect_err("it expired");
        assert!(why.contains("remove the program from the list"), "{why}");
    }

    #[test]
    fn other_programs_have_to_pass() {
        assert_eq!(LIST.apply("new.c", Ok(())), Ok(()));
        assert_eq!(LIST.apply("new.c", Err("wrong".into())), Err("wrong".into()));
    }

    #[test]
    fn entries_name_programs() {
        assert_eq!(LIST.name_only(&["old.c", "new.c"]), Ok(()));
        assert!(LIST.name_only(&["new.c"]).is_err());
    }
}
