//! Reduces words to what their plurals and genders have in common, without knowing the language.

/// Shortest word that can lose an ending, in characters.
const STEM_CHARS_MIN: usize = 3;

/// Returns what a folded word has in common with its plural and its other genders. Merges some
/// different words, so it only suits gathering candidates that are ranked afterwards.
pub(crate) fn common_stem(word: &str) -> &str {
    if word.chars().any(|character| character.is_numeric())
        || word.chars().count() <= STEM_CHARS_MIN
    {
        return word;
    }
    let mut stem = word;
    if let Some(rest) = stem.strip_suffix(['s', 'x']) {
        stem = rest;
    }
    // Twice: a word that ends like a plural (`schoen`) must lose as much as its plural
    // (`schoenen`).
    for _ in 0..2 {
        let ending = ["en", "er", "em"]
            .iter()
            .find_map(|ending| stem.strip_suffix(ending));
        stem = ending
            .filter(|rest| rest.chars().count() >= STEM_CHARS_MIN)
            .unwrap_or(stem);
    }
    for _ in 0..2 {
        if let Some(rest) = stem.strip_suffix(['a', 'e', 'i', 'o', 'u', 'y'])
            && rest.chars().count() >= STEM_CHARS_MIN
        {
            stem = rest;
        }
    }
    without_doubled_end(stem)
}

fn without_doubled_end(stem: &str) -> &str {
    let mut characters = stem.chars().rev();
    match (characters.next(), characters.next()) {
        (Some(last), Some(before)) if last == before && stem.chars().count() > STEM_CHARS_MIN => {
            &stem[..stem.len() - last.len_utf8()]
        }
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plurals_and_genders_share_a_stem() {
        for words in [
            ["shoe", "shoes"],
            ["dress", "dresses"],
            ["berry", "berries"],
            ["bus", "buses"],
            ["schuh", "schuhen"],
            ["kleid", "kleider"],
            ["rojo", "rojas"],
            ["pantalon", "pantalones"],
            ["vestito", "vestiti"],
            ["chapeau", "chapeaux"],
            ["schoen", "schoenen"],
        ] {
            assert_eq!(common_stem(words[0]), common_stem(words[1]), "{words:?}");
        }
        for words in [["shoe", "shirt"], ["13", "12"], ["x12", "x12s"]] {
            assert_ne!(common_stem(words[0]), common_stem(words[1]), "{words:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_word_has_a_stem(word in "\\PC{0,30}") {
            prop_assert!(word.starts_with(common_stem(&word)));
        }
    }
}
