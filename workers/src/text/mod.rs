//! Text handling that routing and product search share: folding, tokens, stems, stop words and edit
//! distance.

pub(crate) mod distance;
pub(crate) mod folding;
pub(crate) mod stemming;
pub(crate) mod stop_words;
pub(crate) mod tokens;
