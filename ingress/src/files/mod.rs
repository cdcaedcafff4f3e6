//! Files of messages: received, named by messages and sent back.

mod admission;
mod claims;
mod content;
mod download;
mod form;
mod name;
pub(crate) mod references;
#[cfg(test)]
mod tests;
mod upload;

pub(crate) use self::{
    download::{DownloadedFile, FilePath, RangeHeader},
    upload::{FileUploadForm, UploadTarget, UploadedFile, receive_upload},
};
