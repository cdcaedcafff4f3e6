//! Meaning of column names: the names of Google's product data and those of shop systems and
//! spreadsheets. Other names become attributes.

use super::markup::truncate_chars;

const ATTRIBUTE_NAME_CHARS_MAX: usize = 60;

/// The meaning of a column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FeedColumn {
    Title,
    Description,
    Price,
    RegularPrice,
    SalePrice,
    /// Price before a reduction, which counts only if it is higher.
    CompareAtPrice,
    /// Start and end of a sale in one text.
    SaleDates,
    SaleStart,
    SaleEnd,
    Currency,
    Image,
    ImagePosition,
    VariantImage,
    Url,
    /// A list of objects, one for each size or color.
    Variants,
    VariantPrice,
    /// The name that all rows of a product share (Shopify).
    Handle,
    /// The id that all variants of a product share (Google).
    ItemGroup,
    Availability,
    Id,
    Sku,
    Kind,
    Parent,
    Published,
    Status,
    Visibility,
    InStock,
    Inventory,
    InventoryTracker,
    InventoryPolicy,
    OptionName(u8),
    OptionValue(u8),
    Attribute(String),
    /// Data that is not for visitors, such as a purchase price.
    Ignored,
}

/// Columns that are often misspelled, with their names; the first one is suggested unless the feed
/// has one of the columns.
pub(super) const MEANT_NAMES: [(&[FeedColumn], &[&str]); 5] = [
    (
        &[
            FeedColumn::Price,
            FeedColumn::RegularPrice,
            FeedColumn::VariantPrice,
        ],
        &[
            "price",
            "preis",
            "verkaufspreis",
            "bruttopreis",
            "prix",
            "precio",
            "prezzo",
            "preço",
            "prijs",
            "cena",
        ],
    ),
    (
        &[FeedColumn::SalePrice],
        &["sale_price", "special_price", "angebotspreis"],
    ),
    (
        &[FeedColumn::Image, FeedColumn::VariantImage],
        &[
            "image_link",
            "image",
            "image_url",
            "bild",
            "picture",
            "photo",
        ],
    ),
    (
        &[FeedColumn::Url],
        &["link", "product_url", "product_link", "permalink"],
    ),
    (
        &[FeedColumn::Description],
        &["description", "beschreibung", "descripción", "descrizione"],
    ),
];

/// The shop system whose export a table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ExportDialect {
    #[default]
    Common,
    Shopify,
    WooCommerce,
}

/// Returns the columns of a table and the shop system that their names belong to.
pub(super) fn columns_of(names: &[impl AsRef<str>]) -> (Vec<FeedColumn>, ExportDialect) {
    let names: Vec<String> = names
        .iter()
        .map(|name| normalize_name(name.as_ref()))
        .collect();
    let has = |wanted: &[&str]| names.iter().any(|name| wanted.contains(&name.as_str()));
    let dialect = if has(&["handle", "url_handle"]) && has(&["title"]) {
        ExportDialect::Shopify
    } else if has(&["type", "typ"])
        && has(&["name"])
        && has(&[
            "regular_price",
            "regulärer_preis",
            "parent",
            "übergeordnetes_produkt",
        ])
    {
        ExportDialect::WooCommerce
    } else {
        ExportDialect::Common
    };
    let columns = names.iter().map(|name| match dialect {
        ExportDialect::Shopify => shopify_column(name).unwrap_or_else(|| common_column(name)),
        ExportDialect::WooCommerce => woo_column(name).unwrap_or_else(|| common_column(name)),
        ExportDialect::Common => common_column(name),
    });
    (columns.collect(), dialect)
}

impl FeedColumn {
    pub(super) fn from_name(name: &str) -> Self {
        common_column(&normalize_name(name))
    }
}

