//! Conformance tests of lists: their entries, order and pages.

use switchboard_schemas::{
    agent::{AgentSettings, EcommerceSettings, Product},
    ids::{AgentId, OrgId, TeamId},
    lead::{LeadConsent, LeadField, LeadFieldKind, LeadForm, LeadTrigger},
    secret::InstallationSecret,
    team::{RoutingStrategy, Team, TeamMember},
};

use super::{Subject, account, agent, key, org, organization, provider, unique_address};
use crate::catalog::{CatalogEntry, EntryKind, EntryPage};

/// Larger than the summary of any agent in these tests.
const SUMMARY_BYTES_MAX: usize = 4 << 10;

/// Returns an agent with long texts everywhere.
pub(in crate::catalog) fn large_agent(org: &OrgId, slug: &str) -> CatalogEntry {
    let CatalogEntry::Agent(mut large) = agent(org, slug, "Large") else {
        unreachable!()
    };
    let long = "long ".repeat(2_000);
    let product = Product {
        title: long.clone(),
        ..Product::default()
    };
    let field = LeadField {
        name: "email".into(),
        label: "E-mail".into(),
        kind: LeadFieldKind::Email,
        required: true,
        options: Vec::new(),
    };
    large.settings = AgentSettings {
        description: "Sells tea.".into(),
        instructions: long.clone(),
        welcome_message: long.clone(),
        allowed_domains: (0..100).map(|index| format!("{index}.example")).collect(),
        ecommerce: EcommerceSettings {
            enabled: true,
            products: vec![product; 3],
            feed: None,
        },
        lead_form: Some(LeadForm {
            title: String::new(),
            text: "Text of the form.".into(),
            consent: LeadConsent {
                text: "I agree.".into(),
                link: None,
            },
            fields: vec![field],
            trigger: LeadTrigger::Tool,
            after_replies: None,
        }),
        ..large.settings
    };
    CatalogEntry::Agent(large)
}

/// Returns a team whose members have long specializations.
pub(in crate::catalog) fn team(org: &OrgId, slug: &str) -> CatalogEntry {
    let secret = InstallationSecret::from_bytes([1; 32]);
    let member = |name: &str| TeamMember {
        agent: AgentId::derive(&secret, org, name),
        specialization: "tea and coffee ".repeat(500),
    };
    CatalogEntry::Team(Team {
        id: TeamId::derive(&secret, org, slug),
        org_id: org.clone(),
        slug: slug.into(),
        name: "Front desk".into(),
        description: "Answers first.".into(),
        routing: RoutingStrategy::Intent,
        default_agent: None,
        members: vec![member("one"), member("two")],
        public: true,
        status: switchboard_schemas::agent::ActivationStatus::Active,
    })
}

impl Subject {
    async fn page(&self, kind: EntryKind, org: &OrgId, offset: u64, limit: u32) -> EntryPage {
        let page = self.catalog.page(kind, Some(org), offset, limit);
        page.await.unwrap()
    }

    async fn labels(&self, kind: EntryKind, org: &OrgId) -> Vec<String> {
        let page = self.page(kind, org, 0, 200).await;
        assert_eq!(page.total, page.entries.len());
        let labels = page.entries.iter().map(CatalogEntry::label);
        labels.map(ToOwned::to_owned).collect()
    }
}

pub(super) async fn entries_are_listed_by_organization_in_order_of_ids(subject: Subject) {
    let (org, other) = (org(), org());
    let mut entries: Vec<CatalogEntry> = (0..30)
        .map(|index| agent(&org, &format!("agent-{index}"), "Agent"))
        .collect();
    for entry in entries
        .iter()
        .chain([&agent(&other, "agent-0", "Other"), &provider(&org, &[])])
    {
        subject.put(entry).await;
    }
    entries.sort_by(|left, right| left.id().cmp(right.id()));
    assert_eq!(
        subject
            .catalog
            .list(EntryKind::Agent, Some(&org))
            .await
            .unwrap(),
        entries
    );
    assert_eq!(
        subject
            .catalog
            .list(EntryKind::Agent, Some(&other))
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        subject
            .catalog
            .list(EntryKind::Team, Some(&org))
            .await
            .unwrap(),
        []
    );
}

