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
static PAGE: LazyLock<Asset> = LazyLock::new(|| {
    asset("page", "js", "text/javascript; charset=utf-8", include_str!("../../assets/page.js"))
});
static ICON: LazyLock<Asset> =
    LazyLock::new(|| asset("icon", "svg", "image/svg+xml", include_str!("../../assets/icon.svg")));

/// Every file.
pub fn all() -> [&'static Asset; 3] {
    [&SITE, &PAGE, &ICON]
}

/// Name of the style sheet.
pub fn style() -> &'static str {
    &SITE.name
}

/// Name of the page's script.
pub fn script() -> &'static str {
    &PAGE.name
}

/// Name of the icon.
pub fn icon() -> &'static str {
    &ICON.name
}

fn asset(stem: &str, ending: &str, media: &'static str, text: &'static str) -> Asset {
    let hash = Sha256::digest(text.as_bytes());
    let short: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    Asset { name: format!("{stem}-{short}.{ending}"), media, text }
}
