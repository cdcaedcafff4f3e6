//! Changes to a conversation's metadata. The worker that owns the conversation applies them, so
//! that store and topics stay consistent.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json, value::RawValue};
use switchboard_backends::store::ConversationReader;
use switchboard_schemas::{
    conversation_job::{ConversationJob, PatchJob},
    lead::{LEAD_KEY, LeadForm},
    reply_event::PatchOutcome,
};
use utoipa::ToSchema;

use crate::{
    auth::authorized_agent::conversation_not_found,
    chat::{
        lead::{AcceptedLead, accept_lead},
        request::VISITOR_NAME_BYTES_MAX,
    },
    http::{ApiError, ApiResult, ErrorCode, body, fields},
    jobs::conversation_job::PublishedJob,
    openapi::metadata_schema::metadata_schema,
    state::AppState,
};

const RATING_MIN: f64 = 1.0;
const RATING_MAX: f64 = 5.0;
/// Maximum size of the feedback text, in bytes.
const FEEDBACK_BYTES_MAX: usize = 16 << 10;
const METADATA: &str = "metadata";

/// Changes of a conversation, all or nothing; a field that is left out stays, and `null` clears a
/// text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConversationChanges {
    /// E-mail address of the visitor.
    #[serde(default, deserialize_with = "supplied_value")]
    #[schema(value_type = Option<String>, format = Email, max_length = 254)]
    visitor_email: Option<Value>,
    /// Name of the visitor, at most 1024 bytes.
    #[serde(default, deserialize_with = "supplied_value")]
    #[schema(value_type = Option<String>, max_length = 1024)]
    visitor_name: Option<Value>,
    /// Rating from 1 to 5.
    #[serde(default, deserialize_with = "supplied_value")]
    #[schema(value_type = Option<f64>, minimum = 1, maximum = 5, nullable = false)]
    rating: Option<Value>,
    /// The visitor's opinion of the conversation, at most 16 KiB.
    #[serde(default, deserialize_with = "supplied_value")]
    #[schema(value_type = Option<String>, max_length = 16384)]
    feedback: Option<Value>,
    /// Contact data: a value for each field of the agent's `leadForm`, and `consent: true`. It
    /// replaces an earlier lead, and sets `visitorName` and `visitorEmail` unless they are
    /// supplied. `null` withdraws a lead.
    #[serde(default, deserialize_with = "supplied_value")]
    #[schema(value_type = Option<Object>)]
    lead: Option<Value>,
    #[serde(default)]
    #[schema(schema_with = metadata_schema, required = false)]
    metadata: Value,
}

/// Response to a change.
#[derive(Serialize, ToSchema)]
#[schema(as = Changed)]
pub(crate) struct ConversationUpdate<'a> {
    /// Always true: a change that was not made is an error.
    pub(super) success: bool,
    /// The fields that were supplied, with their values.
    #[schema(value_type = ConversationChanges)]
    pub(super) updated: &'a Map<String, Value>,
}

/// The validated fields of a PATCH body.
#[derive(Debug)]
pub(super) struct ConversationPatch {
    supplied: Map<String, Value>,
    /// Lead to store; `Some(None)` withdraws the stored one.
    lead: Option<Option<AcceptedLead>>,
}

impl ConversationPatch {
    /// Parses a body and validates all of its fields, a lead against the agent's form.
    pub(super) fn parse(bytes: &[u8], form: Option<&LeadForm>) -> ApiResult<Self> {
        let body: ConversationChanges = body::parse_body(bytes)?;
        let mut supplied = Map::new();
        let texts = [
            ("visitorEmail", body.visitor_email),
            ("visitorName", body.visitor_name),
            ("feedback", body.feedback),
        ];
        for (name, value) in texts {
            let Some(value) = value else { continue };
            if let Some(text) = fields::text_value(name, &value)? {
                match name {
                    "visitorEmail" => drop(fields::parse_email(name, text)?),
                    "visitorName" => fields::check_bytes(name, text, VISITOR_NAME_BYTES_MAX)?,
                    _ => fields::check_bytes(name, text, FEEDBACK_BYTES_MAX)?,
                }
            }
            // `null` is kept because it clears the field.
            supplied.insert(name.to_owned(), value);
        }
        if let Some(rating) = body.rating {
            check_rating(&rating, bytes)?;
            supplied.insert("rating".to_owned(), rating);
        }
        let lead = match body.lead {
            Some(submitted) => {
                let accepted = match &submitted {
                    Value::Null => None,
                    submitted => Some(accept_lead(submitted, form)?),
                };
                supplied.insert(LEAD_KEY.to_owned(), submitted);
                Some(accepted)
            }
            None => None,
        };
        if let Some(metadata) = fields::parse_metadata(&body.metadata)? {
            supplied.insert(METADATA.to_owned(), Value::Object(metadata));
        }
        Ok(Self { supplied, lead })
    }