pub(super) async fn organizations_are_listed_for_the_installation(subject: Subject) {
    let (kept, removed) = (organization("kept"), organization("removed"));
    subject.put(&kept).await;
    subject.put(&removed).await;
    subject.remove(&removed).await;
    let listed = subject
        .catalog
        .list(EntryKind::Organization, None)
        .await
        .unwrap();
    assert!(listed.contains(&kept) && !listed.contains(&removed));
    assert!(listed.is_sorted_by(|left, right| left.id() < right.id()));
}

pub(super) async fn lists_contain_summaries_without_long_texts(subject: Subject) {
    let org = org();
    for entry in [large_agent(&org, "shop"), team(&org, "front")] {
        subject.put(&entry).await;
        let listed = subject.catalog.list(entry.kind(), Some(&org)).await;
        assert_eq!(listed.unwrap(), [entry.summary()]);
        let page = subject.page(entry.kind(), &org, 0, 1).await;
        assert_eq!(page.entries, [entry.summary()]);
        let bytes = serde_json::to_vec(&page.entries[0]).unwrap().len();
        assert!(bytes < SUMMARY_BYTES_MAX, "{bytes} bytes");
        let whole = subject.catalog.get(entry.kind(), entry.id()).await;
        assert_eq!(whole.unwrap().as_ref(), Some(&entry));
    }
    let agents = subject.page(EntryKind::Agent, &org, 0, 1).await.entries;
    let [CatalogEntry::Agent(agent)] = agents.as_slice() else {
        panic!("{agents:?}")
    };
    let settings = &agent.settings;
    assert_eq!(settings.description, "Sells tea.");
    assert_eq!(settings.allowed_domains.len(), 3);
    assert_eq!(settings.lead_form.as_ref().unwrap().fields[0].name, "email");
}

pub(super) async fn pages_are_in_order_of_labels_and_add_up(subject: Subject) {
    let (org, other) = (org(), org());
    let slugs = ["b", "a-1", "Zoo", "a", "z", "é", "a_1"];
    for slug in slugs {
        subject.put(&agent(&org, slug, "Agent")).await;
    }
    subject.put(&agent(&other, "a", "Agent")).await;
    subject.put(&provider(&org, &[])).await;
    let mut sorted = slugs.to_vec();
    sorted.sort_unstable();
    assert_eq!(subject.labels(EntryKind::Agent, &org).await, sorted);
    let mut joined = Vec::new();
    for offset in 0..4 {
        let page = subject.page(EntryKind::Agent, &org, 2 * offset, 2).await;
        assert_eq!(page.total, slugs.len());
        joined.extend(page.entries);
    }
    let all = subject.page(EntryKind::Agent, &org, 0, u32::MAX).await;
    assert_eq!(joined, all.entries);
    for (offset, limit) in [(7, 2), (u64::MAX, 2), (0, 0)] {
        let page = subject.page(EntryKind::Agent, &org, offset, limit).await;
        assert_eq!((page.entries, page.total), (Vec::new(), slugs.len()));
    }
    let none = subject.page(EntryKind::Team, &org, 0, 2).await;
    assert_eq!((none.entries, none.total), (Vec::new(), 0));
}

pub(super) async fn renamed_key_moves_in_its_list(subject: Subject) {
    let org = org();
    let CatalogEntry::Key { mut key, hash } = key(&org, rand::random()) else {
        unreachable!()
    };
    let user = account(&org, &unique_address(), "Ada");
    subject.put(&user).await;
    for name in ["site", "app", "zebra"] {
        key.name = name.into();
        let key = key.clone();
        subject.put(&CatalogEntry::Key { key, hash }).await;
        assert_eq!(subject.labels(EntryKind::Key, &org).await, [name]);
    }
    let users = subject.labels(EntryKind::User, &org).await;
    assert_eq!(users, [user.label()]);
}

pub(super) async fn removed_entry_leaves_its_list(subject: Subject) {
    let org = org();
    let (kept, removed) = (agent(&org, "kept", "Kept"), agent(&org, "gone", "Gone"));
    subject.put(&kept).await;
    subject.put(&removed).await;
    subject.remove(&removed).await;
    assert_eq!(subject.labels(EntryKind::Agent, &org).await, ["kept"]);
    subject.put(&removed).await;
    let labels = subject.labels(EntryKind::Agent, &org).await;
    assert_eq!(labels, ["gone", "kept"]);
}
