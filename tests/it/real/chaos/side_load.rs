//! Requests of other kinds beside the text chats, in an organization of their own: JSON, events,
//! cancellations, changes, deletions and repeats. Each conversation has one message.

use std::time::{Duration, Instant};

use futures::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::checker::{CALLS_MAX, CheckReport, FINAL_WITHIN};
use crate::support::{ADMIN_TOKEN, Answer, Client, Organization, Reply, eventually};

const KINDS: [RequestKind; 6] = [
    RequestKind::Json,
    RequestKind::Events,
    RequestKind::Cancellation,
    RequestKind::Changes,
    RequestKind::Deletion,
    RequestKind::Repeat,
];
const RETRY_TIME: Duration = Duration::from_secs(150);
const RETRY_PAUSE: Duration = Duration::from_millis(500);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Time after which a reply is cancelled, or its conversation deleted.
const REPLY_TIME: Duration = Duration::from_millis(600);
const RATINGS: u64 = 4;
const PAUSE: Duration = Duration::from_millis(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    Json,
    Events,
    Cancellation,
    Changes,
    Deletion,
    Repeat,
}

/// A conversation of one message with the requests of one kind.
pub(super) struct SideConversation {
    kind: RequestKind,
    session: String,
    /// Conversation id, if a reply has begun.
    id: Option<String>,
    /// Ids that the responses gave the reply.
    reply_ids: Vec<String>,
    /// Completely received texts of completed replies.
    texts: Vec<String>,
    /// Ratings that the store may have: the last acknowledged one, and a later one of unknown
    /// outcome.
    ratings: Vec<u64>,
    /// Status that the response to a cancellation had.
    cancel_status: Option<String>,
    is_deleted: bool,
}

/// An organization with the conversations of its clients.
pub(super) struct SideLoad {
    pub(super) organization: Organization,
    conversations: Vec<SideConversation>,
}

impl SideLoad {
    /// Runs a client for each kind until `stop`.
    pub(super) async fn run(
        stop: &CancellationToken,
        organization: Organization,
        urls: &[String],
    ) -> Self {
        let running = KINDS.map(|kind| {
            let organization = &organization;
            async move {
                let mut done = vec![];
                while !stop.is_cancelled() {
                    let session = format!("{kind:?}-{}", done.len());
                    let client = SideClient::new(organization, urls, done.len(), session);
                    done.push(Box::pin(client.converse(kind)).await);
                    sleep(PAUSE).await;
                }
                done
            }
        });
        let conversations = join_all(running).await.into_iter().flatten().collect();
        Self {
            organization,
            conversations,
        }
    }

    /// Checks each conversation once no reply is running. `events` are those of the topic.
    pub(super) async fn check(
        &self,
        checks: &mut CheckReport<'_>,
        admin: &Client,
        events: &[Value],
    ) {
        let stored = eventually("side load is final", FINAL_WITHIN, async || {
            let stored = self.organization.conversations(admin).await?;
            let is_final = |it: &Value| it["activeMessageId"].is_null();
            stored.iter().all(is_final).then_some(stored)
        })
        .await;
        let requests = self.organization.requests();
        for conversation in &self.conversations {
            let session = conversation.session.as_str();
            let found = stored.iter().find(|it| it["sessionId"] == session);
            let own = |it: &&Value| it["conversationId"].as_str() == conversation.id.as_deref();
            let events: Vec<&Value> = events.iter().filter(own).collect();
            let calls = requests.iter().filter(|it| it.question() == session);
            let calls = calls.count();
            checks.check("a side reply has few calls", calls <= CALLS_MAX, || {
                format!("{session}: {calls} calls")
            });
            if conversation.is_deleted {
                conversation.check_deletion(checks, found, &events);
            } else if conversation.id.is_some() {
                conversation.check_reply(checks, found, &events);
            }
        }
    }
}

impl SideConversation {
    fn check_deletion(
        &self,
        checks: &mut CheckReport<'_>,
        stored: Option<&Value>,
        events: &[&Value],
    ) {
        let session = &self.session;
        let is_gone = stored.is_none();
        checks.check("a deleted conversation stays deleted", is_gone, || {
            format!("{session}: {stored:?}")
        });
        let is_announced = events.iter().any(|event| event["deleted"] == true);
        checks.check("a deletion is announced", is_announced, || {
            format!("{session}: {events:?}")
        });
    }

