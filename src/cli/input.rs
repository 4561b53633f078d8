//! Reading what a person hands in: a file, or standard input for `-`.

use std::path::Path;

use tokio::io::AsyncReadExt;

use crate::cli::error::CliError;

/// Largest file that is read.
const INPUT_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// The bytes of a file, or of standard input when it is `-`.
///
/// # Errors
/// [`CliError::Usage`] when it cannot be read or is too large.
pub async fn read_input(path: &str) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = if path == "-" {
        tokio::io::stdin().take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes).await
    } else {
        match tokio::fs::File::open(Path::new(path)).await {
            Ok(file) => file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes).await,
            Err(error) => Err(error),
        }
    };
    read.map_err(|error| CliError::Usage(format!("cannot read {path}: {error}")))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(CliError::Usage(format!("{path} is larger than {INPUT_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}
