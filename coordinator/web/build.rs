//! Prepares templates, style sheets and scripts, without what only lays out their sources. The results are in `OUT_DIR`:
//! `templates/` for the attribute `template_file`, `assets/` for `views/assets.rs`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use parallax_minify::{LineBreaks, markup, prepare_templates, script, style_sheet};

type Failure = Box<dyn std::error::Error>;

/// Parts of the style sheet of pages, in the order of their rules.
const SITE: [&str; 15] = [
    "site/colors.css",
    "site/reset.css",
    "site/base.css",
    "site/header.css",
    "site/incidents.css",
    "site/monitors.css",
    "site/bar_colors.css",
    "site/uptime_bars.css",
    "site/charts.css",
    "site/region_lines.css",
    "site/chart_keys.css",
    "site/history.css",
    "site/forms.css",
    "site/media.css",
    "site/embeds.css",
];
/// Parts of the style sheet of the API reference.
const REFERENCE: [&str; 2] = ["reference/frame.css", "reference/content.css"];
/// Parts of the style sheet of the dashboard. Colors and the common rules are those of pages.
const DASHBOARD: &[&str] = &[
    "site/colors.css",
    "site/bar_colors.css",
    "site/region_lines.css",
    "site/reset.css",
    "dashboard/tokens.css",
    "dashboard/base.css",
    "dashboard/frame.css",
    "dashboard/buttons.css",
    "dashboard/menus.css",
    "dashboard/cards.css",
    "dashboard/charts.css",
    "dashboard/evidence.css",
    "dashboard/monitor.css",
    "dashboard/lists.css",
    "dashboard/monitors.css",
    "dashboard/forms.css",
    "dashboard/choices.css",
    "dashboard/incidents.css",
    "dashboard/settings.css",
    "dashboard/overlays.css",
    "dashboard/narrow.css",
    "dashboard/narrow_frame.css",
    "dashboard/narrow_lists.css",
    "dashboard/modes.css",
    "dashboard/print.css",
];
/// Scripts by the name under which they are served.
const SCRIPTS: [(&str, &[&str]); 6] = [
    ("theme.js", &["theme.js"]),
    ("page.js", &["times.js", "parts.js", "live_updates.js", "page.js"]),
    ("embed.js", &["parts.js", "live_updates.js", "embed.js"]),
    ("reference.js", &["reference.js"]),
    ("passkeys.js", &["dashboard/passkeys.js"]),
    (
        "dashboard.js",
        &[
            "times.js",
            "parts.js",
            "dashboard/screen.js",
            "dashboard/progress.js",
            "dashboard/list.js",
            "dashboard/form_test.js",
            "dashboard/order.js",
            "dashboard/chart.js",
            "dashboard/live.js",
            "dashboard/palette.js",
            "dashboard/keys.js",
        ],
    ),
];
/// Place of the style sheet in the script for other websites.
const STYLE: &str = "STYLE";

/// Style sheet and script for other websites.
const WIDGET: [&str; 2] = ["widget.css", "widget.js"];

fn main() -> ExitCode {
    match prepare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            let _ = writeln!(std::io::stdout(), "cargo::error={fault}");
            ExitCode::FAILURE
        }
    }
}

fn prepare() -> Result<(), Failure> {
    for source in ["build.rs", "templates", "assets"] {
        writeln!(std::io::stdout(), "cargo::rerun-if-changed={source}")?;
    }
    let output = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    prepare_templates(Path::new("templates"), &output.join("templates"), LineBreaks::Drop)?;
    let assets = Path::new("assets");
    refuse_unlisted(assets, assets)?;
    prepare_assets(assets, &output.join("assets"))
}

/// Refuses a style sheet or script in a folder of the assets or its subfolders that no list above names: it would reach
/// no page.
fn refuse_unlisted(assets: &Path, folder: &Path) -> Result<(), Failure> {
    let scripts = SCRIPTS.iter().flat_map(|(_, parts)| parts.iter());
    let listed: Vec<PathBuf> = SITE
        .iter()
        .chain(DASHBOARD)
        .chain(&REFERENCE)
        .chain(&WIDGET)
        .chain(scripts)
        .map(|part| assets.join(part))
        .collect();
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

fn prepare_assets(from: &Path, to: &Path) -> Result<(), Failure> {
    // What an earlier build left would hide that its source was deleted.
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    fs::write(to.join("site.css"), style_sheet(from, &SITE)?)?;
    fs::write(to.join("dashboard.css"), style_sheet(from, DASHBOARD)?)?;
    fs::write(to.join("reference.css"), style_sheet(from, &REFERENCE)?)?;
    for (name, parts) in SCRIPTS {
        let scripts: Result<String, _> = parts.iter().map(|part| script(&from.join(part))).collect();
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
    fs::write(to.join("icon.svg"), markup(&from.join("icon.svg"), LineBreaks::Drop)?)?;
    fs::write(to.join("icons.svg"), markup(&from.join("dashboard/icons.svg"), LineBreaks::Drop)?)?;
    Ok(())
}
