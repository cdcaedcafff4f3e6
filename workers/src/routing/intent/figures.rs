//! The figures of a decision as they are weighed, for the fitting of weights (`tests/routing/fit.py`).

use std::sync::Arc;

use serde::Serialize;

use super::{
    Current, Intent, MESSAGE_CHARS_MAX, Question,
    continuity::{self, Turn},
    evidence::Ground,
    odds::{self, Figures},
    profile::Profile,
};

/// The figures of one message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Weighed {
    /// What they stand on.
    pub ground: &'static str,
    /// Of each member.
    pub members: Vec<Vec<f32>>,
    /// Of nobody.
    pub nobody: Vec<f32>,
    /// Of the turn, in a running conversation; the first two follow from the shares.
    pub turn: Option<Vec<f32>>,
}

impl Intent {
    /// What is weighed for a question.
    pub(crate) async fn weighed(&self, question: &Question<'_>) -> Weighed {
        let message: String = question.message.chars().take(MESSAGE_CHARS_MAX).collect();
        let profiles: Vec<Arc<Profile>> = question
            .members
            .iter()
            .map(|member| self.profile(member))
            .collect();
        let profiles: Vec<&Profile> = profiles.iter().map(AsRef::as_ref).collect();
        let findings = self
            .findings(&message, &profiles, question.embedding.as_ref())
            .await;
        let shares = odds::shares(&findings);
        let turn = (question.current != Current::Nobody).then(|| {
            let turn = Turn {
                message: &message,
                agent_said: question.agent_said,
                with_default: question.current == Current::Default,
                names_present: false,
                present: shares[0],
                other: shares[0],
            };
            continuity::figures(&turn).to_vec()
        });
        let figures = Figures::of(&findings);
        Weighed {
            ground: match findings.ground {
                Ground::Words => "words",
                Ground::Vectors => "vectors",
                Ground::English => "english",
                Ground::ReadInEnglish => "readInEnglish",
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