fn common_column(name: &str) -> FeedColumn {
    if let Some(column) = sale_date_column(name) {
        return column;
    }
    match name {
        "title" | "name" | "product_name" | "product_title" | "titel" | "titre" | "titolo"
        | "titulo" | "título" | "nombre" | "nom" | "nome" | "naam" | "bezeichnung"
        | "artikelbezeichnung" | "artikelname" | "produkt" | "produktname" | "nazwa"
        | "produktbezeichnung" | "název" | "item_name" | "item_title" => FeedColumn::Title,
        "description"
        | "short_description"
        | "body_html"
        | "body"
        | "beschreibung"
        | "kurzbeschreibung"
        | "produktbeschreibung"
        | "descripcion"
        | "descripción"
        | "descrizione"
        | "omschrijving"
        | "summary"
        | "content"
        | "opis" => FeedColumn::Description,
        "price" | "unit_price" | "preis" | "verkaufspreis" | "bruttopreis" | "prix" | "precio"
        | "prezzo" | "preço" | "preco" | "prijs" | "cena" | "pris" | "preis_eur"
        | "preis_in_eur" | "preis_brutto" | "preis_inkl_mw_st" | "vk_preis" | "vk_brutto"
        | "endpreis" | "gross_price" | "price_tax_incl" | "price_incl_tax" | "price_eur"
        | "price_usd" | "price_gbp" => FeedColumn::Price,
        "regular_price" | "regulärer_preis" | "normalpreis" => FeedColumn::RegularPrice,
        "sale_price" | "special_price" | "angebotspreis" | "aktionspreis" => FeedColumn::SalePrice,
        "compare_at_price" | "compare_at" | "uvp" | "streichpreis" => FeedColumn::CompareAtPrice,
        "currency" | "price_currency" | "currency_code" | "währung" | "waehrung" => {
            FeedColumn::Currency
        }
        "image_link"
        | "image"
        | "images"
        | "image_url"
        | "imageurl"
        | "image_src"
        | "featured_image"
        | "picture"
        | "thumbnail"
        | "photo"
        | "bild"
        | "bilder"
        | "bild_url"
        | "bildlink"
        | "imgurl"
        | "image1"
        | "image_1"
        | "main_image"
        | "hauptbild"
        | "product_image_url_1" => FeedColumn::Image,
        "link" | "url" | "product_url" | "product_link" | "producturl" | "permalink" | "href"
        | "deeplink" | "produktlink" | "produkt_url" => FeedColumn::Url,
        "variants" => FeedColumn::Variants,
        "item_group_id" => FeedColumn::ItemGroup,
        "availability" => FeedColumn::Availability,
        "cost_per_item"
        | "cost_of_goods_sold"
        | "cost_price"
        | "purchase_price"
        | "einkaufspreis"
        | "additional_image_link" => FeedColumn::Ignored,
        _ => FeedColumn::Attribute(truncate_chars(name, ATTRIBUTE_NAME_CHARS_MAX)),
    }
}

/// Returns the meaning of a column with the dates of a sale.
fn sale_date_column(name: &str) -> Option<FeedColumn> {
    match name {
        "sale_price_effective_date" => Some(FeedColumn::SaleDates),
        "date_sale_price_starts"
        | "date_on_sale_from"
        | "sale_start_date"
        | "special_from_date"
        | "special_price_from_date"
        | "sale_price_start_date"
        | "sale_price_dates_from"
        | "datum_an_dem_angebotspreis_beginnt" => Some(FeedColumn::SaleStart),
        "date_sale_price_ends"
        | "date_on_sale_to"
        | "sale_end_date"
        | "special_to_date"
        | "special_price_to_date"
        | "sale_price_end_date"
        | "sale_price_dates_to"
        | "datum_an_dem_angebotspreis_endet" => Some(FeedColumn::SaleEnd),
        _ => None,
    }
}

