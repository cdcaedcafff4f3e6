//! Removes organizations: closes them, waits for the end of running replies, counts their
//! conversations for the receipt and erases everything.
//!
//! Every process with the inference role looks for removals that are not finished. The progress is
//! stored after each step, and each step can be repeated, so that another process goes on after a
//! crash. A claim for a short time keeps two processes from doing the same work; where it fails,
//! the work is done twice and no harm is done.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use switchboard_backends::{
    Backends, StoreError,
    catalog::{CatalogEntry, EntryKind},
    relay::FINAL_STATE_TTL,
    store::listing::{ListCursor, ListQuery, ListedConversation},
};
use switchboard_schemas::{
    conversation::ConversationOwner,
    erasure::ErasureCursor,
    ids::{OrgId, RequestId},
    removal::OrganizationRemoval,
    time::Timestamp,
};
use tokio_util::sync::CancellationToken;

use crate::inference::relay_texts::remove_texts;

/// Pause between two looks for removals.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Time for which a process claims a removal.
const CLAIM_TIME: Duration = Duration::from_secs(10);
/// Conversations that are counted in one step.
const PAGE_SIZE: u32 = 500;
/// Conversations that are counted at the same time.
const COUNTED_AT_ONCE: usize = 8;
/// Entries that nobody can use any more once the organization is closed.
const CLOSED_KINDS: [EntryKind; 6] = [
    EntryKind::User,
    EntryKind::Key,
    EntryKind::Team,
    EntryKind::Agent,
    EntryKind::Provider,
    EntryKind::Organization,
];

/// Completes the removals of organizations.
pub(crate) struct RemovalRunner {
    backends: Backends,
    /// Time after which no reply of a closed organization is running.
    delay: Duration,
    /// Name of this process in claims.
    process: RequestId,
}

/// Conversations and messages of a page.
#[derive(Clone, Copy, Default)]
struct ConversationCount {
    conversations: u64,
    messages: u64,
}

impl RemovalRunner {
    pub(crate) fn new(backends: Backends, delay: Duration) -> Self {
        Self {
            backends,
            delay,
            process: RequestId::random(),
        }
    }

