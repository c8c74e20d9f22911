//! The loaded modules.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

use libc::{dl_phdr_info, size_t};
use raddle_trace::control::{MODULES_MAX, Module, OVERFLOW, PATH_BYTES};
use raddle_trace::id::Site;

use crate::real::real;
use crate::{shared, sys};

/// What is called for each module.
type Callback = unsafe extern "C" fn(*mut dl_phdr_info, size_t, *mut c_void) -> c_int;

/// Calls a function for each module. The loader's list stays locked meanwhile.
pub(crate) fn iterate(callback: Callback, data: *mut c_void) {
    real!(dl_iterate_phdr(callback => Callback, data => *mut c_void) -> c_int);
}

/// Writes all loaded modules that are not yet known into the control block.
pub(crate) fn scan() {
    iterate(add_module, core::ptr::null_mut());
}

unsafe extern "C" fn add_module(info: *mut dl_phdr_info, _: size_t, _: *mut c_void) -> c_int {
    // SAFETY: the loader passes a description that is valid during the call.
    let info = unsafe { &*info };
    let control = shared::control();
    let n = control.n_modules.load(Ordering::Relaxed) as usize;
    if (0..n).any(|known| {
        let known = shared::module(known);
        known.base.load(Ordering::Relaxed) == info.dlpi_addr
            && known.high.load(Ordering::Relaxed) != 0
    }) {
        return 0;
    }
    if n >= MODULES_MAX {
        shared::flag(OVERFLOW);
        return 0;
    }
    let module = shared::module(n);
    let (mut low, mut high) = (u64::MAX, 0);
    for index in 0..usize::from(info.dlpi_phnum) {
        // SAFETY: dlpi_phdr points to dlpi_phnum program headers.
        let header = unsafe { &*info.dlpi_phdr.add(index) };
        let start = info.dlpi_addr + header.p_vaddr;
        match header.p_type {
            libc::PT_LOAD => {
                low = low.min(start);
                high = high.max(start + header.p_memsz);
            }
            libc::PT_NOTE => note_build_id(module, start, header.p_memsz),
            _ => {}
        }
    }
    if low >= high {
        return 0;
    }
    let mut path = [0u8; PATH_BYTES];
    let n_path =
        if n == 0 { executable(&mut path) } else { copy(info.dlpi_name.cast(), &mut path) };
    for (to, from) in module.path.iter().zip(&path[..n_path]) {
        to.store(*from, Ordering::Relaxed);
    }
    module.path_len.store(n_path as u32, Ordering::Relaxed);
    module.base.store(info.dlpi_addr, Ordering::Relaxed);
    module.low.store(low, Ordering::Relaxed);
    module.high.store(high, Ordering::Relaxed);
    control.n_modules.store(n as u32 + 1, Ordering::Release);
    0
}

fn executable(path: &mut [u8]) -> usize {
    let n = sys::syscall!(
        libc::SYS_readlink,
        c"/proc/self/exe".as_ptr(),
        path.as_mut_ptr(),
        path.len()
    );
    usize::try_from(n).unwrap_or(0)
}

fn copy(name: *const u8, path: &mut [u8]) -> usize {
    if name.is_null() {
        return 0;
    }
    for (at, to) in path.iter_mut().enumerate() {
        // SAFETY: a zero-terminated string, read up to its end.
        let byte = unsafe { *name.add(at) };
        if byte == 0 {
            return at;
        }
        *to = byte;
    }
    path.len()
}

/// Looks for the build-id among the notes at `start`.
fn note_build_id(module: &Module, start: u64, bytes: u64) {
    let mut at = start;
    while at + 16 <= start + bytes {
        // SAFETY: within a loaded PT_NOTE segment.
        let [n_name, n_desc, kind] = unsafe { core::ptr::read_unaligned(at as *const [u32; 3]) };
        let desc = at + 12 + u64::from(n_name.next_multiple_of(4));
        // SAFETY: a note's name follows its head, within the segment.
        let name = unsafe { core::ptr::read_unaligned((at + 12) as *const [u8; 4]) };
        if kind == 3 && n_name == 4 && name == *b"GNU\0" {
            let n = (n_desc as usize).min(module.build_id.len());
            for (index, to) in module.build_id.iter().enumerate().take(n) {
                // SAFETY: within the note's description.
                to.store(unsafe { *((desc + index as u64) as *const u8) }, Ordering::Relaxed);
            }
            module.build_id_len.store(n as u32, Ordering::Relaxed);
            return;
        }
        at = desc + u64::from(n_desc.next_multiple_of(4));
    }
}

