//! The products of one agent in an SQLite full-text table in memory. Words are split here, in the
//! same way for products and queries; SQLite stores the posting lists, joins them and ranks
//! products.

use std::collections::HashSet;

use parking_lot::Mutex;
use rusqlite::{Connection, params};
use switchboard_backends::{StoreError, products::reader::products_of};
use switchboard_schemas::{agent::Product, catalog_product::CatalogProduct, time::Timestamp};

use super::{
    FoundProduct, PRODUCTS_FOUND_MAX, PriceLimits, ProductQuery, ProductSearchError, ProductsFound,
    details::with_details,
    query::{
        IndexQuery, ParsedQuery, ProductAttributes, all_words, attribute_name, listed_products,
    },
    typed_price::{self, TypedPrice},
    vocabulary::ShopVocabulary,
};
use crate::text::tokens::for_each_index_word;

/// `detail = column` omits positions of words, which no query needs; `content = ''` omits the
/// texts; `body` holds the product with its details as JSON, `sale_body` the same during a sale.
const TABLES: &str = "
    PRAGMA journal_mode = OFF;
    CREATE VIRTUAL TABLE words USING fts5 (
        title, labels, description, filters, content = '', detail = column, tokenize = 'ascii'
    );
    CREATE TABLE products (
        id INTEGER PRIMARY KEY, amount REAL, body TEXT NOT NULL,
        sale_starts INTEGER, sale_ends INTEGER, sale_amount REAL, sale_body TEXT
    );";
/// Products with the price that is valid at the time `?1`.
macro_rules! priced {
    () => {
        "(SELECT id,
            iif(sale_starts <= ?1 AND ?1 < sale_ends, sale_amount, amount) AS amount,
            iif(sale_starts <= ?1 AND ?1 < sale_ends, sale_body, body) AS body
        FROM products)"
    };
}
const ADD_WORDS: &str =
    "INSERT INTO words (rowid, title, labels, description, filters) VALUES (?1, ?2, ?3, ?4, ?5)";
const ADD_PRODUCT: &str = "INSERT INTO products VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const MERGE: &str = "INSERT INTO words (words) VALUES ('optimize')";
const ANY: &str = "SELECT 1 FROM words WHERE words MATCH ?1 LIMIT 1";
const COUNT: &str = "SELECT count(*) FROM words WHERE words MATCH ?1";
const COUNT_PRICED: &str = concat!(
    "SELECT count(*) FROM words JOIN ",
    priced!(),
    " ON id = words.rowid WHERE words MATCH ?2 AND amount BETWEEN ?3 AND ?4"
);
/// Ranks products whose title names the wanted thing first. Then words in a title count more than
/// words in labels, and these more than words in a description.
const BEST: &str = concat!(
    "SELECT body FROM words JOIN ",
    priced!(),
    " ON id = words.rowid
    WHERE words MATCH ?2 AND (?3 IS NULL OR amount BETWEEN ?3 AND ?4)
    ORDER BY words.rowid IN (SELECT rowid FROM words WHERE words MATCH ?6) DESC,
        bm25(words, 8.0, 3.0, 1.0, 0.0), words.rowid LIMIT ?5"
);
const FIRST: &str = concat!(
    "SELECT body FROM words JOIN ",
    priced!(),
    " ON id = words.rowid
    WHERE words MATCH ?2 AND (?3 IS NULL OR amount BETWEEN ?3 AND ?4)
    ORDER BY words.rowid LIMIT ?5"
);
const COUNT_ALL: &str = concat!(
    "SELECT count(*) FROM ",
    priced!(),
    " WHERE ?2 IS NULL OR amount BETWEEN ?2 AND ?3"
);
const ALL: &str = concat!(
    "SELECT body FROM ",
    priced!(),
    " WHERE ?2 IS NULL OR amount BETWEEN ?2 AND ?3 ORDER BY id LIMIT ?4"
);
/// Separator of an attribute's name and a word of its value; no word contains it, and the tokenizer
/// treats it as a letter.
const NAME_END: char = '\u{e000}';
/// Matches above which products are not ranked, because such common words do not justify the time.
const RANKED_MAX: u64 = 10_000;
/// Longest value of an attribute that is indexed, in characters; longer ones are texts and links.
const LABEL_CHARS_MAX: usize = 120;

