//! Conformance tests of erasure records.

use switchboard_schemas::{
    erasure::{Erasure, ErasureRequester, VisitorDigest},
    ids::{ErasureId, OrgId},
};

use super::{Subject, Talk, noon_and};

fn erasure(org: &OrgId, steps: u64) -> Erasure {
    Erasure {
        id: ErasureId::now(),
        org_id: org.clone(),
        visitor: VisitorDigest {
            visitor_id: Some("00".into()),
            visitor_email: None,
        },
        by: ErasureRequester::Token,
        began_at: noon_and(0),
        finished_at: None,
        place: None,
        steps,
        looked_at: 10 * steps,
        conversations: steps,
        messages: 2 * steps,
    }
}

pub(super) async fn later_state_of_an_erasure_wins(subject: Subject) {
    let org = Talk::new().org;
    let early = erasure(&org, 1);
    let late = Erasure {
        steps: 2,
        finished_at: Some(noon_and(9)),
        ..early.clone()
    };
    for order in [[&early, &late], [&late, &early]] {
        for state in order {
            subject.store.put_erasure(state).await.unwrap();
        }
        assert_eq!(
            subject
                .store
                .erasure(&org, &early.id)
                .await
                .unwrap()
                .as_ref(),
            Some(&late)
        );
    }
    assert_eq!(
        subject
            .store
            .erasure(&org, &ErasureId::now())
            .await
            .unwrap(),
        None
    );
}

pub(super) async fn erasures_are_listed_latest_first_and_pages_join(subject: Subject) {
    let org = Talk::new().org;
    let mut expected = Vec::new();
    for steps in 0..5 {
        let erasure = erasure(&org, steps);
        subject.store.put_erasure(&erasure).await.unwrap();
        expected.insert(0, erasure);
    }
    let (mut found, mut before): (Vec<Erasure>, Option<ErasureId>) = (Vec::new(), None);
    loop {
        let page = subject
            .store
            .erasures(&org, before.as_ref(), 2)
            .await
            .unwrap();
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        before = Some(last.id.clone());
        found.extend(page);
    }
    assert_eq!(found, expected);
}

pub(super) async fn erasures_are_invisible_to_another_organization(subject: Subject) {
    let (org, other) = (Talk::new().org, Talk::new().org);
    let erasure = erasure(&org, 1);
    subject.store.put_erasure(&erasure).await.unwrap();
    assert_eq!(
        subject.store.erasure(&other, &erasure.id).await.unwrap(),
        None
    );
    assert_eq!(subject.store.erasures(&other, None, 10).await.unwrap(), []);
}
