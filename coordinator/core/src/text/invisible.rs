//! Characters that nobody sees, and those that turn the text around them.

/// Tells characters that show nothing by themselves: white space, controls, the code points that Unicode calls
/// default-ignorable (UAX 44, `Default_Ignorable_Code_Point`), and the braille pattern without dots.
pub(super) fn is_invisible(sign: char) -> bool {
    sign.is_whitespace()
        || sign.is_control()
        || matches!(sign,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Tells characters that embed, override or isolate the direction of what follows them (UAX 9, section 2), and the
/// deprecated formatting controls: text after a name would read otherwise. The marks LRM, RLM and ALM, which scripts
/// written from right to left need, turn nothing but their own place.
pub(super) const fn turns(sign: char) -> bool {
    matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{206a}'..='\u{206f}')
}

/// Tells characters that end a line, beside the controls that do (UAX 14, class BK).
pub(super) const fn ends_line(sign: char) -> bool {
    matches!(sign, '\u{2028}' | '\u{2029}')
}

/// Tells characters that are left out at the edge of a text: white space, and what editors and web pages leave beside copied
/// text. Joiners stay: emoji and several scripts mean something else without them.
pub(super) fn is_trimmed(sign: char) -> bool {
    sign.is_whitespace() || matches!(sign, '\u{200b}' | '\u{2060}' | '\u{feff}')
}
