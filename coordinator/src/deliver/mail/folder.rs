//! Mail folder for a service without a mail server: one file per mail, only the newest are kept.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use parallax_core::delivery::Outcome;

use super::failed;
use crate::deliver::post::{Parcel, Posted};

/// Maximum number of mails in the folder; the oldest are deleted.
const KEPT: usize = 1_000;
/// File extension of a mail.
const SUFFIX: &str = ".eml";

/// Writes a mail to the folder. A retry overwrites the file of the first attempt.
pub(super) async fn keep(folder: PathBuf, parcel: &Parcel, message: Vec<u8>) -> Posted {
    // Names sort by time; thirteen digits suffice until the year 2286.
    let name = format!("{:013}-{}{SUFFIX}", parcel.date.as_millis(), parcel.delivery);
    let written = tokio::task::spawn_blocking(move || write(&folder, &name, &message)).await;
    match written.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(()) => Posted {
            status: None,
            outcome: Outcome::Taken,
            error: None,
            answer: String::new(),
            is_ours: false,
        },
        Err(error) => {
            failed(Outcome::NotNow(None), &format!("our side: can't write to the mail folder: {error}"), true)
        }
    }
}

fn write(folder: &Path, name: &str, message: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let unfinished = folder.join(format!(".{name}"));
    fs::write(&unfinished, message)?;
    fs::rename(&unfinished, folder.join(name))?;
    thin(folder)
}

fn thin(folder: &Path) -> io::Result<()> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let names = entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok());
    let mut mails: Vec<String> =
        names.filter(|name| name.ends_with(SUFFIX) && !name.starts_with('.')).collect();
    mails.sort_unstable();
    let over = mails.len().saturating_sub(KEPT);
    mails.iter().take(over).try_for_each(|name| fs::remove_file(folder.join(name)))
}
