//! Tests of a reply from misbehaving providers: the text that the client receives, and the number
//! of calls.

use std::time::Duration;

use serde_json::json;
use switchboard_schemas::{conversation::FinishReason, reply_event::ReplyFailure};
use tokio::time::Instant;

use super::{
    CallError, ModelEndpoint, ModelPrompt, PromptMessage, PromptRole,
    generation::{AnswerEnd, AnswerGeneration, GenerationResult, PushResult, TextSink},
    openai::ModelClient,
    prompt::ToolOffer,
};
use crate::{
    config::WorkersConfig,
    outgoing::AddressReach,
    testing::{Raw, Script, ScriptedModel, quick, says, start_model},
};

struct CollectingSink {
    text: String,
    bytes_max: usize,
}

impl TextSink for CollectingSink {
    fn push(&mut self, _: &str, text: &str) -> PushResult {
        self.text.push_str(text);
        if self.text.len() < self.bytes_max {
            PushResult::Displayed
        } else {
            PushResult::Full
        }
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    fn len(&self) -> usize {
        self.text.len()
    }
}

fn endpoint(provider: &ScriptedModel, continues_prefix: bool) -> ModelEndpoint {
    ModelEndpoint {
        base_url: provider.base_url().into(),
        api_key: Some("sk-x".into()),
        model: "m".into(),
        api: switchboard_schemas::provider::ProviderApi::ChatCompletions,
        continues_prefix,
        vision: false,
        first_token_timeout: None,
        reach: AddressReach::Any,
    }
}

async fn ask(endpoints: Vec<ModelEndpoint>, prefix: &str) -> (GenerationResult, String) {
    ask_capped(endpoints, prefix, 1 << 16).await
}

async fn ask_capped(
    endpoints: Vec<ModelEndpoint>,
    prefix: &str,
    bytes_max: usize,
) -> (GenerationResult, String) {
    let config = quick();
    let client = ModelClient::new(&config).unwrap();
    let message = PromptMessage::text(PromptRole::User, "hello");
    let prompt = ModelPrompt {
        messages: vec![message],
        max_tokens: 10,
        ..ModelPrompt::default()
    };
    let mut sink = CollectingSink {
        text: prefix.into(),
        bytes_max,
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    let answer =
        AnswerGeneration::new(&client, &config, endpoints, &prompt, &mut sink, 0, deadline)
            .run()
            .await;
    let end = answer.end.map(|end| match end {
        AnswerEnd::Text(reason) => reason,
        AnswerEnd::ToolCalls(..) => panic!("no tool was offered"),
    });
    let GenerationResult {
        usage,
        first_text,
        took,
        retries,
        endpoint,
        unknown_finishes,
        failed_call,
        ..
    } = answer;
    (
        GenerationResult {
            end,
            usage,
            first_text,
            took,
            retries,
            endpoint,
            unknown_finishes,
            failed_call,
        },
        sink.text,
    )
}

/// Calls one provider that cannot continue a prefix.
async fn ask_one(acts: Vec<Script>) -> (GenerationResult, String, usize) {
    let provider = start_model(acts);
    let (generated, text) = ask(vec![endpoint(provider, false)], "").await;
    (generated, text, provider.bodies().len())
}

fn page() -> Script {
    Script::instead("text/html", "<html>hello</html>")
}

fn broken() -> Script {
    Script::answer(500, &[], "<html>oops</html>")
}

fn busy(retry_after: &str) -> Script {
    Script::answer(429, &[("retry-after", retry_after)], "busy")
}

#[tokio::test]
async fn complete_stream_gives_text_reason_and_tokens() {
    let (generated, text, calls) = ask_one(vec![says("Hello 🦀").chunk_chars(3)]).await;
    assert_eq!(
        (generated.end, text.as_str(), calls),
        (Ok(FinishReason::Stop), "Hello 🦀", 1)
    );
    assert_eq!(generated.usage.unwrap().completion_tokens, 2);
    assert!(generated.first_text.is_some());
}

#[tokio::test]
async fn too_long_wait_is_skipped() {
    let (generated, _, calls) = ask_one(vec![busy("3600")]).await;
    assert_eq!(
        (generated.end, calls),
        (Err(ReplyFailure::ModelUnavailable), 1)
    );
}

#[tokio::test]
async fn fallback_answers_if_the_first_provider_fails() {
    for act in [broken(), Script::refuses(401), page(), Script::silent()] {
        let (first, second) = (start_model(vec![act]), start_model(vec![says("ok")]));
        let (generated, text) =
            ask(vec![endpoint(first, false), endpoint(second, false)], "").await;
        assert_eq!(
            (generated.end, text.as_str()),
            (Ok(FinishReason::Stop), "ok")
        );
    }
}

#[tokio::test]
async fn invalid_request_is_sent_once() {
    let (first, second) = (
        start_model(vec![Script::refuses(400)]),
        start_model(vec![says("ok")]),
    );
    let (generated, _) = ask(vec![endpoint(first, false), endpoint(second, false)], "").await;
    assert_eq!(generated.end, Err(ReplyFailure::ModelError));
    assert_eq!((first.bodies().len(), second.bodies().len()), (1, 0));
}

/// Calls `base_url`, which a member of an organization chose.
async fn ask_confined(client: &ModelClient, base_url: String) -> Result<(), CallError> {
    let endpoint = ModelEndpoint {
        base_url,
        api_key: None,
        model: "m".into(),
        api: switchboard_schemas::provider::ProviderApi::ChatCompletions,
        continues_prefix: false,
        vision: false,
        first_token_timeout: None,
        reach: AddressReach::Public,
    };
    let prompt = ModelPrompt {
        messages: vec![PromptMessage::text(PromptRole::User, "hello")],
        max_tokens: 10,
        ..ModelPrompt::default()
    };
    let stream = client.start_stream(&endpoint, &prompt, "", ToolOffer::None);
    stream.await.map(drop).map_err(|failed| failed.error)
}

#[tokio::test]
async fn confined_provider_is_not_called_in_private_networks() {
    let provider = start_model(vec![says("Hello")]);
    let client = ModelClient::new(&quick()).unwrap();
    for host in ["127.0.0.1", "2130706433", "[::ffff:127.0.0.1]", "localhost"] {
        let base_url = provider.base_url().replace("127.0.0.1", host);
        let outcome = ask_confined(&client, base_url).await;
        assert_eq!(outcome, Err(CallError::AddressRefused), "{host}");
    }
    assert_eq!(provider.bodies().len(), 0);
}

#[tokio::test]
async fn confined_provider_is_called_in_allowed_networks() {
    let provider = start_model(vec![says("Hello")]);
    let config = WorkersConfig {
        provider_private_networks: vec!["127.0.0.0/8".parse().unwrap()],
        ..quick()
    };
    let client = ModelClient::new(&config).unwrap();
    assert_eq!(
        ask_confined(&client, provider.base_url().into()).await,
        Ok(())
    );
}

#[tokio::test]
async fn silent_provider_is_called_once() {
    let pieces = vec![Raw::bytes(": ping\n\n"), Raw::Hang];
    let (generated, _, calls) = ask_one(vec![Script::raw(pieces)]).await;
    assert_eq!((generated.end, calls), (Err(ReplyFailure::ModelTimeout), 1));
}

#[tokio::test]
async fn anything_that_arrives_is_a_sign_of_life() {
    let thought = Raw::Delta(json!({"content": null, "reasoning_content": " hm"}));
    for sign in [Raw::bytes(": ping\n\n"), Raw::bytes("data:\n\n"), thought] {
        let mut pieces = vec![sign; 6];
        pieces.extend([Raw::text("Hello"), Raw::Finish("stop")]);
        let script = Script::raw(pieces).paced(Duration::from_millis(200));
        let (generated, text, calls) = ask_one(vec![script]).await;
        assert_eq!(
            (generated.end, text.as_str(), calls),
            (Ok(FinishReason::Stop), "Hello", 1)
        );
    }
}

#[tokio::test]
async fn prefix_is_continued_once() {
    let cut = Script::raw(vec![Raw::text("Hel")]);
    let provider = start_model(vec![cut.clone(), says("lo")]);
    let (generated, text) = ask(vec![endpoint(provider, true)], "").await;
    assert_eq!(
        (generated.end, text.as_str()),
        (Ok(FinishReason::Stop), "Hello")
    );
    let second = &provider.bodies()[1];
    assert_eq!(
        second["messages"][1],
        json!({"role":"assistant","content":"Hel"})
    );
    assert_eq!(
        (
            &second["continue_final_message"],
            &second["add_generation_prompt"]
        ),
        (&json!(true), &json!(false))
    );

    let provider = start_model(vec![cut]);
    let (generated, text) = ask(vec![endpoint(provider, true)], "").await;
    assert_eq!(
        (generated.end, text.as_str()),
        (Err(ReplyFailure::ModelError), "HelHel")
    );
    assert_eq!(provider.bodies().len(), 2);
}

#[tokio::test]
async fn first_request_asks_for_usage_and_no_continuation() {
    let provider = start_model(vec![says("ok")]);
    ask(vec![endpoint(provider, true)], "").await;
    let request = &provider.bodies()[0];
    assert_eq!(request["stream"], json!(true));
    assert_eq!(request["stream_options"], json!({"include_usage": true}));
    assert!(
        request.get("continue_final_message").is_none() && request.get("temperature").is_none()
    );
}
