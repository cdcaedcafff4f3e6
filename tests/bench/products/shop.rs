//! A generated shop: a few thousand words, of which some are in most products and most in few, as
//! in real shops.

use switchboard_schemas::{agent::Product, catalog_product::CatalogProduct};

const COLORS: [&str; 12] = [
    "red",
    "blue",
    "green",
    "black",
    "white",
    "grey",
    "yellow",
    "pink",
    "brown",
    "orange",
    "navy blue",
    "silver",
];
const MATERIALS: [&str; 8] = [
    "cotton", "leather", "wool", "steel", "bamboo", "glass", "linen", "rubber",
];
const SYLLABLES: [&str; 24] = [
    "ba", "ker", "lo", "min", "ta", "ru", "sel", "po", "dan", "vi", "cor", "gle", "shu", "nor",
    "fe", "zan", "mo", "tri", "pel", "ga", "hun", "wil", "tes", "ra",
];
/// Numbers of kinds of products, qualities, brands and words of descriptions.
const NOUNS: usize = 600;
const QUALITIES: usize = 400;
const BRANDS: usize = 300;
const DESCRIPTION_WORDS: usize = 3_000;
const DESCRIPTION_LENGTH: u64 = 40;

/// Generator of products and queries, the same ones in each run.
pub(crate) struct Shop {
    state: u64,
    made: u64,
    /// Kind, color, quality and brand of each product.
    sold: Vec<[String; 4]>,
}

impl Shop {
    pub(crate) const fn new() -> Self {
        Self {
            state: 0x9e37_79b9_7f4a_7c15,
            made: 0,
            sold: Vec::new(),
        }
    }

    pub(crate) fn product(&mut self) -> CatalogProduct {
        self.made += 1;
        let (brand, quality) = (self.brand(), self.quality());
        let (color, noun) = (self.color(), self.noun());
        let cents = 500 + self.below(49_500);
        let price = format!("{}.{:02} EUR", cents / 100, cents % 100);
        let description: Vec<String> = (0..DESCRIPTION_LENGTH)
            .map(|_| self.description_word())
            .collect();
        let number = self.made;
        self.sold
            .push([noun.clone(), color.clone(), quality.clone(), brand.clone()]);
        let product = Product {
            title: format!("{brand} {quality} {color} {noun} {}{number}", &brand[..2]),
            price,
            image: format!("https://cdn.shop.example/images/{number}.jpg"),
            url: format!("https://shop.example/products/{number}"),
        };
        let material = MATERIALS[self.below(MATERIALS.len() as u64) as usize];
        let attributes = [
            ("brand", brand),
            ("color", color),
            ("material", material.into()),
            ("id", number.to_string()),
        ];
        CatalogProduct {
            description: format!("{} of good quality", description.join(" ")),
            attributes: attributes
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ..product.into()
        }
    }

    /// Returns `count` words of the title of an existing product.
    pub(crate) fn words(&mut self, count: usize) -> Vec<String> {
        let sold = self.below(self.sold.len() as u64) as usize;
        self.sold[sold][..count].to_vec()
    }

    /// Returns the words with a letter removed, replaced or inserted in the first `wrong` of them.
    pub(crate) fn misspelt(&mut self, words: &[String], wrong: usize) -> String {
        let spelt = words.iter().enumerate().map(|(index, word)| {
            let at = 1 + self.below(word.len() as u64 - 2) as usize;
            match (index < wrong, self.below(3)) {
                (false, _) => word.clone(),
                (true, 0) => format!("{}{}", &word[..at], &word[at + 1..]),
                (true, 1) => format!("{}x{}", &word[..at], &word[at + 1..]),
                (true, _) => format!("{}q{}", &word[..at], &word[at..]),
            }
        });
        spelt.collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn color(&mut self) -> String {
        COLORS[self.below(COLORS.len() as u64) as usize].into()
    }

    fn noun(&mut self) -> String {
        let number = self.below(NOUNS as u64) as usize;
        word(number, 3)
    }

    fn quality(&mut self) -> String {
        let number = self.below(QUALITIES as u64) as usize;
        word(number + 10_000, 3)
    }

    fn brand(&mut self) -> String {
        let number = self.below(BRANDS as u64) as usize;
        word(number + 20_000, 4)
    }

    /// Returns a word number; low numbers are far more frequent than high ones.
    pub(crate) fn description_word(&mut self) -> String {
        let number = self.below(DESCRIPTION_WORDS as u64) * self.below(DESCRIPTION_WORDS as u64);
        word(number as usize / DESCRIPTION_WORDS + 30_000, 3)
    }

    /// Returns a number below `end` (xorshift: the same sequence in each run).
    fn below(&mut self, end: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % end
    }
}

/// Returns the word of a number; neighboring numbers have very different words.
fn word(number: usize, syllables: usize) -> String {
    let mut rest = number.wrapping_mul(7919) + 13;
    let mut word = String::new();
    for _ in 0..syllables {
        word.push_str(SYLLABLES[rest % SYLLABLES.len()]);
        rest /= SYLLABLES.len();
    }
    word
}
