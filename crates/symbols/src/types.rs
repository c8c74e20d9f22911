//! Types, as far as names need them: what is at which offset.
//!
//! A [`Type`] is one level deep: the types of its members are references, resolved on demand. So
//! reading a type takes only as long as its own entry, and types that contain themselves, which
//! only damaged DWARF has, do no harm.
//!
//! A record that a unit only declares is searched among the definitions of all units, by name:
//! clang writes a class only where its constructor is.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use gimli::{AttributeValue, Reader};
use rustc_hash::FxHashMap;

use super::dies::{Die, Dies, Entry};
use super::index::{qualified, walk};

/// What is at which offset in a value.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Type {
    /// Its names: those of typedefs that lead to it, then its own.
    pub(super) names: Vec<String>,
    /// Its size.
    pub(super) bytes: Option<u64>,
    /// Its structure.
    pub(super) shape: Shape,
}

/// The structure of a type.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) enum Shape {
    /// No named parts: a number, a pointer, something unknown.
    #[default]
    Leaf,
    /// Members, which may overlap.
    Record(Vec<Member>),
    /// Elements.
    Array {
        /// The type of an element.
        element: Die,
        /// The size of an element.
        stride: u64,
        /// Number of elements in each dimension, where known.
        counts: Vec<Option<u64>>,
    },
}

/// A member of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// None for base classes, anonymous records, and the tag of a Rust enum.
    pub(super) name: Option<String>,
    /// Its bits.
    pub(super) bits: Range<u64>,
    /// Its type.
    pub(super) type_: Die,
    /// Whether it has a size in bits that its type does not imply.
    pub(super) is_bit_field: bool,
    /// The enum variant that it belongs to, if any.
    pub(super) variant: Option<usize>,
}

/// Maximum number of typedefs and qualifiers followed to a type.
const ALIASES_MAX: usize = 32;
/// Maximum nesting of arrays followed for a size.
const NESTING_MAX: usize = 32;

/// All types of a file.
pub(super) struct Types {
    dies: Rc<Dies>,
    known: RefCell<FxHashMap<Die, Rc<Type>>>,
    completed: RefCell<FxHashMap<Die, Option<Die>>>,
    definitions: OnceCell<FxHashMap<String, Die>>,
}

impl Types {
    /// The types of these entries. Reads nothing yet.
    pub(super) fn new(dies: Rc<Dies>) -> Self {
        Self {
            dies,
            known: RefCell::default(),
            completed: RefCell::default(),
            definitions: OnceCell::new(),
        }
    }

    /// The type of an entry, read on first use.
    pub(super) fn get(&self, die: Die) -> Rc<Type> {
        if let Some(known) = self.known.borrow().get(&die) {
            return Rc::clone(known);
        }
        let type_ = Rc::new(self.read(die));
        self.known.borrow_mut().insert(die, Rc::clone(&type_));
        type_
    }

    fn read(&self, die: Die) -> Type {
        let mut names = Vec::new();
        let Some((die, entry)) = self.resolve_aliases(die, &mut names) else {
            return Type { names, ..Type::default() };
        };
        let shape = match entry.tag() {
            gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_interface_type => Shape::Record(self.members(die)),
            gimli::DW_TAG_array_type => self.array(die).unwrap_or_default(),
            _ => Shape::Leaf,
        };
        Type { names, bytes: self.bytes(die, 0), shape }
    }

    /// Follows typedefs, qualifiers and declarations to the actual type.
    fn resolve_aliases(&self, mut die: Die, names: &mut Vec<String>) -> Option<(Die, Entry)> {
        for _ in 0..ALIASES_MAX {
            let entry = self.dies.entry(die)?;
            names.extend(self.own_text(die.unit, &entry));
            if is_alias(entry.tag()) {
                let target = entry.attr_value(gimli::DW_AT_type)?;
                die = self.dies.reference(die.unit, &target)?;
            } else if let Some(signature) = entry.attr_value(gimli::DW_AT_signature) {
                die = self.dies.reference(die.unit, &signature)?;
            } else if entry.has_attr(gimli::DW_AT_declaration)
                && let Some(definition) = self.definition(die)
                && definition != die
            {
                die = definition;
            } else {
                return Some((die, entry));
            }
        }
        None
    }

