//! Functions of the target's modules: which one contains an address, its graph and its loops.
//!
//! A function is decoded once, on first use. Compilers move unlikely parts of a function
//! elsewhere (`f.cold`): the symbols mark such parts, and a part belongs to the functions that it
//! jumps into, or that jump into it, including by exception. Those jumps are found in the code of
//! both, so no names are needed.
//!
//! A call of a small function that cannot return (`die`, which prints a message and exits) ends
//! its path like a call of `exit`.

use std::cell::OnceCell;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions};

use crate::cfg::Cfg;
use crate::image::{Callee, Image, LandingPad, Symbol, Target};
use crate::loops::Loops;

/// A function of [`Functions`], numbered by module and address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// What is known of a function.
#[derive(Debug)]
pub struct Function {
    /// Its control flow.
    pub cfg: Cfg,
    /// Its loops.
    pub loops: Loops,
}

/// The functions of all modules.
#[derive(Default)]
pub struct Functions {
    images: Vec<Box<dyn Image + Send>>,
    functions: Vec<Slot>,
    // invariant: sorted, without overlaps; an address range and its function
    ranges: Vec<(Range<u64>, FunctionId)>,
}

struct Slot {
    image: usize,
    // The function's own range first.
    parts: Vec<Range<u64>>,
    known: OnceCell<Function>,
    never_returns: OnceCell<bool>,
}

impl Slot {
    fn new(image: usize, whole: Range<u64>) -> Self {
        Self { image, parts: vec![whole], known: OnceCell::new(), never_returns: OnceCell::new() }
    }
}

/// A function that never returns is short, or not worth analyzing.
const DEAD_END_BYTES_MAX: u64 = 512;

impl Functions {
    /// The functions of these modules.
    #[must_use]
    pub fn new(images: Vec<Box<dyn Image + Send>>) -> Self {
        let mut all = Self::default();
        for (place, image) in images.iter().enumerate() {
            all.add(place, &**image);
        }
        all.ranges.sort_by_key(|(range, _)| range.start);
        all.images = images;
        all
    }

    /// The function that contains an address. A site is the address after a call, which may be
    /// the last instruction of its function: look up the byte before it.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<FunctionId> {
        let n_before = self.ranges.partition_point(|(range, _)| range.start <= address);
        let (range, function) = self.ranges.get(n_before.checked_sub(1)?)?;
        range.contains(&address).then_some(*function)
    }

    /// What is known of a function.
    #[must_use]
    pub fn get(&self, function: FunctionId) -> &Function {
        let slot = &self.functions[function.0 as usize];
        slot.known.get_or_init(|| {
            let image = InformedImage { functions: self, image: &*self.images[slot.image] };
            let cfg = Cfg::of_parts(&image, &slot.parts);
            Function { loops: Loops::find(&cfg), cfg }
        })
    }

    /// Whether the function at an address never returns. For its own callees only names count, so
    /// that the result does not depend on the order of queries.
    fn never_returns(&self, address: u64) -> bool {
        let Some(function) = self.at(address) else { return false };
        let slot = &self.functions[function.0 as usize];
        let whole = &slot.parts[0];
        if whole.start != address || whole.end - whole.start > DEAD_END_BYTES_MAX {
            return false;
        }
        *slot
            .never_returns
            .get_or_init(|| !Cfg::of_parts(&*self.images[slot.image], &slot.parts).may_return())
    }

    fn add(&mut self, place: usize, image: &dyn Image) {
        let mut symbols: Vec<Symbol> = image.symbols().to_vec();
        // Of two names at one address, the longer range wins.
        symbols.sort_by_key(|symbol| (symbol.start, std::cmp::Reverse(symbol.bytes)));
        let mut end = 0;
        symbols.retain(|symbol| {
            let is_apart = symbol.bytes > 0 && symbol.start >= end;
            if is_apart {
                end = symbol.start.saturating_add(symbol.bytes);
            }
            is_apart
        });
        let range = |symbol: &Symbol| symbol.start..symbol.start.saturating_add(symbol.bytes);
        let first = self.functions.len();
        let (parts, wholes): (Vec<Symbol>, Vec<Symbol>) =
            symbols.into_iter().partition(|symbol| symbol.is_part);
        for symbol in &wholes {
            self.functions.push(Slot::new(place, range(symbol)));
        }
        let functions = &mut self.functions[first..];
        if !parts.is_empty() {
            let parts: Vec<Range<u64>> = parts.iter().map(range).collect();
            link(image, functions, &parts);
        }
        for (n, slot) in functions.iter().enumerate() {
            let id = FunctionId(u32::try_from(first + n).expect("less than 2^32 functions"));
            // As far as addresses go, a part shared by two functions belongs to neither.
            let own = slot.parts.iter().enumerate().filter(|(place, part)| {
                *place == 0
                    || functions.iter().filter(|other| other.parts.contains(part)).count() == 1
            });
            self.ranges.extend(own.map(|(_, part)| (part.clone(), id)));
        }
    }
}

