//! Leads that visitors submitted, read from the conversations they are stored with.

use std::collections::BTreeSet;

use axum::extract::Query;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use switchboard_backends::{
    catalog::{CatalogEntry, EntryKind},
    store::listing::{ListCursor, ListQuery},
};
use switchboard_schemas::{
    client_text::SessionId,
    conversation::{Conversation, ConversationOwner},
    ids::{AgentId, ConversationId, OrgId, TeamId},
    lead::{CapturedLead, LEAD_KEY},
    time::Timestamp,
};
use utoipa::{IntoParams, ToSchema};

use super::{
    export::send_file,
    filter::{ConversationQuery, ExportFormat, parse_time},
    read_all, read_page,
};
use crate::{
    admin::{
        authorization::Admin,
        csv,
        pages::{CursorPage, CursorQuery},
        permissions::ReadLeads,
        responses::ListOrFile,
    },
    http::{ApiError, ApiResult},
    state::AppState,
};

/// The columns of CSV before those of the values.
const COLUMNS: [&str; 8] = [
    "conversationId",
    "agentId",
    "teamId",
    "sessionId",
    "capturedAt",
    "trigger",
    "formVersion",
    "consent",
];
/// The column of values whose field no form has any more, as JSON.
const OTHER_VALUES: &str = "otherValues";

/// The filters of leads.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct LeadQuery {
    /// The id of an agent; not together with `team`.
    agent: Option<String>,
    /// The id of a team.
    team: Option<String>,
    /// The earliest time of the lead.
    #[param(value_type = Option<Timestamp>)]
    since: Option<String>,
    /// The time before which the lead was submitted.
    #[param(value_type = Option<Timestamp>)]
    until: Option<String>,
    /// A part of any value, regardless of case.
    search: Option<String>,
    /// `jsonl` or `csv` for a file with all leads that match; a page of JSON without it.
    #[param(value_type = Option<ExportFormat>, inline)]
    format: Option<String>,
}

/// A lead and its conversation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct LeadView {
    /// The id of the conversation.
    conversation_id: ConversationId,
    /// The id of the visitor's session.
    session_id: SessionId,
    /// The id of the agent; `null` for a conversation with a team.
    #[schema(required)]
    agent_id: Option<AgentId>,
    /// The id of the team; `null` for a conversation with an agent.
    #[schema(required)]
    team_id: Option<TeamId>,
    /// The lead.
    lead: CapturedLead,
}

