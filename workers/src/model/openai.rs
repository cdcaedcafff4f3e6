//! Calls of an OpenAI-compatible endpoint, streamed or as one document, through async-openai with
//! our own request and chunk types.
//!
//! Its executor is replaced, because it retries (attempts would multiply), drops `Retry-After` and
//! reads error bodies without a bound. Ours maps the status, and reads at most the bounded
//! beginning of a refusal to detect a prompt that is too long.

use std::{pin::Pin, sync::Arc, time::Duration};

use async_openai::{Client, config::Config, error::OpenAIError, middleware::HttpRequestFactory};
use futures::{Stream, StreamExt};
use http::{HeaderMap, HeaderValue, header};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use switchboard_schemas::network::IpNetwork;

use super::{
    CallError, ModelEndpoint, ModelPrompt, PromptMessage, PromptRole,
    chunk::CompletionChunk,
    prompt::{ToolDeclaration, ToolOffer},
    refusal,
};
use crate::{
    config::WorkersConfig,
    outgoing::{AddressReach, CheckedResolver, SystemLookup, UrlRefusal, check_host},
};

/// Idle connections kept for each provider.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// Time for which an idle connection is kept.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) type ChunkStream =
    Pin<Box<dyn Stream<Item = Result<CompletionChunk, CallError>> + Send>>;

/// Calls providers, with a connection pool for those of the operator and one for all others.
#[derive(Clone)]
pub(crate) struct ModelClient {
    unconfined: reqwest::Client,
    confined: reqwest::Client,
    allowed: Arc<[IpNetwork]>,
    body_bytes_max: usize,
}

impl ModelClient {
    /// Creates a client with the bounds of the configuration. Fails if no TLS provider is
    /// installed.
    pub(crate) fn new(config: &WorkersConfig) -> Result<Self, reqwest::Error> {
        let client = || {
            reqwest::Client::builder()
                .connect_timeout(Duration::from_millis(config.connect_timeout_ms))
                .tcp_nodelay(true)
                // A redirect would carry the prompt to a host that nobody configured.
                .redirect(reqwest::redirect::Policy::none())
                .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
                .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
        };
        let allowed: Arc<[IpNetwork]> = config.provider_private_networks.clone().into();
        let resolver = CheckedResolver {
            lookup: Arc::new(SystemLookup),
            reach: AddressReach::Public,
            allowed: Arc::clone(&allowed),
        };
        Ok(Self {
            unconfined: client().build()?,
            // A proxy would resolve names itself.
            confined: client()
                .no_proxy()
                .dns_resolver(Arc::new(resolver))
                .build()?,
            allowed,
            body_bytes_max: config.provider_body_bytes_max,
        })
    }

    /// Returns a client for calls that are answered with one JSON document.
    pub(crate) fn document_client(
        &self,
        endpoint: &ModelEndpoint,
    ) -> Result<Client<impl Config>, CallError> {
        self.client_for(endpoint, "application/json", is_document)
    }

    /// Starts a streamed call. With a `prefix`, the endpoint is asked to continue that text.
    /// Dropping the stream ends the call.
    pub(crate) async fn start_stream(
        &self,
        endpoint: &ModelEndpoint,
        prompt: &ModelPrompt,
        prefix: &str,
        offer: ToolOffer,
    ) -> Result<ChunkStream, CallError> {
        let client = self.client_for(endpoint, "text/event-stream", is_stream)?;
        let request = ChatCompletionRequest::new(endpoint, prompt, prefix, offer);
        let chunks = client
            .chat()
            .create_stream_byot::<_, CompletionChunk>(&request)
            .await
            .map_err(|error| CallError::from_library(&error))?;
        Ok(chunks
            .map(|chunk| chunk.map_err(|error| CallError::from_library(&error)))
            .boxed())
    }

    /// Returns the HTTP client that may connect to the endpoint.
    fn http_client(&self, endpoint: &ModelEndpoint) -> Result<reqwest::Client, CallError> {
        if endpoint.reach == AddressReach::Any {
            return Ok(self.unconfined.clone());
        }
        check_host(&endpoint.base_url, endpoint.reach, &self.allowed)
            .map_err(|_| CallError::AddressRefused)?;
        Ok(self.confined.clone())
    }

    fn client_for(
        &self,
        endpoint: &ModelEndpoint,
        accept: &'static str,
        is_answer: fn(&HeaderMap) -> bool,
    ) -> Result<Client<EndpointConfig>, CallError> {
        let http = self.http_client(endpoint)?;
        let (client, body_bytes_max) = (http.clone(), self.body_bytes_max);
        let service = tower::service_fn(move |factory: HttpRequestFactory| {
            let http = http.clone();
            async move {
                let request = factory.build().await?;
                let response = http.execute(request).await.map_err(OpenAIError::Reqwest)?;
                if let Err(error) = check_response(&response, is_answer) {
                    return Err(OpenAIError::Boxed(Box::new(
                        refusal::explain_refusal(error, response).await,
                    )));
                }
                Ok::<_, OpenAIError>(bounded_response(response, body_bytes_max))
            }
        });
        Ok(
            Client::build(client, EndpointConfig::new(endpoint, accept)?)
                .with_http_service(service),
        )
    }
}

