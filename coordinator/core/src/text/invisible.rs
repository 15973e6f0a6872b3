//! Invisible characters, and those that change the direction of the text around them.

/// Returns true for characters that are invisible by themselves: white space, controls, default-ignorable
/// code points (UAX 44, `Default_Ignorable_Code_Point`), and the blank braille pattern.
pub(super) fn is_invisible(sign: char) -> bool {
    sign.is_whitespace()
        || sign.is_control()
        || matches!(sign,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns true for characters that embed, override or isolate the direction of the text after them (UAX 9,
/// section 2), and for the deprecated formatting controls: they could change how the text after a name reads.
/// The marks LRM, RLM and ALM, which right-to-left scripts need, affect only their own position.
pub(super) const fn changes_direction(sign: char) -> bool {
    matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{206a}'..='\u{206f}')
}

/// Returns true for characters that end a line, besides the control characters that do (UAX 14, class BK).
pub(super) const fn ends_line(sign: char) -> bool {
    matches!(sign, '\u{2028}' | '\u{2029}')
}

/// Returns true for characters that change more of a printed line than their own position: control characters, line
/// ends, and changes of direction. Text from outside is printed without them.
pub fn alters_layout(sign: char) -> bool {
    sign.is_control() || ends_line(sign) || changes_direction(sign)
}

/// Shows characters that alter the layout as replacement characters, for text from outside.
pub fn with_visible_controls(text: &str) -> String {
    text.chars().map(|sign| if alters_layout(sign) { char::REPLACEMENT_CHARACTER } else { sign }).collect()
}

/// Returns true for characters that are trimmed: white space, and invisible characters that editors and web
/// pages add to copied text. Joiners are kept: emoji and several scripts need them.
pub(super) fn is_trimmed(sign: char) -> bool {
    sign.is_whitespace() || matches!(sign, '\u{200b}' | '\u{2060}' | '\u{feff}')
}
