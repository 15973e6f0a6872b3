//! `page set`: the settings of a page as arguments, with images read from files and the password from standard
//! input.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use parallax_core::page::access::PagePassword;
use parallax_core::page::branding::{PictureKind, PictureUse};

use super::CliError;
use super::command_request::{CommandRequest, CommandTarget, PAGE_COLUMNS};
use crate::admin::{AdminCommand, CommandError};

/// Bytes read for a password: more than its characters can have in UTF-8.
const MAX_PASSWORD: u64 = 4096;

/// Arguments of `page set`. Lists are comma-separated.
#[derive(Debug, Args)]
pub(super) struct PageSetArgs {
    /// Id or slug of the page
    page: String,
    /// Name, shown in the headline
    #[arg(long)]
    name: Option<String>,
    /// Description: one line under the headline
    #[arg(long)]
    description: Option<String>,
    /// Link under the headline: http://, https:// or mailto:
    #[arg(long, value_name = "URL")]
    support_url: Option<String>,
    /// IANA time zone
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Uptime target in percent, 90 to 99.999
    #[arg(long, value_name = "PERCENT")]
    uptime_target: Option<String>,
    /// Address label; the old address does not redirect
    #[arg(long)]
    slug: Option<String>,
    /// Custom hostname; the output has the DNS record to create
    #[arg(long, value_name = "HOST")]
    custom_domain: Option<String>,
    /// Read the visitors' password from standard input, up to the end of the first line
    #[arg(long)]
    password_stdin: bool,
    /// Only allowed people and email domains can see it
    #[arg(long, value_name = "true|false")]
    private: Option<String>,
    /// Email addresses that can see it while it is private
    #[arg(long, value_name = "LIST")]
    allowed_people: Option<String>,
    /// Domains whose email addresses can see it while it is private
    #[arg(long, value_name = "LIST")]
    allowed_domains: Option<String>,
    /// Ask search engines not to index it
    #[arg(long, value_name = "true|false")]
    noindex: Option<String>,
    /// Colour scheme: auto, light or dark
    #[arg(long)]
    theme: Option<String>,
    /// Colour of links and buttons, such as #1a7f4b
    #[arg(long, value_name = "COLOR")]
    accent_color: Option<String>,
    /// Image next to the headline: PNG, JPEG, WebP or SVG, at most 64 KiB
    #[arg(long, value_name = "FILE")]
    logo: Option<PathBuf>,
    /// Icon in the browser tab: PNG, JPEG, WebP or SVG, at most 32 KiB
    #[arg(long, value_name = "FILE")]
    favicon: Option<PathBuf>,
    /// Language of the page: en, de, es, fr, pt or ja
    #[arg(long)]
    language: Option<String>,
    /// Draw deploy markers on the public page
    #[arg(long, value_name = "true|false")]
    show_deploys: Option<String>,
    /// Show each region under the uptime bars
    #[arg(long, value_name = "true|false")]
    show_locations: Option<String>,
    /// Regions counted for response times
    #[arg(long, value_name = "LIST")]
    latency_locations: Option<String>,
    /// Regions counted for uptime
    #[arg(long, value_name = "LIST")]
    uptime_regions: Option<String>,
    /// Option name of a field to clear; repeatable
    #[arg(long, value_name = "FIELD")]
    clear: Vec<String>,
    #[command(flatten)]
    target: CommandTarget,
}

impl PageSetArgs {
    /// Builds the command, reading its files and standard input.
    ///
    /// # Errors
    /// [`CliError::Failed`] if a file is not an image or is too large, [`CliError::System`] if one can't be read.
    pub(super) fn into_request(self) -> Result<CommandRequest, CliError> {
        let mut set = BTreeMap::new();
        let texts = [
            ("name", self.name),
            ("description", self.description),
            ("supportUrl", self.support_url),
            ("timezone", self.timezone),
            ("uptimeTarget", self.uptime_target),
            ("slug", self.slug),
            ("customDomain", self.custom_domain),
            ("private", self.private),
            ("allowedPeople", self.allowed_people),
            ("allowedDomains", self.allowed_domains),
            ("noindex", self.noindex),
            ("theme", self.theme),
            ("accentColor", self.accent_color),
            ("language", self.language),
            ("showDeploys", self.show_deploys),
            ("showLocations", self.show_locations),
            ("latencyLocations", self.latency_locations),
            ("uptimeRegions", self.uptime_regions),
        ];
        set.extend(texts.into_iter().filter_map(|(field, text)| Some((field.to_owned(), text?))));
        for (usage, file) in [(PictureUse::Logo, self.logo), (PictureUse::Favicon, self.favicon)] {
            if let Some(file) = file {
                set.insert(usage.name().to_owned(), image_data_url(usage, &file)?);
            }
        }
        let password = if self.password_stdin { Some(read_password(std::io::stdin().lock())?) } else { None };
        let clear = self.clear.iter().map(|name| to_camel_case(name)).collect();
        let command = AdminCommand::PageSet { page: self.page, set, clear, password };
        Ok(CommandRequest::new(command, self.target, PAGE_COLUMNS))
    }
}

/// Reads an image file as a `data:` URL.
fn image_data_url(usage: PictureUse, file: &Path) -> Result<String, CliError> {
    let invalid = |rule: String| CommandError::new("invalid", format!("{} {rule}", usage.name()));
    let max_bytes = usage.max_bytes() as u64;
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(invalid(format!("must be at most {max_bytes} bytes")).into());
    }
    let kind = PictureKind::ALL.into_iter().find(|kind| kind.matches(&bytes));
    let kind = kind.ok_or_else(|| invalid("must be a PNG, JPEG, WebP or SVG image".to_owned()))?;
    Ok(format!("data:{};base64,{}", kind.media(), STANDARD.encode(&bytes)))
}

/// Reads the first line, without its end.
fn read_password(input: impl Read) -> Result<PagePassword, CliError> {
    let mut bytes = Vec::new();
    input.take(MAX_PASSWORD).read_to_end(&mut bytes)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
    let text = String::from_utf8(line).map_err(|_| CommandError::new("invalid", "password must be UTF-8"))?;
    Ok(PagePassword::new(text))
}

/// Converts an option's name to the API's field name: `support-url` to `supportUrl`.
fn to_camel_case(name: &str) -> String {
    let mut parts = name.trim_start_matches('-').split('-');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut text, part| {
        let mut characters = part.chars();
        text.extend(characters.next().map(|letter| letter.to_ascii_uppercase()));
        text + characters.as_str()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_set_fields_and_files_become_pictures() {
        assert_eq!((to_camel_case("--support-url").as_str(), to_camel_case("logo").as_str()), ("supportUrl", "logo"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("logo");
        std::fs::write(&file, "<svg/>").unwrap();
        assert_eq!(image_data_url(PictureUse::Logo, &file).unwrap(), "data:image/svg+xml;base64,PHN2Zy8+");
        std::fs::write(&file, "text").unwrap();
        assert!(image_data_url(PictureUse::Logo, &file).unwrap_err().to_string().contains("must be a PNG"));
        std::fs::write(&file, vec![b' '; (32 << 10) + 1]).unwrap();
        assert!(image_data_url(PictureUse::Favicon, &file).unwrap_err().to_string().contains("at most 32768 bytes"));
        assert_eq!(read_password(&b"a b \r\nmore"[..]).unwrap().reveal(), "a b ");
    }
}