/// An image that also knows its own functions that never return.
struct InformedImage<'a> {
    functions: &'a Functions,
    image: &'a dyn Image,
}

impl Image for InformedImage<'_> {
    fn symbols(&self) -> &[Symbol] {
        self.image.symbols()
    }

    fn bytes(&self, range: Range<u64>) -> Option<&[u8]> {
        self.image.bytes(range)
    }

    fn callee(&self, target: Target) -> Callee {
        match (self.image.callee(target), target) {
            (Callee::Other, Target::Address(to)) if self.functions.never_returns(to) => {
                Callee::NoReturn
            }
            (callee, _) => callee,
        }
    }

    fn landing_pads(&self, code: &Range<u64>) -> Option<Vec<LandingPad>> {
        self.image.landing_pads(code)
    }
}

/// Assigns parts to the functions with which they have jumps in common.
fn link(image: &dyn Image, functions: &mut [Slot], parts: &[Range<u64>]) {
    let place_of = |ranges: &[Range<u64>], address: u64| {
        let n_before = ranges.partition_point(|range| range.start <= address);
        let place = n_before.checked_sub(1)?;
        ranges[place].contains(&address).then_some(place)
    };
    let wholes: Vec<Range<u64>> = functions.iter().map(|slot| slot.parts[0].clone()).collect();
    let mut give = |function: usize, part: usize| {
        if !functions[function].parts.contains(&parts[part]) {
            functions[function].parts.push(parts[part].clone());
        }
    };
    for (part, range) in parts.iter().enumerate() {
        for to in jumps(image, range) {
            // A jump to a function's first byte is a call of it.
            let whole = place_of(&wholes, to).filter(|&whole| wholes[whole].start != to);
            if let Some(whole) = whole {
                give(whole, part);
            }
        }
    }
    for (whole, range) in wholes.iter().enumerate() {
        for to in jumps(image, range) {
            if let Some(part) = place_of(parts, to) {
                give(whole, part);
            }
        }
    }
}

/// The targets of direct jumps and exceptions that lead out of a range.
#[must_use]
pub fn jumps(image: &dyn Image, range: &Range<u64>) -> Vec<u64> {
    let bytes = image.bytes(range.clone()).unwrap_or_default();
    let pads = image.landing_pads(range).unwrap_or_default().into_iter().map(|pad| pad.at);
    Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE)
        .into_iter()
        .filter(|i| i.is_jcc_short_or_near() || i.is_jmp_short_or_near())
        .map(|i| i.near_branch_target())
        .chain(pads)
        .filter(|to| !range.contains(to))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{BASE, Code};

    /// A function of 8 bytes that jumps to 3 bytes after it, and back.
    fn split() -> Code {
        let mut code = Code::assemble(|a| {
            let (mut part, mut back) = (a.create_label(), a.create_label());
            a.call(Code::CALLBACK)?; // 0
            a.je(part)?; // 5
            a.set_label(&mut back)?;
            a.ret()?; // 7
            a.set_label(&mut part)?;
            a.nop()?; // 8
            a.jmp(back) // 9
        });
        code.symbols = vec![
            Symbol { start: BASE, bytes: 8, is_part: false },
            Symbol { start: BASE + 8, bytes: 3, is_part: true },
        ];
        code
    }

    #[test]
    fn a_part_belongs_to_the_function_that_jumps_to_it() {
        let functions = Functions::new(vec![Box::new(split())]);
        let function = functions.at(BASE).expect("a function");
        assert_eq!(functions.at(BASE + 9), Some(function));
        let cfg = &functions.get(function).cfg;
        assert!(cfg.is_complete());
        assert_eq!(cfg.blocks().len(), 4);
    }

    #[test]
    fn a_function_of_its_own_is_left_by_a_jump() {
        let mut code = split();
        code.symbols[1].is_part = false;
        let functions = Functions::new(vec![Box::new(code)]);
        let function = functions.at(BASE).expect("a function");
        assert_ne!(functions.at(BASE + 9), Some(function));
        assert_eq!(functions.get(function).cfg.blocks().len(), 3);
    }

    #[test]
    fn of_two_names_for_one_place_the_longer_stays() {
        let mut code = split();
        code.symbols.push(Symbol { start: BASE, bytes: 2, is_part: false });
        code.symbols.push(Symbol { start: BASE + 4, bytes: 2, is_part: false });
        let functions = Functions::new(vec![Box::new(code)]);
        assert_eq!(functions.at(BASE + 7), functions.at(BASE));
        assert_eq!(functions.at(BASE - 1), None);
        assert_eq!(functions.at(BASE + 11), None);
    }
}
