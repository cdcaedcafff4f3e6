//! Calls of an OpenAI-compatible endpoint, streamed or as one document.
//!
//! Chats are our own requests, read by [`ModelStream`]; embeddings go through async-openai. Its
//! executor is replaced, because it retries (attempts would multiply), drops `Retry-After` and
//! reads error bodies without a bound.

use std::{sync::Arc, time::Duration};

use async_openai::{Client, config::Config, error::OpenAIError, middleware::HttpRequestFactory};
use http::{HeaderMap, HeaderValue, header};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use switchboard_schemas::{
    conversation::FinishReason, network::IpNetwork, provider::ProviderApi, time::Timestamp,
};

use super::{
    CallError, FailedCall, ModelEndpoint, ModelPrompt, chunk,
    finish_reason::FinishKind,
    model_request::{CHAT_PATH, ModelRequest, RESPONSES_PATH},
    model_stream::ModelStream,
    output::ModelOutput,
    prompt::ToolOffer,
    refusal,
    request::RequestSource,
    request_forms::RequestForms,
    response_body::{bounded_response, read_body},
    responses, retry_after,
};
use crate::{
    config::WorkersConfig,
    outgoing::{AddressReach, CheckedResolver, SystemLookup, UrlRefusal, check_host},
};

/// Idle connections kept for each provider.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// Time for which an idle connection is kept.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Requests of one call, each of which leaves out one more parameter.
const REQUESTS_MAX: usize = 8;
/// Path of the list of models.
const MODELS_PATH: &str = "/models";
/// Longest list of models that is read, in bytes.
const MODELS_BYTES_MAX: usize = 1 << 20;
/// Query of the addresses of Azure's classic API, which has a header of its own for keys.
const AZURE_QUERY: &str = "api-version";
const AZURE_KEY_HEADER: &str = "api-key";

/// One answer that was read to its end.
pub(crate) struct CompletedAnswer {
    pub(crate) text: String,
    /// True if the model calls a tool.
    pub(crate) has_called: bool,
    pub(super) reason: FinishReason,
}

