//! `parallax new-secrets-key`: the key file that customers' secrets at rest are sealed with.

use std::path::PathBuf;

use clap::Args;
use parallax_certs::sealing;

use super::CliError;
use crate::out;

#[derive(Debug, Args)]
pub(super) struct NewSecretsKey {
    /// Key file for `secrets_key_file`; mode 0600
    file: PathBuf,
    /// Put a new key before those in the file
    #[arg(long)]
    rotate: bool,
}

/// Makes the file, or puts a new key before those in it.
pub(super) fn new_key(order: &NewSecretsKey) -> Result<(), CliError> {
    let id = sealing::write_new_key(&order.file, order.rotate)?;
    let file = order.file.display();
    let next = if order.rotate {
        "restart the coordinator, then stop it and run `parallax compact`; the older keys can go once no snapshot or \
         backup needs them"
    } else {
        "set `secrets_key_file` to it, start the coordinator, then stop it and run `parallax compact` to seal what is \
         there already; keep a copy of the file elsewhere: without it the store can't be read"
    };
    out::line(&format!("{file}: new key {id}\nNext: {next}")).map_err(CliError::Output)
}
