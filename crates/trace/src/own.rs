//! Which modules belong to the program.
//!
//! One rule for the runtime, for names, and for blaming code: a module belongs to the program
//! unless it is in one of the system's library directories, is the kernel's, or is raddle's
//! runtime. The executable always belongs to the program, wherever it is. Not every line of such
//! a module is the program's own: headers of the standard library are compiled into it
//! (`symbols::site` recognizes these by their source files).

/// System library directories.
const SYSTEM: [&[u8]; 5] = [b"/lib/", b"/lib32/", b"/lib64/", b"/usr/lib/", b"/usr/lib64/"];
/// The name of the kernel's module, which has no file.
const KERNEL: &[u8] = b"linux-vdso";
/// How the file name of raddle's runtime starts, like that of the library that it replaces.
const RUNTIME: &[u8] = b"libtsan.so";

/// Whether a module other than the executable belongs to the program, by its path.
#[must_use]
pub fn is_own_library(path: &[u8]) -> bool {
    let is_system = SYSTEM.iter().any(|directory| path.starts_with(directory));
    !is_system && !path.starts_with(KERNEL) && !is_runtime(path)
}

/// Whether a module is raddle's runtime, or the library that it replaces.
#[must_use]
pub fn is_runtime(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    name.starts_with(RUNTIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_the_system_and_of_raddle_are_not_the_program_s() {
        for own in ["/home/me/libqueue.so", "./libqueue.so", "/opt/lib/libqueue.so", "/library/a"] {
            assert!(is_own_library(own.as_bytes()), "{own}");
        }
        let foreign = [
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
            "/usr/lib64/libstdc++.so.6",
            "linux-vdso.so.1",
            "/home/me/.cache/raddle/0123/libtsan.so.2",
        ];
        for foreign in foreign {
            assert!(!is_own_library(foreign.as_bytes()), "{foreign}");
        }
    }
}
