//! A response while it arrives: bytes of the connection become output in the task that reads them.

use std::time::Duration;

use futures::FutureExt;
use switchboard_schemas::conversation::FinishReason;
use tokio::time::timeout;

use super::{
    CallError, FailedCall,
    event_stream::{EventParser, StreamEvent},
    finish_reason::FinishKind,
    output::ModelOutput,
};

/// Text after which a read ends, although more may have arrived.
const TEXT_BYTES_MAX: usize = 64 << 10;

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
    /// Bytes of a response that is one document instead of a stream.
    document: Option<Vec<u8>>,
}

impl ModelStream {
    /// Creates the reader of a response, of which at most `bytes_max` bytes are read.
    pub(super) fn new(
        response: reqwest::Response,
        bytes_max: usize,
        is_document: bool,
        take_event: TakeEvent,
    ) -> Self {
        Self {
            response,
            events: EventParser::default(),
            take_event,
            bytes_left: bytes_max,
            document: is_document.then(Vec::new),
        }
    }

    /// Waits for bytes and adds all that have arrived to the output. Returns false at the end of
    /// the response. A dropped future loses nothing.
    ///
    /// Fails with [`CallError::BrokenOff`] if the connection broke or the response is too long. The
    /// output has what arrived before.
    pub(super) async fn read(&mut self, output: &mut ModelOutput) -> Result<bool, CallError> {
        let mut piece = self.response.chunk().await;
        loop {
            match piece {
                Ok(Some(bytes)) if bytes.len() <= self.bytes_left => {
                    self.bytes_left -= bytes.len();
                    self.take_bytes(&bytes, output);
                }
                Ok(None) => {
                    self.finish(output);
                    return Ok(false);
                }
                Ok(Some(_)) | Err(_) => return Err(CallError::BrokenOff),
            }
            if output.text.len() >= TEXT_BYTES_MAX {
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
        match &mut self.document {
            Some(document) => document.extend_from_slice(bytes),
            None => self
                .events
                .push(bytes, |event| (self.take_event)(event, output)),
        }
    }

    fn finish(&mut self, output: &mut ModelOutput) {
        if let Some(document) = self.document.take() {
            let event = StreamEvent {
                is_error: false,
                data: &document,
            };
            (self.take_event)(event, output);
            if output.finish.is_none() {
                // A whole document with an answer is a whole answer.
                if output.text.is_empty() && output.fragments.is_empty() {
                    output.fail(CallError::NotAnAnswer, None);
                } else {
                    output.finish = Some(FinishKind::Regular(FinishReason::Stop));
                }
            }
            output.is_done = true;
            return;
        }
        let was_sound = output.failure.is_none();
        self.events.finish(|event| (self.take_event)(event, output));
        // An event that was cut in the middle is no invalid answer.
        let is_cut = |failed: &FailedCall| failed.error == CallError::NotAnAnswer;
        if was_sound && output.failure.as_ref().is_some_and(is_cut) {
            output.failure = None;
        }
    }
}
