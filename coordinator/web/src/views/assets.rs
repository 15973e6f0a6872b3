//! Static assets (style sheets, scripts, icon) compiled into the binary, each under a content-hashed name.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// A static file.
#[derive(Debug)]
pub(crate) struct Asset {
    /// File name with a part of its content hash.
    pub name: String,
    /// Media type.
    pub media: &'static str,
    /// Content.
    pub text: &'static str,
}

/// Media type of scripts.
const SCRIPT: &str = "text/javascript; charset=utf-8";
/// Media type of style sheets.
const STYLE: &str = "text/css; charset=utf-8";

/// Returns a file that the build script prepared.
macro_rules! prepared {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/assets/", $name))
    };
}

static SITE: LazyLock<Asset> = LazyLock::new(|| asset("site", "css", STYLE, prepared!("site.css")));
static THEME: LazyLock<Asset> = LazyLock::new(|| asset("theme", "js", SCRIPT, prepared!("theme.js")));
static PAGE: LazyLock<Asset> = LazyLock::new(|| asset("page", "js", SCRIPT, prepared!("page.js")));
static EMBED: LazyLock<Asset> = LazyLock::new(|| asset("embed", "js", SCRIPT, prepared!("embed.js")));
static REFERENCE_STYLE: LazyLock<Asset> =
    LazyLock::new(|| asset("reference", "css", STYLE, prepared!("reference.css")));
static REFERENCE_SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| asset("reference", "js", SCRIPT, prepared!("reference.js")));
static DASHBOARD_STYLE: LazyLock<Asset> =
    LazyLock::new(|| asset("dashboard", "css", STYLE, prepared!("dashboard.css")));
static DASHBOARD_SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| asset("dashboard", "js", SCRIPT, prepared!("dashboard.js")));
static PASSKEY_SCRIPT: LazyLock<Asset> = LazyLock::new(|| asset("passkeys", "js", SCRIPT, prepared!("passkeys.js")));
static ICON: LazyLock<Asset> = LazyLock::new(|| asset("icon", "svg", "image/svg+xml", prepared!("icon.svg")));

/// Script for other websites, without its texts.
pub(crate) const WIDGET: &str = prepared!("widget.js");

/// Icons of the dashboard, as one SVG document with a symbol each.
pub(crate) const ICONS: &str = prepared!("icons.svg");

/// All files.
pub(crate) fn all() -> [&'static Asset; 10] {
    [
        &SITE,
        &THEME,
        &PAGE,
        &EMBED,
        &REFERENCE_STYLE,
        &REFERENCE_SCRIPT,
        &DASHBOARD_STYLE,
        &DASHBOARD_SCRIPT,
        &PASSKEY_SCRIPT,
        &ICON,
    ]
}

/// File name of the style sheet.
pub(crate) fn style() -> &'static str {
    &SITE.name
}

/// File name of the script that applies the chosen theme before the first paint.
pub(crate) fn theme() -> &'static str {
    &THEME.name
}

/// File name of the page's script.
pub(crate) fn script() -> &'static str {
    &PAGE.name
}

/// File name of the script of the embedded page.
pub(crate) fn embed() -> &'static str {
    &EMBED.name
}

/// File name of the style sheet of the API reference.
pub(crate) fn reference_style() -> &'static str {
    &REFERENCE_STYLE.name
}

/// File name of the script of the API reference.
pub(crate) fn reference_script() -> &'static str {
    &REFERENCE_SCRIPT.name
}

/// File name of the style sheet of the dashboard.
pub(crate) fn dashboard_style() -> &'static str {
    &DASHBOARD_STYLE.name
}

/// File name of the script of the dashboard.
pub(crate) fn dashboard_script() -> &'static str {
    &DASHBOARD_SCRIPT.name
}

/// File name of the script of forms that ask for a passkey.
pub(crate) fn passkey_script() -> &'static str {
    &PASSKEY_SCRIPT.name
}

/// File name of the icon.
pub(crate) fn icon() -> &'static str {
    &ICON.name
}

fn asset(stem: &str, ending: &str, media: &'static str, text: &'static str) -> Asset {
    let short = hex::encode(&Sha256::digest(text.as_bytes())[..6]);
    Asset { name: format!("{stem}-{short}.{ending}"), media, text }
}

#[cfg(test)]
mod tests {
    use parallax_core::page::branding::Color;
    use parallax_core::page::contrast;

