//! Connects the end of a turn with the task that publishes its events beside the work.

use switchboard_schemas::message_event::MessageEvent;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Sending half, for the finalizer of the turn.
pub(super) struct AnnouncementSender {
    event: oneshot::Sender<MessageEvent>,
    published: CancellationToken,
}

/// Receiving half, for the task that publishes events.
pub(super) struct AnnouncementReceiver {
    event: oneshot::Receiver<MessageEvent>,
    published: CancellationToken,
}

/// Creates the two connected halves for one turn.
pub(super) fn channel() -> (AnnouncementSender, AnnouncementReceiver) {
    let (sender, receiver) = oneshot::channel();
    let published = CancellationToken::new();
    (
        AnnouncementSender {
            event: sender,
            published: published.clone(),
        },
        AnnouncementReceiver {
            event: receiver,
            published,
        },
    )
}

impl AnnouncementSender {
    /// Hands the event over for publication. The returned token is cancelled once it is published.
    pub(super) fn send_event(self, event: MessageEvent) -> CancellationToken {
        // The receiver lives as long as the turn.
        let _ = self.event.send(event);
        self.published
    }
}

impl AnnouncementReceiver {
    /// Waits for the reply's event; `None` if the turn ends without one.
    pub(super) async fn event(&mut self) -> Option<MessageEvent> {
        (&mut self.event).await.ok()
    }

    /// Reports that all events of the turn are published.
    pub(super) fn mark_published(&self) {
        self.published.cancel();
    }
}