    fn check_reply(&self, checks: &mut CheckReport<'_>, stored: Option<&Value>, events: &[&Value]) {
        let Self { session, kind, .. } = self;
        let items = stored.and_then(|stored| stored["messages"]["items"].as_array());
        let items: Vec<&Value> = items.into_iter().flatten().collect();
        let questions = items.iter().filter(|it| it["role"] == "user").count();
        checks.check("a side message is stored once", questions == 1, || {
            format!("{session}: {items:?}")
        });
        let replies: Vec<&&Value> = items
            .iter()
            .filter(|it| it["role"] == "assistant")
            .collect();
        let is_one = replies.len() <= 1 && self.reply_ids.windows(2).all(|ids| ids[0] == ids[1]);
        checks.check("repeats have one reply", is_one, || {
            format!("{session}: {:?} {replies:?}", self.reply_ids)
        });
        let content = replies.first().map(|reply| &reply["content"]);
        for text in &self.texts {
            let is_same = content.is_some_and(|content| content == text);
            let invariant = match kind {
                RequestKind::Json => "a JSON reply is the stored one",
                RequestKind::Events => "a reply by events is the stored one",
                _ => "a repeated reply is the stored one",
            };
            checks.check(invariant, is_same, || {
                format!("{session}: {text:?}, stored {content:?}")
            });
        }
        if let Some(status) = &self.cancel_status {
            let stored = replies.first().map(|reply| &reply["status"]);
            let announced = events.iter().rfind(|it| it["type"] == "message.assistant");
            let announced = announced.map(|event| &event["status"]);
            let is_final = ["cancelled", "completed", "incomplete", "failed"].contains(&&**status);
            let holds = stored
                .is_none_or(|stored| Some(stored) == announced && (!is_final || stored == status));
            checks.check("a cancelled reply has one status", holds, || {
                format!("{session}: {status}, stored {stored:?}, announced {announced:?}")
            });
        }
        if !self.ratings.is_empty() {
            let rating = stored.and_then(|stored| stored["metadata"]["rating"].as_u64());
            let changes = events
                .iter()
                .filter(|it| it["type"] == "conversation.updated");
            let mut announced = changes.filter_map(|event| event["changes"]["rating"].as_u64());
            let announced = announced.next_back();
            let is_last = rating.is_some_and(|rating| self.ratings.contains(&rating));
            checks.check(
                "the last change is stored and announced",
                is_last && rating == announced,
                || {
                    let expected = &self.ratings;
                    format!("{session}: {expected:?}, stored {rating:?}, announced {announced:?}")
                },
            );
        }
    }
}

/// A client with one conversation.
struct SideClient<'a> {
    organization: &'a Organization,
    /// Clients of the ingresses, the preferred one first.
    clients: Vec<Client>,
    session: String,
}

impl<'a> SideClient<'a> {
    fn new(organization: &'a Organization, urls: &[String], first: usize, session: String) -> Self {
        let url = |offset: usize| &urls[(first + offset) % urls.len()];
        let clients = (0..urls.len()).map(|offset| organization.client_at(url(offset)));
        Self {
            organization,
            clients: clients.collect(),
            session,
        }
    }

    async fn converse(&self, kind: RequestKind) -> SideConversation {
        let mut conversation = SideConversation {
            kind,
            session: self.session.clone(),
            id: None,
            reply_ids: vec![],
            texts: vec![],
            ratings: vec![],
            cancel_status: None,
            is_deleted: false,
        };
        let format = match kind {
            RequestKind::Json => "application/json",
            RequestKind::Events => "text/event-stream",
            _ => "text/plain",
        };
        let Some(response) = self
            .accepted(&self.clients, |client| self.chat(client, format))
            .await
        else {
            return conversation;
        };
        let (reply, mut ended) = (Reply::begin(&response), None);
        conversation.id = reply.header("x-conversation-id").map(Into::into);
        conversation
            .reply_ids
            .extend(reply.header("x-message-id").map(Into::into));
        let reading = reply.continue_reading(response);
        match kind {
            RequestKind::Cancellation => {
                let cancel = self.cancel_later(&conversation.reply_ids);
                (_, conversation.cancel_status) = tokio::join!(reading, cancel);
            }
            RequestKind::Deletion => {
                let delete = self.delete_later(conversation.id.as_deref());
                (_, conversation.is_deleted) = tokio::join!(reading, delete);
                if !conversation.is_deleted {
                    // An earlier request may have deleted it without an acknowledgement.
                    conversation.id = None;
                }
            }
            RequestKind::Repeat => {
                let (first, repeat) = tokio::join!(reading, self.repeat());
                for reply in [Some(first), repeat].into_iter().flatten() {
                    let id = reply.header("x-message-id");
                    conversation.reply_ids.extend(id.map(Into::into));
                    conversation.texts.extend(whole_text(kind, &reply));
                }
            }
            _ => ended = Some(reading.await),
        }
        let texts = ended.and_then(|reply| whole_text(kind, &reply));
        conversation.texts.extend(texts);
        if kind == RequestKind::Changes {
            conversation.ratings = self.rate().await;
        }
        conversation
    }