/// Calls providers, with a connection pool for those of the operator and one for all others.
#[derive(Clone)]
pub(crate) struct ModelClient {
    unconfined: reqwest::Client,
    confined: reqwest::Client,
    allowed: Arc<[IpNetwork]>,
    body_bytes_max: usize,
    forms: RequestForms,
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
            forms: RequestForms::new(),
        })
    }

    /// Returns a client for calls that are answered with one JSON document.
    pub(crate) fn document_client(
        &self,
        endpoint: &ModelEndpoint,
    ) -> Result<Client<impl Config>, CallError> {
        let http = self.http_client(endpoint)?;
        let (client, body_bytes_max) = (http.clone(), self.body_bytes_max);
        let service = tower::service_fn(move |factory: HttpRequestFactory| {
            let http = http.clone();
            async move {
                let request = factory.build().await?;
                let response = http.execute(request).await.map_err(OpenAIError::Reqwest)?;
                check_response(&response, is_document)
                    .map_err(|error| OpenAIError::Boxed(Box::new(error)))?;
                Ok::<_, OpenAIError>(bounded_response(response, body_bytes_max))
            }
        });
        let config = EndpointConfig::new(endpoint)?;
        Ok(Client::build(client, config).with_http_service(service))
    }

    /// Starts a streamed call. With a `prefix`, the endpoint is asked to continue that text.
    /// Dropping the stream ends the call.
    ///
    /// A refusal that names a part of the request is answered by a request without it, or with its
    /// other form; what was accepted is remembered.
    pub(crate) async fn start_stream(
        &self,
        endpoint: &ModelEndpoint,
        prompt: &ModelPrompt,
        prefix: &str,
        offer: ToolOffer,
    ) -> Result<ModelStream, FailedCall> {
        let known = self.forms.form_for(endpoint);
        let mut source = RequestSource {
            endpoint,
            prompt,
            prefix,
            offer,
            form: known,
        };
        let mut requests = 0;
        loop {
            requests += 1;
            let request = ModelRequest::new(source);
            let response = self.post(endpoint, &request).await?;
            let Err(error) = check_response(&response, is_answer) else {
                if source.form != known {
                    self.forms.record(endpoint, source.form);
                }
                return Ok(self.stream_of(endpoint, response));
            };
            let (failed, refusal) = refusal::explain_refusal(error, endpoint, response).await;
            let adapted = request.sent().adapted(&failed.error, &refusal);
            let Some((next, left_out)) = adapted.filter(|_| requests < REQUESTS_MAX) else {
                return Err(failed);
            };
            tracing::info!(
                provider.host = endpoint.host(),
                endpoint.model,
                ?left_out,
                "model refused a parameter; the request is sent without it"
            );
            source.form = next;
        }
    }

    /// Returns one answer.
    pub(crate) async fn complete(
        &self,
        endpoint: &ModelEndpoint,
        prompt: &ModelPrompt,
        offer: ToolOffer,
    ) -> Result<CompletedAnswer, FailedCall> {
        let mut stream = self.start_stream(endpoint, prompt, "", offer).await?;
        let mut output = ModelOutput::new(true, false);
        while stream.read(&mut output).await? && output.failure.is_none() && !output.is_done {
            if output.has_begun() && output.finish.is_some() {
                break;
            }
        }
        if let Some(failure) = output.failure {
            return Err(failure.redacted_for(endpoint));
        }
        let Some(FinishKind::Regular(reason)) = output.finish else {
            return Err(CallError::BrokenOff.into());
        };
        output.finish_text();
        Ok(CompletedAnswer {
            has_called: !output.fragments.is_empty(),
            text: output.text,
            reason,
        })
    }

    /// Returns the ids of the endpoint's models.
    pub(super) async fn list_models(
        &self,
        endpoint: &ModelEndpoint,
    ) -> Result<Vec<String>, FailedCall> {
        let request = self
            .http_client(endpoint)?
            .get(endpoint_url(&endpoint.base_url, MODELS_PATH)?)
            .headers(key_headers(endpoint)?)
            .header(header::ACCEPT, "application/json");
        let response = request.send().await;
        let response = response.map_err(|error| CallError::from_http(&error))?;
        if let Err(error) = check_response(&response, is_document) {
            return Err(refusal::explain_refusal(error, endpoint, response).await.0);
        }
        let body = read_body(response, MODELS_BYTES_MAX).await;
        let list: Value = serde_json::from_slice(&body).map_err(|_| CallError::NotAnAnswer)?;
        let models = [&list["data"], &list["models"], &list];
        let models = models.into_iter().find_map(Value::as_array);
        let id = |model: &Value| {
            let id = model["id"].as_str().or(model["name"].as_str())?;
            Some(id.to_owned())
        };
        Ok(models.into_iter().flatten().filter_map(id).collect())
    }

    /// Returns what the model of an endpoint has refused so far.
    pub(super) fn refused_names(&self, endpoint: &ModelEndpoint) -> Vec<String> {
        self.forms.form_for(endpoint).refused_names()
    }

    /// Returns a client with the same connections that has learned nothing yet.
    pub(super) fn forgetful(&self) -> Self {
        Self {
            forms: RequestForms::new(),
            ..self.clone()
        }
    }

    async fn post(
        &self,
        endpoint: &ModelEndpoint,
        body: &ModelRequest<'_>,
    ) -> Result<reqwest::Response, CallError> {
        let http = self.http_client(endpoint)?;
        let address = endpoint_url(&endpoint.base_url, body.path())?;
        let accept = if body.streams() {
            "text/event-stream"
        } else {
            "application/json"
        };
        let request = http
            .post(address)
            .headers(key_headers(endpoint)?)
            .header(header::ACCEPT, accept)
            .json(body);
        let response = request.send().await;
        response.map_err(|error| CallError::from_http(&error))
    }

    fn stream_of(&self, endpoint: &ModelEndpoint, response: reqwest::Response) -> ModelStream {
        let take_data = match endpoint.api {
            ProviderApi::ChatCompletions => chunk::take_data,
            ProviderApi::Responses => responses::take_data,
        };
        ModelStream::new(response, self.body_bytes_max, take_data)
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
}

