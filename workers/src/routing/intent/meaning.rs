//! How alike a message and each member are, by the vectors of their texts: directly, and by way of known matters.
//!
//! A visitor's sentence and a member's phrase are unlike texts even where they mean the same. A sentence and what others say
//! of a matter are like texts; and so are the name of that matter and the member's phrase. So the sayings that are nearest to
//! the message say what it may be about, and these matters are held against the members.

use std::sync::Arc;

use super::{
    background::{Background, Guess, Nearness, highest, mean},
    evidence::Ground,
    profile::{Profile, Texts},
    reading,
};
use crate::embedding::{Vector, cosine};

/// A sentence that is nobody's matter is some member's after all, if it is as alike to a piece of it.
const MEMBERS_MIN: f32 = 4.0;
/// Sentences or pieces that are averaged: one may be near by chance.
const NEAREST: usize = 3;
/// How much less a piece counts than the nearest: at this distance, in deviations, a power of e.
const PIECES_WIDTH: f32 = 0.5;

/// How alike a message and a member are, on the model's own scale; [less](Nearness) what its texts are to everything, where
/// nothing else is said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alike {
    /// The piece of it that is most alike.
    pub(super) piece: f32,
    /// The mean of the nearest of these.
    pub(super) pieces: f32,
    /// The same with nothing taken off.
    pub(super) pieces_plain: f32,
    /// All of these, of which the nearest say most.
    pub(super) pooled: f32,
    /// Its specialization.
    pub(super) matters: f32,
    /// All of it.
    pub(super) whole: f32,
    /// The sentence of those who mean its matters that is most alike; nothing taken off.
    pub(super) saying: f32,
    /// The mean of the nearest of these.
    pub(super) sayings: f32,
    /// The matters that the message may be about, and the piece that is most alike to each.
    pub(super) matter_piece: f32,
    /// These matters, and all of it.
    pub(super) matter_whole: f32,
}

/// How alike a message is to sentences that are nobody's matter, and no member's either.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AlikeNobodys {
    /// The nearest.
    pub(super) nearest: f32,
    /// The mean of the nearest.
    pub(super) near: f32,
}

/// The vectors of one message and its team.
pub(super) struct MessageVectors {
    asked: Vector,
    members: Vec<Arc<MemberVectors>>,
    background: Arc<Background>,
    ground: Ground,
}

/// The vectors of a member, and what they are to the background: made once.
pub(super) struct MemberVectors {
    whole: Placed,
    matters: Placed,
    pieces: Vec<Placed>,
    /// The places of what visitors say of its matters.
    sayings: Vec<usize>,
    /// Which of the sentences that are nobody's matter are its matter.
    nobodys: Vec<bool>,
}

/// A text of a member.
struct Placed {
    vector: Vector,
    nearness: Nearness,
}

/// What the vectors of a model are good for, between a message and a team.
pub(super) fn ground(background: &Background, message: &str, profiles: &[&Profile]) -> Ground {
    let knows = |text: &str| background.knows(reading::languages(text));
    let known = knows(message)
        && profiles
            .first()
            .is_none_or(|profile| knows(&profile.texts.whole));
    match (known, background.knows_english_only()) {
        (true, false) => Ground::Vectors,
        (true, true) => Ground::English,
        (false, _) => Ground::ReadInEnglish,
    }
}

/// The message as it is made a vector.
pub(super) fn asked(message: &str, ground: Ground) -> String {
    if ground == Ground::ReadInEnglish {
        reading::in_english(message)
    } else {
        message.to_owned()
    }
}

/// What is made vectors of a member, in the order in which [`MemberVectors::of`] takes them.
pub(super) const fn member_texts(profile: &Profile, ground: Ground) -> &Arc<Texts> {
    match ground {
        Ground::Words | Ground::Vectors => &profile.texts,
        Ground::English => &profile.inquiries,
        Ground::ReadInEnglish => &profile.english,
    }
}

impl MemberVectors {
    /// Takes the vectors of [`member_texts`]; none if there are too few.
    pub(super) fn of(
        vectors: &[Vector],
        profile: &Profile,
        background: &Background,
    ) -> Option<Self> {
        let mut placed = vectors.iter().map(|vector| Placed::of(vector, background));
        let (whole, matters, pieces) = (placed.next()?, placed.next()?, placed.collect::<Vec<_>>());
        let scale = background.scale();
        let is_own = |sentence: &Vector| {
            pieces
                .iter()
                .any(|piece| scale.read(piece.to(sentence)) >= MEMBERS_MIN)
        };
        let nobodys = background.nobodys().iter().map(is_own).collect();
        let sayings = profile.sayings.iter().map(|saying| saying.place).collect();
        Some(Self {
            whole,
            matters,
            pieces,
            sayings,
            nobodys,
        })
    }

    /// What it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        let placed = self.pieces.iter().chain([&self.whole, &self.matters]);
        placed
            .map(|placed| size_of_val(&*placed.vector))
            .sum::<usize>()
            + size_of_val(&*self.sayings)
    }
}

impl Placed {
    fn of(vector: &Vector, background: &Background) -> Self {
        Self {
            vector: vector.clone(),
            nearness: background.nearness(vector),
        }
    }

    fn to(&self, other: &Vector) -> f32 {
        cosine(&self.vector, other)
    }

    /// How alike it is to a message.
    fn to_message(&self, message: &Vector) -> f32 {
        self.to(message) - self.nearness.sayings
    }

    /// How alike it is to the name of a matter.
    fn to_name(&self, name: &Vector) -> f32 {
        self.to(name) - self.nearness.names
    }
}

