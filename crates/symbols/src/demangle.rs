//! Demangled names.
//!
//! C++ functions lose parameters and result (`Queue::push`, not `void Queue::push(int)`), Rust
//! paths lose their hash: in a report, file and line distinguish overloads. Suffixes of
//! compiler-generated copies (`push.part.0`) are dropped too.

use cpp_demangle::{DemangleOptions, Symbol};

/// The source name of a linker symbol; the symbol itself if it is not mangled.
pub(super) fn demangle(mangled: &str) -> String {
    let plain = without_suffix(mangled);
    if is_rust(plain)
        && let Ok(name) = rustc_demangle::try_demangle(plain)
    {
        return format!("{name:#}");
    }
    if !plain.starts_with("_Z") {
        return plain.to_owned();
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let name = Symbol::new(plain)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .unwrap_or_else(|| plain.to_owned());
    if plain.starts_with("_ZZ") { without_parameters(&name) } else { name }
}

/// The name of a function's static variable, `push(int)::calls`, without the function's
/// parameters.
fn without_parameters(name: &str) -> String {
    let Some((function, variable)) = name.rsplit_once(")::") else { return name.to_owned() };
    let mut n_open = 1;
    let start = function.rfind(|c| {
        n_open += i32::from(c == ')') - i32::from(c == '(');
        n_open == 0
    });
    start.map_or_else(
        || name.to_owned(),
        |start| format!("{}::{variable}", function.get(..start).unwrap_or(function)),
    )
}

/// Whether a name has one of Rust's manglings. The old one is C++'s with a hash as the last
/// component, and rustc-demangle would accept it without.
fn is_rust(name: &str) -> bool {
    let has_hash = |hash: &str| {
        hash.strip_prefix("17h").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    name.starts_with("_R")
        || name.strip_suffix('E').is_some_and(|name| {
            let hash = name.len().checked_sub("17h0123456789abcdef".len());
            hash.and_then(|start| name.get(start..)).is_some_and(has_hash)
        })
}

/// Drops what compilers append after a dot, for names that have no dot of their own.
fn without_suffix(name: &str) -> &str {
    const SUFFIXES: &[&str] = &["isra", "part", "constprop", "cold", "lto_priv", "llvm", "clone"];
    let is_suffix = |suffix: &str| {
        let word = suffix.split('.').next().unwrap_or(suffix);
        SUFFIXES.contains(&word) || (!word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()))
    };
    match name.split_once('.') {
        Some((head, tail)) if !head.is_empty() && is_suffix(tail) => head,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mangled: &str, expect: &str) {
        assert_eq!(demangle(mangled), expect);
    }

    #[test]
    fn names_of_c_stay() {
        check("push", "push");
        check("_start", "_start");
        check(".hidden", ".hidden");
    }

    #[test]
    fn cpp_functions_lose_their_parameters() {
        check("_ZN5Queue4pushEi", "Queue::push");
        check("_Z3maxIiET_S0_S0_", "max<int>");
        check("_ZZL3sumllE4sums", "sum::sums");
        check("_ZZ5applyPFivEE5calls", "apply::calls");
        check("_ZN12_GLOBAL__N_15depthE", "(anonymous namespace)::depth");
    }

    #[test]
    fn rust_paths_lose_their_hash() {
        check("_ZN4bank8withdraw17h5ea14946b6a7b0d7E", "bank::withdraw");
        check("_RNvCs1234_4bank8withdraw", "bank::withdraw");
    }

    #[test]
    fn copies_of_a_function_have_its_name() {
        check("push.part.0", "push");
        check("push.constprop.0.isra.1", "push");
        check("_ZN5Queue4pushEi.cold", "Queue::push");
        check("calls.0", "calls");
    }

    #[test]
    fn what_only_looks_mangled_stays() {
        check("_Znonsense", "_Znonsense");
        check("_RNonsense", "_RNonsense");
    }
}
