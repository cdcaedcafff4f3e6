//! Leads in request bodies, validated against the form of the agent.

use serde_json::Value;
use switchboard_schemas::{
    lead::{CapturedLead, LEAD_KEY, LeadFieldKind, LeadForm},
    time::Timestamp,
};

use crate::http::{ApiError, ApiResult};

/// A lead, and the visitor data that follow from it.
#[derive(Debug)]
pub(crate) struct AcceptedLead {
    pub(crate) lead: CapturedLead,
    pub(crate) name: Option<String>,
    pub(crate) email: Option<String>,
}

/// Validates the field `lead` of a body against the agent's form. Teams have none.
pub(crate) fn accept_lead(value: &Value, form: Option<&LeadForm>) -> ApiResult<AcceptedLead> {
    let Some(form) = form else {
        return Err(ApiError::field(
            LEAD_KEY,
            "is not accepted: no form asks for it",
        ));
    };
    let Value::Object(submitted) = value else {
        return Err(ApiError::field(LEAD_KEY, "must be an object"));
    };
    let lead = form
        .accept(submitted, Timestamp::now())
        .map_err(|error| ApiError::field(format!("{LEAD_KEY}.{}", error.path), error.reason))?;
    let value_of = |kind| form.value_of(&lead, kind).map(ToOwned::to_owned);
    Ok(AcceptedLead {
        name: value_of(LeadFieldKind::Name),
        email: value_of(LeadFieldKind::Email),
        lead,
    })
}
