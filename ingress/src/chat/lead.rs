//! Leads in request bodies, validated against the form of the agent.

use serde_json::Value;
use switchboard_schemas::{
    agent::Agent,
    lead::{CapturedLead, LeadFieldKind, LeadForm},
    time::Timestamp,
};

use crate::http::{ApiError, ApiResult};

const LEAD: &str = "lead";

/// A lead, and the visitor data that follow from it.
#[derive(Debug)]
pub(crate) struct AcceptedLead {
    pub(crate) lead: CapturedLead,
    pub(crate) name: Option<String>,
    pub(crate) email: Option<String>,
}

/// Returns the form with which an agent asks for leads; `None` if it does not.
pub(crate) fn lead_form(agent: &Agent) -> Option<&LeadForm> {
    let settings = &agent.settings;
    settings
        .lead_form
        .as_ref()
        .filter(|_| settings.features.enable_lead_capture)
}

/// Validates the field `lead` of a body against the agent's form. Teams have none.
pub(crate) fn accept_lead(value: &Value, form: Option<&LeadForm>) -> ApiResult<AcceptedLead> {
    let Some(form) = form else {
        return Err(ApiError::field(
            LEAD,
            "is not accepted: no form asks for it",
        ));
    };
    let Value::Object(submitted) = value else {
        return Err(ApiError::field(LEAD, "must be an object"));
    };
    let lead = form
        .accept(submitted, Timestamp::now())
        .map_err(|error| ApiError::field(format!("{LEAD}.{}", error.path), error.reason))?;
    let value_of = |kind| form.value_of(&lead, kind).map(ToOwned::to_owned);
    Ok(AcceptedLead {
        name: value_of(LeadFieldKind::Name),
        email: value_of(LeadFieldKind::Email),
        lead,
    })
}
