//! Exports the features of a message for fitting the weights (`tests/routing/fit.py`).

use std::sync::Arc;

use serde::Serialize;

use super::{
    ConversationHolder, IntentRequest, IntentRouter, MESSAGE_CHARS_MAX,
    classifier::{self, FeatureVectors},
    continuity::{self, LaterMessage},
    features::FeatureKind,
    member_profile::MemberProfile,
};

/// The features of one message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportedFeatures {
    /// The kind of features that are available.
    pub ground: &'static str,
    /// Features of each member, in their order.
    pub members: Vec<Vec<f32>>,
    /// Features of out of scope.
    pub nobody: Vec<f32>,
    /// Features of continuity in a running conversation; the first two depend on the scores.
    pub turn: Option<Vec<f32>>,
}

impl IntentRouter {
    /// Returns the features of a message.
    pub(crate) async fn export_features(&self, question: &IntentRequest<'_>) -> ExportedFeatures {
        let message: String = question.message.chars().take(MESSAGE_CHARS_MAX).collect();
        let profiles: Vec<Arc<MemberProfile>> = question
            .members
            .iter()
            .map(|member| self.profile(member))
            .collect();
        let profiles: Vec<&MemberProfile> = profiles.iter().map(AsRef::as_ref).collect();
        let findings = self
            .findings(&message, &profiles, question.embedding.as_ref())
            .await;
        let shares = classifier::shares(&findings);
        let turn = (question.current != ConversationHolder::Nobody).then(|| {
            let turn = LaterMessage {
                message: &message,
                last_agent_text: question.last_agent_text,
                with_default: question.current == ConversationHolder::Default,
                names_present: false,
                present: shares[0],
                other: shares[0],
            };
            continuity::features(&turn).to_vec()
        });
        let figures = FeatureVectors::of(&findings);
        ExportedFeatures {
            ground: match findings.ground {
                FeatureKind::Words => "words",
                FeatureKind::Vectors => "vectors",
                FeatureKind::English => "english",
                FeatureKind::ReadInEnglish => "readInEnglish",
            },
            members: figures
                .members
                .iter()
                .map(|member| member.to_vec())
                .collect(),
            nobody: figures.nobody.to_vec(),
            turn,
        }
    }
}
