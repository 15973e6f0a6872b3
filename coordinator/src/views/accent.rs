//! A page's accent colour as a style sheet: readable on light and on dark, whatever its owner chose.

use parallax_core::page::accent::readable;
use parallax_core::page::look::Color;

/// Backgrounds of text in the light theme: those of `site.css`.
const LIGHT: [Color; 2] = [Color([0xf7, 0xf7, 0xf5]), Color([0xff, 0xff, 0xff])];
/// Backgrounds of text in the dark theme.
const DARK: [Color; 2] = [Color([0x0e, 0x10, 0x13]), Color([0x16, 0x19, 0x1e])];

/// The rules that a page with that colour has beside the style sheet of all pages.
pub fn sheet(color: Color) -> String {
    let (light, dark) = (readable(color, &LIGHT), readable(color, &DARK));
    format!(
        ":root{{--accent:{light}}}\
         @media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{--accent:{dark}}}}}\
         :root[data-theme=dark]{{--accent:{dark}}}\
         :focus-visible{{outline-color:var(--accent)}}\
         main p a,main h3 a,footer a{{color:var(--accent)}}\
         .btn.main,.btn.main:hover{{background:var(--accent);border-color:var(--accent)}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backgrounds_are_those_of_the_style_sheet() {
        let css = include_str!("../../assets/site.css");
        assert!(css.starts_with(":root{color-scheme:light dark;--bg:#f7f7f5;--card:#fff;"));
        assert!(css.contains("--bg:#0e1013;--card:#16191e;"));
        assert_eq!(
            (LIGHT[0].to_string(), LIGHT[1].to_string()),
            ("#f7f7f5".to_owned(), "#ffffff".to_owned())
        );
        assert_eq!((DARK[0].to_string(), DARK[1].to_string()), ("#0e1013".to_owned(), "#16191e".to_owned()));
    }

    #[test]
    fn a_colour_that_can_not_be_read_is_mended_for_each_theme() {
        let sheet = sheet(Color([0xff, 0xff, 0x00]));
        assert!(sheet.contains(":root[data-theme=dark]{--accent:#ffff00}"), "{sheet}");
        assert!(!sheet.starts_with(":root{--accent:#ffff00}"), "{sheet}");
    }
}
