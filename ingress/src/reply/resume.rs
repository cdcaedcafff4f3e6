//! Finds the offset at which a reader continues in a reply. Pure.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::{HeaderMap, request::Parts};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::http::{ApiError, ApiResult, ErrorCode, query::whole_number};

/// Header that browsers send when they reconnect: the id of the last event received.
const LAST_EVENT_ID: &str = "last-event-id";

/// The position from which a client resumes a reply.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResumeQuery {
    /// The number of bytes that the client has.
    #[param(value_type = u64, required = false, minimum = 0, default = 0, example = 0)]
    after: Option<String>,
    /// The generation of those bytes (`X-Reply-Generation`). If the reply was restarted since, the
    /// response is 409.
    #[param(value_type = u64, required = false, minimum = 0)]
    generation: Option<String>,
}

/// The header that browsers send when they reconnect.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct LastEventIdHeader {
    /// The id of the last event that the client has: generation and byte. Takes precedence over the
    /// query.
    #[param(
        rename = "Last-Event-ID",
        value_type = String,
        required = false,
        pattern = r"^[0-9]+\.[0-9]+$",
        example = "1.0"
    )]
    last_event_id: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for LastEventIdHeader {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::from_headers(&parts.headers))
    }
}

impl LastEventIdHeader {
    fn from_headers(headers: &HeaderMap) -> Self {
        let id = headers.get(LAST_EVENT_ID);
        let text = id.map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
        Self {
            last_event_id: text,
        }
    }
}

/// Position of a reader in a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResumePosition {
    /// Number of bytes that the reader has.
    after: u64,
    /// Generation of those bytes.
    generation: Option<u32>,
    /// Set if only whole characters can be sent, as in events.
    whole_characters: bool,
}

/// Available part of a reply.
pub(crate) struct ReplyContent<'a> {
    /// The text so far.
    pub(crate) text: &'a [u8],
    /// The generation, once the reply has started.
    pub(crate) generation: Option<u32>,
}

impl ResumePosition {
    /// Reads `after` and `generation` from the query. `Last-Event-ID` takes precedence, because a
    /// reconnecting browser repeats the query of its first request.
    pub(crate) fn parse(
        query: &ResumeQuery,
        header: &LastEventIdHeader,
        whole_characters: bool,
    ) -> ApiResult<Self> {
        if let Some(id) = &header.last_event_id {
            let numbers = id.split_once('.').and_then(|(generation, after)| {
                Some((whole_number(generation)?, whole_number(after)?))
            });
            let (generation, after) = numbers.ok_or_else(|| {
                ApiError::field("Last-Event-ID", "must be the id of an event of this reply")
            })?;
            let generation = saturate_generation(generation);
            return Ok(Self {
                after,
                generation: Some(generation),
                whole_characters,
            });
        }
        Ok(Self {
            after: parse_number("after", query.after.as_deref())?.unwrap_or_default(),
            generation: parse_number("generation", query.generation.as_deref())?
                .map(saturate_generation),
            whole_characters,
        })
    }

    /// Returns the byte offset at which to start. Fails if the generation differs or the offset is
    /// beyond the text.
    pub(crate) fn start_in(&self, known: &ReplyContent<'_>) -> ApiResult<usize> {
        let other = match (self.generation, known.generation) {
            (Some(asked), Some(generation)) => asked != generation,
            // The reader's text was lost, and no new generation has started.
            (Some(_), None) => self.after > 0,
            (None, _) => false,
        };
        if other {
            return Err(ApiError::new(
                ErrorCode::ReplyRestarted,
                "the reply was restarted; read it from byte 0",
            ));
        }
        let length = known.text.len();
        let start = usize::try_from(self.after)
            .ok()
            .filter(|start| *start <= length);
        let start = start.ok_or_else(|| {
            let error = ApiError::new(
                ErrorCode::RangeNotSatisfiable,
                "the offset is beyond the text of the reply",
            );
            error.details(json!({ "length": length }))
        })?;
        Ok(if self.whole_characters {
            boundary_before(known.text, start)
        } else {
            start
        })
    }
}

/// Returns the start of the character at or before `at`.
fn boundary_before(text: &[u8], at: usize) -> usize {
    let is_inside = |at: usize| text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    (0..=at)
        .rev()
        .find(|at| !is_inside(*at))
        .unwrap_or_default()
}