    fn own_text(&self, unit: usize, entry: &Entry) -> Option<String> {
        self.dies.string(unit, entry.attr_value(gimli::DW_AT_name)?)
    }

    /// The size of a value. That of an array may have to be computed.
    fn bytes(&self, die: Die, nesting: usize) -> Option<u64> {
        if nesting > NESTING_MAX {
            return None;
        }
        let (die, entry) = self.resolve_aliases(die, &mut Vec::new())?;
        let own = entry.attr_value(gimli::DW_AT_byte_size).and_then(|value| value.udata_value());
        own.or_else(|| match entry.tag() {
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => Some(8),
            gimli::DW_TAG_enumeration_type => {
                self.bytes(self.dies.target(die, gimli::DW_AT_type)?, nesting + 1)
            }
            gimli::DW_TAG_array_type => {
                let element = self.dies.target(die, gimli::DW_AT_type)?;
                let stride = self.bytes(element, nesting + 1)?;
                self.counts(die).into_iter().try_fold(stride, |n, count| n.checked_mul(count?))
            }
            _ => None,
        })
    }

    fn array(&self, die: Die) -> Option<Shape> {
        let element = self.dies.target(die, gimli::DW_AT_type)?;
        let stride = self.bytes(element, 0).filter(|&bytes| bytes > 0)?;
        let counts = self.counts(die);
        (!counts.is_empty()).then_some(Shape::Array { element, stride, counts })
    }

    fn counts(&self, array: Die) -> Vec<Option<u64>> {
        let count = |entry: &Entry| {
            let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
            let lower = number(gimli::DW_AT_lower_bound).unwrap_or(0);
            number(gimli::DW_AT_count)
                .or_else(|| number(gimli::DW_AT_upper_bound)?.checked_sub(lower)?.checked_add(1))
        };
        self.dies
            .children(array)
            .iter()
            .filter(|(_, entry)| entry.tag() == gimli::DW_TAG_subrange_type)
            .map(|(_, entry)| count(entry))
            .collect()
    }

    fn members(&self, record: Die) -> Vec<Member> {
        let mut members = Vec::new();
        for (die, entry) in self.dies.children(record) {
            match entry.tag() {
                gimli::DW_TAG_member | gimli::DW_TAG_inheritance => {
                    members.extend(self.member(die, &entry, None));
                }
                gimli::DW_TAG_variant_part => self.add_variants(die, &mut members),
                _ => {}
            }
        }
        members
    }

