//! Prepares the templates of mails, without what only lays out their sources, for the attribute `template_file`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use parallax_minify::{LineBreaks, prepare_templates};

fn main() -> ExitCode {
    match prepare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            let _ = writeln!(std::io::stdout(), "cargo::error={fault}");
            ExitCode::FAILURE
        }
    }
}

fn prepare() -> Result<(), Box<dyn std::error::Error>> {
    for source in ["build.rs", "templates"] {
        writeln!(std::io::stdout(), "cargo::rerun-if-changed={source}")?;
    }
    let output = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    prepare_templates(Path::new("templates"), &output.join("templates"), LineBreaks::Keep)?;
    Ok(())
}
