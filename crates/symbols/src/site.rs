//! Source locations of code addresses.
//!
//! A [`Pc`] is a return address: it points past the call, often into the next line, sometimes
//! into the next function. So we look up the byte before it.
//!
//! # Limits
//! Lines are what the compiler says: after optimization a call may have the line of its neighbor,
//! and a merged call has the line of either.

use std::fmt;
use std::rc::Rc;

use raddle_trace::id::Pc;

use super::demangle::demangle;
use super::image::Image;
use super::{Symbols, file_name};

/// A code address with its source locations.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SiteName {
    /// The innermost function and line.
    pub frame: Frame,
    /// The functions that it was inlined into, with the lines of the calls, from inside out.
    pub inlined: Vec<Frame>,
    /// The path of the module; empty if no module contains the address.
    pub module: String,
    /// Offset from the module's load address; without a module, the address itself.
    pub offset: u64,
    /// Whether the module belongs to the program.
    pub is_program: bool,
}

/// A function, and a line in it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Frame {
    /// The function's name, demangled.
    pub function: Option<String>,
    /// The source file as recorded by the compiler, usually a full path.
    pub file: Option<String>,
    /// The source file for display: relative to the current directory, or its base name.
    pub short_file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// The column.
    pub column: Option<u32>,
}

/// Directories of foreign code: compiler headers, Rust's standard library, crates from a
/// registry.
const FOREIGN: &[&str] = &[
    "/usr/include/",
    "/usr/lib/",
    "/include/c++/",
    "/rustc/",
    "/rust/deps/",
    "/rustlib/src/",
    "/registry/src/",
];

impl Symbols {
    /// The site of a code address.
    #[must_use]
    pub fn site(&self, pc: Pc) -> Rc<SiteName> {
        if let Some(known) = self.sites.borrow().get(&pc) {
            return Rc::clone(known);
        }
        let site = Rc::new(self.find_site(pc));
        self.sites.borrow_mut().insert(pc, Rc::clone(&site));
        site
    }

    fn find_site(&self, pc: Pc) -> SiteName {
        let call = pc.0.wrapping_sub(1);
        let Some(slot) = self.slot(call) else {
            return SiteName { offset: pc.0, ..SiteName::default() };
        };
        let base = slot.module.base;
        let mut frames = match self.image(slot) {
            Some(image) => self.frames(image, call.wrapping_sub(base)),
            None => Vec::new(),
        };
        let frame = if frames.is_empty() { Frame::default() } else { frames.remove(0) };
        SiteName {
            frame,
            inlined: frames,
            module: slot.module.path.clone(),
            offset: pc.0.wrapping_sub(base),
            is_program: self.is_program(slot),
        }
    }

    /// The functions at an address of the file, innermost first.
    pub(super) fn frames(&self, image: &Image, address: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        if let Some(debug) = &image.debug
            && let Ok(mut found) = debug.lines.find_frames(address).skip_all_loads()
        {
            while let Ok(Some(frame)) = found.next() {
                frames.push(self.frame(&frame));
            }
        }
        if frames.is_empty() {
            frames.push(Frame::default());
        }
        // The outermost frame is the function that the linker knows.
        if let Some(outermost) = frames.last_mut().filter(|frame| frame.function.is_none()) {
            outermost.function = image.functions.at(address).map(|symbol| demangle(&symbol.name));
        }
        frames
    }

    fn frame(&self, frame: &addr2line::Frame<'_, super::dies::Bytes>) -> Frame {
        let function = frame.function.as_ref().and_then(|name| name.raw_name().ok());
        let location = frame.location.as_ref();
        let file = location.and_then(|location| location.file).map(str::to_owned);
        let positive = |number: u32| (number > 0).then_some(number);
        Frame {
            function: function.map(|name| demangle(&name)),
            short_file: file.as_deref().map(|file| self.short(file)),
            file,
            line: location.and_then(|location| location.line).and_then(positive),
            column: location.and_then(|location| location.column).and_then(positive),
        }
    }
}

impl SiteName {
    /// All frames, innermost first.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        std::iter::once(&self.frame).chain(&self.inlined)
    }

    /// The innermost frame in the program's own code, if any: not the inlined line of the
    /// standard library, but the line that it was inlined into.
    #[must_use]
    pub fn own_frame(&self) -> Option<&Frame> {
        self.frames().find(|frame| self.is_program && frame.has_own_source())
    }
}

impl Frame {
    /// Whether its source belongs to the program, and not to a library that came with the
    /// compiler or from a registry. Decided by path; code without a path is foreign.
    #[must_use]
    pub fn has_own_source(&self) -> bool {
        self.file.as_ref().is_some_and(|file| !FOREIGN.iter().any(|part| file.contains(part)))
    }
}

impl fmt::Display for SiteName {
    /// `queue.c:41 in push`; without lines `libqueue.so+0x1234 in push`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.frame.short_file.is_some() {
            return self.frame.fmt(f);
        }
        match (self.module.as_str(), self.offset) {
            ("", 0) => f.write_str("unknown")?,
            ("", address) => write!(f, "{address:#x}")?,
            (module, offset) => write!(f, "{}+{offset:#x}", file_name(module))?,
        }
        match &self.frame.function {
            Some(function) => write!(f, " in {function}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short_file.as_deref().unwrap_or("unknown"))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        match &self.function {
            Some(function) => write!(f, " in {function}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: Option<&str>, file: Option<&str>, line: Option<u32>) -> Frame {
        let short_file = file.map(|file| file_name(file).to_owned());
        let (function, file) = (function.map(str::to_owned), file.map(str::to_owned));
        Frame { function, file, short_file, line, column: None }
    }

    fn check(frame: Frame, module: &str, offset: u64, expect: &str) {
        let module = module.to_owned();
        let site = SiteName { frame, inlined: Vec::new(), module, offset, is_program: true };
        assert_eq!(site.to_string(), expect);
    }

    #[test]
    fn a_site_is_file_line_and_function() {
        let whole = frame(Some("push"), Some("/src/queue.c"), Some(41));
        check(whole, "/bin/queue", 0x1234, "queue.c:41 in push");
    }

    #[test]
    fn a_site_without_a_line_is_its_file() {
        check(frame(None, Some("/src/queue.c"), None), "/bin/queue", 0x1234, "queue.c");
    }

    #[test]
    fn a_site_without_lines_is_an_offset_in_its_module() {
        check(frame(Some("push"), None, None), "/lib/q.so", 0x1234, "q.so+0x1234 in push");
        check(Frame::default(), "/lib/q.so", 0x1234, "q.so+0x1234");
    }

    #[test]
    fn a_site_in_no_module_is_its_address() {
        check(Frame::default(), "", 0x7f00_0000_1234, "0x7f0000001234");
        check(Frame::default(), "", 0, "unknown");
    }

    #[test]
    fn the_standard_library_is_foreign() {
        let is_own = |file| frame(None, Some(file), Some(1)).has_own_source();
        assert!(is_own("/home/me/queue.c"));
        assert!(is_own("src/main.rs"));
        assert!(!is_own("/usr/include/c++/12/bits/new_allocator.h"));
        assert!(!is_own("/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../include/c++/12/mutex"));
        assert!(!is_own("/rustc/0123abcd/library/alloc/src/alloc.rs"));
        assert!(!Frame::default().has_own_source());
    }
}