impl MessageVectors {
    /// Of a message, with its members in their order.
    pub(super) const fn new(
        asked: Vector,
        members: Vec<Arc<MemberVectors>>,
        background: Arc<Background>,
        ground: Ground,
    ) -> Self {
        Self {
            asked,
            members,
            background,
            ground,
        }
    }

    /// What the vectors are good for.
    pub(super) const fn ground(&self) -> Ground {
        self.ground
    }

    /// How alike the message is to each member, in their order.
    pub(super) fn alike(&self) -> Vec<Alike> {
        let said = self.background.said(&self.asked);
        let guesses = self.background.guesses(&said);
        self.members
            .iter()
            .map(|member| self.alike_member(member, &said, &guesses))
            .collect()
    }

    /// How alike the message is to sentences that are nobody's matter.
    pub(super) fn alike_nobodys(&self) -> AlikeNobodys {
        let nobodys = self.background.nobodys().iter().enumerate();
        let nobodys =
            nobodys.filter(|(place, _)| !self.members.iter().any(|member| member.nobodys[*place]));
        let near = highest(
            nobodys.map(|(_, sentence)| cosine(&self.asked, sentence)),
            NEAREST,
        );
        AlikeNobodys {
            nearest: self.read(near.first().copied()),
            near: self.read(mean(&near)),
        }
    }

    fn alike_member(&self, member: &MemberVectors, said: &[f32], guesses: &[Guess<'_>]) -> Alike {
        let pieces = highest(
            member
                .pieces
                .iter()
                .map(|piece| piece.to_message(&self.asked)),
            NEAREST,
        );
        let plain = highest(
            member.pieces.iter().map(|piece| piece.to(&self.asked)),
            usize::MAX,
        );
        let sayings = highest(
            member
                .sayings
                .iter()
                .filter_map(|place| said.get(*place).copied()),
            NEAREST,
        );
        let by_matter = |alike: &dyn Fn(&Vector) -> Option<f32>| {
            guesses
                .iter()
                .map(|guess| guess.weight * self.read(alike(guess.name)))
                .sum()
        };
        let nearest_piece = |name: &Vector| {
            member
                .pieces
                .iter()
                .map(|piece| piece.to_name(name))
                .reduce(f32::max)
        };
        Alike {
            piece: self.read(pieces.first().copied()),
            pieces: self.read(mean(&pieces)),
            pieces_plain: self.read(mean(&plain[..plain.len().min(NEAREST)])),
            pooled: pooled(
                &plain
                    .iter()
                    .map(|cosine| self.read(Some(*cosine)))
                    .collect::<Vec<_>>(),
            ),
            matters: self.read(Some(member.matters.to_message(&self.asked))),
            whole: self.read(Some(member.whole.to_message(&self.asked))),
            saying: self.read(sayings.first().copied()),
            sayings: self.read(mean(&sayings)),
            matter_piece: by_matter(&nearest_piece),
            matter_whole: by_matter(&|name| Some(member.whole.to_name(name))),
        }
    }

    /// On the model's own scale; what is not there is a stranger.
    fn read(&self, cosine: Option<f32>) -> f32 {
        let scale = self.background.scale();
        scale.read(cosine.unwrap_or_else(|| scale.mean()))
    }
}

/// The highest of some values and a little more for each that is nearly as high; 0 of none.
fn pooled(values: &[f32]) -> f32 {
    let Some(highest) = values.iter().copied().reduce(f32::max) else {
        return 0.0;
    };
    let all: f32 = values
        .iter()
        .map(|value| ((value - highest) / PIECES_WIDTH).exp())
        .sum();
    highest + PIECES_WIDTH * all.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model that finds no two texts alike, but for one sentence in several languages if it knows them.
    fn background(knows_others: bool) -> Background {
        const DIRECTIONS: usize = 64;
        let direction = |text: usize| {
            (0..DIRECTIONS)
                .map(|place| f32::from(u8::from(place == text % DIRECTIONS)))
                .collect()
        };
        let probes = 8;
        let texts = 0..Background::texts().len();
        Background::of(
            texts
                .map(|text| {
                    direction(if knows_others && text < probes {
                        0
                    } else {
                        text
                    })
                })
                .collect(),
        )
        .unwrap()
    }

    #[test]
    fn pieces_are_questions_for_an_english_model_that_reads_english_and_for_no_other() {
        let profile = Profile::of("Billing", "Looks after your money.", "refunds");
        let question = "I have a question about refunds.".to_owned();
        for (knows_others, message, ground, asks) in [
            (
                false,
                "where is the money that you owe me",
                Ground::English,
                true,
            ),
            (
                false,
                "wo ist das Geld, das ihr mir schuldet",
                Ground::ReadInEnglish,
                false,
            ),
            (
                true,
                "where is the money that you owe me",
                Ground::Vectors,
                false,
            ),
        ] {
            let found = super::ground(&background(knows_others), message, &[&profile]);
            assert_eq!(found, ground, "{message}");
            assert_eq!(
                member_texts(&profile, found).pieces.contains(&question),
                asks,
                "{message}"
            );
        }
    }

    #[test]
    fn several_pieces_that_are_near_say_more_than_one_and_far_ones_say_nothing() {
        let (one, two, far) = (pooled(&[3.0]), pooled(&[3.0, 2.9]), pooled(&[3.0, -5.0]));
        assert!(two > one && two < one + 0.5, "{two}");
        assert!((far - one).abs() < 1e-4, "{far}");
        assert!(pooled(&[]).abs() < f32::EPSILON);
    }
}
