//! Kafka outage: running replies finish, new chats fail within a bound, and recovery needs no
//! operator.

use std::time::{Duration, Instant};

use futures::future::join_all;
use switchboard_schemas::message_event::EventBody;

use super::{
    kafka::Witness,
    own_services::{OwnKafka, OwnRedis},
    start_cluster,
};
use crate::support::{Organization, PATIENCE, Reply, Script, TestService, eventually, report};

const OUTAGE: Duration = Duration::from_secs(20);
/// Publish timeout, grace period, void record, and slack for a busy machine.
const REFUSED_WITHIN: Duration = Duration::from_millis(3500);
const REPLIES_OF_EACH_KIND: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_finish_without_a_broker_and_service_resumes() {
    let kafka = OwnKafka::start();
    let service = start_cluster(&[("SWITCHBOARD__BUS__BROKERS", &kafka.brokers())]).await;
    let organization = Organization::with_agent(&service, Script::says("unused")).await;
    // Half of the replies end during the outage, the other half after it.
    let short = Script::counts_by_call(40, Duration::from_millis(200));
    let long = Script::counts_by_call(160, Duration::from_millis(200));
    organization.script_for("short", short.clone());
    organization.script_for("long", long.clone());
    let open =
        (0..2 * REPLIES_OF_EACH_KIND).map(|number| begin_reply(&service, &organization, number));
    let open = join_all(open).await;
    kafka.kill();
    let reading = async {
        join_all(
            open.into_iter()
                .map(|(reply, response)| reply.continue_reading(response)),
        )
        .await
    };
    let (replies, refusals, back) = tokio::join!(
        reading,
        refused_during(&organization),
        resume(&organization, &kafka)
    );
    for (number, reply) in replies.iter().enumerate() {
        let (_, script) = kind(number, &short, &long);
        let text = reply.complete();
        assert_eq!(
            text,
            script.text_that_begins(&text),
            "reply {number} is whole"
        );
        let history = organization.settled_history(&format!("s{number}"), 2).await;
        assert_eq!(history["totalMessages"], 2, "{history}");
        assert_eq!(history["messages"][1]["content"], text);
        assert_announced(&Witness::at(&kafka.brokers()), &service, reply).await;
    }
    let calls = ["short", "long"].map(|kind| format!("[[{kind}]]"));
    let requests = organization.requests();
    let calls = requests
        .iter()
        .filter(|request| calls.iter().any(|kind| request.question().contains(kind)))
        .count();
    report(&format!(
        "broker away for {OUTAGE:?}: {} replies whole, {calls} model calls, {} chats refused, slowest after {:.2} s, \
         first new reply {:.1} s after the broker was back",
        replies.len(),
        refusals.len(),
        refusals.iter().max().unwrap().as_secs_f64(),
        back.as_secs_f64()
    ));
}

fn kind<'a>(number: usize, short: &'a Script, long: &'a Script) -> (&'static str, &'a Script) {
    if number < REPLIES_OF_EACH_KIND {
        ("short", short)
    } else {
        ("long", long)
    }
}

async fn begin_reply(
    service: &TestService,
    organization: &Organization,
    number: usize,
) -> (Reply, reqwest::Response) {
    let urls = service.public_urls();
    let client = organization.client_at(&urls[number % urls.len()]);
    let word = if number < REPLIES_OF_EACH_KIND {
        "short"
    } else {
        "long"
    };
    let (reply, response) = client
        .begin_chat(
            organization.shop(),
            &format!("s{number}"),
            &format!("[[{word}]] please"),
            9,
        )
        .await;
    (reply, response)
}

/// The records of refused messages are delivered once Kafka answers again, and Redis has lost the
/// marks that say so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_message_is_never_answered() {
    let (kafka, redis) = (OwnKafka::start(), OwnRedis::start());
    let service = start_cluster(&[
        ("SWITCHBOARD__BUS__BROKERS", &kafka.brokers()),
        ("SWITCHBOARD__REDIS__URL", &redis.url()),
    ])
    .await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let session = |number: usize| format!("s{number}");
    organization.chat("before", "hi").await.complete();
    kafka.suspend();
    let chats = (0..REPLIES_OF_EACH_KIND).map(|number| {
        let organization = &organization;
        async move {
            organization
                .chat(&session(number), "hi")
                .await
                .into_answer()
        }
    });
    for refused in join_all(chats).await {
        refused.assert_problem(503, Some("UNAVAILABLE"));
    }
    redis.kill();
    tokio::task::block_in_place(|| redis.restart());
    kafka.resume();
    eventually("new messages are answered", PATIENCE, async || {
        let reply = organization.chat("after", "hi").await;
        (reply.status == 200 && reply.ended_cleanly).then_some(())
    })
    .await;
    // The refused records precede new ones of their partitions, so that all are handled once a new
    // message of each conversation is answered.
    for number in 0..REPLIES_OF_EACH_KIND {
        organization
            .chat(&session(number), "again")
            .await
            .complete();
        let history = organization.history(&session(number)).await;
        assert_eq!(history["totalMessages"], 2, "{history}");
    }
}

/// Sends chats during the outage and returns the duration of each refusal.
async fn refused_during(organization: &Organization) -> Vec<Duration> {
    let (began, mut took) = (Instant::now(), vec![]);
    while began.elapsed() < OUTAGE - REFUSED_WITHIN {
        let sent = Instant::now();
        let session = format!("refused-{}", took.len());
        let reply = organization
            .chat(&session, "is anyone there?")
            .await
            .into_answer();
        reply.assert_problem(503, Some("UNAVAILABLE"));
        assert!(reply.header("retry-after").is_some());
        assert!(
            sent.elapsed() < REFUSED_WITHIN,
            "refused after {:?}",
            sent.elapsed()
        );
        took.push(sent.elapsed());
    }
    took
}

/// Restarts the broker and returns the time until a new chat is answered.
async fn resume(organization: &Organization, kafka: &OwnKafka) -> Duration {
    tokio::time::sleep(OUTAGE).await;
    tokio::task::block_in_place(|| kafka.restart());
    let began = Instant::now();
    organization.script(Script::says("back to normal"));
    for session in 0..8 {
        eventually("new replies stream again", PATIENCE, async || {
            let reply = organization.chat(&format!("after-{session}"), "hi").await;
            (reply.status == 200 && reply.ended_cleanly).then_some(())
        })
        .await;
    }
    began.elapsed()
}

/// Asserts that the facts of a reply that ended during the outage reach analytics.
async fn assert_announced(witness: &Witness, service: &TestService, reply: &Reply) {
    let events = witness
        .events_of(service, &reply.required_header("x-conversation-id"), 2)
        .await;
    let contents: Vec<_> = events
        .iter()
        .filter_map(|(_, event)| match &event.body {
            EventBody::AssistantMessage(fact) => Some(fact.content.clone()),
            _ => None,
        })
        .collect();
    assert_eq!((events.len(), contents), (2, vec![reply.text()]));
}
