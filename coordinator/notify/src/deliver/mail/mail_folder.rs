//! Mail folder for a service without a mail server: one file per mail; the oldest are deleted.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use parallax_core::delivery::AttemptOutcome;

use super::failed_result;
use crate::deliver::outgoing_mail::{OutgoingMail, SendResult};

/// Maximum number of mails in the folder; the oldest are deleted.
const MAX_MAILS: usize = 1_000;
/// File extension of a mail.
const FILE_EXTENSION: &str = ".eml";

/// Writes a mail to the folder. A retry overwrites the file of the first attempt.
pub(super) async fn store_mail(folder: PathBuf, mail: &OutgoingMail, message: Vec<u8>) -> SendResult {
    // Names sort by time; thirteen digits suffice until the year 2286.
    let name = format!("{:013}-{}{FILE_EXTENSION}", mail.date.as_millis(), mail.delivery);
    let written = tokio::task::spawn_blocking(move || write_mail(&folder, &name, &message)).await;
    match written.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(()) => SendResult {
            status: None,
            outcome: AttemptOutcome::Accepted,
            error: None,
            reply: String::new(),
            is_our_fault: false,
        },
        Err(error) => failed_result(
            AttemptOutcome::Deferred(None),
            &format!("our side: can't write to the mail folder: {error}"),
            true,
        ),
    }
}

fn write_mail(folder: &Path, name: &str, message: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let temporary = folder.join(format!(".{name}"));
    fs::write(&temporary, message)?;
    fs::rename(&temporary, folder.join(name))?;
    delete_oldest(folder)
}

fn delete_oldest(folder: &Path) -> io::Result<()> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let names = entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok());
    let mut mails: Vec<String> =
        names.filter(|name| name.ends_with(FILE_EXTENSION) && !name.starts_with('.')).collect();
    mails.sort_unstable();
    let excess = mails.len().saturating_sub(MAX_MAILS);
    mails.iter().take(excess).try_for_each(|name| fs::remove_file(folder.join(name)))
}
