//! `parallax new-secrets-key`: creates the key file that seals customers' secrets at rest.

use std::path::PathBuf;

use clap::Args;
use parallax_certs::sealing;

use super::CliError;
use crate::console;

#[derive(Debug, Args)]
pub(super) struct NewSecretsKeyArgs {
    /// Key file for `secrets_key_file`, created with mode 0600
    file: PathBuf,
    /// Add a new key before those in the file
    #[arg(long)]
    rotate: bool,
}

/// Creates the file, or adds a new key before those in it.
pub(super) fn new_key(args: &NewSecretsKeyArgs) -> Result<(), CliError> {
    let id = sealing::write_new_key(&args.file, args.rotate)?;
    let file = args.file.display();
    let next = if args.rotate {
        "restart the coordinator, then stop it and run `parallax compact`; remove the older keys once no snapshot or \
         backup needs them"
    } else {
        "set `secrets_key_file` to this file, start the coordinator, then stop it and run `parallax compact` to seal \
         existing secrets; keep a copy of the file elsewhere: without it the store can't be read"
    };
    console::line(&format!("{file}: new key {id}\nNext: {next}")).map_err(CliError::Output)
}
