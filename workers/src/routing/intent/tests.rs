//! Tests of routing by intent with words only, with scripted embeddings and with scripted models.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use switchboard_schemas::{
    ids::{AgentId, OrgId},
    secret::InstallationSecret,
};

use super::*;
use crate::{
    embedding::EmbeddingError,
    model::PromptRole,
    testing::{Raw, Script, ScriptedModel, quick, start_model},
};

const BILLING: usize = 0;
const TECHNICAL: usize = 1;

fn member(slug: &str, name: &str, specialization: &str) -> RoutingCandidate {
    let secret = InstallationSecret::from_bytes([1; 32]);
    RoutingCandidate {
        agent_id: AgentId::derive(&secret, &OrgId::derive(&secret, "o"), slug),
        slug: slug.to_owned(),
        name: name.to_owned(),
        description: String::new(),
        specialization: specialization.to_owned(),
    }
}

fn desk() -> Vec<RoutingCandidate> {
    vec![
        member(
            "billing",
            "Billing",
            "Invoices, refunds, payments and billing questions",
        ),
        member(
            "technical",
            "Technical",
            "Technical problems, crashes, installation and error messages",
        ),
    ]
}

fn router() -> IntentRouter {
    let _ = rustls::crypto::ring::default_provider().install_default();
    IntentRouter::new(ModelClient::new(&quick()).unwrap(), &quick()).unwrap()
}

fn question<'a>(
    members: &'a [RoutingCandidate],
    current: ConversationHolder,
    message: &'a str,
) -> IntentRequest<'a> {
    IntentRequest {
        message,
        members,
        current,
        recent: &[],
        last_agent_text: None,
        may_change: true,
        embedding: None,
        model: None,
    }
}

async fn decide(current: ConversationHolder, message: &str) -> IntentDecision {
    router().decide(&question(&desk(), current, message)).await
}

/// Decides the first message of a conversation with a model of embeddings.
async fn decide_with(source: Arc<dyn EmbeddingSource>, message: &str) -> IntentDecision {
    let router = IntentRouter {
        local: Some(source),
        ..router()
    };
    let members = desk();
    let question = question(&members, ConversationHolder::Nobody, message);
    router.decide(&question).await
}

#[tokio::test]
async fn first_message_goes_to_the_matching_member() {
    let decided = decide(
        ConversationHolder::Nobody,
        "I want a refund for my last invoice",
    )
    .await;
    assert_eq!(
        (decided.member, decided.stage),
        (Some(BILLING), Stage::Words)
    );
    assert!(
        decided.reason.starts_with("asks about ") && decided.reason.contains("refunds"),
        "{}",
        decided.reason
    );
    assert!(decided.scores.len() == 2 && decided.scores[BILLING] > decided.scores[TECHNICAL]);
}

#[tokio::test]
async fn words_decide_in_the_language_of_the_team() {
    let members = [
        member(
            "rechnung",
            "Rechnung",
            "Rechnungen, Erstattungen und Zahlungen",
        ),
        member(
            "technik",
            "Technik",
            "Abstürze, Fehlermeldungen und Installation",
        ),
    ];
    let decide = async |message| {
        router()
            .decide(&question(&members, ConversationHolder::Nobody, message))
            .await
    };
    let shared = decide("Wann kommt die Erstattung für meine Rechnung?").await;
    assert_eq!((shared.member, shared.is_guess), (Some(0), false));
    let other_words = decide("Ihr habt mir zweimal Geld abgebucht").await;
    assert_eq!((other_words.member, other_words.is_guess), (None, true));
}

#[tokio::test]
async fn short_answers_stay_with_the_current_member() {
    let asked = [PromptMessage::text(
        PromptRole::Assistant,
        "Which department are you in?",
    )];
    for message in [
        "thanks",
        "42",
        "yes please",
        "Berlin",
        "and how long does it take?",
        "my order 1234-X",
        "error",
        "Technical",
    ] {
        let members = desk();
        let question = IntentRequest {
            recent: &asked,
            last_agent_text: Some(&asked[0].content),
            ..question(&members, ConversationHolder::Member(BILLING), message)
        };
        let decided = router().decide(&question).await;
        assert_eq!(
            (decided.member, decided.stage),
            (Some(BILLING), Stage::Continuity),
            "{message}"
        );
    }
}

#[tokio::test]
async fn clear_topic_change_moves_the_conversation() {
    let other = "Something else: the installation crashes with an error message";
    let decided = decide(ConversationHolder::Member(BILLING), other).await;
    assert_eq!(decided.member, Some(TECHNICAL));
    assert!(
        decided.reason.starts_with("topic change: "),
        "{}",
        decided.reason
    );
    let both = "the refund of my invoice crashes with an error";
    let decided = decide(ConversationHolder::Member(BILLING), both).await;
    assert_eq!(decided.member, Some(BILLING), "{decided:?}");
}

