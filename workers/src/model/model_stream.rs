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
    refusal,
};

/// Bytes after which a read ends, although more may have arrived.
const READ_BYTES_MAX: usize = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Time to wait for the end of a response behind its last event.
const END_WAIT: Duration = Duration::from_millis(100);

/// Data of the event behind the last one.
const DONE: &[u8] = b"[DONE]";

/// Adds the data of an event, or a whole document, to the output as a dialect means it.
pub(super) type TakeData = fn(&[u8], &mut ModelOutput);

/// The response of one call. Dropping it closes the connection.
pub(crate) struct ModelStream {
    response: reqwest::Response,
    events: EventParser,
    take_data: TakeData,
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
    pub(super) fn new(response: reqwest::Response, bytes_max: usize, take_data: TakeData) -> Self {
        Self {
            response,
            events: EventParser::default(),
            take_data,
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
                .push(bytes, |event| take_event(event, self.take_data, output)),
        }
    }

    fn finish(&mut self, output: &mut ModelOutput) {
        if let ResponseForm::Document(document) = &self.form {
            return take_document(document, self.take_data, output);
        }
        let was_sound = output.failure.is_none();
        self.events
            .finish(|event| take_event(event, self.take_data, output));
        // An event that was cut in the middle is no invalid answer.
        let is_invalid = |failed: &FailedCall| failed.error == CallError::NotAnAnswer;
        if was_sound && output.failure.as_ref().is_some_and(is_invalid) {
            output.failure = None;
            output.is_cut = true;
        }
    }
}

/// Adds an event to the output, unless it has ended.
pub(super) fn take_event(event: StreamEvent<'_>, take_data: TakeData, output: &mut ModelOutput) {
    if output.failure.is_some() || output.is_done {
        return;
    }
    let data = event.data.trim_ascii();
    if event.is_error {
        output.fail(refusal::reported_failure(data));
    } else if data.strip_prefix(b"\"").unwrap_or(data).starts_with(DONE) {
        output.is_done = true;
    } else if data.starts_with(b"{") || !event.is_named {
        // A named event that is no JSON, such as `ping`, is none of the protocol.
        take_data(data, output);
    }
}

/// Adds a response without events: one document, or one in each line.
fn take_document(document: &[u8], take_data: TakeData, output: &mut ModelOutput) {
    let document = document.strip_prefix(BYTE_ORDER_MARK).unwrap_or(document);
    let values = serde_json::Deserializer::from_slice(document).into_iter::<&RawValue>();
    let mut count = 0;
    for value in values {
        match value {
            Ok(value) => {
                let event = StreamEvent::of_data(value.get().as_bytes());
                take_event(event, take_data, output);
            }
            Err(error) if error.is_eof() => output.is_cut = true,
            Err(_) => output.fail(CallError::NotAnAnswer),
        }
        count += 1;
    }
    if count == 1 && !output.is_cut {
        if output.finish.is_none() && output.has_begun() {
            // A whole document with an answer is a whole answer.
            output.finish = Some(FinishKind::Regular(FinishReason::Stop));
        } else if output.finish.is_none() {
            output.fail(CallError::NotAnAnswer);
        }
        output.is_done = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{chunk, responses};

    #[test]
    fn error_event_without_a_type_ends_the_answer() {
        let dialects: [(TakeData, &[u8]); 2] = [
            (
                chunk::take_data,
                br#"{"choices":[{"delta":{"content":"Half"}}]}"#,
            ),
            (
                responses::take_data,
                br#"{"type":"response.output_text.delta","delta":"Half"}"#,
            ),
        ];
        for (take_data, text) in dialects {
            let mut output = ModelOutput::new(true, false);
            take_event(StreamEvent::of_data(text), take_data, &mut output);
            let event = StreamEvent {
                is_error: true,
                is_named: true,
                data: br#"{"code":"server_error","message":"gone"}"#,
            };
            take_event(event, take_data, &mut output);
            assert_eq!(output.text, "Half");
            assert!(output.failure.is_some());
        }
    }
}
