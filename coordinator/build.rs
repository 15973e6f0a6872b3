//! Takes out of templates, style sheets and scripts what only lays out their sources. The results are in `OUT_DIR`:
//! `templates/` for the attribute `template_file`, `assets/` for `views/assets.rs`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "build/scripts.rs"]
mod scripts;
#[path = "build/whitespace.rs"]
mod whitespace;

use whitespace::LineBreaks;

type Failure = Box<dyn std::error::Error>;

/// Parts of the style sheet of pages, in the order of their rules.
const SITE: [&str; 11] = [
    "site/colors.css",
    "site/base.css",
    "site/header.css",
    "site/incidents.css",
    "site/monitors.css",
    "site/uptime_bars.css",
    "site/charts.css",
    "site/history.css",
    "site/forms.css",
    "site/media.css",
    "site/embeds.css",
];
/// Parts of the style sheet of the API reference.
const REFERENCE: [&str; 2] = ["reference/frame.css", "reference/content.css"];
/// Scripts by the name under which they are served.
const SCRIPTS: [(&str, &[&str]); 4] = [
    ("theme.js", &["theme.js"]),
    ("page.js", &["live_updates.js", "page.js"]),
    ("embed.js", &["live_updates.js", "embed.js"]),
    ("reference.js", &["reference.js"]),
];
/// Place of the style sheet in the script for other websites.
const STYLE: &str = "STYLE";

/// Style sheet and script for other websites.
const WIDGET: [&str; 2] = ["widget.css", "widget.js"];

fn main() -> Result<(), Failure> {
    for source in ["build.rs", "build", "templates", "assets"] {
        writeln!(std::io::stdout(), "cargo:rerun-if-changed={source}")?;
    }
    let output = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    for folder in ["templates", "assets"] {
        empty(&output.join(folder))?;
    }
    prepare_templates(Path::new("templates"), &output.join("templates"))?;
    let assets = Path::new("assets");
    refuse_unlisted(assets, assets)?;
    prepare_assets(assets, &output.join("assets"))
}

/// Removes what an earlier build left, so that a source that was deleted since is missed.
fn empty(folder: &Path) -> Result<(), Failure> {
    if folder.exists() { Ok(fs::remove_dir_all(folder)?) } else { Ok(()) }
}

/// Refuses a style sheet or script in a folder of the assets or its subfolders that no list above names: it would reach
/// no page.
fn refuse_unlisted(assets: &Path, folder: &Path) -> Result<(), Failure> {
    let scripts = SCRIPTS.iter().flat_map(|(_, parts)| parts.iter());
    let listed: Vec<PathBuf> =
        SITE.iter().chain(&REFERENCE).chain(&WIDGET).chain(scripts).map(|part| assets.join(part)).collect();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            refuse_unlisted(assets, &path)?;
        } else if path.extension().is_some_and(|it| it == "css" || it == "js") && !listed.contains(&path) {
            return Err(format!("{}: name it in a list of build.rs", path.display()).into());
        }
    }
    Ok(())
}

/// Writes the templates of a folder and its subfolders. Plain text and samples of code are compiled in as they are.
fn prepare_templates(from: &Path, to: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            prepare_templates(&path, &target)?;
        } else if path.extension().is_some_and(|it| it == "html" || it == "svg") {
            let breaks = if from.ends_with("letters") { LineBreaks::Keep } else { LineBreaks::Drop };
            let text = fs::read_to_string(&path)?;
            fs::create_dir_all(to)?;
            fs::write(target, squeeze(&path, &text, breaks)?)?;
        }
    }
    Ok(())
}

fn squeeze(path: &Path, text: &str, breaks: LineBreaks) -> Result<String, Failure> {
    let squeezed = whitespace::squeeze(text, breaks).map_err(|fault| format!("{}: {fault}", path.display()))?;
    // Askama would find another form of the path too, in the folder of the sources.
    for reference in whitespace::references(text) {
        if !path.with_file_name(reference).exists() {
            return Err(format!("{}: no template {reference}, relative to this one", path.display()).into());
        }
    }
    Ok(squeezed)
}

fn prepare_assets(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to)?;
    fs::write(to.join("site.css"), style_sheet(from, &SITE)?)?;
    fs::write(to.join("reference.css"), style_sheet(from, &REFERENCE)?)?;
    for (name, parts) in SCRIPTS {
        let scripts: Result<String, Failure> = parts.iter().map(|part| script(&from.join(part))).collect();
        fs::write(to.join(name), scripts?)?;
    }
    let [style, widget] = WIDGET;
    let style = style_sheet(from, &[style])?;
    if style.contains(['`', '\\', '$']) {
        return Err("widget.css can't be written as a template literal".into());
    }
    let widget = script(&from.join(widget))?;
    if widget.matches(STYLE).count() != 1 {
        return Err(format!("widget.js must contain {STYLE} once, where its style sheet goes").into());
    }
    fs::write(to.join("widget.js"), widget.replacen(STYLE, &format!("`{style}`"), 1))?;
    let icon = from.join("icon.svg");
    fs::write(to.join("icon.svg"), squeeze(&icon, &fs::read_to_string(&icon)?, LineBreaks::Drop)?)?;
    Ok(())
}

fn style_sheet(folder: &Path, parts: &[&str]) -> Result<String, Failure> {
    let mut sheet = String::new();
    for part in parts {
        let text = fs::read_to_string(folder.join(part))?;
        let minified = minifier::css::minify(&text).map_err(|fault| format!("{part}: {fault}"))?.to_string();
        // The last semicolon of a rule. No string in the style sheets contains it.
        sheet.push_str(&minified.trim().replace(";}", "}"));
    }
    Ok(sheet)
}

fn script(path: &Path) -> Result<String, Failure> {
    let minified = scripts::minify(&fs::read_to_string(path)?);
    Ok(minified.map_err(|fault| format!("{}: {fault}", path.display()))?)
}
