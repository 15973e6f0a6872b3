//! Text outlines for the preview image: a typeface in two weights, and a check that it covers a text.

use tiny_skia::{Path, PathBuilder};
use ttf_parser::{Face, OutlineBuilder};

/// Marks truncated text.
const ELLIPSIS: char = '…';

/// A weight of the typeface: Latin, Greek and Cyrillic letters.
pub(super) struct PreviewFont(Face<'static>);

impl PreviewFont {
    /// Bold weight; `None` if the font can't be parsed, which tests would show.
    pub(super) fn bold() -> Option<Self> {
        Face::parse(ttf_noto_sans::BOLD, 0).ok().map(Self)
    }

    /// Regular weight; `None` if the font can't be parsed.
    pub(super) fn regular() -> Option<Self> {
        Face::parse(ttf_noto_sans::REGULAR, 0).ok().map(Self)
    }

    /// Returns true if the typeface has all letters of a text, and they can be placed one after the other.
    pub(super) fn covers(&self, text: &str) -> bool {
        text.chars().all(|letter| needs_no_shaping(letter) && self.0.glyph_index(letter).is_some())
    }

    /// Breaks a text into at most `max_lines` lines of the given width between words; the rest is truncated.
    pub(super) fn wrap(&self, text: &str, size: f32, width: f32, max_lines: usize) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            let is_last = lines.len() == max_lines;
            if let Some(line) = lines.last_mut() {
                let longer = format!("{line} {word}");
                // The last line takes the whole rest and is truncated below.
                if is_last || self.width(&longer, size) <= width {
                    *line = longer;
                    continue;
                }
            }
            lines.push(word.to_owned());
        }
        for line in &mut lines {
            self.truncate(line, size, width);
        }
        lines
    }

    /// Outlines of a line at a position.
    pub(super) fn outline(&self, line: &str, size: f32, (x, y): (f32, f32)) -> Option<Path> {
        let scale = self.scale(size);
        let mut pen = Pen { path: PathBuilder::new(), scale, x, y };
        for letter in line.chars() {
            let glyph = self.0.glyph_index(letter)?;
            self.0.outline_glyph(glyph, &mut pen);
            pen.x += f32::from(self.0.glyph_hor_advance(glyph)?) * scale;
        }
        pen.path.finish()
    }

    fn truncate(&self, line: &mut String, size: f32, width: f32) {
        if self.width(line, size) <= width {
            return;
        }
        while !line.is_empty() && self.width(line, size) + self.width(&ELLIPSIS.to_string(), size) > width {
            line.pop();
        }
        line.truncate(line.trim_end().len());
        line.push(ELLIPSIS);
    }

    fn width(&self, line: &str, size: f32) -> f32 {
        let advance = |letter| self.0.glyph_hor_advance(self.0.glyph_index(letter)?);
        line.chars().filter_map(advance).map(f32::from).sum::<f32>() * self.scale(size)
    }

    fn scale(&self, size: f32) -> f32 {
        size / f32::from(self.0.units_per_em())
    }
}

/// Returns true if a letter needs no shaping: scripts that run right to left, join letters or stack marks do.
const fn needs_no_shaping(letter: char) -> bool {
    matches!(letter,
        ' '..='\u{2ff}' // Latin
        | '\u{370}'..='\u{482}' | '\u{48a}'..='\u{52f}' // Greek, Cyrillic
        | '\u{1e00}'..='\u{1fff}' // Latin and Greek with accents
        | '\u{2010}'..='\u{2027}' | '\u{202f}'..='\u{205e}' // punctuation
        | '\u{2070}'..='\u{20cf}' | '\u{2100}'..='\u{22ff}' // currencies, numbers, arrows, signs
    )
}

/// Converts font outlines (y up) to image coordinates (y down).
struct Pen {
    path: PathBuilder,
    scale: f32,
    x: f32,
    y: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (x.mul_add(self.scale, self.x), y.mul_add(-self.scale, self.y))
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_covers_european_letters_and_reports_missing_ones() {
        for font in [PreviewFont::bold().unwrap(), PreviewFont::regular().unwrap()] {
            for text in ["Störungen bei Łódź, ñandú, ça va: “à 10 %” – até já…", "Ελλάδα", "Київ", ""]
            {
                assert!(font.covers(text), "{text}");
            }
            for text in ["障害", "שלום", "مرحبا", "हिन्दी", "\u{1f525} hot", "a\u{202e}b", "Z\u{0351}", "a\tb"]
            {
                assert!(!font.covers(text), "{text}");
            }
        }
    }

    #[test]
    fn a_text_wraps_between_words_and_is_truncated_at_the_end() {
        let font = PreviewFont::bold().unwrap();
        let fits = |lines: &[String]| lines.iter().all(|line| font.width(line, 50.0) <= 400.0);
        let short = font.wrap("All systems operational", 50.0, 400.0, 2);
        assert_eq!(short, ["All systems", "operational"]);
        let long = font.wrap(&"one two three four five ".repeat(9), 50.0, 400.0, 2);
        assert!(long.len() == 2 && fits(&long) && long[1].ends_with(ELLIPSIS), "{long:?}");
        let wide = font.wrap(&"W".repeat(99), 50.0, 400.0, 2);
        assert!(wide.len() == 1 && fits(&wide) && wide[0].ends_with(ELLIPSIS), "{wide:?}");
        assert!(font.wrap("", 50.0, 400.0, 2).is_empty());
    }
}
