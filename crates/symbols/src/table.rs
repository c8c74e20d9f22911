//! ELF symbol tables, for what DWARF does not know.

use object::{Object, ObjectSymbol, SymbolKind};

use raddle_code::elf::Elf;

/// Symbols of one kind, by address.
#[derive(Debug, Default)]
pub(super) struct Table {
    // invariant: sorted by address, and no two with the same one
    symbols: Vec<Symbol>,
}

/// A linker symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    /// Its address in the file.
    pub(super) low: u64,
    /// Its size; 0 if unspecified.
    pub(super) bytes: u64,
    /// Its name: mangled, but without a version.
    pub(super) name: String,
    rank: u8,
}

impl Table {
    /// The functions of a module and its debug file.
    pub(super) fn functions(elves: &[&Elf<'_>]) -> Self {
        Self::new(elves, SymbolKind::Text)
    }

    /// The variables of a module and its debug file. Thread-local ones have no address.
    pub(super) fn objects(elves: &[&Elf<'_>]) -> Self {
        Self::new(elves, SymbolKind::Data)
    }

    fn new(elves: &[&Elf<'_>], kind: SymbolKind) -> Self {
        let symbols = elves
            .iter()
            .flat_map(|elf| elf.symbols().chain(elf.dynamic_symbols()))
            .filter(|symbol| symbol.kind() == kind && !symbol.is_undefined())
            .filter_map(|symbol| {
                let name = symbol.name().ok()?;
                let name = name.split('@').next().unwrap_or(name);
                Some(Symbol {
                    low: symbol.address(),
                    bytes: symbol.size(),
                    name: name.to_owned(),
                    rank: rank(symbol.is_global(), symbol.is_weak(), name),
                })
            })
            .filter(|symbol| symbol.low != 0 && !symbol.name.is_empty())
            .collect();
        Self::sorted(symbols)
    }

    fn sorted(mut symbols: Vec<Symbol>) -> Self {
        // Of several names for one address, the best comes first and wins.
        symbols.sort_by(|a, b| {
            (a.low, b.bytes, a.rank, &a.name).cmp(&(b.low, a.bytes, b.rank, &b.name))
        });
        symbols.dedup_by_key(|symbol| symbol.low);
        Self { symbols }
    }

    /// All symbols, by address; of several for one address, the best.
    pub(super) fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Their names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.symbols.iter().map(|symbol| &symbol.name[..])
    }

    /// The symbol that contains an address of the file. One without a size extends to the next.
    pub(super) fn at(&self, address: u64) -> Option<&Symbol> {
        let n_before = self.symbols.partition_point(|symbol| symbol.low <= address);
        let symbol = self.symbols.get(n_before.checked_sub(1)?)?;
        (symbol.bytes == 0 || address - symbol.low < symbol.bytes).then_some(symbol)
    }
}

/// How good a name is; lower is better: `environ` rather than `__environ`.
fn rank(is_global: bool, is_weak: bool, name: &str) -> u8 {
    let scope = match (is_global, is_weak) {
        (true, false) => 0,
        (_, true) => 1,
        (false, false) => 2,
    };
    let reserved = name.starts_with("__");
    u8::from(reserved) * 4 + scope
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(symbols: &[(u64, u64, &str)], address: u64, expect: Option<&str>) {
        let symbol = |&(low, bytes, name): &(u64, u64, &str)| {
            let name = name.to_owned();
            Symbol { low, bytes, rank: rank(true, false, &name), name }
        };
        let table = Table::sorted(symbols.iter().map(symbol).collect());
        assert_eq!(table.at(address).map(|symbol| symbol.name.as_str()), expect);
    }

    #[test]
    fn an_address_before_all_symbols_has_none() {
        check(&[(16, 8, "a")], 15, None);
    }

    #[test]
    fn a_gap_between_symbols_has_none() {
        check(&[(16, 8, "a"), (32, 8, "b")], 24, None);
    }

    #[test]
    fn a_symbol_without_size_reaches_to_the_next() {
        check(&[(16, 0, "start"), (32, 8, "b")], 31, Some("start"));
    }

    #[test]
    fn of_two_names_the_plain_one_is_taken() {
        check(&[(16, 8, "__environ"), (16, 8, "environ")], 20, Some("environ"));
    }

    #[test]
    fn of_two_sizes_the_larger_one_is_taken() {
        check(&[(16, 4, "a"), (16, 40, "z")], 18, Some("z"));
    }
}