/// An immutable index of the products of one agent.
pub(super) struct ProductIndex {
    connection: Mutex<Connection>,
    vocabulary: ShopVocabulary,
    attributes: HashSet<String>,
    bytes: usize,
}

/// The time of a search and its limits from lowest to highest price; none for no filter.
#[derive(Clone, Copy)]
struct PriceFilter {
    now: i64,
    range: Option<(f64, f64)>,
}

impl ProductIndex {
    /// Builds an index of `products` and of those in `chunks`. Takes about a second for 50,000
    /// products.
    pub(super) fn build(
        products: &[Product],
        chunks: &[Vec<u8>],
    ) -> Result<Self, ProductSearchError> {
        let mut builder = IndexBuilder::new()?;
        for product in products {
            builder.add(product.clone().into())?;
        }
        for product in chunks.iter().flat_map(|chunk| products_of(chunk)) {
            builder.add(product.map_err(|error: StoreError| ProductSearchError::Store(error))?)?;
        }
        builder.finish()
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the products that match, with their current prices. No query is an error.
    pub(super) fn search(&self, query: &ProductQuery) -> Result<ProductsFound, ProductSearchError> {
        self.search_at(query, Timestamp::now())
    }

    /// Returns the products that match, with the prices that are valid at `now`.
    pub(super) fn search_at(
        &self,
        query: &ProductQuery,
        now: Timestamp,
    ) -> Result<ProductsFound, ProductSearchError> {
        let Some(TypedPrice { text, limits }) = typed_price::parse_typed_price(&query.text) else {
            return self.find_products(query, now);
        };
        // Explicit limits win over typed ones; typed limits are removed from the text in any case.
        let typed = PriceLimits {
            min: limits.min.filter(|_| query.prices.min.is_none()),
            max: limits.max.filter(|_| query.prices.max.is_none()),
        };
        let prices = PriceLimits {
            min: query.prices.min.or(typed.min),
            max: query.prices.max.or(typed.max),
        };
        let query = ProductQuery {
            text,
            prices,
            ..query.clone()
        };
        let found = self.find_products(&query, now)?;
        Ok(ProductsFound { typed, ..found })
    }

    /// Returns the products that have all words. If there are none and the text lists several
    /// products, each of them is searched alone.
    fn find_products(
        &self,
        query: &ProductQuery,
        now: Timestamp,
    ) -> Result<ProductsFound, ProductSearchError> {
        let listed = listed_products(&query.text);
        if listed.is_empty() {
            return self.find_product(query, now, usize::MAX);
        }
        let found = self.find_product(query, now, 1)?;
        if found.total > 0 {
            return Ok(found);
        }
        let of_listed = |text| {
            let query = ProductQuery {
                text,
                ..query.clone()
            };
            self.find_product(&query, now, usize::MAX)
        };
        let found: Vec<_> = listed
            .into_iter()
            .map(of_listed)
            .collect::<Result<_, _>>()?;
        Ok(alternating(&found, query.limit))
    }

    /// Returns the matches of the first of at most `searches` index queries that has any.
    fn find_product(
        &self,
        query: &ProductQuery,
        now: Timestamp,
        searches: usize,
    ) -> Result<ProductsFound, ProductSearchError> {
        let connection = self.connection.lock();
        let labels = IndexAttributes {
            names: &self.attributes,
            connection: &connection,
        };
        let request = ParsedQuery::read(query, &self.vocabulary, &labels);
        if request.matches_nothing {
            return Ok(ProductsFound::default());
        }
        let (filter, limit) = (PriceFilter::new(query, now), limit_of(query));
        if request.is_empty() {
            return all_products(&connection, filter, limit);
        }
        for question in request.index_queries().take(searches) {
            let total = count_matches(&connection, &question.matching, filter)?;
            if total > 0 {
                let products = ranked_products(&connection, &question, filter, (total, limit))?;
                return Ok(ProductsFound {
                    products,
                    total,
                    ..ProductsFound::default()
                });
            }
        }
        Ok(ProductsFound::default())
    }
}

/// Returns the best products of all searches, then the second best ones, and so on.
fn alternating(found: &[ProductsFound], limit: usize) -> ProductsFound {
    let mut products: Vec<FoundProduct> = Vec::new();
    for rank in 0..limit.min(PRODUCTS_FOUND_MAX) {
        for product in found.iter().filter_map(|found| found.products.get(rank)) {
            if products.len() < limit && !products.contains(product) {
                products.push(product.clone());
            }
        }
    }
    let total = found.iter().map(|found| found.total).sum();
    ProductsFound {
        products,
        total,
        ..ProductsFound::default()
    }
}

/// Returns the index word of a word in the value of an attribute.
pub(super) fn filter_word(name: &str, word: &str) -> String {
    format!("{name}{NAME_END}{word}")
}

struct IndexAttributes<'a> {
    names: &'a HashSet<String>,
    connection: &'a Connection,
}

