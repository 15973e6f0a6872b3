//! Takes out of templates, style sheets and scripts what only lays out their sources. For build scripts of crates that
//! have a folder `templates` (the attribute `template_file` finds the results in `OUT_DIR`), style sheets or scripts.

mod scripts;
mod whitespace;

use std::path::Path;
use std::{fs, io};

pub use self::whitespace::LineBreaks;

/// Reason why a source can't be prepared.
#[derive(Debug, thiserror::Error)]
pub enum MinifyError {
    /// A file or folder can't be read or written.
    #[error("{0}: {1}")]
    File(String, io::Error),
    /// A source is malformed, or refers to a template that does not exist.
    #[error("{0}: {1}")]
    Source(String, String),
}

/// Writes the templates of a folder and its subfolders, without their layout. Plain text and samples of code are
/// compiled in as they are. What an earlier build left in the target goes, so that a source that was deleted since is
/// missed.
///
/// # Errors
/// If a template is malformed or refers to one that does not exist, or a file can't be read or written.
pub fn prepare_templates(from: &Path, to: &Path, breaks: LineBreaks) -> Result<(), MinifyError> {
    if to.exists() {
        fs::remove_dir_all(to).map_err(|fault| file(to, fault))?;
    }
    for entry in fs::read_dir(from).map_err(|fault| file(from, fault))? {
        let path = entry.map_err(|fault| file(from, fault))?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            prepare_templates(&path, &target, breaks)?;
        } else if path.extension().is_some_and(|it| it == "html" || it == "svg") {
            let prepared = markup(&path, breaks)?;
            fs::create_dir_all(to).map_err(|fault| file(to, fault))?;
            fs::write(&target, prepared).map_err(|fault| file(&target, fault))?;
        }
    }
    Ok(())
}

/// Returns a template or an image of markup without its layout.
///
/// # Errors
/// If it is malformed, refers to a template that does not exist, or can't be read.
pub fn markup(path: &Path, breaks: LineBreaks) -> Result<String, MinifyError> {
    let text = read(path)?;
    let squeezed = whitespace::squeeze(&text, breaks).map_err(|fault| source(path, fault))?;
    // Askama would find another form of the path too, in the folder of the sources.
    for reference in whitespace::references(&text) {
        if !path.with_file_name(reference).exists() {
            return Err(source(path, format!("no template {reference}, relative to this one")));
        }
    }
    Ok(squeezed)
}

/// Returns style sheets as one, minified.
///
/// # Errors
/// If one is malformed or can't be read.
pub fn style_sheet(folder: &Path, parts: &[&str]) -> Result<String, MinifyError> {
    let mut sheet = String::new();
    for part in parts {
        let path = folder.join(part);
        let text = read(&path)?;
        let minified = minifier::css::minify(&text).map_err(|fault| source(&path, fault.to_owned()))?.to_string();
        // The last semicolon of a rule. No string in the style sheets contains it.
        sheet.push_str(&minified.trim().replace(";}", "}"));
    }
    Ok(sheet)
}

/// Returns a script, minified. Files that are served as one script are minified apart, since names are shortened per
/// file.
///
/// # Errors
/// If it is malformed or can't be read.
pub fn script(path: &Path) -> Result<String, MinifyError> {
    scripts::minify(&read(path)?).map_err(|fault| source(path, fault))
}

fn read(path: &Path) -> Result<String, MinifyError> {
    fs::read_to_string(path).map_err(|fault| file(path, fault))
}

fn file(path: &Path, fault: io::Error) -> MinifyError {
    MinifyError::File(path.display().to_string(), fault)
}

fn source(path: &Path, fault: String) -> MinifyError {
    MinifyError::Source(path.display().to_string(), fault)
}