/// The conditions that a lead must meet.
#[derive(Clone)]
struct LeadFilter {
    /// A part of a value, in lower case.
    part: String,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

/// Lists a page of the leads, that of the latest conversation first, or exports all of them.
pub(in crate::admin) async fn list(
    admin: Admin<ReadLeads>,
    Query(query): Query<LeadQuery>,
    Query(page): Query<CursorQuery>,
) -> ApiResult<ListOrFile<CursorPage<LeadView>>> {
    let filter = LeadFilter {
        part: query.search.unwrap_or_default().trim().to_lowercase(),
        since: parse_time("since", query.since.as_deref())?,
        until: parse_time("until", query.until.as_deref())?,
    };
    // A lead is never older than its conversation.
    let conversations = ConversationQuery::of_owner(query.agent, query.team, query.until);
    let list_query = conversations.list_query(&page)?;
    if let Some(format) = &query.format {
        let format = ExportFormat::parse(Some(format))?;
        return export(admin, filter, list_query, format).await;
    }
    let show = async |conversation| Ok(filter.find(conversation));
    let list = read_page(&admin.state, admin.org(), &list_query, page.limit(), show);
    Ok(ListOrFile::List(list.await?))
}

/// Returns the texts of the lead in a conversation's metadata.
pub(super) fn values_of(metadata: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let values = metadata.get(LEAD_KEY).and_then(|lead| lead.get("values"));
    let values = values.and_then(Value::as_object).into_iter().flatten();
    values.filter_map(|(_, value)| value.as_str())
}

impl LeadFilter {
    /// Returns the lead of a conversation, if it has one that matches.
    fn find(&self, conversation: Conversation) -> Option<LeadView> {
        let lead = conversation.metadata.get(LEAD_KEY)?;
        let lead = CapturedLead::deserialize(lead).ok()?;
        let has_part = |value: &Value| {
            let text = value.as_str().unwrap_or_default();
            text.to_lowercase().contains(&self.part)
        };
        let (agent_id, team_id) = match conversation.owner {
            ConversationOwner::Agent(id) => (Some(id), None),
            ConversationOwner::Team(id) => (None, Some(id)),
        };
        let is_in_time = self.since.is_none_or(|since| lead.captured_at >= since)
            && self.until.is_none_or(|until| lead.captured_at < until);
        let has_words = self.part.is_empty() || lead.values.values().any(has_part);
        (is_in_time && has_words).then_some(LeadView {
            conversation_id: conversation.id,
            session_id: conversation.session_id,
            agent_id,
            team_id,
            lead,
        })
    }
}

/// Exports all leads that match, one part of the list at a time.
async fn export(
    admin: Admin<ReadLeads>,
    filter: LeadFilter,
    list_query: ListQuery,
    format: ExportFormat,
) -> ApiResult<ListOrFile<CursorPage<LeadView>>> {
    let names = field_names(&admin.state, admin.org()).await?;
    let mut head = String::new();
    if format == ExportFormat::Csv {
        head.push_str(csv::BYTE_ORDER_MARK);
        // A field may have the name of another column.
        let names: Vec<_> = names.iter().map(|name| format!("values.{name}")).collect();
        let names = names.iter().map(String::as_str);
        csv::push_row(
            &mut head,
            COLUMNS.into_iter().chain(names).chain([OTHER_VALUES]),
        );
    }
    let (state, org) = (admin.state.clone(), admin.org().clone());
    let rest = stream::try_unfold(Some(list_query), move |query| {
        let (state, org, names) = (state.clone(), org.clone(), names.clone());
        let filter = filter.clone();
        async move {
            let Some(mut query) = query else {
                return Ok(None);
            };
            let listed = state.backends.store.conversations(&org, &query).await?;
            let is_last = listed.len() < query.limit as usize;
            query.behind = listed.last().map(|last| ListCursor {
                began_at: last.began_at,
                id: Some(last.id.clone()),
            });
            let mut out = String::new();
            let mut found = read_all(&state, &org, listed);
            while let Some((_, conversation)) = found.try_next().await? {
                if let Some(lead) = conversation.and_then(|found| filter.find(found)) {
                    push_lead(&mut out, &lead, format, &names);
                }
            }
            drop(found);
            Ok::<_, ApiError>(Some((Bytes::from(out), (!is_last).then_some(query))))
        }
    });
    let file = stream::once(async { Ok(Bytes::from(head)) }).chain(rest);
    Ok(ListOrFile::File(
        send_file(&admin, "leads", format, file).await,
    ))
}

/// Returns the names of the fields that the forms of an organization have.
async fn field_names(state: &AppState, org: &OrgId) -> ApiResult<BTreeSet<String>> {
    let agents = state
        .apply
        .catalog
        .list(EntryKind::Agent, Some(org))
        .await?;
    let forms = agents.into_iter().filter_map(|entry| match entry {
        CatalogEntry::Agent(agent) => agent.settings.lead_form,
        _ => None,
    });
    Ok(forms
        .flat_map(|form| form.fields)
        .map(|field| field.name)
        .collect())
}

fn push_lead(out: &mut String, view: &LeadView, format: ExportFormat, names: &BTreeSet<String>) {
    if format == ExportFormat::Jsonl {
        out.push_str(&serde_json::to_string(view).unwrap_or_default());
        out.push('\n');
        return;
    }
    let lead = &view.lead;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let id = |id: Option<String>| id.unwrap_or_default();
    let mut cells = vec![
        view.conversation_id.to_string(),
        id(view.agent_id.as_ref().map(ToString::to_string)),
        id(view.team_id.as_ref().map(ToString::to_string)),
        view.session_id.as_str().to_owned(),
        lead.captured_at.to_string(),
        text(serde_json::to_value(lead.trigger).ok().as_ref()),
        lead.form_version.clone(),
        lead.consent.clone(),
    ];
    cells.extend(names.iter().map(|name| text(lead.values.get(name))));
    let mut others = lead.values.clone();
    others.retain(|name, _| !names.contains(name));
    let others = (!others.is_empty()).then(|| Value::Object(others).to_string());
    cells.push(others.unwrap_or_default());
    csv::push_row(out, cells.iter().map(String::as_str));
}