/// Address and credentials of one endpoint; async-openai's own configuration reads the environment
/// and panics on a key with a line break.
struct EndpointConfig {
    base_url: String,
    headers: HeaderMap,
    key: SecretString,
}

impl EndpointConfig {
    fn new(endpoint: &ModelEndpoint) -> Result<Self, CallError> {
        let mut headers = key_headers(endpoint)?;
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        Ok(Self {
            base_url: endpoint.base_url.clone(),
            headers,
            key: endpoint.api_key.clone().unwrap_or_default(),
        })
    }
}

impl Config for EndpointConfig {
    fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    fn url(&self, path: &str) -> String {
        endpoint_url(&self.base_url, path).map_or_else(|_| self.base_url.clone(), String::from)
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

/// Returns the address of a path below a base URL, whose query is kept.
fn endpoint_url(base_url: &str, path: &str) -> Result<Url, CallError> {
    let mut address = Url::parse(base_url).map_err(|_| CallError::InvalidEndpoint)?;
    if !matches!(address.scheme(), "http" | "https") {
        return Err(CallError::InvalidEndpoint);
    }
    let base = address.path().trim_end_matches('/');
    let base = [CHAT_PATH, RESPONSES_PATH, MODELS_PATH]
        .into_iter()
        .find_map(|path| base.strip_suffix(path))
        .unwrap_or(base);
    let whole = format!("{base}{path}");
    address.set_path(&whole);
    Ok(address)
}

fn key_headers(endpoint: &ModelEndpoint) -> Result<HeaderMap, CallError> {
    let mut headers = HeaderMap::new();
    let Some(key) = endpoint.api_key.as_ref().map(ExposeSecret::expose_secret) else {
        return Ok(headers);
    };
    let header_value = |text: &str| {
        let mut value = HeaderValue::from_str(text).map_err(|_| CallError::InvalidEndpoint)?;
        value.set_sensitive(true);
        Ok(value)
    };
    if endpoint.base_url.contains(AZURE_QUERY) {
        headers.insert(AZURE_KEY_HEADER, header_value(key)?);
    } else {
        headers.insert(
            header::AUTHORIZATION,
            header_value(&format!("Bearer {key}"))?,
        );
    }
    Ok(headers)
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
        // 425: too early; 498: no capacity (Groq).
        408 | 425 | 429 | 498 | 500.. => Err(CallError::Overloaded {
            status,
            retry_after: retry_after::pause_of_headers(response.headers(), Timestamp::now()),
        }),
        _ => Err(CallError::Refused { status }),
    }
}

/// Some servers send no content type or plain text, and some one document instead of a stream; a
/// page is no answer.
fn is_answer(headers: &HeaderMap) -> bool {
    let kind = content_type(headers);
    !["text/html", "application/problem+json"]
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
            OpenAIError::Reqwest(error) => Self::from_http(error),
            OpenAIError::JSONDeserialize(..) | OpenAIError::ApiError(_) => Self::NotAnAnswer,
            _ => Self::BrokenOff,
        }
    }

    fn from_http(error: &reqwest::Error) -> Self {
        if UrlRefusal::find_in(error).is_some() {
            Self::AddressRefused
        } else if error.is_builder() {
            Self::InvalidEndpoint
        } else if error.is_connect() || error.is_request() {
            Self::Unreachable {
                cause: innermost_cause(error),
            }
        } else {
            Self::BrokenOff
        }
    }
}