    /// Works on removals until `shutdown`.
    pub(crate) async fn run_until(&self, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                worked = self.work() => if let Err(error) = worked {
                    tracing::warn!(%error, "removals not read; tried again");
                },
            }
        }
    }

    /// Brings every removal as far as possible.
    pub(crate) async fn work(&self) -> Result<(), StoreError> {
        let removals = self.backends.catalog.list(EntryKind::Removal, None).await?;
        for entry in removals {
            let CatalogEntry::Removal(removal) = entry else {
                continue;
            };
            if removal.finished_at.is_some() {
                continue;
            }
            let org = removal.org_id.clone();
            if let Err(error) = self.proceed(removal).await {
                tracing::warn!(%error, organization.id = %org, "removal interrupted; it goes on");
            }
        }
        Ok(())
    }

    async fn proceed(&self, mut removal: OrganizationRemoval) -> Result<(), StoreError> {
        while removal.finished_at.is_none() {
            if !self.claim(&removal.org_id).await? {
                return Ok(());
            }
            let Some(next) = self.step(&removal).await? else {
                return Ok(());
            };
            let catalog = &self.backends.catalog;
            let stored = catalog.get(EntryKind::Removal, removal.org_id.as_str());
            if stored.await? != Some(CatalogEntry::Removal(removal)) {
                // Another process has gone on meanwhile.
                return Ok(());
            }
            catalog.put(&CatalogEntry::Removal(next.clone())).await?;
            removal = next;
        }
        tracing::info!(
            organization.id = %removal.org_id,
            conversations = removal.conversations,
            messages = removal.messages,
            "removed an organization"
        );
        Ok(())
    }

    /// Claims a removal for a moment. Returns false while another process has it.
    async fn claim(&self, org: &OrgId) -> Result<bool, StoreError> {
        let slot = Timestamp::now().micros() / i64::try_from(CLAIM_TIME.as_micros()).unwrap_or(1);
        let name = format!("removal:{org}:{slot}");
        let relay = &self.backends.relay;
        let holder = relay.get_or_insert(&name, self.process.as_str()).await;
        let holder = holder.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(holder == self.process.as_str())
    }

    /// Does the next step and returns the progress; `None` if it is too early for one.
    async fn step(
        &self,
        removal: &OrganizationRemoval,
    ) -> Result<Option<OrganizationRemoval>, StoreError> {
        let mut next = removal.clone();
        // Each time: another process may have written an entry that it had planned before.
        self.close(&removal.org_id).await?;
        match removal.closed_at {
            None => next.closed_at = Some(Timestamp::now()),
            Some(closed) if Timestamp::now() < closed.after(self.delay) => return Ok(None),
            Some(_) if !removal.is_counted => self.count_page(&mut next).await?,
            Some(_) => {
                self.erase(&removal.org_id).await?;
                next.finished_at = Some(Timestamp::now());
            }
        }
        Ok(Some(next))
    }

    async fn close(&self, org: &OrgId) -> Result<(), StoreError> {
        let catalog = &self.backends.catalog;
        for kind in CLOSED_KINDS {
            for entry in catalog.list(kind, Some(org)).await? {
                catalog.remove(kind, org, entry.id()).await?;
            }
        }
        Ok(())
    }

    async fn count_page(&self, removal: &mut OrganizationRemoval) -> Result<(), StoreError> {
        let org = removal.org_id.clone();
        let place = removal.place.take();
        let query = ListQuery {
            behind: place.map(|ErasureCursor { began_at, id }| ListCursor { began_at, id }),
            limit: PAGE_SIZE,
            ..ListQuery::default()
        };
        let page = self.backends.store.conversations(&org, &query).await?;
        removal.is_counted = page.len() < PAGE_SIZE as usize;
        removal.place = page.last().map(|last| ErasureCursor {
            began_at: last.began_at,
            id: Some(last.id.clone()),
        });
        let counts = stream::iter(page).map(|listed| self.count(&org, listed));
        let counts: Vec<_> = counts
            .buffer_unordered(COUNTED_AT_ONCE)
            .try_collect()
            .await?;
        for count in counts {
            removal.conversations += count.conversations;
            removal.messages += count.messages;
        }
        Ok(())
    }

    /// Counts a conversation, and removes what the relay keeps of it.
    async fn count(
        &self,
        org: &OrgId,
        listed: ListedConversation,
    ) -> Result<ConversationCount, StoreError> {
        let found = self.backends.store.conversation(org, &listed.id).await?;
        let found = found.filter(|found| found.created_at == listed.began_at);
        let Some(conversation) = found else {
            return Ok(ConversationCount::default());
        };
        // The reasons of routing decisions quote the words of members.
        let is_routed = matches!(conversation.owner, ConversationOwner::Team(_));
        if is_routed && conversation.updated_at.after(FINAL_STATE_TTL) > Timestamp::now() {
            remove_texts(&self.backends, org, &listed.id, FINAL_STATE_TTL).await;
        }
        Ok(ConversationCount {
            conversations: 1,
            messages: conversation.message_count,
        })
    }

    async fn erase(&self, org: &OrgId) -> Result<(), StoreError> {
        let unavailable =
            |error: &dyn std::fmt::Display| StoreError::Unavailable(error.to_string());
        let backends = &self.backends;
        backends.eraser.erase_organization(org).await?;
        let erased = backends.bus.erase_organization(org).await;
        erased.map_err(|error| unavailable(&error))?;
        backends.files.remove_organization(org).await?;
        let erased = backends.relay.erase_residue().await;
        erased.map_err(|error| unavailable(&error))
    }
}
