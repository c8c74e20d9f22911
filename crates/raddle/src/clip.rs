//! Keeping a run as a clip.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use raddle_code::elf::Files;
use raddle_code::program::Program;
use raddle_report::name::Names;
use raddle_report::render::shell;
use raddle_symbols::Cache;
use raddle_trace::clip::Clip;
use raddle_trial::clip::Kept;
use raddle_trial::verdict::Expected;
use raddle_trial::{Launch, Plan, Trial};

use crate::args::{ExpectedArgs, TargetArgs};
use crate::target;

/// Says early what would prevent a clip from being kept.
pub(crate) fn check(path: &Path, plan: &Plan) -> Result<()> {
    target::needs_control("--clip", plan)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
        bail!(
            "cannot write the clip {}: directory {} does not exist",
            path.display(),
            parent.display()
        );
    }
    Ok(())
}

/// What all clips of a command have in common.
pub(crate) struct ClipWriter<'a> {
    /// Module files: names are made where a clip is kept, on whatever thread.
    pub(crate) files: &'a Files,
    pub(crate) target: &'a TargetArgs,
    pub(crate) expected_args: &'a ExpectedArgs,
    pub(crate) program: &'a Program,
    pub(crate) launch: &'a Launch,
    pub(crate) expected: &'a Expected,
}

impl ClipWriter<'_> {
    /// Writes a clip; false if the run is not worth one.
    pub(crate) fn keep(
        &self,
        path: &Path,
        trial: &Trial,
        plan: &Plan,
        finding: Option<serde_json::Value>,
    ) -> Result<bool> {
        let execution = &trial.execution;
        let cache = Cache::new(self.files.clone());
        let place = trial
            .failure()
            .map(|failure| Names::new(&cache).place(&execution.run, &execution.outcome, failure));
        let kept = Kept {
            command: &self.target.command,
            environment: &self.target.input.env,
            expect_stdout: self.expected_args.expect_stdout.as_deref(),
            program: self.program,
            launch: self.launch,
            plan,
            expected: self.expected,
            trial,
            place: place.unwrap_or_default(),
            finding,
        };
        let Some(clip) = kept.clip()? else { return Ok(false) };
        clip.write(path)?;
        Ok(true)
    }
}

/// The command that replays a clip.
pub(crate) fn command(path: &Path) -> String {
    format!("raddle replay {}", shell::word(path))
}

/// A clip that was named.
pub(crate) fn read(path: &Path) -> Result<Clip> {
    Clip::read(path).with_context(|| path.display().to_string())
}