impl ProductAttributes for IndexAttributes<'_> {
    fn has_name(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn has_word(&self, name: &str, word: &str) -> bool {
        let asked = format!("\"{}\"", filter_word(name, word));
        let any = self
            .connection
            .prepare_cached(ANY)
            .and_then(|mut statement| statement.exists([asked]));
        // The search itself reports errors of the index.
        any.unwrap_or(true)
    }
}

fn limit_of(query: &ProductQuery) -> u32 {
    u32::try_from(query.limit.clamp(1, PRODUCTS_FOUND_MAX)).unwrap_or(1)
}

impl PriceFilter {
    fn new(query: &ProductQuery, now: Timestamp) -> Self {
        let usable = |bound: Option<f64>| bound.filter(|bound| !bound.is_nan());
        let range = match (usable(query.prices.min), usable(query.prices.max)) {
            (None, None) => None,
            (min, max) => Some((min.unwrap_or(0.0), max.unwrap_or(f64::MAX))),
        };
        Self {
            now: now.micros(),
            range,
        }
    }
}

fn count_matches(
    connection: &Connection,
    expression: &str,
    PriceFilter { now, range }: PriceFilter,
) -> rusqlite::Result<u64> {
    let counted: i64 = match range {
        None => connection
            .prepare_cached(COUNT)?
            .query_row([expression], |row| row.get(0))?,
        Some((min, max)) => connection
            .prepare_cached(COUNT_PRICED)?
            .query_row(params![now, expression, min, max], |row| row.get(0))?,
    };
    Ok(u64::try_from(counted).unwrap_or_default())
}

fn ranked_products(
    connection: &Connection,
    question: &IndexQuery,
    PriceFilter { now, range }: PriceFilter,
    (total, limit): (u64, u32),
) -> Result<Vec<FoundProduct>, ProductSearchError> {
    let (min, max) = range.unzip();
    if total > RANKED_MAX {
        return read_products(
            connection,
            FIRST,
            params![now, question.matching, min, max, limit],
        );
    }
    read_products(
        connection,
        BEST,
        params![now, question.ranking, min, max, limit, question.named],
    )
}

fn all_products(
    connection: &Connection,
    PriceFilter { now, range }: PriceFilter,
    limit: u32,
) -> Result<ProductsFound, ProductSearchError> {
    let (min, max) = range.unzip();
    let total: i64 = connection
        .prepare_cached(COUNT_ALL)?
        .query_row(params![now, min, max], |row| row.get(0))?;
    let total = u64::try_from(total).unwrap_or_default();
    let products = read_products(connection, ALL, params![now, min, max, limit])?;
    Ok(ProductsFound {
        products,
        total,
        ..ProductsFound::default()
    })
}