    use super::*;

    /// CSS rule of the dark theme by the system's choice.
    const DARK: &str = ":root:not([data-theme=light]){";
    /// CSS rules of the regions' lines.
    const LINES: [&str; 6] = [".r0{", ".r1{", ".r2{", ".r3{", ".r4{", ".r5{"];

    /// Custom properties of the site's rule that starts with `rule`.
    fn colors(rule: &str) -> Vec<(&'static str, &'static str)> {
        colors_in(&SITE, rule)
    }

    fn colors_in(asset: &Asset, rule: &str) -> Vec<(&'static str, &'static str)> {
        let (_, after) = asset.text.split_once(rule).unwrap_or_else(|| panic!("{}: {rule}", asset.name));
        let (declarations, _) = after.split_once('}').unwrap();
        declarations.split(';').filter_map(|one| one.strip_prefix("--")?.split_once(':')).collect()
    }

    fn color(text: &str) -> Color {
        let digits = text.trim_start_matches('#');
        let long: String =
            if digits.len() == 3 { digits.chars().flat_map(|it| [it, it]).collect() } else { digits.to_owned() };
        Color::read(&format!("#{long}")).unwrap()
    }

    fn contrast(one: &str, other: &str) -> f64 {
        contrast::contrast(color(one), color(other))
    }

    /// Hue in degrees, and saturation from 0 to 1 (CSS Color 4, section 7).
    fn hue(text: &str) -> (f64, f64) {
        let parts = color(text).0;
        let [red, green, blue] = parts.map(|part| f64::from(part) / 255.0);
        let (min, max) = (red.min(green).min(blue), red.max(green).max(blue));
        let (span, light) = (max - min, f64::midpoint(max, min));
        let hue = match parts.iter().position(|part| parts.iter().all(|other| part >= other)) {
            Some(0) => (green - blue) / span,
            Some(1) => (blue - red) / span + 2.0,
            _ => (red - green) / span + 4.0,
        };
        ((hue * 60.0).rem_euclid(360.0), span / (1.0 - (2.0 * light - 1.0).abs()))
    }

    #[test]
    fn no_regions_line_has_a_status_color() {
        let root = colors(":root{");
        let states = ["up-bar", "slow-bar", "part-bar", "down-bar", "maint-bar"];
        for line in LINES.map(|rule| colors(rule)[0].1) {
            for state in root.iter().filter(|(name, _)| states.contains(name)).map(|(_, color_value)| *color_value) {
                let ((one, saturation), (other, _)) = (hue(line), hue(state));
                let distance = (one - other).abs().min(360.0 - (one - other).abs());
                assert!(distance >= 20.0 || saturation < 0.3, "{line} next to {state}: {distance:.0} degrees");
            }
        }
    }

    #[test]
    fn dark_by_system_and_dark_by_choice_have_the_same_colors() {
        for asset in [&*SITE, &*REFERENCE_STYLE, &*DASHBOARD_STYLE] {
            let [system, choice] = [DARK, ":root[data-theme=dark]{"].map(|rule| colors_in(asset, rule));
            assert!(!system.is_empty(), "{}", asset.name);
            assert_eq!(system, choice, "{}", asset.name);
        }
    }

    #[test]
    fn bars_lines_and_texts_have_enough_contrast() {
        let lines = LINES.map(|rule| colors(rule)[0].1);
        for (name, rule) in [("light", ":root{"), ("dark", DARK), ("paper", ":root,:root[data-theme]{")] {
            let rule = colors(rule);
            let color_of = |name: &str| {
                rule.iter().find(|(known, _)| *known == name).map(|(_, color_value)| *color_value).unwrap()
            };
            let bars = ["up", "slow", "part", "down", "maint", "none"].map(|bar| color_of(&format!("{bar}-bar")));
            for (color_value, background) in
                bars.iter().chain(&lines).flat_map(|it| ["bg", "card"].map(|background| (it, color_of(background))))
            {
                let contrast = contrast(color_value, background);
                assert!(contrast >= 3.0, "{name}: {color_value} on {background}: {contrast:.2}");
            }
            for text in ["ink", "soft", "up", "slow", "part", "down", "maint", "none"] {
                let contrast = contrast(color_of(text), color_of("card")).min(contrast(color_of(text), color_of("bg")));
                assert!(contrast >= 4.5, "{name}: {text}: {contrast:.2}");
            }
        }
    }
}
