//! The contract of [`super::Accounts`], sentence by sentence, for both twins.

use std::{sync::Arc, time::Duration};

use switchboard_schemas::{
    audit::{AuditAction, AuditActor, AuditEntry, FieldChange},
    email::EmailAddress,
    ids::{AuditId, OrgId, UserId},
    random_token::TokenHash,
    secret::InstallationSecret,
    time::Timestamp,
};

use super::{AccountStore, DashboardSession, embedded::EmbeddedAccounts};

const HOUR: Duration = Duration::from_secs(3600);

/// A twin under test.
struct Subject {
    accounts: Arc<dyn AccountStore>,
    _directory: Option<tempfile::TempDir>,
}

conformance_tests! {
    a_session_is_found_by_its_hash_until_it_ends,
    a_touch_moves_the_last_use_and_nothing_else,
    a_touch_that_comes_late_opens_no_ended_session,
    a_session_past_its_end_is_not_found,
    ending_what_is_not_there_succeeds,
    the_log_is_read_latest_first_in_pages_that_join,
    recording_an_entry_again_changes_nothing,
    an_organizations_log_shows_no_other_ones_entries,
    both_answer_their_check,
}

fn embedded_subject() -> Subject {
    let directory = tempfile::tempdir().unwrap();
    let accounts = Arc::new(EmbeddedAccounts::open(&directory.path().join("accounts.db")).unwrap());
    Subject {
        accounts,
        _directory: Some(directory),
    }
}

#[cfg(feature = "real-services")]
async fn scylla_subject() -> Subject {
    let link = crate::scylla_link::testing::link().await;
    Subject {
        accounts: Arc::new(super::scylla::ScyllaAccounts::connect(link)),
        _directory: None,
    }
}

/// An organization of its own, so that no two tests meet.
pub(super) fn org() -> OrgId {
    OrgId::derive(&InstallationSecret::from_bytes(rand::random()), "acme")
}

fn email() -> EmailAddress {
    "ada@example.org".parse().unwrap()
}

fn user() -> UserId {
    UserId::derive(&InstallationSecret::from_bytes([1; 32]), &email())
}

pub(super) fn session() -> DashboardSession {
    let now = Timestamp::now();
    DashboardSession {
        user: user(),
        epoch: u64::MAX,
        began_at: now,
        seen_at: now,
        expires_at: now.after(HOUR),
    }
}

pub(super) fn entry(org: &OrgId) -> AuditEntry {
    AuditEntry {
        id: AuditId::now(),
        org_id: org.clone(),
        actor: AuditActor::User {
            id: user(),
            email: email(),
        },
        action: AuditAction::Update,
        kind: "agent".into(),
        subject: "agt_x".into(),
        fields: vec![FieldChange {
            field: "status".into(),
            before: Some("active".into()),
            after: None,
        }],
        address: Some("198.51.100.0".into()),
        request_id: None,
    }
}

fn hash() -> TokenHash {
    TokenHash(rand::random())
}

async fn a_session_is_found_by_its_hash_until_it_ends(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    let (one, two, session) = (hash(), hash(), session());
    assert_eq!(accounts.session(&one).await.unwrap(), None);
    for hash in [&one, &two] {
        accounts.begin_session(hash, &session).await.unwrap();
        assert_eq!(
            accounts.session(hash).await.unwrap().as_ref(),
            Some(&session)
        );
    }
    accounts.end_session(&one).await.unwrap();
    assert_eq!(accounts.session(&one).await.unwrap(), None);
    assert_eq!(accounts.session(&two).await.unwrap(), Some(session));
}

async fn a_touch_moves_the_last_use_and_nothing_else(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    let (hash, session) = (hash(), session());
    accounts.begin_session(&hash, &session).await.unwrap();
    let later = DashboardSession {
        seen_at: session.seen_at.after(HOUR / 2),
        ..session
    };
    accounts.touch_session(&hash, &later).await.unwrap();
    assert_eq!(accounts.session(&hash).await.unwrap(), Some(later));
}

async fn a_touch_that_comes_late_opens_no_ended_session(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    let (hash, session) = (hash(), session());
    accounts.begin_session(&hash, &session).await.unwrap();
    accounts.end_session(&hash).await.unwrap();
    let later = DashboardSession {
        seen_at: session.seen_at.after(HOUR / 2),
        ..session
    };
    accounts.touch_session(&hash, &later).await.unwrap();
    assert_eq!(accounts.session(&hash).await.unwrap(), None);
}

async fn a_session_past_its_end_is_not_found(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    let hash = hash();
    let past = DashboardSession {
        expires_at: Timestamp::now(),
        ..session()
    };
    accounts.begin_session(&hash, &past).await.unwrap();
    assert_eq!(accounts.session(&hash).await.unwrap(), None);
}

async fn ending_what_is_not_there_succeeds(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    let hash = hash();
    accounts.end_session(&hash).await.unwrap();
    accounts.begin_session(&hash, &session()).await.unwrap();
    accounts.end_session(&hash).await.unwrap();
    accounts.end_session(&hash).await.unwrap();
    assert_eq!(accounts.session(&hash).await.unwrap(), None);
}

async fn the_log_is_read_latest_first_in_pages_that_join(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    let org = org();
    let mut entries = Vec::new();
    for _ in 0..7 {
        entries.push(entry(&org));
        accounts.record(entries.last().unwrap()).await.unwrap();
    }
    // An entry of long ago lies in another partition of the production twin.
    let old = AuditEntry {
        id: "aud_00000000000000000000000000".parse().unwrap(),
        ..entry(&org)
    };
    accounts.record(&old).await.unwrap();
    entries.insert(0, old);
    entries.reverse();
    assert_eq!(accounts.log(&org, None, 99).await.unwrap(), entries);
    let mut walked: Vec<AuditEntry> = Vec::new();
    loop {
        let page = accounts
            .log(&org, walked.last().map(|entry| &entry.id), 3)
            .await
            .unwrap();
        if page.is_empty() {
            break;
        }
        walked.extend(page);
    }
    assert_eq!(walked, entries);
}

async fn recording_an_entry_again_changes_nothing(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    let entry = entry(&org());
    for _ in 0..2 {
        accounts.record(&entry).await.unwrap();
    }
    assert_eq!(accounts.log(&entry.org_id, None, 9).await.unwrap(), [entry]);
}

async fn an_organizations_log_shows_no_other_ones_entries(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    let (ours, other) = (entry(&org()), entry(&org()));
    accounts.record(&ours).await.unwrap();
    accounts.record(&other).await.unwrap();
    assert_eq!(accounts.log(&ours.org_id, None, 9).await.unwrap(), [ours]);
}

async fn both_answer_their_check(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    accounts.check().await.unwrap();
}
