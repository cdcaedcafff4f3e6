//! Memory of an ingress under many large uploads.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;

use super::{form, send_form, taking_files};
use crate::support::{OrganizationDocument, Profile, TestService};

const UPLOADS: usize = 100;
const UPLOAD_BYTES: usize = 2_000_000;
/// Memory that all uploads together may take: the buffers of their connections, however large the
/// files are.
const GROWTH_BYTES_MAX: u64 = UPLOADS as u64 * 1_500_000;

#[tokio::test(flavor = "multi_thread")]
async fn hundred_uploads_at_once_take_the_memory_of_a_few() {
    let service = Arc::new(TestService::start_with(&[]).await);
    let organization = OrganizationDocument::new()
        .shop(taking_files())
        .apply(&service)
        .await;
    let process = match Profile::from_environment() {
        Profile::Embedded => service.process_names("all"),
        Profile::Cluster => service.process_names("ingress"),
    };
    let process = process[0].clone();
    let url = service.public_urls()[0].clone();
    let content = bytes::Bytes::from(form(
        "big.txt",
        "text/plain",
        &vec![b'x'; UPLOAD_BYTES],
        None,
    ));
    let (client, path) = (organization.client_at(&url), organization.path("/files"));
    let resident = |service: &TestService| service.with_process(&process, |it| it.resident_bytes());
    let before = resident(&service);
    let (peak, is_done) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let watch = {
        let (service, peak, is_done) = (service.clone(), peak.clone(), is_done.clone());
        let process = process.clone();
        std::thread::spawn(move || {
            while !is_done.load(Ordering::SeqCst) {
                let now = service.with_process(&process, |it| it.resident_bytes());
                peak.fetch_max(now, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20));
            }
        })
    };
    let uploads = (0..UPLOADS).map(|_| send_form(&client, &path, content.clone()));
    for answer in join_all(uploads).await {
        answer.assert_status(201);
    }
    is_done.store(true, Ordering::SeqCst);
    watch.join().unwrap();
    let growth = peak.load(Ordering::SeqCst).saturating_sub(before);
    println!(
        "{UPLOADS} uploads of {UPLOAD_BYTES} bytes took {} MiB",
        growth >> 20
    );
    assert!(growth < GROWTH_BYTES_MAX, "{growth} bytes");
}