/// Returns the meaning of a column of Shopify's product export, in its older and its newer form.
fn shopify_column(name: &str) -> Option<FeedColumn> {
    if let Some(column) = numbered(name, "option", "_name").map(FeedColumn::OptionName) {
        return Some(column);
    }
    if let Some(column) = numbered(name, "option", "_value").map(FeedColumn::OptionValue) {
        return Some(column);
    }
    // Prices per market, settings of the shop and texts for search engines.
    let of_shop = [
        "included_",
        "price_",
        "compare_at_price_",
        "unit_price_",
        "seo_",
        "variant_tax",
        "variant_requires",
        "variant_fulfillment",
        "variant_weight_unit",
        "weight_unit",
        "fulfillment_service",
        "requires_shipping",
        "charge_tax",
        "tax_code",
        "gift_card",
        "image_alt_text",
        "option1_linked",
        "option2_linked",
        "option3_linked",
        "metafield",
    ];
    Some(match name {
        "handle" | "url_handle" => FeedColumn::Handle,
        "variant_price" | "price" => FeedColumn::Price,
        "variant_compare_at_price" | "compare_at_price" => FeedColumn::CompareAtPrice,
        "image_src" | "product_image_url" => FeedColumn::Image,
        "image_position" => FeedColumn::ImagePosition,
        "variant_image" | "variant_image_url" => FeedColumn::VariantImage,
        "variant_sku" => FeedColumn::Sku,
        "variant_inventory_qty" | "inventory_quantity" => FeedColumn::Inventory,
        "variant_inventory_tracker" | "inventory_tracker" => FeedColumn::InventoryTracker,
        "variant_inventory_policy" | "continue_selling_when_out_of_stock" => {
            FeedColumn::InventoryPolicy
        }
        "published" | "published_on_online_store" => FeedColumn::Published,
        "status" => FeedColumn::Status,
        "variant_barcode" => FeedColumn::Attribute("barcode".into()),
        _ if of_shop.iter().any(|beginning| name.starts_with(beginning)) => FeedColumn::Ignored,
        _ => return None,
    })
}

/// Returns the meaning of a column of WooCommerce's product export.
fn woo_column(name: &str) -> Option<FeedColumn> {
    if let Some(column) = numbered(name, "attribute_", "_name").map(FeedColumn::OptionName) {
        return Some(column);
    }
    if let Some(column) = numbered(name, "attribute_", "_value_s").map(FeedColumn::OptionValue) {
        return Some(column);
    }
    // Files that are sold, data of plugins and settings of the shop.
    let of_shop = [
        "attribute_",
        "download_",
        "meta_",
        "grouped_products",
        "tax_",
    ];
    Some(match name {
        "id" => FeedColumn::Id,
        "sku" | "artikelnummer" => FeedColumn::Sku,
        "type" | "typ" => FeedColumn::Kind,
        "published" | "veröffentlicht" => FeedColumn::Published,
        "visibility_in_catalog" | "sichtbarkeit_im_katalog" => FeedColumn::Visibility,
        "in_stock" | "vorrätig" => FeedColumn::InStock,
        "stock" | "bestand" => FeedColumn::Inventory,
        "parent" | "übergeordnetes_produkt" => FeedColumn::Parent,
        "external_url" | "externe_url" => FeedColumn::Url,
        "is_featured"
        | "low_stock_amount"
        | "backorders_allowed"
        | "sold_individually"
        | "allow_customer_reviews"
        | "purchase_note"
        | "upsells"
        | "cross_sells"
        | "position"
        | "button_text"
        | "shipping_class"
        | "swatches_attributes" => FeedColumn::Ignored,
        _ if of_shop.iter().any(|beginning| name.starts_with(beginning)) => FeedColumn::Ignored,
        _ => return None,
    })
}

/// Returns the number between `before` and `after`.
fn numbered(name: &str, before: &str, after: &str) -> Option<u8> {
    name.strip_prefix(before)?.strip_suffix(after)?.parse().ok()
}

/// Normalizes a column name, so that `Image Link`, `image-link`, `imageLink` and `g:image_link`
/// equal `image_link`.
pub(super) fn normalize_name(name: &str) -> String {
    let name = name.trim().trim_start_matches('\u{feff}');
    let name = name.strip_prefix("g:").unwrap_or(name);
    let mut normalized = String::with_capacity(name.len());
    let mut after_lower = false;
    for character in name.chars() {
        if character.is_uppercase() && after_lower {
            normalized.push('_');
        }
        after_lower = character.is_lowercase();
        if character.is_alphanumeric() {
            normalized.extend(character.to_lowercase());
        } else if !normalized.ends_with('_') {
            normalized.push('_');
        }
    }
    normalized.trim_matches('_').to_owned()
}