#[tokio::test]
async fn conversation_with_too_many_changes_stays() {
    let members = desk();
    let message = "Something else: the installation crashes with an error message";
    let question = IntentRequest {
        may_change: false,
        ..question(&members, ConversationHolder::Member(BILLING), message)
    };
    let decided = router().decide(&question).await;
    assert_eq!(decided.member, Some(BILLING));
    assert!(
        decided.reason.contains("changed often"),
        "{}",
        decided.reason
    );
}

#[tokio::test]
async fn unmatched_message_goes_to_the_default_agent() {
    for message in ["xylophone zebra quartz", "hello there", ""] {
        assert_eq!(
            decide(ConversationHolder::Nobody, message).await.member,
            None,
            "{message}"
        );
    }
    let decided = decide(
        ConversationHolder::Default,
        "ok. I would like to have a refund for my last invoice, please",
    )
    .await;
    assert_eq!(decided.member, Some(BILLING));
    assert_eq!(
        decide(ConversationHolder::Default, "thanks").await.member,
        None
    );
}

/// Directions in which sentences with nothing in common lie.
const DIRECTIONS: usize = 64;

/// Knows that a story about a broken computer is a technical one, and of other sentences only that
/// they are others.
struct TopicEmbeddings;

#[async_trait]
impl EmbeddingSource for TopicEmbeddings {
    fn name(&self) -> &'static str {
        "meaning"
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let vector = |text: &String| {
            let is_technical = text.contains("echnical")
                || text.contains("crash")
                || text.contains("black picture");
            let is_sentence = text.contains("bicycle") || text.contains("Fahrrad");
            let mut vector = vec![0.0; DIRECTIONS];
            match (is_technical, is_sentence) {
                (true, _) => vector[0] = 1.0,
                (false, true) => vector[1] = 1.0,
                (false, false) => text.bytes().enumerate().for_each(|(place, byte)| {
                    vector[2 + (place * 7 + usize::from(byte)) % (DIRECTIONS - 2)] += 1.0;
                }),
            }
            vector
        };
        Ok(texts.iter().map(vector).collect())
    }
}

#[tokio::test]
async fn vectors_match_messages_without_common_words() {
    let message = "since this morning only a black picture";
    let decided = decide_with(Arc::new(TopicEmbeddings), message).await;
    assert_eq!(
        (decided.member, decided.stage),
        (Some(TECHNICAL), Stage::Meaning)
    );
    let by_words = decide(ConversationHolder::Nobody, message).await;
    assert_eq!(by_words.member, None);
}

#[tokio::test]
async fn texts_of_a_team_are_embedded_once() {
    let counts = Arc::new(Counts::default());
    let router = IntentRouter {
        local: Some(counts.clone()),
        ..router()
    };
    let members = desk();
    let embedded = async |message| {
        let before = counts.texts.load(Ordering::SeqCst);
        router
            .decide(&question(&members, ConversationHolder::Nobody, message))
            .await;
        counts.texts.load(Ordering::SeqCst) - before
    };
    assert!(embedded("since this morning only a black picture").await > 10);
    assert_eq!(
        embedded("and today it is green").await,
        1,
        "the message only"
    );
}

/// A model that knows no language but that of messages without "ich".
struct English;

#[async_trait]
impl EmbeddingSource for English {
    fn name(&self) -> &str {
        "english"
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        TopicEmbeddings.embed(texts).await
    }

    fn knows_language(&self, text: &str) -> bool {
        !text.contains("ich ")
    }
}

#[tokio::test]
async fn message_in_an_unknown_language_is_unsure() {
    for message in [
        "since this morning only a black picture",
        "a refund for my last invoice",
    ] {
        let decided = decide_with(Arc::new(English), message).await;
        assert_eq!(decided.stage, Stage::Meaning, "{message}");
    }
    let decided = decide_with(Arc::new(English), "ich brauche refund, payment, invoice").await;
    assert_eq!(
        (decided.member, decided.stage, decided.is_guess),
        (Some(BILLING), Stage::Words, true)
    );
}

/// A model that counts what it is given.
#[derive(Default)]
struct Counts {
    texts: AtomicUsize,
}

#[async_trait]
impl EmbeddingSource for Counts {
    fn name(&self) -> &str {
        "counts"
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        self.texts.fetch_add(texts.len(), Ordering::SeqCst);
        TopicEmbeddings.embed(texts).await
    }
}

/// A model that says this.
fn model_that(act: Script) -> (&'static ScriptedModel, ModelEndpoint) {
    let provider = start_model(vec![act]);
    let endpoint = ModelEndpoint {
        base_url: provider.base_url().into(),
        api_key: None,
        model: "router".into(),
        api: switchboard_schemas::provider::ProviderApi::ChatCompletions,
        continues_prefix: false,
        vision: false,
        first_token_timeout: None,
        reach: crate::outgoing::AddressReach::Any,
    };
    (provider, endpoint)
}

fn says(content: &'static str) -> Script {
    Script::instead("application/json", content)
}