/// The module that holds a code address.
fn holding(pc: u64) -> Option<&'static Module> {
    let n = shared::control().n_modules.load(Ordering::Acquire) as usize;
    (0..n).map(shared::module).find(|module| {
        (module.low.load(Ordering::Relaxed)..module.high.load(Ordering::Relaxed)).contains(&pc)
    })
}

/// The site of a code address.
pub(crate) fn site(pc: u64) -> Site {
    let Some(module) = holding(pc) else { return Site::UNKNOWN };
    let mut path = [0u8; PATH_BYTES];
    Site::new(path_of(module, &mut path), pc - module.base.load(Ordering::Relaxed))
}

/// A module's path, copied.
fn path_of<'a>(module: &Module, path: &'a mut [u8; PATH_BYTES]) -> &'a [u8] {
    let n = (module.path_len.load(Ordering::Relaxed) as usize).min(path.len());
    for (to, from) in path.iter_mut().zip(&module.path[..n]) {
        *to = from.load(Ordering::Relaxed);
    }
    &path[..n]
}

static OWN: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static LIBC: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static LOADER: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Determines the address ranges of this library, the C library and the loader.
pub(crate) fn note_ranges() {
    // SAFETY: asks for the address of libc's own functions.
    let in_libc = unsafe { libc::dlsym(libc::RTLD_NEXT, c"gnu_get_libc_version".as_ptr()) } as u64;
    // SAFETY: as above.
    let in_loader = unsafe { libc::dlsym(libc::RTLD_NEXT, c"__tls_get_addr".as_ptr()) } as u64;
    let here = note_ranges as *const () as u64;
    for (place, range) in [(here, &OWN), (in_libc, &LIBC), (in_loader, &LOADER)] {
        if let Some((low, high)) = range_of(place) {
            range[0].store(low, Ordering::Relaxed);
            range[1].store(high, Ordering::Relaxed);
        }
    }
}

#[inline]
fn holds(range: &[AtomicU64; 2], pc: u64) -> bool {
    (range[0].load(Ordering::Relaxed)..range[1].load(Ordering::Relaxed)).contains(&pc)
}

/// Whether a return address is in this library: the compiler inserts calls to `memcpy`.
#[inline]
pub(crate) fn in_runtime(pc: u64) -> bool {
    holds(&OWN, pc)
}

/// Whether a return address is in the program's own code, and not in the C library or the loader,
/// which may hold locks of their own.
#[inline]
pub(crate) fn from_program(pc: u64) -> bool {
    !holds(&LIBC, pc) && !in_runtime(pc) && !holds(&LOADER, pc)
}

/// First and last address of the module that contains this address, whether scanned or not.
fn range_of(place: u64) -> Option<(u64, u64)> {
    let mut search = [place, 0, 0];
    iterate(find, (&raw mut search).cast());
    (search[2] != 0).then_some((search[1], search[2]))
}

unsafe extern "C" fn find(info: *mut dl_phdr_info, _: size_t, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a description, and `range_of` its own three words.
    let (info, search) = unsafe { (&*info, &mut *data.cast::<[u64; 3]>()) };
    let (mut low, mut high) = (u64::MAX, 0);
    for index in 0..usize::from(info.dlpi_phnum) {
        // SAFETY: dlpi_phdr points to dlpi_phnum program headers.
        let header = unsafe { &*info.dlpi_phdr.add(index) };
        if header.p_type == libc::PT_LOAD {
            low = low.min(info.dlpi_addr + header.p_vaddr);
            high = high.max(info.dlpi_addr + header.p_vaddr + header.p_memsz);
        }
    }
    if (low..high).contains(&search[0]) {
        (search[1], search[2]) = (low, high);
        return 1;
    }
    0
}