    fn chat(&self, client: &Client, format: &str) -> RequestBuilder {
        let body = json!({"message": self.session, "sessionId": self.session});
        let request = client.request(Method::POST, &self.organization.path("/chat"));
        let request = request.header("idempotency-key", &self.session);
        request.header("accept", format).json(&body)
    }

    /// Sends a request through the ingresses in turn until it succeeds; 404 is a success too.
    async fn accepted(
        &self,
        clients: &[Client],
        request: impl Fn(&Client) -> RequestBuilder,
    ) -> Option<reqwest::Response> {
        let began = Instant::now();
        for client in clients.iter().cycle() {
            if let Ok(response) = request(client).timeout(REQUEST_TIMEOUT).send().await
                && response.status().as_u16() < 500
            {
                return Some(response);
            }
            if began.elapsed() > RETRY_TIME {
                return None;
            }
            sleep(RETRY_PAUSE).await;
        }
        None
    }

    /// Sends the message again through another ingress.
    async fn repeat(&self) -> Option<Reply> {
        sleep(REPLY_TIME).await;
        let mut others = self.clients.clone();
        others.rotate_left(1);
        let response = self.accepted(&others, |client| self.chat(client, "text/plain"));
        Some(Reply::read(response.await?).await)
    }

    async fn cancel_later(&self, replies: &[String]) -> Option<String> {
        sleep(REPLY_TIME).await;
        let path = format!("/api/public/messages/{}/cancel", replies.first()?);
        let cancel = |client: &Client| client.request(Method::POST, &path).json(&json!({}));
        let response = self.accepted(&self.clients, cancel).await?;
        let answer = Answer::read(response).await?;
        (answer.status == 200).then(|| answer.json()["status"].as_str().unwrap().to_owned())
    }

    async fn delete_later(&self, id: Option<&str>) -> bool {
        sleep(REPLY_TIME).await;
        let path = id.map(|id| format!("/conversations/{id}"));
        let Some(path) = path.map(|path| self.organization.admin_path(&path)) else {
            return false;
        };
        let admins: Vec<Client> = self
            .clients
            .iter()
            .map(|it| it.with_key(ADMIN_TOKEN))
            .collect();
        let delete = |admin: &Client| admin.request(Method::DELETE, &path);
        let response = self.accepted(&admins, delete).await;
        response.is_some_and(|response| response.status().is_success())
    }

    /// Changes the rating until one change has an unknown outcome. Returns the ratings that the
    /// store may have.
    async fn rate(&self) -> Vec<u64> {
        let path = format!("/conversations/{}", self.session);
        let path = self.organization.path(&path);
        let mut possible = vec![];
        for rating in 1..=RATINGS {
            let client = &self.clients[rating as usize % self.clients.len()];
            let request = client.request(Method::PATCH, &path);
            let request = request.json(&json!({"rating": rating}));
            match request.timeout(REQUEST_TIMEOUT).send().await {
                Ok(response) if response.status() == 200 => possible = vec![rating],
                _ => {
                    // Without an acknowledged change there may be none.
                    if !possible.is_empty() {
                        possible.push(rating);
                    }
                    return possible;
                }
            }
        }
        possible
    }
}

/// Returns the text of a reply that was received completely and is completed.
fn whole_text(kind: RequestKind, reply: &Reply) -> Option<String> {
    if reply.status != 200 || !reply.ended_cleanly {
        return None;
    }
    let body = String::from_utf8(reply.bytes()).ok()?;
    match kind {
        RequestKind::Json => {
            let body: Value = serde_json::from_str(&body).ok()?;
            let content = body["content"].as_str()?.to_owned();
            (body["status"] == "completed").then_some(content)
        }
        RequestKind::Events => {
            let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
            let data: Vec<Value> = data
                .filter_map(|it| serde_json::from_str(it).ok())
                .collect();
            let is_completed = data.last()?["status"] == "completed";
            let pieces = data.iter().filter(|it| !it["offset"].is_null());
            let pieces = pieces.filter_map(|it| it["text"].as_str());
            is_completed.then(|| pieces.collect())
        }
        _ => Some(body),
    }
}
