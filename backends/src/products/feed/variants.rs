//! Products that take several rows: the variants of a Shopify handle, the variations of a
//! WooCommerce product, and rows of a Google feed with one group and one title. A first pass over
//! the file collects what their rows contribute; a second one adds it to the row that names the
//! product.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    FeedError,
    columns::{ExportDialect, FeedColumn, normalize_name},
    fields::RowFields,
};

/// Prices of a variant, which belong together.
const OFFER: [FeedColumn; 9] = [
    FeedColumn::Price,
    FeedColumn::RegularPrice,
    FeedColumn::SalePrice,
    FeedColumn::CompareAtPrice,
    FeedColumn::VariantPrice,
    FeedColumn::SaleDates,
    FeedColumn::SaleStart,
    FeedColumn::SaleEnd,
    FeedColumn::Currency,
];
/// Attributes of Google's variants.
const VARIANT_ATTRIBUTES: [&str; 4] = ["color", "size", "material", "pattern"];
/// Maximum number of values of an option that a product lists.
const OPTION_VALUES_MAX: usize = 30;
/// Maximum number of options of a product.
const OPTIONS_MAX: usize = 12;
const IN_STOCK: &str = "in stock";
const OUT_OF_STOCK: &str = "out of stock";

/// The part of a row in its product.
pub(super) enum RowPart {
    /// The row is a product, with what its other rows contribute.
    Product(Box<RowFields>),
    /// The row belongs to a product of another row.
    Variant,
    /// The product is not for visitors.
    Hidden(&'static str),
    /// The row is invalid.
    Rejected(&'static str),
}

/// Contributions of the rows of each product.
#[derive(Default)]
pub(super) struct VariantGroups {
    groups: HashMap<String, VariantGroup>,
    /// Ids and SKUs of WooCommerce products that can have variations.
    parents: HashSet<String>,
    /// Keys of products that the shop does not show; only their first rows say so.
    hidden: HashSet<String>,
}

#[derive(Default)]
struct VariantGroup {
    /// Row that names the product: the first one with a title.
    row: u64,
    is_named: bool,
    offer: Vec<(FeedColumn, String)>,
    /// First picture and its position.
    image: Option<(u64, String)>,
    available: Option<bool>,
    availability: Option<String>,
    option_names: BTreeMap<u8, String>,
    options: BTreeMap<String, Vec<String>>,
}

impl VariantGroups {
    /// Collects the contribution of a row.
    ///
    /// # Errors
    /// There are more than `products_max` products.
    pub(super) fn collect(
        &mut self,
        number: u64,
        row: &RowFields,
        products_max: u64,
    ) -> Result<(), FeedError> {
        if row.dialect == ExportDialect::WooCommerce && !is_variation(row) {
            self.parents.extend(references(row));
        } else if let Some(key) = group_key(row) {
            if hidden_reason(row).is_none() {
                self.groups.entry(key).or_default().collect(number, row);
            } else if row.dialect == ExportDialect::Shopify {
                self.hidden.insert(key);
            }
        }
        // An id and a SKU name the same parent.
        let count = [self.groups.len(), self.hidden.len(), self.parents.len() / 2];
        let count = count.into_iter().max().unwrap_or_default() as u64;
        if count > products_max {
            return Err(FeedError::TooMany { max: products_max });
        }
        Ok(())
    }

    /// Returns the part of a row, once all rows were collected.
    pub(super) fn part_of(&self, number: u64, mut row: RowFields) -> RowPart {
        if let Some(reason) = hidden_reason(&row) {
            return RowPart::Hidden(reason);
        }
        if row.dialect == ExportDialect::WooCommerce && !is_variation(&row) {
            let mut group = self.variations_of(&row);
            group.add_to(&mut row);
            // The options of the product itself list all values.
            let mut own = VariantGroup::default();
            own.collect_options(&row);
            group.options.extend(own.options);
            group.add_options(&mut row);
            return RowPart::Product(Box::new(row));
        }
        let Some(key) = group_key(&row) else {
            return RowPart::Product(Box::new(row));
        };
        if row.dialect == ExportDialect::WooCommerce {
            return if self.parents.contains(&key) {
                RowPart::Variant
            } else {
                RowPart::Rejected("its parent product is not in the file")
            };
        }
        if self.hidden.contains(&key) {
            return RowPart::Variant;
        }
        match self.groups.get(&key) {
            Some(group) if group.row == number => {
                group.add_to(&mut row);
                group.add_options(&mut row);
                RowPart::Product(Box::new(row))
            }
            Some(_) => RowPart::Variant,
            None => RowPart::Product(Box::new(row)),
        }
    }
}

impl VariantGroups {
    /// Returns the variations of a WooCommerce product, which name it by its id or its SKU.
    fn variations_of(&self, row: &RowFields) -> VariantGroup {
        let names = references(row);
        let mut groups: Vec<&VariantGroup> = names
            .iter()
            .filter_map(|key| self.groups.get(key))
            .collect();
        groups.sort_by_key(|group| group.row);
        let mut joined = VariantGroup::default();
        for group in groups {
            joined.join(group);
        }
        joined
    }
}

impl VariantGroup {
    /// Adds the contributions of later rows.
    fn join(&mut self, later: &Self) {
        if self.offer.is_empty() {
            self.offer.clone_from(&later.offer);
        }
        self.image = self.image.take().or_else(|| later.image.clone());
        self.available = match (self.available, later.available) {
            (Some(one), Some(other)) => Some(one || other),
            (one, other) => one.or(other),
        };
        for (name, values) in &later.options {
            for value in values {
                self.add_option(name, value);
            }
        }
    }

    fn collect(&mut self, number: u64, row: &RowFields) {
        let is_named = !row.text(&FeedColumn::Title).is_empty();
        if self.row == 0 || (is_named && !self.is_named) {
            self.row = number;
            self.is_named = is_named;
        }
        if self.offer.is_empty() && OFFER[..5].iter().any(|column| !row.text(column).is_empty()) {
            let offer = row.known().filter(|(column, _)| OFFER.contains(column));
            self.offer = offer
                .map(|(column, text)| (column.clone(), text.to_owned()))
                .collect();
        }
        let position = row
            .text(&FeedColumn::ImagePosition)
            .parse()
            .unwrap_or(u64::MAX);
        let image = row.text(&FeedColumn::Image);
        if !image.is_empty()
            && self
                .image
                .as_ref()
                .is_none_or(|(first, _)| position < *first)
        {
            self.image = Some((position, image.to_owned()));
        }
        if let Some(available) = availability(row) {
            let text = row.text(&FeedColumn::Availability);
            if !text.is_empty()
                && (self.available.is_none() || (available && self.available == Some(false)))
            {
                self.availability = Some(text.to_owned());
            }
            self.available = Some(self.available.unwrap_or_default() || available);
        }
        self.collect_options(row);
    }

    fn collect_options(&mut self, row: &RowFields) {
        for (column, text) in row.known() {
            match column {
                FeedColumn::OptionName(number) if !text.is_empty() => {
                    self.option_names.insert(*number, normalize_name(text));
                }
                FeedColumn::OptionValue(number) => {
                    // Shopify's name of the only variant of a product.
                    let name = self.option_names.get(number).cloned();
                    if let Some(name) = name.filter(|_| text != "Default Title") {
                        self.add_option(&name, text);
                    }
                }
                _ => {}
            }
        }
        if row.has(&FeedColumn::ItemGroup) {
            for (name, text) in &row.attributes {
                if VARIANT_ATTRIBUTES.contains(&name.as_str()) {
                    self.add_option(name, text);
                }
            }
        }
    }

    fn add_option(&mut self, name: &str, value: &str) {
        if value.is_empty()
            || (self.options.len() >= OPTIONS_MAX && !self.options.contains_key(name))
        {
            return;
        }
        let values = self.options.entry(name.to_owned()).or_default();
        if values.len() < OPTION_VALUES_MAX && !values.iter().any(|known| known == value) {
            values.push(value.to_owned());
        }
    }

    /// Adds prices, picture and availability to the row that names the product.
    fn add_to(&self, row: &mut RowFields) {
        if !self.offer.is_empty() {
            for column in OFFER {
                if row.has(&column) {
                    row.set(column, String::new());
                }
            }
            for (column, text) in &self.offer {
                row.set(column.clone(), text.clone());
            }
        }
        let is_own =
            row.dialect != ExportDialect::Shopify && !row.text(&FeedColumn::Image).is_empty();
        if let Some((_, image)) = self.image.as_ref().filter(|_| !is_own) {
            row.set(FeedColumn::Image, image.clone());
        }
        if let Some(text) = &self.availability {
            row.attributes.retain(|(name, _)| name != "availability");
            row.add_attribute("availability", text);
        } else {
            set_availability(row, self.available);
        }
    }

    fn add_options(&self, row: &mut RowFields) {
        for (name, values) in &self.options {
            row.attributes.retain(|(known, _)| known != name);
            row.add_attribute(name, &values.join(", "));
        }
    }
}

fn set_availability(row: &mut RowFields, of_variants: Option<bool>) {
    if let Some(available) = of_variants.or_else(|| availability(row)) {
        row.attributes.retain(|(name, _)| name != "availability");
        row.add_attribute(
            "availability",
            if available { IN_STOCK } else { OUT_OF_STOCK },
        );
    }
}

fn is_variation(row: &RowFields) -> bool {
    let kinds = row.text(&FeedColumn::Kind).split(',');
    kinds
        .into_iter()
        .any(|kind| kind.trim().eq_ignore_ascii_case("variation"))
}

/// Returns the texts by which variations name a WooCommerce product.
fn references(row: &RowFields) -> Vec<String> {
    let (id, sku) = (row.text(&FeedColumn::Id), row.text(&FeedColumn::Sku));
    let id = (!id.is_empty()).then(|| format!("id:{id}"));
    id.into_iter()
        .chain((!sku.is_empty()).then(|| sku.to_owned()))
        .collect()
}

/// Returns the key that all rows of the same product share.
fn group_key(row: &RowFields) -> Option<String> {
    let key = match row.dialect {
        ExportDialect::Shopify => row.text(&FeedColumn::Handle).to_owned(),
        ExportDialect::WooCommerce => row.text(&FeedColumn::Parent).to_owned(),
        ExportDialect::Common => {
            let group = row.text(&FeedColumn::ItemGroup);
            if group.is_empty() {
                return None;
            }
            format!("{group}\n{}", row.text(&FeedColumn::Title))
        }
    };
    // WooCommerce files can also name the parent of a variation without one.
    (!key.is_empty() || is_variation(row)).then_some(key)
}

/// Returns the reason why the shop does not show a product.
fn hidden_reason(row: &RowFields) -> Option<&'static str> {
    let published = row.text(&FeedColumn::Published).to_ascii_lowercase();
    // The status is an attribute in files whose shop system is not recognized.
    let mut attributes = row.attributes.iter();
    let status = attributes
        .find(|(name, _)| name == "status")
        .map_or_else(|| row.text(&FeedColumn::Status), |(_, text)| text)
        .to_ascii_lowercase();
    let visibility = row.text(&FeedColumn::Visibility).to_ascii_lowercase();
    match (status.as_str(), published.as_str()) {
        ("draft", _) | (_, "-1") => Some("it is a draft in the shop"),
        ("archived", _) => Some("it is archived in the shop"),
        ("unlisted", _) | (_, "false" | "0" | "no") => Some("it is not published in the shop"),
        _ if visibility == "hidden" => Some("it is hidden in the shop's catalog"),
        _ => None,
    }
}

/// Returns `true` if a row can be bought, or `None` if it does not say so.
fn availability(row: &RowFields) -> Option<bool> {
    let stock = row.text(&FeedColumn::Inventory);
    let in_stock = |text: &str| text.parse::<f64>().ok().map(|stock| stock > 0.0);
    match row.dialect {
        ExportDialect::Common => {
            let text = row.text(&FeedColumn::Availability).to_lowercase();
            (!text.is_empty()).then(|| !text.contains("out"))
        }
        ExportDialect::WooCommerce => {
            match row.text(&FeedColumn::InStock).to_lowercase().as_str() {
                "" => in_stock(stock),
                text => Some(!["0", "no", "false", "outofstock", "nein"].contains(&text)),
            }
        }
        ExportDialect::Shopify => {
            let is_variant = !row.text(&FeedColumn::Price).is_empty() || !stock.is_empty();
            let policy = row.text(&FeedColumn::InventoryPolicy).to_ascii_lowercase();
            let is_untracked = row.has(&FeedColumn::InventoryTracker)
                && row.text(&FeedColumn::InventoryTracker).is_empty();
            if !is_variant {
                None
            } else if is_untracked || ["continue", "true"].contains(&policy.as_str()) {
                Some(true)
            } else {
                in_stock(stock)
            }
        }
    }
}
