//! Contrast of colours: readable variants of an accent colour (WCAG 2.2, 1.4.3).

use super::branding::Color;

/// Minimum contrast of text (WCAG 2.2, success criterion 1.4.3, level AA).
pub const MIN_CONTRAST: f64 = 4.5;
/// Steps from a colour to black or white.
const STEPS: u8 = 64;

/// Contrast ratio of two colours, from 1 to 21 (WCAG 2.2, "contrast ratio").
pub fn contrast(one: Color, other: Color) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Returns the colour if it is readable on all of these backgrounds, else the nearest readable one on the way
/// to black or white. If none is readable, black or white, whichever has more contrast.
pub fn readable(color: Color, backgrounds: &[Color]) -> Color {
    let worst = |it: Color| backgrounds.iter().map(|ground| contrast(it, *ground)).fold(f64::INFINITY, f64::min);
    let (black, white) = (Color([0; 3]), Color([255; 3]));
    let end = if worst(black) >= worst(white) { black } else { white };
    let steps = (0..=STEPS).map(|step| blend(color, end, step));
    steps.into_iter().find(|it| worst(*it) >= MIN_CONTRAST).unwrap_or(end)
}

/// Relative luminance, from 0 to 1 (WCAG 2.2, "relative luminance").
fn luminance(color: Color) -> f64 {
    let [red, green, blue] = color.0.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// The colour `step` steps from one to the other.
fn blend(from: Color, to: Color, step: u8) -> Color {
    let Color([r, g, b]) = from;
    let Color([to_r, to_g, to_b]) = to;
    let part = |from: u8, to: u8| {
        let (from, to, step, all) = (i32::from(from), i32::from(to), i32::from(step), i32::from(STEPS));
        u8::try_from(from + (to - from) * step / all).unwrap_or(u8::MAX)
    };
    Color([part(r, to_r), part(g, to_g), part(b, to_b)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn color(text: &str) -> Color {
        Color::read(text).unwrap()
    }

    #[test]
    fn contrasts_are_those_of_the_standard() {
        for (one, other, expected) in [
            ("#000000", "#ffffff", 21.0),
            ("#ffffff", "#ffffff", 1.0),
            ("#777777", "#ffffff", 4.48),
            ("#767676", "#ffffff", 4.54),
            ("#0000ff", "#ffffff", 8.59),
            ("#ff0000", "#ffffff", 4.00),
            ("#1a7f4b", "#f7f7f5", 4.68),
        ] {
            let found = contrast(color(one), color(other));
            assert!((found - expected).abs() < 0.02, "{one} on {other}: {found}");
            assert!((found - contrast(color(other), color(one))).abs() < 1e-12);
        }
    }

    #[test]
    fn readable_accents_stay_and_others_move_to_the_far_end() {
        let light = [color("#ffffff"), color("#f7f7f5")];
        let dark = [color("#0e1013"), color("#16191e")];
        assert_eq!(readable(color("#0f5c3f"), &light), color("#0f5c3f"));
        assert_eq!(readable(color("#ffff00"), &dark), color("#ffff00"));
        assert!(luminance(readable(color("#ffff00"), &light)) < luminance(color("#ffff00")));
        assert!(luminance(readable(color("#000080"), &dark)) > luminance(color("#000080")));
        assert_eq!(readable(color("#ffffff"), &[color("#000000"), color("#ffffff")]).0[0] % 255, 0, "none can");
    }

    proptest! {
        #[test]
        fn every_color_is_readable_in_both_themes(parts in any::<[u8; 3]>()) {
            for grounds in [[color("#ffffff"), color("#f7f7f5")], [color("#0e1013"), color("#16191e")]] {
                let mended = readable(Color(parts), &grounds);
                for ground in grounds {
                    prop_assert!(contrast(mended, ground) >= MIN_CONTRAST);
                }
                prop_assert_eq!(readable(mended, &grounds), mended);
            }
        }
    }
}