#[derive(Serialize)]
struct ChatCompletionRequest<'a> {
    model: &'a str,
    messages: Vec<PromptMessage>,
    stream: bool,
    stream_options: StreamOptions,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [ToolDeclaration],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    // vLLM needs both of these to continue the last message; llama.cpp does so by itself and
    // accepts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    continue_final_message: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    add_generation_prompt: Option<bool>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl<'a> ChatCompletionRequest<'a> {
    fn new(
        endpoint: &'a ModelEndpoint,
        prompt: &'a ModelPrompt,
        prefix: &str,
        offer: ToolOffer,
    ) -> Self {
        let mut messages = prompt.messages.clone();
        let continues = !prefix.is_empty();
        if continues {
            messages.push(PromptMessage::text(PromptRole::Assistant, prefix));
        }
        let tools = if offer == ToolOffer::None {
            &[]
        } else {
            prompt.tools.as_slice()
        };
        Self {
            model: &endpoint.model,
            messages,
            stream: true,
            stream_options: StreamOptions {
                include_usage: true,
            },
            max_tokens: prompt.max_tokens,
            temperature: prompt.temperature,
            tools,
            tool_choice: (offer == ToolOffer::Declared).then_some("none"),
            continue_final_message: continues.then_some(true),
            add_generation_prompt: continues.then_some(false),
        }
    }
}

/// Address and credentials of one endpoint; async-openai's own configuration reads the environment
/// and panics on a key with a line break.
struct EndpointConfig {
    base_url: String,
    headers: HeaderMap,
    key: SecretString,
}

impl EndpointConfig {
    fn new(endpoint: &ModelEndpoint, accept: &'static str) -> Result<Self, CallError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &endpoint.api_key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret()))
                .map_err(|_| CallError::Refused { status: 401 })?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        let key = endpoint.api_key.clone().unwrap_or_default();
        Ok(Self {
            base_url: endpoint.base_url.trim_end_matches('/').to_owned(),
            headers,
            key,
        })
    }
}

impl Config for EndpointConfig {
    fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }

    fn query(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    fn api_base(&self) -> &str {
        &self.base_url
    }

    fn api_key(&self) -> &SecretString {
        &self.key
    }
}

/// Fails unless the status and the headers can belong to an answer.
fn check_response(
    response: &reqwest::Response,
    is_answer: fn(&HeaderMap) -> bool,
) -> Result<(), CallError> {
    let status = response.status().as_u16();
    match status {
        200..=299 if is_answer(response.headers()) => Ok(()),
        200..=399 => Err(CallError::NotAnAnswer),
        408 | 429 | 500.. => Err(CallError::Overloaded {
            status,
            retry_after: retry_after(response.headers()),
        }),
        _ => Err(CallError::Refused { status }),
    }
}

/// Some servers send no content type or plain text; a page or one JSON document is no stream.
fn is_stream(headers: &HeaderMap) -> bool {
    let kind = content_type(headers);
    !["text/html", "application/json", "application/problem+json"]
        .iter()
        .any(|other| kind.starts_with(other))
}

fn is_document(headers: &HeaderMap) -> bool {
    !["text/html", "text/event-stream"]
        .iter()
        .any(|other| content_type(headers).starts_with(other))
}

fn content_type(headers: &HeaderMap) -> &str {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Parses seconds only: a date would depend on the provider's clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns the same response, cut off after `bytes_max` bytes regardless of its lines.
fn bounded_response(response: reqwest::Response, bytes_max: usize) -> reqwest::Response {
    let (status, headers) = (response.status(), response.headers().clone());
    let mut bounded =
        http::Response::new(reqwest::Body::wrap_stream(body_pieces(response, bytes_max)));
    *bounded.status_mut() = status;
    *bounded.headers_mut() = headers;
    bounded.into()
}

/// Returns the body in pieces, up to the piece that exceeds `bytes_max`.
pub(super) fn body_pieces(
    response: reqwest::Response,
    bytes_max: usize,
) -> impl Stream<Item = reqwest::Result<bytes::Bytes>> + Send + 'static {
    let mut left = bytes_max;
    response.bytes_stream().take_while(move |piece| {
        let length = piece.as_ref().map_or(0, bytes::Bytes::len);
        let fits = length <= left;
        left = left.saturating_sub(length);
        std::future::ready(fits)
    })
}

/// Returns "connection refused" instead of "error sending request", which would contain the whole
/// URL.
fn innermost_cause(error: &reqwest::Error) -> String {
    let first = std::error::Error::source(error);
    let last = std::iter::successors(first, |error| error.source()).last();
    last.map_or_else(|| "no connection".to_owned(), ToString::to_string)
}

impl CallError {
    /// Maps an error of the library. Its text is dropped, because it can quote the provider.
    pub(crate) fn from_library(error: &OpenAIError) -> Self {
        match error {
            OpenAIError::Boxed(error) => error
                .downcast_ref::<Self>()
                .cloned()
                .unwrap_or(Self::BrokenOff),
            OpenAIError::Reqwest(error) if UrlRefusal::find_in(error).is_some() => {
                Self::AddressRefused
            }
            OpenAIError::Reqwest(error) if error.is_builder() => Self::Refused { status: 400 },
            OpenAIError::Reqwest(error) if error.is_connect() || error.is_request() => {
                Self::Unreachable {
                    cause: innermost_cause(error),
                }
            }
            OpenAIError::JSONDeserialize(..) | OpenAIError::ApiError(_) => Self::NotAnAnswer,
            _ => Self::BrokenOff,
        }
    }
}
