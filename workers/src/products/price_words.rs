//! Words around a price in English, German, French, Spanish, Italian and Polish, in lower case
//! without accents. An apostrophe or a hyphen is a space: `jusqu'à` is written `jusqu a`.

/// Words before the highest price.
#[rustfmt::skip]
pub(super) const AT_MOST: &[&str] = &[
    "under", "below", "less than", "up to", "at most", "max", "maximum", "cheaper than", "not more than", "no more than",
    "not over", "not above", "within",
    "unter", "bis", "bis zu", "bis max", "bis maximal", "maximal", "hochstens", "hoechstens", "weniger als",
    "nicht mehr als", "nicht uber", "nicht ueber", "nicht teurer als", "billiger als", "gunstiger als", "guenstiger als",
    "moins de", "a moins de", "jusqu a", "sous", "au maximum", "au plus", "en dessous de", "au dessous de", "pas plus de",
    "moins cher que",
    "menos de", "hasta", "por debajo de", "maximo", "como maximo", "no mas de", "mas barato que",
    "sotto", "meno di", "fino a", "fino ai", "massimo", "al massimo", "non piu di", "entro", "al di sotto di",
    "do", "ponizej", "mniej niz", "maks", "maksymalnie", "najwyzej", "nie wiecej niz", "taniej niz", "tansze niz",
];

/// Words before the lowest price.
#[rustfmt::skip]
pub(super) const AT_LEAST: &[&str] = &[
    "over", "above", "more than", "at least", "from", "starting at", "min", "minimum", "not under", "not below",
    "not less than", "no less than",
    "uber", "ueber", "ab", "mindestens", "mehr als", "nicht unter", "nicht weniger als",
    "plus de", "au moins", "a partir de", "au dessus de", "pas moins de",
    "mas de", "desde", "al menos", "por encima de", "minimo", "no menos de",
    "piu di", "oltre", "sopra", "almeno", "a partire da", "non meno di",
    "powyzej", "ponad", "od", "co najmniej", "wiecej niz", "minimalnie", "nie mniej niz",
];

/// Words before a price range.
#[rustfmt::skip]
pub(super) const BETWEEN: &[&str] = &[
    "between", "from", "zwischen", "von", "ab", "entre", "de", "desde", "tra", "fra", "da", "miedzy", "pomiedzy", "od",
];

/// Words between the two prices of a range.
#[rustfmt::skip]
pub(super) const AND: &[&str] = &[
    "and", "to", "up to", "und", "bis", "bis zu", "et", "a", "y", "hasta", "e", "ad", "i", "do",
];

/// Words after the highest price.
#[rustfmt::skip]
pub(super) const OR_LESS: &[&str] = &[
    "or less", "max", "maximum", "oder weniger", "maximal", "hochstens", "ou moins", "o menos", "maximo", "o meno",
    "massimo", "lub mniej", "maks",
];

/// Words after the lowest price.
pub(super) const OR_MORE: &[&str] = &[
    "or more",
    "oder mehr",
    "ou plus",
    "o mas",
    "o piu",
    "lub wiecej",
];

/// Names and codes of currencies, without pounds, which are also a weight.
#[rustfmt::skip]
pub(super) const CURRENCIES: &[&str] = &[
    "eur", "euro", "euros", "usd", "dollar", "dollars", "dolar", "dolares", "dollaro", "dollari", "dolarow", "bucks",
    "gbp", "quid", "chf", "franken", "francs", "francos", "franchi", "pln", "zl", "zloty", "zlotys", "zlotych", "zlote",
    "sek", "nok", "dkk", "kr", "czk", "kc", "huf", "jpy", "yen", "cny", "inr", "aud", "cad", "nzd",
];

/// Symbols of currencies, each one character.
pub(super) const CURRENCY_SIGNS: &str = "€$£¥₹₽₩₺₴₪₫₱฿";

/// Words that may stand between the word that sets a limit and its price.
#[rustfmt::skip]
pub(super) const FILLERS: &[&str] = &[
    "the", "about", "around", "us", "zu", "ca", "circa", "etwa", "rund", "les", "environ", "los", "unos", "i", "ai",
    "gli", "okolo",
];

/// Words before a limit that only mark it as a price.
#[rustfmt::skip]
pub(super) const PRICE_MARKERS: &[&str] = &[
    "for", "price", "priced", "costs", "cost", "costing", "fur", "fuer", "preis", "kostet", "pour", "prix", "por",
    "precio", "per", "prezzo", "za", "cena",
];
