//! The data directory of the embedded profile: one process at a time, and the secrets of a first start.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use switchboard_schemas::secret::InstallationSecret;

/// Says where the directory is.
const VARIABLE: &str = "SWITCHBOARD__DATA_DIR";
const LOCK_FILE: &str = "lock";
const SECRET_FILE: &str = "secret";
const DEMO_KEY_FILE: &str = "demo-key";
/// Readable by the owner alone.
const PRIVATE_MODE: u32 = 0o600;
/// The same for a directory, which holds what visitors wrote.
const PRIVATE_DIRECTORY_MODE: u32 = 0o700;

/// A data directory that belongs to this process for as long as this value lives.
pub(crate) struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Makes the directory if it is missing and takes it for this process.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let unusable = || {
            format!(
                "cannot write to the data directory {} ({VARIABLE} chooses another)",
                whole.display()
            )
        };
        let make = DirBuilder::new()
            .recursive(true)
            .mode(PRIVATE_DIRECTORY_MODE)
            .create(path);
        let lock = make
            .and_then(|()| File::create(path.join(LOCK_FILE)))
            .with_context(unusable)?;
        if lock.try_lock().is_err() {
            bail!(
                "another process uses the data directory {}: stop it, or set {VARIABLE}",
                whole.display()
            );
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// A file of the directory.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The installation secret of this directory; made at the first start.
    pub(crate) fn secret(&self) -> anyhow::Result<InstallationSecret> {
        let path = self.join(SECRET_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let text = hex(&rand::random::<[u8; 32]>());
                write_private(&path, &text).context("cannot keep the installation secret")?;
                text
            }
            Err(error) => return Err(error).context("cannot read the installation secret"),
        };
        InstallationSecret::parse(&text).with_context(|| format!("{} is damaged", path.display()))
    }

    /// The installation secret of a directory that another process may use.
    pub(crate) fn kept_secret(path: &Path) -> anyhow::Result<InstallationSecret> {
        let text = fs::read_to_string(path.join(SECRET_FILE))
            .context("cannot read the installation secret")?;
        Ok(InstallationSecret::parse(&text)?)
    }

    /// The key of the demo organization, if one is kept.
    pub(crate) fn demo_key(&self) -> Option<String> {
        fs::read_to_string(self.join(DEMO_KEY_FILE))
            .ok()
            .map(|text| text.trim().to_owned())
    }

    /// Keeps the key of the demo organization, for the line that each start shows.
    pub(crate) fn keep_demo_key(&self, key: &str) -> anyhow::Result<()> {
        write_private(&self.join(DEMO_KEY_FILE), key).context("cannot keep the demo key")
    }
}

/// Written beside and renamed, so that a crash leaves the old file or the new one.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PRIVATE_MODE)
        .open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(beside, path)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_second_process_is_refused_the_same_directory() {
        let directory = tempfile::tempdir().unwrap();
        let first = DataDir::open(directory.path()).unwrap();
        assert!(DataDir::open(directory.path()).is_err());
        drop(first);
        assert!(DataDir::open(directory.path()).is_ok());
    }

    #[test]
    fn the_secret_is_made_once_and_readable_by_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let data = DataDir::open(directory.path()).unwrap();
        let first = data.secret().unwrap().derive_key("test");
        assert_eq!(data.secret().unwrap().derive_key("test"), first);
        let mode = fs::metadata(data.join(SECRET_FILE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, PRIVATE_MODE);
    }
}