fn read_products(
    connection: &Connection,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<Vec<FoundProduct>, ProductSearchError> {
    let mut statement = connection.prepare_cached(sql)?;
    let bodies = statement.query_map(values, |row| row.get::<_, String>(0))?;
    bodies
        .map(|body| {
            serde_json::from_str(&body?)
                .map_err(|error| ProductSearchError::Index(error.to_string()))
        })
        .collect()
}

/// An index under construction.
struct IndexBuilder {
    connection: Connection,
    vocabulary: ShopVocabulary,
    attributes: HashSet<String>,
    products: i64,
}

impl IndexBuilder {
    fn new() -> Result<Self, ProductSearchError> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(TABLES)?;
        connection.execute_batch("BEGIN")?;
        Ok(Self {
            connection,
            vocabulary: ShopVocabulary::default(),
            attributes: HashSet::new(),
            products: 0,
        })
    }

    fn add(&mut self, product: CatalogProduct) -> Result<(), ProductSearchError> {
        let mut seen = HashSet::new();
        let title = Self::index_words(&product.product.title, &mut seen);
        let description = Self::index_words(&product.description, &mut seen);
        let mut labels = Self::index_words(url_folders(&product.product.url), &mut seen);
        let mut filters = String::new();
        for (name, value) in &product.attributes {
            if value.chars().count() > LABEL_CHARS_MAX || value.contains("://") {
                continue;
            }
            labels.push_str(&Self::index_words(value, &mut seen));
            let name = attribute_name(name);
            push_filters(&name, value, &mut filters);
            self.attributes.insert(name);
        }
        for word in seen {
            self.vocabulary.add(&word);
        }
        let amount = product.amount;
        let sale = product.sale.clone();
        let reduced = product.on_sale();
        let sale_amount = reduced.as_ref().and_then(|product| product.amount);
        let body = body_of(product)?;
        let sale_body = reduced.map(body_of).transpose()?;
        let bounds = sale.map(|sale| {
            let micros = |bound: Option<Timestamp>, open| bound.map_or(open, Timestamp::micros);
            (
                micros(sale.starts_at, i64::MIN),
                micros(sale.ends_at, i64::MAX),
            )
        });
        let (sale_starts, sale_ends) = bounds.unzip();
        let id = self.products;
        self.products += 1;
        let words = params![id, title, labels, description, filters];
        self.connection.prepare_cached(ADD_WORDS)?.execute(words)?;
        self.connection
            .prepare_cached(ADD_PRODUCT)?
            .execute(params![
                id,
                amount,
                body,
                sale_starts,
                sale_ends,
                sale_amount,
                sale_body
            ])?;
        Ok(())
    }

    /// Returns the index words of a text, each followed by a space.
    fn index_words(text: &str, seen: &mut HashSet<String>) -> String {
        let mut words = String::with_capacity(text.len() + 8);
        for_each_index_word(text, |word| {
            words.push_str(word);
            words.push(' ');
            if !seen.contains(word) {
                seen.insert(word.to_owned());
            }
        });
        words
    }

    fn finish(self) -> Result<ProductIndex, ProductSearchError> {
        self.connection.execute_batch("COMMIT")?;
        self.connection.execute(MERGE, [])?;
        let pragma = |name: &str| {
            self.connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
        };
        let database =
            usize::try_from(pragma("page_count")? * pragma("page_size")?).unwrap_or(usize::MAX);
        let bytes = database.saturating_add(self.vocabulary.memory_bytes());
        self.connection.pragma_update(None, "query_only", true)?;
        Ok(ProductIndex {
            connection: Mutex::new(self.connection),
            vocabulary: self.vocabulary,
            attributes: self.attributes,
            bytes,
        })
    }
}

fn body_of(product: CatalogProduct) -> Result<String, ProductSearchError> {
    serde_json::to_string(&with_details(product))
        .map_err(|error| ProductSearchError::Index(error.to_string()))
}

/// Returns the folders of a link, which are often categories of the shop: `tea/green` of
/// `https://shop.example/tea/green/17`.
fn url_folders(url: &str) -> &str {
    let path = url
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('/'))
        .map_or("", |(_, path)| path);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let folders = path
        .trim_end_matches('/')
        .rsplit_once('/')
        .map_or("", |(folders, _)| folders);
    // Percent-encoded folders are not words, and very long ones are not categories.
    if folders.contains('%') || folders.len() > LABEL_CHARS_MAX {
        ""
    } else {
        folders
    }
}

fn push_filters(name: &str, value: &str, filters: &mut String) {
    for word in all_words(value) {
        filters.push_str(&filter_word(name, &word));
        filters.push(' ');
    }
}
