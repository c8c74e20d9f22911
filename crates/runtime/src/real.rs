//! The functions that we replace, as the next library defines them.

use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::tls;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

/// A function that is looked up at its first use. All are in one section of the library, for
/// [`look_up_all`].
pub(crate) struct Real {
    name: &'static CStr,
    version: Option<&'static CStr>,
    address: AtomicUsize,
}

impl Real {
    /// The function with this name.
    pub(crate) const fn new(name: &'static CStr, version: Option<&'static CStr>) -> Self {
        Self { name, version, address: AtomicUsize::new(0) }
    }

    /// Its address; the process ends if there is none.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        match self.address.load(Ordering::Relaxed) {
            0 => self.look_up(),
            address => address,
        }
    }

    /// Its address, if it has been looked up.
    pub(crate) fn resolved(&self) -> Option<usize> {
        match self.address.load(Ordering::Relaxed) {
            0 => None,
            address => Some(address),
        }
    }

    #[cold]
    fn look_up(&self) -> usize {
        // The loader frees memory meanwhile, and we may hold locks that `free` acquires.
        tls::set(tls::QUIET, tls::get(tls::QUIET) + 1);
        let address = self.search();
        tls::set(tls::QUIET, tls::get(tls::QUIET) - 1);
        address
    }

    fn search(&self) -> usize {
        if !self.find() {
            die!("this system's libc has no {:?}", self.name);
        }
        self.address.load(Ordering::Relaxed)
    }

    /// Stores its address; false if there is no such function.
    fn find(&self) -> bool {
        // glibc has two generations of condition variables: without a version, the older one
        // would be found.
        let mut address = core::ptr::null_mut();
        if let Some(version) = self.version {
            // SAFETY: names are zero-terminated; RTLD_NEXT searches after the calling library.
            address = unsafe { dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), version.as_ptr()) };
        }
        if address.is_null() {
            // SAFETY: as above.
            address = unsafe { dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        }
        self.address.store(address as usize, Ordering::Relaxed);
        !address.is_null()
    }
}

global_asm!(".hidden __start_raddle_real", ".hidden __stop_raddle_real");

unsafe extern "C" {
    /// The linker's names for the bounds of the section.
    #[link_name = "__start_raddle_real"]
    static FIRST: u64;
    #[link_name = "__stop_raddle_real"]
    static END: u64;
}

/// Looks up whatever has not been looked up. A function that this system does not have, or does not
/// have yet, is looked up again at its first use.
pub(crate) fn look_up_all() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::Relaxed) {
        return;
    }
    let (first, end) = ((&raw const FIRST).cast::<Real>(), (&raw const END).cast::<Real>());
    // SAFETY: the section holds nothing but such values, one after another.
    let all = unsafe { core::slice::from_raw_parts(first, end.offset_from_unsigned(first)) };
    tls::set(tls::QUIET, tls::get(tls::QUIET) + 1);
    let n_missing = all.iter().filter(|real| real.resolved().is_none() && !real.find()).count();
    if n_missing > 0 {
        // The loader remembers the last failure for the program.
        // SAFETY: asks for a message, which is then forgotten.
        unsafe { libc::dlerror() };
    }
    tls::set(tls::QUIET, tls::get(tls::QUIET) - 1);
}

/// Calls a function that we replace: `real!(pthread_mutex_lock(mutex => *mut T) -> c_int)`.
macro_rules! real {
    ($name:ident $(@ $version:literal)? ($($arg:expr => $type:ty),* $(,)?) $(-> $result:ty)?) => {{
        #[unsafe(link_section = "raddle_real")]
        static REAL: $crate::real::Real = $crate::real::Real::new(
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            },
            { #[allow(unused_mut, unused_assignments)] let mut version: Option<&'static core::ffi::CStr> = None; $( version = Some($version); )? version },
        );
        // SAFETY: the address is that of the function of this name, whose type the caller states.
        let function: unsafe extern "C" fn($($type),*) $(-> $result)? = unsafe { core::mem::transmute(REAL.address()) };
        // SAFETY: the arguments are what our caller passed for this same function; its contract is ours.
        unsafe { function($($arg),*) }
    }};
}
pub(crate) use real;

/// The address of a function that we replace: `address!(qsort)`.
macro_rules! address {
    ($name:ident $(@ $version:literal)?) => {{
        #[unsafe(link_section = "raddle_real")]
        static REAL: $crate::real::Real = $crate::real::Real::new(
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes())
            {
                Ok(name) => name,
                Err(_) => unreachable!(),
            },
            { #[allow(unused_mut, unused_assignments)] let mut version: Option<&'static core::ffi::CStr> = None; $( version = Some($version); )? version },
        );
        REAL.address()
    }};
}
pub(crate) use address;
