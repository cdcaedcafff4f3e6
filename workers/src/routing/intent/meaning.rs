//! How alike a message and each member are, by the vectors of their texts: directly, and by way of known matters.
//!
//! A visitor's sentence and a member's phrase are unlike texts even where they mean the same. A sentence and what others say
//! of a matter are like texts; and so are the name of that matter and the member's phrase. So the sayings that are nearest to
//! the message say what it may be about, and these matters are held against the members.

use std::sync::Arc;

use super::{
    background::{Background, Guess, mean},
    evidence::Ground,
    profile::Profile,
    reading,
};
use crate::embedding::{Vector, cosine};

/// A sentence that is nobody's matter is some member's after all, if it is as alike to a piece of it.
const MEMBERS_MIN: f32 = 4.0;
/// Sentences or pieces that are averaged: one may be near by chance.
const NEAREST: usize = 3;

/// How alike a message and a member are, on the model's own scale.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alike {
    /// The piece of it that is most alike.
    pub(super) piece: f32,
    /// The mean of the nearest of these.
    pub(super) pieces: f32,
    /// All of it.
    pub(super) whole: f32,
    /// The sentence of those who mean its matters that is most alike.
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
    members: Vec<MemberVectors>,
    background: Arc<Background>,
    ground: Ground,
}

struct MemberVectors {
    whole: Vector,
    pieces: Vec<Vector>,
    sayings: Vec<Vector>,
}

/// What the vectors of a model are good for, between a message and a team.
pub(super) fn ground(background: &Background, message: &str, profiles: &[&Profile]) -> Ground {
    let knows = |text: &str| background.knows(reading::languages(text));
    let known = knows(message) && profiles.first().is_none_or(|profile| knows(&profile.whole));
    if known { Ground::Vectors } else { Ground::EnglishOnly }
}

/// Everything of a message and a team that is to be a vector, in the order in which [`MessageVectors::of`] takes it apart.
pub(super) fn texts(message: &str, profiles: &[&Profile], ground: Ground) -> Vec<String> {
    let is_read = ground == Ground::EnglishOnly;
    let mut texts = vec![if is_read { reading::in_english(message) } else { message.to_owned() }];
    texts.extend(profiles.iter().flat_map(|profile| member_texts(profile, ground)).map(Into::into));
    texts
}

/// The part of [`texts`] that is a member's.
pub(super) fn member_texts(profile: &Profile, ground: Ground) -> impl Iterator<Item = &str> {
    let (whole, pieces) = profile.texts(ground == Ground::EnglishOnly);
    [whole].into_iter().chain(pieces.iter().map(String::as_str))
}

impl MessageVectors {
    /// Takes the vectors of [`texts`] apart; none if there are too few.
    pub(super) fn of(
        vectors: Vec<Vector>,
        profiles: &[&Profile],
        background: Arc<Background>,
        ground: Ground,
    ) -> Option<Self> {
        let mut vectors = vectors.into_iter();
        let asked = vectors.next()?;
        let members = profiles.iter().map(|profile| {
            let (whole, count) = (vectors.next()?, profile.texts(ground == Ground::EnglishOnly).1.len());
            let pieces: Vec<Vector> = vectors.by_ref().take(count).collect();
            let sayings =
                profile.sayings.iter().filter_map(|saying| background.saying(saying.place)).cloned().collect();
            (pieces.len() == count).then_some(MemberVectors { whole, pieces, sayings })
        });
        let members = members.collect::<Option<_>>()?;
        Some(Self { asked, members, background, ground })
    }

    /// What the vectors are good for.
    pub(super) const fn ground(&self) -> Ground {
        self.ground
    }

    /// How alike the message is to each member, in their order.
    pub(super) fn alike(&self) -> Vec<Alike> {
        let guesses = self.background.guesses(&self.asked);
        self.members.iter().map(|member| self.alike_member(member, &guesses)).collect()
    }

    /// How alike the message is to sentences that are nobody's matter.
    pub(super) fn alike_nobodys(&self) -> AlikeNobodys {
        let scale = self.background.scale();
        let is_members = |nobodys: &&Vector| {
            let alike = |member: &MemberVectors| scale.read(highest(nobodys, &member.pieces)) >= MEMBERS_MIN;
            !self.members.iter().any(alike)
        };
        let near = nearest(&self.asked, self.background.nobodys().iter().filter(is_members));
        AlikeNobodys { nearest: self.read(near.first().copied()), near: self.read(mean(&near)) }
    }

    fn alike_member(&self, member: &MemberVectors, guesses: &[Guess<'_>]) -> Alike {
        let (pieces, sayings) = (nearest(&self.asked, &member.pieces), nearest(&self.asked, &member.sayings));
        let by_matter = |alike: &dyn Fn(&Vector) -> f32| {
            let of = |guess: &Guess<'_>| guess.weight * self.read(Some(alike(guess.name)));
            guesses.iter().map(of).sum()
        };
        Alike {
            piece: self.read(pieces.first().copied()),
            pieces: self.read(mean(&pieces)),
            whole: self.read(Some(cosine(&self.asked, &member.whole))),
            saying: self.read(sayings.first().copied()),
            sayings: self.read(mean(&sayings)),
            matter_piece: by_matter(&|name| highest(name, &member.pieces)),
            matter_whole: by_matter(&|name| cosine(name, &member.whole)),
        }
    }

    /// On the model's own scale; what is not there is a stranger.
    fn read(&self, cosine: Option<f32>) -> f32 {
        let scale = self.background.scale();
        scale.read(cosine.unwrap_or_else(|| scale.mean()))
    }
}

/// The highest cosines, the highest first.
fn nearest<'a>(vector: &Vector, others: impl IntoIterator<Item = &'a Vector>) -> Vec<f32> {
    let mut cosines: Vec<f32> = others.into_iter().map(|other| cosine(vector, other)).collect();
    cosines.sort_by(|left, right| right.total_cmp(left));
    cosines.truncate(NEAREST);
    cosines
}

fn highest(vector: &Vector, others: &[Vector]) -> f32 {
    others.iter().map(|other| cosine(vector, other)).fold(-1.0, f32::max)
}
