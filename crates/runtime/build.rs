//! Names the library as the compiler's own is named, so that a program that was linked
//! with that one takes ours instead.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtsan.so.2");
    // Our own calls to what we export must not leave through the procedure linkage table,
    // and everything is bound at start: no lazy binding in the middle of an access.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,now");
    println!("cargo:rerun-if-changed=build.rs");
}
