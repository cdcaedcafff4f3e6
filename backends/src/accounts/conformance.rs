//! Conformance tests of [`super::AccountActivityStore`], run on both backends.

use std::{sync::Arc, time::Duration};

use switchboard_schemas::{
    audit::{AuditAction, AuditActor, AuditEntry, FieldChange},
    email::EmailAddress,
    ids::{AuditId, OrgId, UserId},
    random_token::TokenHash,
    secret::InstallationSecret,
    time::Timestamp,
};

use super::{AccountActivityStore, DashboardSession, embedded::EmbeddedAccounts};

const HOUR: Duration = Duration::from_secs(3600);

/// A backend under test.
struct Subject {
    accounts: Arc<dyn AccountActivityStore>,
    _directory: Option<tempfile::TempDir>,
}

conformance_tests! {
    session_is_found_by_its_hash_until_it_ends,
    touch_changes_only_the_last_use,
    late_touch_does_not_reopen_an_ended_session,
    expired_session_is_not_found,
    ending_an_unknown_session_succeeds,
    log_pages_join_latest_first,
    repeated_log_entry_changes_nothing,
    log_shows_only_entries_of_its_organization,
    account_store_check_succeeds,
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

/// Returns a unique organization, so that tests do not share data.
pub(super) fn org() -> OrgId {
    OrgId::derive(&InstallationSecret::from_bytes(rand::random()), "acme")
}

fn email() -> EmailAddress {
    "ada@example.org".parse().unwrap()
}

fn user() -> UserId {
    UserId::derive(&InstallationSecret::from_bytes([1; 32]), &org(), &email())
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

async fn session_is_found_by_its_hash_until_it_ends(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    let (one, two, session) = (hash(), hash(), session());
    assert_eq!(accounts.find_session(&one).await.unwrap(), None);
    for hash in [&one, &two] {
        accounts.begin_session(hash, &session).await.unwrap();
        assert_eq!(
            accounts.find_session(hash).await.unwrap().as_ref(),
            Some(&session)
        );
    }
    accounts.end_session(&one).await.unwrap();
    assert_eq!(accounts.find_session(&one).await.unwrap(), None);
    assert_eq!(accounts.find_session(&two).await.unwrap(), Some(session));
}

async fn touch_changes_only_the_last_use(
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
    assert_eq!(accounts.find_session(&hash).await.unwrap(), Some(later));
}

async fn late_touch_does_not_reopen_an_ended_session(
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
    assert_eq!(accounts.find_session(&hash).await.unwrap(), None);
}

async fn expired_session_is_not_found(
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
    assert_eq!(accounts.find_session(&hash).await.unwrap(), None);
}

async fn ending_an_unknown_session_succeeds(
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
    assert_eq!(accounts.find_session(&hash).await.unwrap(), None);
}

async fn log_pages_join_latest_first(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    let org = org();
    let mut entries = Vec::new();
    for _ in 0..7 {
        entries.push(entry(&org));
        accounts
            .append_entry(entries.last().unwrap())
            .await
            .unwrap();
    }
    // An old entry is in another partition of the Scylla backend.
    let old = AuditEntry {
        id: "aud_00000000000000000000000000".parse().unwrap(),
        ..entry(&org)
    };
    accounts.append_entry(&old).await.unwrap();
    entries.insert(0, old);
    entries.reverse();
    assert_eq!(accounts.log_entries(&org, None, 99).await.unwrap(), entries);
    let mut walked: Vec<AuditEntry> = Vec::new();
    loop {
        let page = accounts
            .log_entries(&org, walked.last().map(|entry| &entry.id), 3)
            .await
            .unwrap();
        if page.is_empty() {
            break;
        }
        walked.extend(page);
    }
    assert_eq!(walked, entries);
}

async fn repeated_log_entry_changes_nothing(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    let entry = entry(&org());
    for _ in 0..2 {
        accounts.append_entry(&entry).await.unwrap();
    }
    assert_eq!(
        accounts.log_entries(&entry.org_id, None, 9).await.unwrap(),
        [entry]
    );
}

async fn log_shows_only_entries_of_its_organization(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    let (ours, other) = (entry(&org()), entry(&org()));
    accounts.append_entry(&ours).await.unwrap();
    accounts.append_entry(&other).await.unwrap();
    assert_eq!(
        accounts.log_entries(&ours.org_id, None, 9).await.unwrap(),
        [ours]
    );
}

async fn account_store_check_succeeds(
    Subject {
        accounts,
        _directory,
    }: Subject,
) {
    accounts.check().await.unwrap();
}