    fn add_variants(&self, part: Die, members: &mut Vec<Member>) {
        for (number, (die, entry)) in self.dies.children(part).into_iter().enumerate() {
            match entry.tag() {
                gimli::DW_TAG_member => members.extend(self.member(die, &entry, None)),
                gimli::DW_TAG_variant => {
                    for (die, entry) in self.dies.children(die) {
                        if entry.tag() == gimli::DW_TAG_member {
                            members.extend(self.member(die, &entry, Some(number)));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn member(&self, die: Die, entry: &Entry, variant: Option<usize>) -> Option<Member> {
        let is_static =
            entry.has_attr(gimli::DW_AT_external) || entry.has_attr(gimli::DW_AT_declaration);
        // The position of a virtual base class is known only to the object.
        if is_static || entry.has_attr(gimli::DW_AT_virtuality) {
            return None;
        }
        let type_ = self.dies.reference(die.unit, &entry.attr_value(gimli::DW_AT_type)?)?;
        let bits = self.bits(entry, type_)?;
        let is_bit_field = entry.has_attr(gimli::DW_AT_bit_size);
        Some(Member { name: self.own_text(die.unit, entry), bits, type_, is_bit_field, variant })
    }

    /// The bits of a member. Bit-fields have two encodings: a bit offset from the record's start
    /// (since DWARF 4), and one from the end of a storage unit (before, and gcc in DWARF 4).
    fn bits(&self, entry: &Entry, type_: Die) -> Option<Range<u64>> {
        let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
        let start = member_location(entry)?.checked_mul(8)?;
        let Some(n_bits) = number(gimli::DW_AT_bit_size) else {
            let n_bits = self.bytes(type_, 0).unwrap_or(0).checked_mul(8)?;
            return Some(start..start.checked_add(n_bits)?);
        };
        let start = if let Some(offset) = number(gimli::DW_AT_data_bit_offset) {
            offset
        } else {
            let storage = number(gimli::DW_AT_byte_size).or_else(|| self.bytes(type_, 0))?;
            let from_end = number(gimli::DW_AT_bit_offset).unwrap_or(0);
            let in_storage = storage.checked_mul(8)?.checked_sub(from_end)?.checked_sub(n_bits)?;
            start.checked_add(in_storage)?
        };
        Some(start..start.checked_add(n_bits)?)
    }

    /// The definition of a record that an entry only declares.
    fn definition(&self, declaration: Die) -> Option<Die> {
        if let Some(known) = self.completed.borrow().get(&declaration) {
            return *known;
        }
        let definition = self.find_definition(declaration);
        self.completed.borrow_mut().insert(declaration, definition);
        definition
    }

    fn find_definition(&self, declaration: Die) -> Option<Die> {
        let definitions = self.definitions.get_or_init(|| self.all_definitions());
        let unit = self.dies.unit(declaration.unit)?;
        let mut definition = None;
        // The scopes of an entry are known only from above.
        let _ = walk(&unit, |abbreviation, raw, scopes, offset| {
            raw.skip_attributes(abbreviation.attributes())?;
            if offset.0 == declaration.offset {
                let scopes = scopes.iter().map(|s| Die { offset: s.offset.0, ..declaration });
                definition = self
                    .dies
                    .text(declaration, gimli::DW_AT_name)
                    .and_then(|name| definitions.get(&qualified(&self.dies, scopes, &name)));
            }
            Ok(())
        });
        definition.copied()
    }

    fn all_definitions(&self) -> FxHashMap<String, Die> {
        let mut definitions = FxHashMap::default();
        for number in self.dies.unit_numbers() {
            let Some(unit) = self.dies.unit_once(number) else { continue };
            let _ = walk(&unit, |abbreviation, raw, scopes, offset| {
                raw.skip_attributes(abbreviation.attributes())?;
                let has = |name| abbreviation.attributes().iter().any(|spec| spec.name() == name);
                let is_definition = is_record(abbreviation.tag())
                    && has(gimli::DW_AT_byte_size)
                    && !has(gimli::DW_AT_declaration);
                let die = Die { unit: number, offset: offset.0 };
                if is_definition && let Some(name) = self.dies.text(die, gimli::DW_AT_name) {
                    let scopes = scopes.iter().map(|s| Die { unit: number, offset: s.offset.0 });
                    definitions.entry(qualified(&self.dies, scopes, &name)).or_insert(die);
                }
                Ok(())
            });
        }
        definitions
    }
}

fn is_alias(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type
            | gimli::DW_TAG_packed_type
            | gimli::DW_TAG_immutable_type
            | gimli::DW_TAG_template_alias
    )
}

fn is_record(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type
    )
}

/// The offset of a member in bytes: a number, or in old DWARF an expression that adds one.
fn member_location(entry: &Entry) -> Option<u64> {
    match entry.attr_value(gimli::DW_AT_data_member_location) {
        None => Some(0),
        Some(AttributeValue::Exprloc(mut expression)) => {
            let is_plus = expression.0.read_u8().ok()? == gimli::DW_OP_plus_uconst.0;
            is_plus.then(|| expression.0.read_uleb128().ok()).flatten()
        }
        Some(value) => value.udata_value(),
    }
}