    /// Returns the fields as the client sent them, for the response.
    pub(super) const fn supplied(&self) -> &Map<String, Value> {
        &self.supplied
    }

    /// Rejects changes that would make the merged metadata too large.
    pub(super) fn check_together(&self, kept: &Map<String, Value>) -> ApiResult<()> {
        match self.supplied.get(METADATA) {
            Some(Value::Object(metadata)) => fields::check_merged(kept, metadata),
            _ => Ok(()),
        }
    }

    /// Returns true if nothing would be stored.
    pub(super) fn is_empty(&self) -> bool {
        self.supplied
            .iter()
            .all(|(name, value)| name == METADATA && value == &json!({}))
    }

    /// Returns the metadata keys to store, with free-form metadata merged in. Visitor data that
    /// came from the lead in `kept` go with it.
    pub(super) fn to_stored(&self, kept: &Map<String, Value>) -> Map<String, Value> {
        let mut stored = self.supplied.clone();
        if let Some(Value::Object(metadata)) = stored.remove(METADATA) {
            stored.extend(metadata);
        }
        if let Some(accepted) = &self.lead {
            let accepted = accepted.as_ref();
            stored.insert(LEAD_KEY.to_owned(), json!(accepted.map(|it| &it.lead)));
            let name = accepted.and_then(|it| it.name.as_ref());
            let email = accepted.and_then(|it| it.email.as_ref());
            let replaced = kept
                .get(LEAD_KEY)
                .and_then(|lead| lead["values"].as_object());
            for (key, value) in [("visitorName", name), ("visitorEmail", email)] {
                let is_of_replaced = |known: &Value| {
                    replaced.is_some_and(|values| values.values().any(|value| value == known))
                };
                if value.is_some() || kept.get(key).is_some_and(is_of_replaced) {
                    stored.entry(key).or_insert_with(|| json!(value));
                }
            }
        }
        stored
    }
}

/// Distinguishes a field with the value `null` from a missing one.
fn supplied_value<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

fn check_rating(rating: &Value, body: &[u8]) -> ApiResult<()> {
    let in_range = rating
        .as_f64()
        .is_some_and(|rating| (RATING_MIN..=RATING_MAX).contains(&rating));
    // A limit may be the nearest `f64` of a number beyond it.
    let fields: HashMap<String, &RawValue> = serde_json::from_slice(body).unwrap_or_default();
    let in_range = in_range
        && fields
            .get("rating")
            .is_some_and(|written| is_in_range(written.get()));
    let error = || {
        ApiError::new(
            ErrorCode::InvalidRating,
            "rating must be a number from 1 to 5",
        )
        .param("rating")
    };
    if in_range { Ok(()) } else { Err(error()) }
}

/// Returns true if a number is from 1 to 5 in all of its digits, given that its nearest `f64` is.
fn is_in_range(number: &str) -> bool {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let leading_zeros = digits.len() - significant.len();
    // The number is 0.SIGNIFICANT times ten to this power.
    let power = exponent.parse::<i64>().map(|exponent| {
        exponent
            .saturating_add(whole.len() as i64)
            .saturating_sub(leading_zeros as i64)
    });
    let is_above_five = significant
        .strip_prefix('5')
        .is_some_and(|rest| rest.contains(|digit| digit != '0'));
    power == Ok(1) && !is_above_five
}

