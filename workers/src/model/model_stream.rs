//! A response while it arrives: bytes of the connection become output in the task that reads them.

use std::time::Duration;

use futures::FutureExt;
use serde_json::value::RawValue;
use switchboard_schemas::conversation::FinishReason;
use tokio::time::timeout;

use super::{
    CallError, FailedCall,
    event_stream::{EventParser, StreamEvent},
    finish_reason::FinishKind,
    output::ModelOutput,
};

/// Bytes after which a read ends, although more may have arrived.
const READ_BYTES_MAX: usize = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Time to wait for the end of a response behind its last event.
const END_WAIT: Duration = Duration::from_millis(100);

/// Adds an event of a dialect to the output.
pub(super) type TakeEvent = fn(StreamEvent<'_>, &mut ModelOutput);

/// The response of one call. Dropping it closes the connection.
pub(crate) struct ModelStream {
    response: reqwest::Response,
    events: EventParser,
    take_event: TakeEvent,
    bytes_left: usize,
    form: ResponseForm,
}

/// Form of a response, which its first byte decides: content types are not to be trusted.
enum ResponseForm {
    Unknown,
    Events,
    /// JSON without events: one document, or one in each line.
    Document(Vec<u8>),
}

impl ModelStream {
    /// Creates the reader of a response, of which at most `bytes_max` bytes are read.
    pub(super) fn new(
        response: reqwest::Response,
        bytes_max: usize,
        take_event: TakeEvent,
    ) -> Self {
        Self {
            response,
            events: EventParser::default(),
            take_event,
            bytes_left: bytes_max,
            form: ResponseForm::Unknown,
        }
    }

    /// Waits for bytes and adds all that have arrived to the output. Returns false at the end of
    /// the response. A dropped future loses nothing.
    ///
    /// Fails with [`CallError::BrokenOff`] if the connection broke or the response is too long. The
    /// output has what arrived before.
    pub(super) async fn read(&mut self, output: &mut ModelOutput) -> Result<bool, CallError> {
        let mut piece = self.response.chunk().await;
        let mut taken = 0;
        loop {
            match piece {
                Ok(Some(bytes)) if bytes.len() <= self.bytes_left => {
                    self.bytes_left -= bytes.len();
                    taken += bytes.len();
                    self.take_bytes(&bytes, output);
                }
                Ok(None) => {
                    self.finish(output);
                    return Ok(false);
                }
                Ok(Some(_)) | Err(_) => return Err(CallError::BrokenOff),
            }
            if taken >= READ_BYTES_MAX {
                return Ok(true);
            }
            match self.response.chunk().now_or_never() {
                Some(next) => piece = next,
                None => return Ok(true),
            }
        }
    }

    /// Waits for the end of the response behind its last event, without which the connection cannot
    /// serve another call.
    pub(super) async fn await_end(&mut self) {
        let end = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        let _ = timeout(END_WAIT, end).await;
    }

    fn take_bytes(&mut self, bytes: &[u8], output: &mut ModelOutput) {
        if matches!(self.form, ResponseForm::Unknown) {
            let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
            self.form = match bytes.trim_ascii_start().first() {
                Some(b'{' | b'[') => ResponseForm::Document(Vec::new()),
                Some(_) => ResponseForm::Events,
                None => ResponseForm::Unknown,
            };
        }
        match &mut self.form {
            ResponseForm::Document(document) => document.extend_from_slice(bytes),
            _ => self
                .events
                .push(bytes, |event| (self.take_event)(event, output)),
        }
    }

    fn finish(&mut self, output: &mut ModelOutput) {
        if let ResponseForm::Document(document) = &self.form {
            return take_document(document, self.take_event, output);
        }
        let was_sound = output.failure.is_none();
        self.events.finish(|event| (self.take_event)(event, output));
        // An event that was cut in the middle is no invalid answer.
        let is_invalid = |failed: &FailedCall| failed.error == CallError::NotAnAnswer;
        if was_sound && output.failure.as_ref().is_some_and(is_invalid) {
            output.failure = None;
            output.is_cut = true;
        }
    }
}

/// Adds a response without events: one document, or one in each line.
fn take_document(document: &[u8], take_event: TakeEvent, output: &mut ModelOutput) {
    let document = document.strip_prefix(BYTE_ORDER_MARK).unwrap_or(document);
    let values = serde_json::Deserializer::from_slice(document).into_iter::<&RawValue>();
    let mut count = 0;
    for value in values {
        match value {
            Ok(value) => take_event(StreamEvent::of_data(value.get().as_bytes()), output),
            Err(error) if error.is_eof() => output.is_cut = true,
            Err(_) => output.fail(CallError::NotAnAnswer, None),
        }
        count += 1;
    }
    if count == 1 && !output.is_cut {
        if output.finish.is_none() && output.has_begun() {
            // A whole document with an answer is a whole answer.
            output.finish = Some(FinishKind::Regular(FinishReason::Stop));
        } else if output.finish.is_none() {
            output.fail(CallError::NotAnAnswer, None);
        }
        output.is_done = true;
    }
}
