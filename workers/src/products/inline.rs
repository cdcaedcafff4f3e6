//! Searches the products that stand in the agent itself: a product is found when it has one of the words, and those that
//! have more of them come first.

use switchboard_schemas::agent::Product;

use super::{ProductQuery, ProductsFound};

/// Shortest word that also finds longer ones which begin with it.
const PREFIX_CHARS_MIN: usize = 3;

/// The products that match, best first; equal ones in the order of the catalogue.
pub(super) fn search(products: &[Product], query: &ProductQuery) -> ProductsFound {
    let words = words(&query.text);
    let fits = |product: &&Product| {
        let price = amount(&product.price);
        let above = query.price_min.is_none_or(|min| price.is_some_and(|price| price >= min));
        let below = query.price_max.is_none_or(|max| price.is_some_and(|price| price <= max));
        // These products have no attributes beside their words.
        above && below && query.attributes.values().all(|value| !words_found(product, value).is_empty())
    };
    let scored = products.iter().filter(fits).map(|product| {
        let found = words.iter().filter(|word| title_has(product, word)).count();
        (found, product)
    });
    let mut scored: Vec<_> = scored.filter(|(found, _)| words.is_empty() || *found > 0).collect();
    scored.sort_by_key(|(found, _)| std::cmp::Reverse(*found));
    let total = scored.len() as u64;
    let products = scored.into_iter().take(query.limit).map(|(_, product)| product.clone()).collect();
    ProductsFound { products, total }
}

fn words_found(product: &Product, text: &str) -> Vec<String> {
    words(text).into_iter().filter(|word| title_has(product, word)).collect()
}

/// Whether a word stands in the title or in the path of the page, which often names the category. A plural finds its
/// singular, and a beginning the whole word.
fn title_has(product: &Product, word: &str) -> bool {
    let stem = word.strip_suffix('s').filter(|stem| stem.chars().count() >= PREFIX_CHARS_MIN).unwrap_or(word);
    let path = product.url.splitn(4, '/').nth(3).unwrap_or_default();
    let begins =
        |own: &String| if stem.chars().count() < PREFIX_CHARS_MIN { own == stem } else { own.starts_with(stem) };
    words(&product.title).iter().any(begins) || words(path).iter().any(begins)
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The number in a price such as "$1,299.00" or "12 €".
fn amount(price: &str) -> Option<f64> {
    let start = price.find(|character: char| character.is_ascii_digit())?;
    let number =
        price[start..].split(|character: char| !character.is_ascii_digit() && !".,".contains(character)).next()?;
    let number = number.trim_end_matches(['.', ',']);
    match number.rsplit_once([',', '.']) {
        // Two digits behind the last mark are cents; anything else is a group of thousands.
        Some((whole, cents)) if cents.len() <= 2 => format!("{}.{cents}", whole.replace(['.', ','], "")).parse().ok(),
        _ => number.replace(['.', ','], "").parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(title: &str, price: &str, path: &str) -> Product {
        Product {
            title: title.into(),
            price: price.into(),
            url: format!("https://s.example/{path}"),
            ..Product::default()
        }
    }

    fn titles(text: &str, price_max: Option<f64>) -> Vec<String> {
        let catalogue = [
            product("Glass Teapot", "$29", "gear/teapot"),
            product("Mountain Oolong, 100 g", "18,50 €", "tea/oolong"),
            product("Green Mug", "$1,200", "mugs/green"),
        ];
        let query = ProductQuery { text: text.into(), price_max, limit: 2, ..ProductQuery::default() };
        search(&catalogue, &query).products.into_iter().map(|product| product.title).collect()
    }

    #[test]
    fn words_of_title_and_category_find_and_more_of_them_come_first() {
        assert_eq!(titles("tea", None), ["Glass Teapot", "Mountain Oolong, 100 g"]);
        assert_eq!(titles("mugs green", None), ["Green Mug"]);
        assert_eq!(titles("mountain TEA", None), ["Mountain Oolong, 100 g", "Glass Teapot"]);
        assert!(titles("sofa", None).is_empty());
        assert_eq!(titles("", None).len(), 2, "no words: everything, up to the limit");
    }

    #[test]
    fn prices_are_read_as_they_are_written() {
        assert_eq!(titles("", Some(20.0)), ["Mountain Oolong, 100 g"]);
        assert_eq!(amount("1.299,00 €"), Some(1299.0));
        assert_eq!((amount("$9.5"), amount("1,200"), amount("free")), (Some(9.5), Some(1200.0), None));
    }
}
