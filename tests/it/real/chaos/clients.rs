//! Clients that record what they sent and received.

use std::time::{Duration, Instant};

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::support::{Client, Organization, Reply};

/// Conversations of each organization at the same time.
const CONVERSATIONS: usize = 12;
/// Messages of one session, so that one page of its history has them all.
const MESSAGES_PER_SESSION: usize = 20;
/// Time for which a client retries a message that was not accepted.
const RETRY_TIME: Duration = Duration::from_secs(150);
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Time after which a client gives up a request that hangs, as on a suspended process.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A message with the responses to all of its requests.
pub(super) struct SentMessage {
    pub(super) session: String,
    pub(super) to_team: bool,
    pub(super) question: String,
    /// The requests with this message, in order.
    pub(super) exchanges: Vec<Exchange>,
}

/// A request and its response.
pub(super) struct Exchange {
    pub(super) sent: Instant,
    /// Time of the end of the response, or of the failure.
    pub(super) ended: Instant,
    pub(super) response: ReceivedResponse,
}

/// The response to one request, as the client saw it.
pub(super) enum ReceivedResponse {
    /// The connection failed before the head of a response.
    ConnectionFailed,
    /// An error response with this status.
    Problem(u16),
    /// A reply, complete or cut.
    Reply(Reply),
}

impl SentMessage {
    /// Returns the reply to the last request.
    pub(super) fn reply(&self) -> Option<&Reply> {
        self.exchanges.last()?.reply()
    }

    /// Returns true if every request was refused with 503.
    pub(super) fn is_refused(&self) -> bool {
        let is_refusal =
            |exchange: &Exchange| matches!(exchange.response, ReceivedResponse::Problem(503));
        self.exchanges.iter().all(is_refusal)
    }
}

impl Exchange {
    /// Returns the reply, complete or cut.
    pub(super) const fn reply(&self) -> Option<&Reply> {
        match &self.response {
            ReceivedResponse::Reply(reply) => Some(reply),
            _ => None,
        }
    }

    /// Returns true for an error response.
    pub(super) const fn is_refusal(&self) -> bool {
        matches!(self.response, ReceivedResponse::Problem(_))
    }

    /// Returns true if there was no response.
    pub(super) const fn is_failed_connection(&self) -> bool {
        matches!(self.response, ReceivedResponse::ConnectionFailed)
    }
}

/// Chats until `stop`; then each client ends its last message.
pub(super) async fn chat_until(
    stop: &CancellationToken,
    organization: &Organization,
    urls: &[String],
) -> Vec<SentMessage> {
    let conversations = (0..CONVERSATIONS).map(|number| async move {
        // Half of the clients talk to the team, and neighbors to different ingresses.
        let to_team = number % 2 == 0;
        let clients: Vec<Client> = (0..urls.len())
            .map(|offset| organization.client_at(&urls[(number / 2 + offset) % urls.len()]))
            .collect();
        let mut sent = vec![];
        while !stop.is_cancelled() {
            let session = format!("c{number}-{}", sent.len() / MESSAGES_PER_SESSION);
            let question = format!("question {} of client {number}", sent.len());
            let mut message = SentMessage {
                session,
                to_team,
                question,
                exchanges: vec![],
            };
            send_with_retries(&mut message, organization, &clients).await;
            sent.push(message);
        }
        sent
    });
    join_all(conversations)
        .await
        .into_iter()
        .flatten()
        .collect()
}

/// Sends a message until it is accepted, with one idempotency key, through the ingresses
/// round-robin.
async fn send_with_retries(
    message: &mut SentMessage,
    organization: &Organization,
    clients: &[Client],
) {
    let path = if message.to_team {
        organization.team_path()
    } else {
        organization.path("/chat")
    };
    let body = json!({"message": message.question, "sessionId": message.session});
    let began = Instant::now();
    for client in clients.iter().cycle() {
        let request = client
            .request(Method::POST, &path)
            .header("idempotency-key", &message.question)
            .timeout(REQUEST_TIMEOUT)
            .json(&body);
        let sent = Instant::now();
        let response = match request.send().await {
            Err(_) => ReceivedResponse::ConnectionFailed,
            Ok(response) if response.status() == 200 => {
                ReceivedResponse::Reply(Reply::read(response).await)
            }
            Ok(response) => ReceivedResponse::Problem(response.status().as_u16()),
        };
        let is_accepted = matches!(response, ReceivedResponse::Reply(_));
        message.exchanges.push(Exchange {
            sent,
            ended: Instant::now(),
            response,
        });
        if is_accepted || began.elapsed() > RETRY_TIME {
            return;
        }
        sleep(RETRY_PAUSE).await;
    }
}
