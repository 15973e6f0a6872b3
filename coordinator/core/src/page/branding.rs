//! Branding of a page: theme, accent colour, pictures, and the language of the service's own texts.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text;
use crate::validation::Rule;

/// Maximum size of a logo, in bytes.
pub const MAX_LOGO: usize = 64 << 10;
/// Maximum size of a favicon, in bytes.
pub const MAX_FAVICON: usize = 32 << 10;

/// A page's theme, colours and pictures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branding {
    /// Light, dark, or the visitor's system setting.
    pub theme: Theme,
    /// Accent colour, as of links; none means the service's own.
    pub accent: Option<Color>,
    /// Picture next to the headline.
    pub logo: Option<Picture>,
    /// Picture in the browser's tab.
    pub favicon: Option<Picture>,
}

/// Light, dark, or the visitor's system setting. In every type here new variants are added only at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Theme {
    /// The visitor's system setting.
    #[default]
    Auto,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// Every theme.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Light, Self::Dark];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The theme of that name.
    ///
    /// # Errors
    /// The rule, which lists the names.
    pub fn read(name: &str) -> Result<Self, Rule> {
        text::one_of(name, &Self::ALL, Self::name)
    }
}

/// A colour in sRGB: red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Color(pub [u8; 3]);

impl Color {
    /// Parses a colour written as `#rrggbb`, in either case.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn read(text: &str) -> Result<Self, Rule> {
        let digits = text.trim().strip_prefix('#').filter(|digits| digits.len() == 6);
        let is_hex = |digits: &&str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = digits.filter(is_hex).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let [_, red, green, blue] = number.ok_or_else(|| "must be a colour such as #1a7f4b".to_owned())?.to_be_bytes();
        Ok(Self([red, green, blue]))
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

/// A page's picture without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// Its format.
    pub kind: PictureKind,
    /// The first half of the SHA-256 of its bytes.
    pub digest: [u8; 16],
}

impl Picture {
    /// Digest as used in URLs: 32 lower-case hexadecimal digits.
    pub fn hex(&self) -> String {
        hex::encode(self.digest)
    }
}

/// A picture's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PictureKind {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// WebP.
    Webp,
    /// SVG.
    Svg,
}

impl PictureKind {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Png, Self::Jpeg, Self::Webp, Self::Svg];

    /// Its media type.
    pub const fn media(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Svg => "image/svg+xml",
        }
    }

    /// Returns true if the bytes begin like the format (SVG: text that begins with an `svg` element).
    pub fn matches(self, bytes: &[u8]) -> bool {
        match self {
            Self::Png => bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
            Self::Jpeg => bytes.starts_with(b"\xff\xd8\xff"),
            Self::Webp => bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
            Self::Svg => std::str::from_utf8(bytes).is_ok_and(begins_as_svg),
        }
    }
}

/// The use of a page's picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PictureUse {
    /// Logo next to the headline.
    Logo,
    /// Favicon in the browser's tab.
    Favicon,
}

impl PictureUse {
    /// Both uses.
    pub const ALL: [Self; 2] = [Self::Logo, Self::Favicon];

    /// Name of the field, and first part of the URL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Logo => "logo",
            Self::Favicon => "favicon",
        }
    }

    /// Maximum size in bytes.
    pub const fn max_bytes(self) -> usize {
        match self {
            Self::Logo => MAX_LOGO,
            Self::Favicon => MAX_FAVICON,
        }
    }
}

impl Branding {
    /// The picture for that use.
    pub const fn picture(&self, usage: PictureUse) -> Option<&Picture> {
        match usage {
            PictureUse::Logo => self.logo.as_ref(),
            PictureUse::Favicon => self.favicon.as_ref(),
        }
    }
}

/// Language of the service's own texts on a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Language {
    /// English.
    #[default]
    En,
    /// German.
    De,
    /// Spanish.
    Es,
    /// French.
    Fr,
    /// Portuguese.
    Pt,
    /// Japanese.
    Ja,
}

impl Language {
    /// Every language.
    pub const ALL: [Self; 6] = [Self::En, Self::De, Self::Es, Self::Fr, Self::Pt, Self::Ja];

    /// Its tag (BCP 47).
    pub const fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::De => "de",
            Self::Es => "es",
            Self::Fr => "fr",
            Self::Pt => "pt",
            Self::Ja => "ja",
        }
    }

    /// The language of that tag.
    ///
    /// # Errors
    /// The rule, which lists the tags.
    pub fn read(tag: &str) -> Result<Self, Rule> {
        text::one_of(tag, &Self::ALL, Self::tag)
    }
}

/// Returns true if a text is an SVG document as far as its first element shows; prolog and comments are
/// skipped.
fn begins_as_svg(text: &str) -> bool {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = if rest.starts_with("<?") {
            "?>"
        } else if rest.starts_with("<!--") {
            "-->"
        } else if rest.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("<!doctype")) {
            ">"
        } else {
            break;
        };
        let Some((_, after)) = rest.split_once(end) else { return false };
        rest = after.trim_start();
    }
    rest.strip_prefix("<svg").is_some_and(|rest| rest.starts_with([' ', '\t', '\r', '\n', '>', '/']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_six_hexadecimal_digits() {
        assert_eq!(Color::read(" #1A7f4B ").map(|it| it.to_string()).as_deref(), Ok("#1a7f4b"));
        for bad in ["", "1a7f4b", "#1a7f4", "#1a7f4b0", "#1a7f4g", "#+a7f4b", "red", "#\u{fc}\u{fc}\u{fc}"] {
            assert!(Color::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_picture_is_what_it_says_it_is() {
        let samples: [(&[u8], PictureKind); 6] = [
            (b"\x89PNG\r\n\x1a\n....", PictureKind::Png),
            (b"\xff\xd8\xff\xe0", PictureKind::Jpeg),
            (b"RIFF....WEBPVP8 ", PictureKind::Webp),
            (b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", PictureKind::Svg),
            (b"\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- a --><!DOCTYPE svg><svg>", PictureKind::Svg),
            (b"<svg\n width='1'>", PictureKind::Svg),
        ];
        for (bytes, kind) in samples {
            for other in PictureKind::ALL {
                assert_eq!(other.matches(bytes), other == kind, "{bytes:?} {other:?}");
            }
        }
        for bytes in [&b""[..], b"<html><svg>", b"<svgx>", b"<!-- <svg>", b"RIFF....WAVE", b"\x89PNG", b"GIF89a"] {
            assert!(PictureKind::ALL.iter().all(|kind| !kind.matches(bytes)), "{bytes:?}");
        }
    }

    #[test]
    fn names_read_back() {
        assert!(Theme::ALL.iter().all(|it| Theme::read(it.name()) == Ok(*it)));
        assert!(Language::ALL.iter().all(|it| Language::read(it.tag()) == Ok(*it)));
        assert!(Language::read("EN").is_err() && Theme::read("").is_err());
    }
}