fn parse_number(name: &'static str, text: Option<&str>) -> ApiResult<Option<u64>> {
    let parse =
        |text| whole_number(text).ok_or_else(|| ApiError::field(name, "must be a whole number"));
    text.map(parse).transpose()
}

/// Saturates, because a number that is too large matches no generation.
fn saturate_generation(generation: u64) -> u32 {
    u32::try_from(generation).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::http::query::parse_query;

    const TEXT: &str = "Grüße";

    fn parse_position(
        query: &str,
        headers: &HeaderMap,
        whole_characters: bool,
    ) -> ApiResult<ResumePosition> {
        let header = LastEventIdHeader::from_headers(headers);
        ResumePosition::parse(&parse_query(query)?, &header, whole_characters)
    }

    fn at(
        after: u64,
        generation: Option<u32>,
        whole_characters: bool,
    ) -> Result<usize, Option<ErrorCode>> {
        let known = ReplyContent {
            text: TEXT.as_bytes(),
            generation: Some(7),
        };
        let position = ResumePosition {
            after,
            generation,
            whole_characters,
        };
        position
            .start_in(&known)
            .map_err(|error| error.into_parts().code)
    }

    #[test]
    fn text_resumes_at_the_byte_and_events_at_the_character() {
        assert_eq!((at(3, None, false), at(3, None, true)), (Ok(3), Ok(2)));
        assert_eq!((at(7, None, false), at(7, None, true)), (Ok(7), Ok(7)));
    }

    #[test]
    fn offset_beyond_the_end_is_rejected() {
        for after in [8, u64::MAX] {
            assert_eq!(
                at(after, Some(7), false),
                Err(Some(ErrorCode::RangeNotSatisfiable))
            );
        }
    }

    #[test]
    fn other_generation_is_never_continued() {
        assert_eq!(at(2, Some(8), false), Err(Some(ErrorCode::ReplyRestarted)));
        assert_eq!(at(99, Some(8), false), Err(Some(ErrorCode::ReplyRestarted)));
        let nothing = ReplyContent {
            text: b"",
            generation: None,
        };
        let lost = ResumePosition {
            after: 2,
            generation: Some(7),
            whole_characters: false,
        };
        assert_eq!(
            lost.start_in(&nothing).unwrap_err().into_parts().code,
            Some(ErrorCode::ReplyRestarted)
        );
        assert_eq!(
            ResumePosition { after: 0, ..lost }
                .start_in(&nothing)
                .unwrap(),
            0
        );
    }

    #[test]
    fn number_of_any_length_is_accepted() {
        let parse = |query: &str| parse_position(query, &HeaderMap::new(), false).unwrap();
        let position = parse("after=18446744073709551616&generation=99999999999");
        assert_eq!(
            (position.after, position.generation),
            (u64::MAX, Some(u32::MAX))
        );
    }

    #[test]
    fn last_event_id_overrides_the_query() {
        let mut headers = HeaderMap::new();
        let parse = |query: &str, headers: &HeaderMap| {
            parse_position(query, headers, true).map_err(|error| error.into_parts().param)
        };
        let position = |after, generation| {
            Ok(ResumePosition {
                after,
                generation,
                whole_characters: true,
            })
        };
        assert_eq!(parse("", &headers), position(0, None));
        assert_eq!(
            parse("generation=7&after=3", &headers),
            position(3, Some(7))
        );
        for (query, param) in [
            ("after=x", "after"),
            ("after=-1", "after"),
            ("after=", "after"),
            ("generation=1.5", "generation"),
        ] {
            assert_eq!(
                parse(query, &headers),
                Err(Some(param.to_owned())),
                "{query}"
            );
        }
        headers.insert(LAST_EVENT_ID, "9.12".parse().unwrap());
        assert_eq!(parse("after=3", &headers), position(12, Some(9)));
        for id in ["12", "+9.12", "9.", "9.1.2", ""] {
            headers.insert(LAST_EVENT_ID, id.parse().unwrap());
            assert_eq!(
                parse("", &headers),
                Err(Some("Last-Event-ID".to_owned())),
                "{id}"
            );
        }
    }

    proptest! {
        #[test]
        fn events_start_at_a_character_at_or_before_the_offset(text in "\\PC{0,20}", at in 0usize..90) {
            let start = boundary_before(text.as_bytes(), at.min(text.len()));
            prop_assert!(start <= at && text.is_char_boundary(start));
            prop_assert_eq!(start, text.floor_char_boundary(at.min(text.len())));
        }
    }
}