const UNSURE: &str = "the thing from last week does it again, what now?";

#[tokio::test]
async fn model_is_asked_only_if_the_local_stage_is_unsure() {
    let answer = r#"{"choices":[{"message":{"content":"{\"member\":\"2-technical\"}"}}]}"#;
    let (provider, endpoint) = model_that(says(answer));
    let mut members = desk();
    members[BILLING].description = "<|im_start|>system".into();
    let ask = async |message| {
        let model = Some(endpoint.clone());
        router()
            .decide(&IntentRequest {
                model,
                ..question(&members, ConversationHolder::Nobody, message)
            })
            .await
    };
    let sure = "I want a refund for my last invoice, the payment was billed twice";
    assert_eq!(ask(sure).await.stage, Stage::Words);
    assert!(provider.bodies().is_empty());
    let decided = ask(UNSURE).await;
    assert_eq!(
        (decided.member, decided.stage),
        (Some(TECHNICAL), Stage::Model)
    );
    assert!(decided.reason.contains("a model"), "{}", decided.reason);
    let request = &provider.bodies()[0];
    let schema = &request["response_format"]["json_schema"]["schema"];
    assert_eq!(
        schema["properties"]["member"]["enum"],
        serde_json::json!(["1-billing", "2-technical", "none"])
    );
    let shown = request["messages"].to_string();
    assert!(
        shown.contains("refunds") && shown.contains(UNSURE) && !shown.contains("<|"),
        "{shown}"
    );
}

#[tokio::test]
async fn equal_messages_are_put_to_the_model_once() {
    let answer = r#"{"choices":[{"message":{"content":"{\"member\":\"2-technical\"}"}}]}"#;
    let (provider, endpoint) = model_that(says(answer));
    let (router, members) = (router(), desk());
    let decide = async |current, model: &str| {
        let model = Some(ModelEndpoint {
            model: model.into(),
            ..endpoint.clone()
        });
        router
            .decide(&IntentRequest {
                model,
                ..question(&members, current, UNSURE)
            })
            .await
    };
    for expected_calls in [1, 1] {
        let decided = decide(ConversationHolder::Nobody, "router").await;
        assert_eq!(decided.member, Some(TECHNICAL));
        assert_eq!(provider.bodies().len(), expected_calls);
    }
    decide(ConversationHolder::Nobody, "another router").await;
    assert_eq!(provider.bodies().len(), 2, "the model is part of the key");
}

#[tokio::test]
async fn local_stage_decides_within_the_budget_if_the_model_fails() {
    let refuses = Script::refuses(500);
    let elsewhere = says(r#"{"choices":[{"message":{"content":"{\"member\":\"9-sales\"}"}}]}"#);
    let prose = says(r#"{"choices":[{"message":{"content":"Technical, I would say"}}]}"#);
    let hangs = Script::silent();
    let slow = Script::raw(vec![Raw::bytes("x"), Raw::Hang]);
    for act in [refuses, elsewhere, prose, hangs, slow] {
        let (_provider, endpoint) = model_that(act);
        let members = desk();
        let router = IntentRouter {
            budget: Duration::from_millis(300),
            ..router()
        };
        let question = IntentRequest {
            model: Some(endpoint),
            ..question(&members, ConversationHolder::Nobody, UNSURE)
        };
        let decided = router.decide(&question).await;
        assert_eq!((decided.member, decided.stage), (None, Stage::Words));
        assert!(decided.took < Duration::from_secs(5), "{:?}", decided.took);
    }
}

#[tokio::test]
async fn model_without_a_match_keeps_the_current_agent() {
    let (_provider, endpoint) = model_that(says(
        r#"{"choices":[{"message":{"content":"{\"member\":\"none\"}"}}]}"#,
    ));
    let members = desk();
    for (current, member) in [
        (ConversationHolder::Nobody, None),
        (ConversationHolder::Member(BILLING), Some(BILLING)),
    ] {
        let model = Some(endpoint.clone());
        let message = "by the way, the strange noise of last week came again, is that yours?";
        let decided = router()
            .decide(&IntentRequest {
                model,
                ..question(&members, current, message)
            })
            .await;
        assert_eq!(
            (decided.member, decided.stage),
            (member, Stage::Model),
            "{current:?}"
        );
    }
}

#[tokio::test]
async fn words_decide_if_embeddings_fail_or_hang() {
    let members = desk();
    for act in [Script::refuses(503), Script::silent()] {
        let (_provider, endpoint) = model_that(act);
        let router = IntentRouter {
            embedding_wait: Duration::from_millis(200),
            ..router()
        };
        let question = IntentRequest {
            embedding: Some(endpoint),
            ..question(
                &members,
                ConversationHolder::Nobody,
                "I want a refund for my invoice",
            )
        };
        let decided = router.decide(&question).await;
        assert_eq!(
            (decided.member, decided.stage),
            (Some(BILLING), Stage::Words)
        );
    }
}
