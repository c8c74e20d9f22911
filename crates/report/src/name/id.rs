//! Ids of findings that stay the same while the program changes around them.
//!
//! An id is a hash of the pattern, the variable, and for each access its function and its number
//! among the accesses of its kind to that memory in that function. It does not change with line
//! numbers, with what the compiler appends to names, or with what else is found.

use std::hash::Hasher as _;

use twox_hash::XxHash64;

use super::access::Named;
use crate::model::{Access, Failure};

/// The id of accesses in a pattern.
pub(super) fn of_accesses(pattern: &str, named: &Named) -> String {
    let variable = named.variable.as_deref().map(plain).unwrap_or_default();
    let access = |(access, ordinal): (&Access, &usize)| {
        let function = access.function.as_deref().map(plain).unwrap_or_default();
        format!("{}{} {function} {ordinal}", access.op, access.role)
    };
    let accesses: Vec<_> = named.accesses.iter().zip(&named.ordinals).map(access).collect();
    hash(&[&[pattern.to_owned(), variable], &accesses[..]].concat())
}

/// The id of a failure that nothing explains.
pub(super) fn of_failure(failure: &Failure) -> String {
    hash(&[failure.kind.as_str().to_owned(), failure.detail.clone()])
}

fn hash(parts: &[String]) -> String {
    let mut hasher = XxHash64::with_seed(0);
    for part in parts {
        hasher.write(part.as_bytes());
        hasher.write(&[0]);
    }
    format!("{:016x}", hasher.finish())
}

/// A name without what changes when nothing else does: hashes, numbers of closures, lines.
fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for part in name.split("::") {
        let is_hash = part.len() == 17
            && part.starts_with('h')
            && part[1..].bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash {
            continue;
        }
        if !plain.is_empty() {
            plain.push_str("::");
        }
        match part.split_once("{closure#") {
            Some((before, _)) => plain.extend([before, "{closure}"]),
            None => plain.push_str(part),
        }
    }
    without_lines(&plain)
}

/// Lines of source files, as places of heap blocks have them, are left out.
fn without_lines(name: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in name.split(' ') {
        match word.rsplit_once(':') {
            Some((file, line)) if line.bytes().all(|b| b.is_ascii_digit()) => words.push(file),
            _ => words.push(word),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_lose_what_the_compiler_appends() {
        let check = |name, wanted| assert_eq!(plain(name), wanted);
        check("bank::withdraw::h0123456789abcdef", "bank::withdraw");
        check("bank::main::{closure#0}::{closure#12}", "bank::main::{closure}::{closure}");
        check("bank::main::{{closure}}", "bank::main::{{closure}}");
        check(
            "heap block allocated at bank.c:12 in make",
            "heap block allocated at bank.c in make",
        );
        check("std::vector<int>::at", "std::vector<int>::at");
    }
}