/// Publishes a change and waits until it is applied.
pub(super) async fn apply_patch(state: &AppState, job: PatchJob) -> ApiResult<()> {
    let (event, request) = (job.event_id.clone(), job.request_id.clone());
    let job = Box::new(job);
    let published =
        PublishedJob::publish(state, &ConversationJob::Patch(job.clone()), event, &request).await?;
    match published
        .wait_for_outcome(|| is_applied(&*state.backends.store, &job))
        .await
    {
        Some(PatchOutcome::Applied) => Ok(()),
        Some(PatchOutcome::NotFound) => Err(conversation_not_found()),
        None => Err(ApiError::unavailable(
            "the change was accepted and has not been applied yet",
        )),
    }
}

async fn is_applied(store: &dyn ConversationReader, job: &PatchJob) -> bool {
    let Ok(Some(conversation)) = store.conversation(&job.org_id, &job.conversation_id).await else {
        return false;
    };
    let current = |key: &String| conversation.metadata.get(key).unwrap_or(&Value::Null);
    job.changes.iter().all(|(key, value)| current(key) == value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(body: &Value) -> Result<ConversationPatch, (Option<ErrorCode>, Option<String>)> {
        parse_text(&body.to_string())
    }

    fn parse_text(body: &str) -> Result<ConversationPatch, (Option<ErrorCode>, Option<String>)> {
        ConversationPatch::parse(body.as_bytes(), None).map_err(|error| {
            let facts = error.into_parts();
            (facts.code, facts.param)
        })
    }

    #[test]
    fn rating_is_a_number_from_1_to_5() {
        for rating in [json!(1), json!(5), json!(3.5), json!(1e0)] {
            assert!(parse(&json!({ "rating": rating })).is_ok(), "{rating}");
        }
        for rating in [
            json!(0),
            json!(6),
            json!(5.01),
            json!(-1),
            json!("5"),
            json!(true),
            json!(null),
            json!([3]),
        ] {
            let (code, _) = parse(&json!({ "rating": rating })).unwrap_err();
            assert_eq!(code, Some(ErrorCode::InvalidRating), "{rating}");
        }
    }

    #[test]
    fn rating_is_compared_in_all_of_its_digits() {
        for (rating, is_valid) in [
            ("0.99999999999999999999", false),
            ("5.00000000000000000001", false),
            ("99999999999999999999e-20", false),
            ("1.00000000000000000001", true),
            ("4.99999999999999999999", true),
            ("0.5e1", true),
            ("500.00e-2", true),
            ("0.01e+2", true),
        ] {
            let parsed = parse_text(&format!("{{\"rating\": {rating}}}"));
            assert_eq!(parsed.is_ok(), is_valid, "{rating}");
        }
        let repeated = parse_text(r#"{"rating": 3, "r\u0061ting": 5.00000000000000000001}"#);
        assert!(repeated.is_err(), "the last one counts");
    }

    #[test]
    fn invalid_field_rejects_the_whole_change_and_is_named() {
        for (field, bad) in [
            ("visitorEmail", json!("a@b")),
            ("visitorEmail", json!(1)),
            ("visitorName", json!([])),
            ("feedback", json!(false)),
            ("metadata", json!("x")),
            ("lead", json!({ "consent": true })),
        ] {
            let (code, param) = parse(&json!({ "rating": 5, field: bad })).unwrap_err();
            assert_eq!(
                (code, param.as_deref()),
                (Some(ErrorCode::InvalidRequestData), Some(field))
            );
        }
    }

    #[test]
    fn null_clears_a_field_and_unknown_fields_are_ignored() {
        let changes =
            parse(&json!({ "visitorEmail": null, "feedback": "good", "status": "x" })).unwrap();
        let expected = json!({ "visitorEmail": null, "feedback": "good" });
        assert_eq!(json!(changes.supplied()), expected);
        assert_eq!(json!(changes.to_stored(&Map::new())), expected);
        assert!(parse(&json!({ "status": "x" })).unwrap().is_empty());
    }

    #[test]
    fn metadata_is_stored_key_by_key_and_returned_as_an_object() {
        let changes = parse(&json!({ "metadata": { "plan": "pro", "source": "forged" } })).unwrap();
        assert_eq!(
            json!(changes.supplied()),
            json!({ "metadata": { "plan": "pro" } })
        );
        assert_eq!(
            json!(changes.to_stored(&Map::new())),
            json!({ "plan": "pro" })
        );
    }
}
