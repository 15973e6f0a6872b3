//! Style sheet of a page's accent color, adjusted to be readable in the light and the dark theme.

use parallax_core::page::branding::Color;
use parallax_core::page::contrast::readable;

/// Backgrounds of text in the light theme, as in `assets/site/colors.css`.
const LIGHT_BACKGROUNDS: [Color; 2] = [Color([0xf7, 0xf7, 0xf5]), Color([0xff, 0xff, 0xff])];
/// Backgrounds of text in the dark theme.
const DARK_BACKGROUNDS: [Color; 2] = [Color([0x0e, 0x10, 0x13]), Color([0x16, 0x19, 0x1e])];

/// Maximum difference between the RGB components of a color that counts as grey.
const MAX_GREY_SPREAD: u8 = 24;

/// Builds the CSS rules of a page with an accent color, in addition to the common style sheet.
pub(crate) fn accent_css(color: Color) -> String {
    let (light, dark) = (accent_on(color, &LIGHT_BACKGROUNDS), accent_on(color, &DARK_BACKGROUNDS));
    format!(
        ":root{{--accent:{light}}}\
         @media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{--accent:{dark}}}}}\
         :root[data-theme=dark]{{--accent:{dark}}}\
         :focus-visible{{outline-color:var(--accent)}}\
         main p a,footer a{{color:var(--accent)}}\
         .btn.main,.btn.main:hover{{background:var(--accent);border-color:var(--accent)}}"
    )
}

/// Returns the accent on these backgrounds. A grey that would need adjusting would look disabled, so the text
/// color is used instead.
fn accent_on(color: Color, backgrounds: &[Color]) -> String {
    let adjusted = readable(color, backgrounds);
    let [min, .., max] = {
        let mut parts = color.0;
        parts.sort_unstable();
        parts
    };
    if adjusted != color && max - min <= MAX_GREY_SPREAD { "var(--ink)".to_owned() } else { adjusted.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backgrounds_equal_those_of_the_style_sheet() {
        let css = crate::views::assets::all()[0].text;
        assert!(css.starts_with(":root{color-scheme:light dark;--bg:#f7f7f5;--card:#fff;"));
        assert!(css.contains("--bg:#0e1013;--card:#16191e;"));
        assert_eq!(
            (LIGHT_BACKGROUNDS[0].to_string(), LIGHT_BACKGROUNDS[1].to_string()),
            ("#f7f7f5".to_owned(), "#ffffff".to_owned())
        );
        assert_eq!(
            (DARK_BACKGROUNDS[0].to_string(), DARK_BACKGROUNDS[1].to_string()),
            ("#0e1013".to_owned(), "#16191e".to_owned())
        );
    }

    #[test]
    fn an_unreadable_color_is_adjusted_for_each_theme() {
        let css = accent_css(Color([0xff, 0xff, 0x00]));
        assert!(css.contains(":root[data-theme=dark]{--accent:#ffff00}"), "{css}");
        assert!(css.starts_with(":root{--accent:#") && !css.starts_with(":root{--accent:#ffff00}"), "{css}");
    }

    #[test]
    fn an_unreadable_grey_is_replaced_by_the_text_color() {
        let text_color = "var(--ink)";
        for (color, light, dark) in [
            ("#000000", "#000000", text_color),
            ("#ffffff", text_color, "#ffffff"),
            ("#888888", text_color, "#888888"),
            ("#12181f", "#12181f", text_color),
        ] {
            let css = accent_css(Color::read(color).unwrap());
            assert!(css.starts_with(&format!(":root{{--accent:{light}}}")), "{css}");
            assert!(css.contains(&format!(":root[data-theme=dark]{{--accent:{dark}}}")), "{css}");
        }
    }
}
