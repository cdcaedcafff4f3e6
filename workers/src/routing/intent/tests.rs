//! Who is meant, with words only, with vectors and with a model, by scripted ones.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use switchboard_schemas::{
    ids::{AgentId, OrgId},
    secret::InstallationSecret,
};

use super::{background::Background, *};
use crate::{
    embedding::EmbeddingError,
    model::PromptRole,
    testing::{Act, Piece, Provider, eventually, quick},
};

const BILLING: usize = 0;
const TECHNICAL: usize = 1;

fn member(slug: &str, name: &str, specialization: &str) -> Candidate {
    let secret = InstallationSecret::from_bytes([1; 32]);
    Candidate {
        agent_id: AgentId::derive(&secret, &OrgId::derive(&secret, "o"), slug),
        slug: slug.to_owned(),
        name: name.to_owned(),
        description: String::new(),
        specialization: specialization.to_owned(),
    }
}

fn desk() -> Vec<Candidate> {
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

fn router() -> Intent {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Intent::new(ModelClient::new(&quick()).unwrap(), &quick()).unwrap()
}

fn question<'a>(members: &'a [Candidate], current: Current, message: &'a str) -> Question<'a> {
    Question {
        message,
        members,
        current,
        recent: &[],
        agent_said: None,
        may_change: true,
        embedding: None,
        model: None,
    }
}

async fn decide(current: Current, message: &str) -> Decided {
    router().decide(&question(&desk(), current, message)).await
}

#[tokio::test]
async fn a_first_message_goes_to_the_member_that_matches_and_says_by_what() {
    let decided = decide(Current::Nobody, "I want a refund for my last invoice").await;
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
async fn another_language_meets_a_member_by_its_concepts() {
    for message in [
        "ich brauche eine Rechnung",
        "je voudrais un remboursement",
        "quiero pagar la factura",
    ] {
        assert_eq!(
            decide(Current::Nobody, message).await.member,
            Some(BILLING),
            "{message}"
        );
    }
}

#[tokio::test]
async fn short_answers_numbers_thanks_and_places_stay() {
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
        let question = Question {
            recent: &asked,
            agent_said: Some(&asked[0].content),
            ..question(&members, Current::Member(BILLING), message)
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
async fn a_clear_change_of_topic_moves_and_says_so_and_both_topics_are_no_clear_change() {
    let other = "Something else: the installation crashes with an error message";
    let decided = decide(Current::Member(BILLING), other).await;
    assert_eq!(decided.member, Some(TECHNICAL));
    assert!(
        decided.reason.starts_with("topic change: "),
        "{}",
        decided.reason
    );
    let both = "the refund of my invoice crashes with an error";
    let decided = decide(Current::Member(BILLING), both).await;
    assert_eq!(decided.member, Some(BILLING), "{decided:?}");
}

#[tokio::test]
async fn a_conversation_that_changed_hands_too_often_stays() {
    let members = desk();
    let message = "Something else: the installation crashes with an error message";
    let question = Question {
        may_change: false,
        ..question(&members, Current::Member(BILLING), message)
    };
    let decided = router().decide(&question).await;
    assert_eq!(decided.member, Some(BILLING));
    assert!(
        decided.reason.contains("changed hands"),
        "{}",
        decided.reason
    );
}

#[tokio::test]
async fn what_matches_nobody_goes_to_the_default_agent_and_a_later_match_to_its_member() {
    for message in ["xylophone zebra quartz", "hello there", ""] {
        assert_eq!(
            decide(Current::Nobody, message).await.member,
            None,
            "{message}"
        );
    }
    let decided = decide(
        Current::Default,
        "ok. I would like to have a refund for my last invoice, please",
    )
    .await;
    assert_eq!(decided.member, Some(BILLING));
    assert_eq!(decide(Current::Default, "thanks").await.member, None);
}

/// Directions in which sentences with nothing in common lie.
const DIRECTIONS: usize = 64;

/// Knows that a story about a broken computer is a technical one, and of other sentences only that they are others.
struct Meaning;

#[async_trait]
impl Embedder for Meaning {
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
async fn where_there_are_vectors_meaning_decides_over_words_that_were_never_written() {
    let router = Intent {
        local: Some(Arc::new(Meaning)),
        ..router()
    };
    let members = desk();
    let decided = router
        .decide(&question(
            &members,
            Current::Nobody,
            "since this morning only a black picture",
        ))
        .await;
    assert_eq!(
        (decided.member, decided.stage),
        (Some(TECHNICAL), Stage::Meaning)
    );
    assert_eq!(
        decide(Current::Nobody, "since this morning only a black picture")
            .await
            .member,
        None
    );
}

#[tokio::test]
async fn what_the_first_decision_by_meaning_needs_is_begun_when_the_role_starts() {
    let counts = Arc::new(Counts::default());
    let router = Intent {
        local: Some(counts.clone()),
        ..router()
    };
    router.warm_up().await;
    eventually("the background is computed", || async {
        counts.texts.load(Ordering::SeqCst) == background_texts()
    })
    .await;
    let members = desk();
    router
        .decide(&question(
            &members,
            Current::Nobody,
            "since this morning only a black picture",
        ))
        .await;
    let computed = counts.texts.load(Ordering::SeqCst) - background_texts();
    assert!(
        (1..100).contains(&computed),
        "the team and the message only: {computed}"
    );
    router
        .decide(&question(
            &members,
            Current::Nobody,
            "and today it is green",
        ))
        .await;
    assert_eq!(
        counts.texts.load(Ordering::SeqCst) - background_texts(),
        computed + 1,
        "the message only"
    );
}

fn background_texts() -> usize {
    Background::texts()
        .into_iter()
        .collect::<BTreeSet<_>>()
        .len()
}

/// A model that counts what it is given.
#[derive(Default)]
struct Counts {
    texts: AtomicUsize,
}

#[async_trait]
impl Embedder for Counts {
    fn name(&self) -> &str {
        "counts"
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        self.texts.fetch_add(texts.len(), Ordering::SeqCst);
        Meaning.embed(texts).await
    }
}

/// A model that says this.
async fn model_that(act: Act) -> (Provider, Endpoint) {
    let provider = Provider::start(vec![act]).await;
    let endpoint = Endpoint {
        base_url: provider.base_url.clone(),
        api_key: None,
        model: "router".into(),
        continues_prefix: false,
    };
    (provider, endpoint)
}

fn says(content: &'static str) -> Act {
    Act::Answer(200, &[("content-type", "application/json")], content)
}

const UNSURE: &str = "the thing from last week does it again, what now?";

#[tokio::test]
async fn a_model_is_asked_only_when_the_local_stage_is_unsure_and_is_bound_to_the_members() {
    let answer = r#"{"choices":[{"message":{"content":"{\"member\":\"2-technical\"}"}}]}"#;
    let (provider, endpoint) = model_that(says(answer)).await;
    let members = desk();
    let ask = async |message| {
        let model = Some(endpoint.clone());
        router()
            .decide(&Question {
                model,
                ..question(&members, Current::Nobody, message)
            })
            .await
    };
    let sure = "I want a refund for my last invoice, the payment was billed twice";
    assert_eq!(ask(sure).await.stage, Stage::Words);
    assert!(provider.requests().is_empty());
    let decided = ask(UNSURE).await;
    assert_eq!(
        (decided.member, decided.stage),
        (Some(TECHNICAL), Stage::Model)
    );
    assert!(decided.reason.contains("a model"), "{}", decided.reason);
    let request = &provider.requests()[0];
    let schema = &request["response_format"]["json_schema"]["schema"];
    assert_eq!(
        schema["properties"]["member"]["enum"],
        serde_json::json!(["1-billing", "2-technical", "none"])
    );
    let shown = request["messages"].to_string();
    assert!(
        shown.contains("refunds") && shown.contains(UNSURE),
        "{shown}"
    );
}

#[tokio::test]
async fn a_model_that_fails_answers_something_else_or_is_slow_leaves_the_decision_to_the_local_stage_within_the_budget()
 {
    let refuses = Act::Answer(500, &[], "");
    let elsewhere = says(r#"{"choices":[{"message":{"content":"{\"member\":\"9-sales\"}"}}]}"#);
    let prose = says(r#"{"choices":[{"message":{"content":"Technical, I would say"}}]}"#);
    let hangs = Act::Stream(vec![Piece::Hang]);
    let slow = Act::Stream(vec![Piece::Raw("x"), Piece::Hang]);
    for act in [refuses, elsewhere, prose, hangs, slow] {
        let (_provider, endpoint) = model_that(act).await;
        let members = desk();
        let router = Intent {
            budget: Duration::from_millis(300),
            ..router()
        };
        let question = Question {
            model: Some(endpoint),
            ..question(&members, Current::Nobody, UNSURE)
        };
        let decided = router.decide(&question).await;
        assert_eq!((decided.member, decided.stage), (None, Stage::Words));
        assert!(decided.took < Duration::from_secs(5), "{:?}", decided.took);
    }
}

#[tokio::test]
async fn a_model_that_finds_nobody_means_the_default_agent_first_and_later_whoever_has_the_conversation()
 {
    let (_provider, endpoint) = model_that(says(
        r#"{"choices":[{"message":{"content":"{\"member\":\"none\"}"}}]}"#,
    ))
    .await;
    let members = desk();
    for (current, member) in [
        (Current::Nobody, None),
        (Current::Member(BILLING), Some(BILLING)),
    ] {
        let model = Some(endpoint.clone());
        let message = "by the way, the strange noise of last week came again, is that yours?";
        let decided = router()
            .decide(&Question {
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
async fn embeddings_that_fail_or_hang_leave_the_decision_to_words() {
    let members = desk();
    for act in [Act::Answer(503, &[], ""), Act::Stream(vec![Piece::Hang])] {
        let (_provider, endpoint) = model_that(act).await;
        let hasty = WorkersConfig {
            embedding_timeout_ms: 200,
            ..quick()
        };
        let router = Intent {
            vectors: KnownVectors::new(&hasty),
            ..router()
        };
        let question = Question {
            embedding: Some(endpoint),
            ..question(&members, Current::Nobody, "I want a refund for my invoice")
        };
        let decided = router.decide(&question).await;
        assert_eq!(
            (decided.member, decided.stage),
            (Some(BILLING), Stage::Words)
        );
    }
}
