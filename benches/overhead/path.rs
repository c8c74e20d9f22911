//! The instructions of a plain access without a trace.
//!
//! They are counted in the disassembly of raddle's library, from the entry of the callback
//! to its first return. So this counts what runs only if no branch on the way is taken,
//! which is how the runtime is written: whatever is not the usual case lies behind the
//! return. A call or a jump on the way is an error.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

const CALLBACKS: [&str; 2] = ["__tsan_read8", "__tsan_write8"];

/// How many instructions a plain access takes, the return included.
pub(crate) fn n_instructions(library: &Path) -> Result<usize> {
    let mut n_most = 0;
    for callback in CALLBACKS {
        let output = Command::new("objdump")
            .args(["--no-show-raw-insn", &format!("--disassemble={callback}")])
            .arg(library)
            .output()
            .context("cannot start objdump; install binutils to run this benchmark")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let n = n_to_return(&text).with_context(|| format!("cannot count {callback}"))?;
        n_most = n_most.max(n);
    }
    Ok(n_most)
}

/// How many instructions there are up to the first return.
fn n_to_return(disassembly: &str) -> Result<usize> {
    // `   53e0:\tcmp    BYTE PTR …`
    let instructions = disassembly.lines().filter_map(|line| {
        let (address, instruction) = line.split_once(":\t")?;
        u64::from_str_radix(address.trim(), 16).ok()?;
        Some(instruction)
    });
    for (n, instruction) in (1..).zip(instructions) {
        match instruction.split_whitespace().find(|&word| word != "bnd") {
            Some("ret" | "retq") => return Ok(n),
            Some("call" | "callq" | "jmp" | "jmpq") => bail!("there is `{instruction}` on the way"),
            _ => {}
        }
    }
    bail!("there is no return")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(instructions: &[&str], expected: Result<usize, &str>) {
        let lines = instructions.iter().map(|instruction| format!("    53e0:\t{instruction}\n"));
        let text = format!("0000 <__tsan_read8>:\n{}", lines.collect::<String>());
        let n = n_to_return(&text).map_err(|error| error.to_string());
        assert_eq!(n, expected.map_err(str::to_owned));
    }

    #[test]
    fn the_first_return_counts() {
        check(&["cmpb   $0x1,0x0(%rip)", "jne    53f9", "ret", "mov    %rax,%rcx", "ret"], Ok(3));
    }

    #[test]
    fn what_runs_elsewhere_cannot_be_counted() {
        check(&["call   53f9", "ret"], Err("there is `call   53f9` on the way"));
        check(&["nop"], Err("there is no return"));
    }
}
