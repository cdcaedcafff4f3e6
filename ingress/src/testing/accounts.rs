//! Sessions and the audit log, in memory.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use switchboard_backends::{
    accounts::{AccountStore, DashboardSession},
    store::StoreError,
};
use switchboard_schemas::{
    audit::AuditEntry,
    ids::{AuditId, OrgId},
    random_token::TokenHash,
};

/// Keeps sessions until they are ended, and every entry.
#[derive(Default)]
pub(crate) struct FakeAccounts {
    pub(crate) sessions: Mutex<HashMap<[u8; 32], DashboardSession>>,
    pub(crate) entries: Mutex<BTreeMap<AuditId, AuditEntry>>,
    pub(crate) away: AtomicBool,
}

impl FakeAccounts {
    fn answers(&self) -> Result<(), StoreError> {
        if self.away.load(Ordering::SeqCst) {
            Err(StoreError::Unavailable("away".into()))
        } else {
            Ok(())
        }
    }
}

#[async_trait]
impl AccountStore for FakeAccounts {
    async fn begin_session(
        &self,
        hash: &TokenHash,
        session: &DashboardSession,
    ) -> Result<(), StoreError> {
        self.answers()?;
        self.sessions
            .lock()
            .unwrap()
            .insert(hash.0, session.clone());
        Ok(())
    }

    async fn session(&self, hash: &TokenHash) -> Result<Option<DashboardSession>, StoreError> {
        self.answers()?;
        Ok(self.sessions.lock().unwrap().get(&hash.0).cloned())
    }

    async fn touch_session(
        &self,
        hash: &TokenHash,
        session: &DashboardSession,
    ) -> Result<(), StoreError> {
        self.answers()?;
        if let Some(kept) = self.sessions.lock().unwrap().get_mut(&hash.0) {
            kept.seen_at = session.seen_at;
        }
        Ok(())
    }

    async fn end_session(&self, hash: &TokenHash) -> Result<(), StoreError> {
        self.answers()?;
        self.sessions.lock().unwrap().remove(&hash.0);
        Ok(())
    }

    async fn record(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        self.answers()?;
        self.entries
            .lock()
            .unwrap()
            .insert(entry.id.clone(), entry.clone());
        Ok(())
    }

    async fn log(
        &self,
        org: &OrgId,
        before: Option<&AuditId>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        self.answers()?;
        let entries = self.entries.lock().unwrap();
        let ours = entries.values().rev().filter(|entry| entry.org_id == *org);
        let found = ours.filter(|entry| before.is_none_or(|before| entry.id < *before));
        Ok(found.take(limit as usize).cloned().collect())
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.answers()
    }
}
