//! Style sheet and script, in the binary: each under a name that changes with what is in it.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// A file that is served as it is.
#[derive(Debug)]
pub struct Asset {
    /// Its name, with a part of its hash.
    pub name: String,
    /// Its media type.
    pub media: &'static str,
    /// What is in it.
    pub text: &'static str,
}

static SITE: LazyLock<Asset> =
    LazyLock::new(|| asset("site", "css", "text/css; charset=utf-8", include_str!("../../assets/site.css")));
static THEME: LazyLock<Asset> = LazyLock::new(|| script_of("theme", include_str!("../../assets/theme.js")));
static PAGE: LazyLock<Asset> = LazyLock::new(|| {
    let text = concat!(include_str!("../../assets/renewal.js"), include_str!("../../assets/page.js"));
    script_of("page", text)
});
static EMBED: LazyLock<Asset> = LazyLock::new(|| {
    let text = concat!(include_str!("../../assets/renewal.js"), include_str!("../../assets/embed.js"));
    script_of("embed", text)
});
static ICON: LazyLock<Asset> =
    LazyLock::new(|| asset("icon", "svg", "image/svg+xml", include_str!("../../assets/icon.svg")));

/// Every file.
pub fn all() -> [&'static Asset; 5] {
    [&SITE, &THEME, &PAGE, &EMBED, &ICON]
}

/// Name of the style sheet.
pub fn style() -> &'static str {
    &SITE.name
}

/// Name of the script that sets the chosen theme before a page is painted.
pub fn theme() -> &'static str {
    &THEME.name
}

/// Name of the page's script.
pub fn script() -> &'static str {
    &PAGE.name
}

/// Name of the script of a page in small.
pub fn embed() -> &'static str {
    &EMBED.name
}

/// Name of the icon.
pub fn icon() -> &'static str {
    &ICON.name
}

fn script_of(stem: &str, text: &'static str) -> Asset {
    asset(stem, "js", "text/javascript; charset=utf-8", text)
}

fn asset(stem: &str, ending: &str, media: &'static str, text: &'static str) -> Asset {
    let hash = Sha256::digest(text.as_bytes());
    let short: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    Asset { name: format!("{stem}-{short}.{ending}"), media, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The custom properties of a rule that begins with that.
    fn colours(rule: &str) -> Vec<(&'static str, &'static str)> {
        let (_, after) = SITE.text.split_once(rule).unwrap_or_else(|| panic!("{rule}"));
        let (declared, _) = after.split_once('}').unwrap();
        declared.split(';').filter_map(|one| one.strip_prefix("--")?.split_once(':')).collect()
    }

    fn luminance(colour: &str) -> f64 {
        let digits = colour.strip_prefix('#').unwrap();
        let long = if digits.len() == 3 {
            digits.chars().flat_map(|it| [it, it]).collect()
        } else {
            digits.to_owned()
        };
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&long[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4)
    }

    /// The contrast of two colours (WCAG 2.2, 1.4.3).
    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn each_bar_and_line_is_seen_on_its_ground() {
        let dark = [":root:not([data-theme=light]){", ":root[data-theme=dark]{"].map(colours);
        assert_eq!(dark[0], dark[1], "dark by system and by choice");
        let lines = [".r0{", ".r1{", ".r2{", ".r3{", ".r4{", ".r5{"].map(|rule| colours(rule)[0].1);
        let [dark, _] = dark;
        for (name, rule) in
            [("light", colours(":root{")), ("dark", dark), ("paper", colours(":root,:root[data-theme]{"))]
        {
            let of = |name: &str| {
                rule.iter().find(|(known, _)| *known == name).map(|(_, colour)| *colour).unwrap()
            };
            let bars = ["up", "slow", "part", "down", "maint", "none"].map(|bar| of(&format!("{bar}-bar")));
            for (colour, ground) in
                bars.iter().chain(&lines).flat_map(|it| ["bg", "card"].map(|ground| (it, of(ground))))
            {
                let contrast = contrast(colour, ground);
                assert!(contrast >= 3.0, "{name}: {colour} on {ground}: {contrast:.2}");
            }
            for text in ["ink", "soft", "up", "slow", "part", "down", "maint", "none"] {
                let contrast = contrast(of(text), of("card")).min(contrast(of(text), of("bg")));
                assert!(contrast >= 4.5, "{name}: {text}: {contrast:.2}");
            }
        }
    }
}
