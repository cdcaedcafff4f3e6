//! A streamed reply as seen by a client: bytes, arrival times, and whether the transfer ended
//! cleanly.

use std::time::Instant;

use reqwest::{Response, header::HeaderMap};
use serde_json::Value;

use super::Answer;

/// A reply in text.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// Each chunk with its arrival time.
    pub(crate) chunks: Vec<(Instant, Vec<u8>)>,
    /// True if the transfer ended with its HTTP terminator and was not cut.
    pub(crate) ended_cleanly: bool,
}

impl Reply {
    /// Reads a response to its end or to a cut.
    pub(crate) async fn read(response: Response) -> Self {
        Self::continue_reading(Self::begin(&response), response).await
    }

    /// Creates a reply from the response head, before any byte of the body.
    pub(crate) fn begin(response: &Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self {
            status,
            headers,
            chunks: Vec::new(),
            ended_cleanly: false,
        }
    }

    /// Reads until at least `bytes` bytes have arrived; the transfer stays open.
    pub(crate) async fn read_at_least(&mut self, response: &mut Response, bytes: usize) {
        while self.bytes().len() < bytes {
            match response.chunk().await {
                Ok(Some(chunk)) => self.chunks.push((Instant::now(), chunk.to_vec())),
                ended => panic!("only {} bytes came: {ended:?}", self.bytes().len()),
            }
        }
    }

    /// Reads what is left.
    pub(crate) async fn continue_reading(mut self, mut response: Response) -> Self {
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => self.chunks.push((Instant::now(), chunk.to_vec())),
                Ok(None) => {
                    self.ended_cleanly = true;
                    return self;
                }
                Err(_) => return self,
            }
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.chunks
            .iter()
            .flat_map(|(_, chunk)| chunk)
            .copied()
            .collect()
    }

    /// Returns the text; panics if a chunk splits a character.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        self.chunks
            .iter()
            .map(|(_, chunk)| std::str::from_utf8(chunk).expect("whole characters"))
            .collect()
    }

    /// Returns a header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns a header; panics if it is missing.
    #[track_caller]
    pub(crate) fn required_header(&self, name: &str) -> String {
        self.header(name)
            .unwrap_or_else(|| panic!("no {name} in {:?}", self.headers))
            .to_owned()
    }

    /// Asserts a complete successful reply and returns its text.
    #[track_caller]
    pub(crate) fn complete(&self) -> String {
        assert_eq!(
            self.status,
            200,
            "{}",
            String::from_utf8_lossy(&self.bytes())
        );
        assert!(self.ended_cleanly, "broken off after: {}", self.text());
        self.text()
    }

    /// Converts the reply to an [`Answer`], for errors.
    pub(crate) fn into_answer(self) -> Answer {
        Answer {
            status: self.status,
            text: self.text(),
            headers: self.headers,
        }
    }
}

/// A reply as server-sent events.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// Name, id and data of each event.
    pub(crate) events: Vec<(String, String, Value)>,
    /// True if the transfer ended cleanly.
    pub(crate) ended_cleanly: bool,
}

impl Events {
    /// Reads to the end.
    pub(crate) async fn read(response: Response) -> Self {
        let reply = Reply::read(response).await;
        let text = String::from_utf8(reply.bytes()).unwrap();
        let events = text.split("\n\n").filter_map(parse_event).collect();
        Self {
            status: reply.status,
            headers: reply.headers,
            events,
            ended_cleanly: reply.ended_cleanly,
        }
    }

    /// Returns the names of the events in order, with runs of `delta` merged.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.events.iter().map(|(name, ..)| name.as_str()).collect();
        names.dedup();
        names
    }

    /// Returns the data of the only event of this name.
    #[track_caller]
    pub(crate) fn only(&self, name: &str) -> &Value {
        let found: Vec<_> = self
            .events
            .iter()
            .filter(|(event, ..)| event == name)
            .collect();
        assert_eq!(found.len(), 1, "{name} in {:?}", self.events);
        &found[0].2
    }

    /// Returns the text of all deltas and asserts that their offsets are contiguous.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (_, _, data) in self.events.iter().filter(|(name, ..)| name == "delta") {
            assert_eq!(data["offset"], text.len(), "{data}");
            text.push_str(data["text"].as_str().unwrap());
        }
        text
    }
}

/// Parses one event; `None` for comments and the empty end.
fn parse_event(block: &str) -> Option<(String, String, Value)> {
    let field = |name: &str| -> Option<String> {
        let lines: Vec<_> = block
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(|value| value.strip_prefix(' ').unwrap_or(value))
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    };
    let data = field("data")?;
    let value = serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error}: {data}"));
    Some((
        field("event").unwrap_or_default(),
        field("id").unwrap_or_default(),
        value,
    ))
}
