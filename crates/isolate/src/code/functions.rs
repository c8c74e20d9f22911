//! The functions of the program, found and decoded when they are first asked for.
//!
//! A function is what its symbol or its unwind table covers, with the parts that the compiler
//! has put elsewhere (`.cold`).

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};
use raddle_code::body::{Body, target};
use raddle_code::functions::jumps;
use raddle_code::image::{self as known, Image, LandingPad, Symbol, Target};
use rustc_hash::FxHashMap;

use super::Function;
use crate::image::Images;

/// All functions that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    known: RefCell<FxHashMap<u64, Option<Rc<Function>>>>,
    returning: RefCell<FxHashMap<u64, bool>>,
}

/// Whom a call calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Callee {
    /// Its first instruction, if the program tells.
    pub(crate) entry: Option<u64>,
    /// Its name, if it has one.
    pub(crate) name: Option<String>,
}

/// Larger than any function that a person has written.
const FUNCTION_BYTES_MAX: u64 = 1 << 20;
/// More parts of one function are not looked for.
const PARTS_MAX: usize = 9;

impl Functions {
    /// The function that an address is in.
    pub(crate) fn at(&self, images: &Images, address: u64) -> Option<Rc<Function>> {
        let bounds = images.function(address)?;
        let mut start = bounds.start;
        // A part that lies elsewhere belongs to its function.
        if let Some(whole) = bounds.name.and_then(|name| name.split_once(".cold"))
            && let Some(entry) = images.named(address, whole.0)
        {
            start = entry;
        }
        if let Some(known) = self.known.borrow().get(&start) {
            return known.clone();
        }
        // Against functions that call each other while their ends are looked for.
        self.known.borrow_mut().insert(start, None);
        let function = self.decode(images, start).map(Rc::new);
        self.known.borrow_mut().insert(start, function.clone());
        function
    }

    /// The instruction at an address, alone.
    pub(crate) fn instruction(&self, images: &Images, address: u64) -> Option<Instruction> {
        let code = images.code(address, 16)?;
        let instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    /// The instruction that ends at an address.
    pub(crate) fn before(&self, images: &Images, address: u64) -> Option<Instruction> {
        let function = self.at(images, address.wrapping_sub(1))?;
        Some(function.instructions()[function.index_before(address)?])
    }

    /// Whom an instruction calls, or jumps to.
    pub(crate) fn callee(&self, images: &Images, call: &Instruction) -> Callee {
        let is_direct = call.op0_kind() == OpKind::NearBranch64;
        match target(call, &Code { functions: self, images }) {
            // A slot without a name behind a stub is filled in by a function that chooses.
            Target::Slot(slot) if is_direct && images.slot(slot).is_none() => {
                callee(images, Target::Address(call.near_branch_target()))
            }
            target => callee(images, target),
        }
    }

    /// Whether a call comes back.
    pub(crate) fn returns(&self, images: &Images, call: &Instruction) -> bool {
        self.comes_back(images, &self.callee(images, call))
    }

    fn comes_back(&self, images: &Images, callee: &Callee) -> bool {
        let by_name = callee.name.as_deref().map(raddle_code::module::callee);
        if by_name == Some(known::Callee::NoReturn) {
            return false;
        }
        let Some(entry) = callee.entry else { return true };
        if let Some(known) = self.returning.borrow().get(&entry) {
            return *known;
        }
        // Recursion: until the contrary is known.
        self.returning.borrow_mut().insert(entry, true);
        let returns = self.at(images, entry).is_none_or(|function| {
            let from = function.index(entry);
            from.is_none_or(|from| function.can_return(from, |jump| self.returns(images, jump)))
        });
        self.returning.borrow_mut().insert(entry, returns);
        returns
    }

    fn decode(&self, images: &Images, start: u64) -> Option<Function> {
        let code = Code { functions: self, images };
        let mut parts: Vec<Range<u64>> = Vec::new();
        let mut open = vec![start];
        while let Some(address) = open.pop() {
            let bounds = images.function(address)?;
            let part = bounds.start..bounds.end.min(bounds.start + FUNCTION_BYTES_MAX);
            if parts.contains(&part) || parts.len() >= PARTS_MAX {
                continue;
            }
            let is_part = |to: &u64| {
                let name = images.function(*to).and_then(|bounds| bounds.name);
                name.is_some_and(|name| name.contains(".cold"))
            };
            open.extend(jumps(&code, &part).into_iter().filter(is_part));
            parts.push(part);
        }
        Function::new(Body::of_parts(&code, &parts))
    }
}

/// Who is behind a target.
fn callee(images: &Images, target: Target) -> Callee {
    let name_of = |entry: u64| images.function(entry)?.name.map(str::to_owned);
    match target {
        Target::Address(entry) => {
            let is_start = images.function(entry).is_some_and(|bounds| bounds.start == entry);
            Callee { entry: Some(entry), name: name_of(entry).filter(|_| is_start) }
        }
        Target::Slot(slot) => {
            let entry = images.own_slot(slot).filter(|entry| images.is_code(*entry));
            let name = images.slot(slot).map(str::to_owned);
            Callee { entry, name: name.or_else(|| name_of(entry?)) }
        }
        Target::Unknown => Callee::default(),
    }
}

/// All images, as those see them that decode functions.
struct Code<'a> {
    functions: &'a Functions,
    images: &'a Images,
}

impl Image for Code<'_> {
    fn symbols(&self) -> &[Symbol] {
        // Parts are found by whoever asks for a function.
        &[]
    }

    fn bytes(&self, range: Range<u64>) -> Option<&[u8]> {
        let n_bytes = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        self.images.code(range.start, n_bytes).filter(|bytes| bytes.len() == n_bytes)
    }

    fn callee(&self, target: Target) -> known::Callee {
        match self.functions.comes_back(self.images, &callee(self.images, target)) {
            true => known::Callee::Other,
            false => known::Callee::NoReturn,
        }
    }

    fn landing_pads(&self, _: &Range<u64>) -> Option<Vec<LandingPad>> {
        // So that they are decoded, wherever they are.
        None
    }
}
