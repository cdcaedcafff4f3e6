//! The data directory of the embedded profile: its lock, and the secrets generated on the first
//! start.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use data_encoding::HEXLOWER;
use switchboard_schemas::secret::InstallationSecret;

/// Environment variable that chooses the directory.
const VARIABLE: &str = "SWITCHBOARD__DATA_DIR";
const LOCK_FILE: &str = "lock";
const SECRET_FILE: &str = "secret";
const DEMO_KEY_FILE: &str = "demo-key";
/// Mode of files that only their owner can read.
const PRIVATE_MODE: u32 = 0o600;
/// Mode of the directory, which contains messages of visitors.
const PRIVATE_DIRECTORY_MODE: u32 = 0o700;

/// A data directory, locked for this process until the value is dropped.
pub(crate) struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Creates the directory if it is missing, makes it and its files private, and locks it.
    ///
    /// Fails if it is not writable or another process holds the lock.
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
        if let Err(error) = make_private(path) {
            // A directory of another user, such as a mounted volume: new files are private anyway.
            let path = whole.display();
            tracing::warn!(%error, %path, "data directory stays readable for other users");
        }
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

    pub(crate) fn file_path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the installation secret, which is generated on the first call.
    pub(crate) fn load_or_create_secret(&self) -> anyhow::Result<InstallationSecret> {
        let path = self.file_path(SECRET_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let text = HEXLOWER.encode(&rand::random::<[u8; 32]>());
                write_private(&path, &text).context("cannot write the installation secret")?;
                text
            }
            Err(error) => return Err(error).context("cannot read the installation secret"),
        };
        InstallationSecret::parse(&text).with_context(|| format!("{} is damaged", path.display()))
    }

    /// Reads the installation secret of a directory that another process may have locked.
    pub(crate) fn read_secret(path: &Path) -> anyhow::Result<InstallationSecret> {
        let text = fs::read_to_string(path.join(SECRET_FILE))
            .context("cannot read the installation secret")?;
        Ok(InstallationSecret::parse(&text)?)
    }

    /// Returns the stored API key of the demo organization.
    pub(crate) fn demo_key(&self) -> Option<String> {
        fs::read_to_string(self.file_path(DEMO_KEY_FILE))
            .ok()
            .map(|text| text.trim().to_owned())
    }

    /// Stores the API key of the demo organization, for the summary that every start prints.
    pub(crate) fn store_demo_key(&self, key: &str) -> anyhow::Result<()> {
        write_private(&self.file_path(DEMO_KEY_FILE), key).context("cannot write the demo key")
    }
}

/// Removes all rights of other users from a directory and the files in it, which an administrator
/// or an older version may have created with more.
fn make_private(directory: &Path) -> std::io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(PRIVATE_DIRECTORY_MODE))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::set_permissions(entry.path(), Permissions::from_mode(PRIVATE_MODE))?;
        }
    }
    Ok(())
}

/// Writes a temporary file and renames it, so that a crash leaves the old file or the new one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_directory_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let first = DataDir::open(directory.path()).unwrap();
        assert!(DataDir::open(directory.path()).is_err());
        drop(first);
        assert!(DataDir::open(directory.path()).is_ok());
    }

    #[test]
    fn directory_and_files_of_others_become_private() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("store.db");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let _data = DataDir::open(directory.path()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(directory.path()), mode(&file)),
            (PRIVATE_DIRECTORY_MODE, PRIVATE_MODE)
        );
    }

    #[test]
    fn secret_is_generated_once_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let data = DataDir::open(directory.path()).unwrap();
        let first = data.load_or_create_secret().unwrap().derive_key("test");
        assert_eq!(
            data.load_or_create_secret().unwrap().derive_key("test"),
            first
        );
        let mode = fs::metadata(data.file_path(SECRET_FILE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, PRIVATE_MODE);
    }
}
