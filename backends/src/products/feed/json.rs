//! Splits JSON into objects without reading it whole: an array of objects, an object with such an
//! array, or one object per line.

use serde_json::{Map, Value};

use super::{
    FeedError, ROW_BYTES_MAX, RowValues,
    columns::{ExportDialect, FeedColumn},
    fields::RowFields,
};

/// Names of the array of products within an object.
const ARRAY_NAMES: [&[u8]; 5] = [b"products", b"items", b"data", b"results", b"entries"];
/// Maximum nesting depth.
const DEPTH_MAX: usize = 32;
/// Maximum number of values joined to one text.
const JOINED_VALUES_MAX: usize = 20;
/// Names under which a nested object contains its essential value.
const ESSENTIAL_NAMES: [&str; 7] = ["amount", "value", "src", "url", "href", "name", "title"];
const CURRENCY_NAMES: [&str; 3] = ["currency", "currencyCode", "currency_code"];

/// Objects of a JSON feed, read from a stream of bytes.
pub(super) struct JsonRows {
    /// Brackets that are open.
    open: Vec<u8>,
    /// Number of open brackets around each product; `None` until it is known.
    around: Option<usize>,
    /// Bytes of the current object.
    object: Vec<u8>,
    /// `true` while something other than an object stands in the place of a product.
    is_stray: bool,
    in_string: bool,
    escaped: bool,
    /// Last text of the outermost object, which may be the name of the next value.
    last_text: Vec<u8>,
    /// `true` after the array of products inside an object was read.
    is_over: bool,
    row: u64,
}

impl JsonRows {
    pub(super) const fn new() -> Self {
        Self {
            open: Vec::new(),
            around: None,
            object: Vec::new(),
            is_stray: false,
            in_string: false,
            escaped: false,
            last_text: Vec::new(),
            is_over: false,
            row: 0,
        }
    }

    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        take: &mut dyn FnMut(u64, RowValues),
    ) -> Result<(), FeedError> {
        for byte in bytes {
            if self.in_string {
                self.string_byte(*byte);
            } else {
                self.push_byte(*byte, take)?;
            }
            if self.object.len() > ROW_BYTES_MAX {
                return Err(FeedError::RowTooLarge {
                    row: self.row + 1,
                    max: ROW_BYTES_MAX,
                });
            }
        }
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<(), FeedError> {
        if self.in_string || !self.open.is_empty() {
            Err(FeedError::BrokenOff { row: self.row + 1 })
        } else {
            Ok(())
        }
    }

    fn string_byte(&mut self, byte: u8) {
        self.keep_byte(byte);
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => {
                self.in_string = false;
                return;
            }
            _ => {}
        }
        if self.open.len() == 1 && self.last_text.len() < ROW_BYTES_MAX {
            self.last_text.push(byte);
        }
    }

    fn push_byte(
        &mut self,
        byte: u8,
        take: &mut dyn FnMut(u64, RowValues),
    ) -> Result<(), FeedError> {
        match byte {
            b'"' => {
                self.mark_stray(take);
                self.in_string = true;
                self.last_text.clear();
                self.keep_byte(byte);
            }
            b'{' | b'[' => self.open_bracket(byte, take)?,
            b'}' | b']' => self.close_bracket(byte, take)?,
            b',' if self.around == Some(self.open.len()) => self.is_stray = false,
            _ if byte.is_ascii_whitespace() => self.keep_byte(byte),
            _ => {
                self.mark_stray(take);
                self.keep_byte(byte);
            }
        }
        Ok(())
    }

    fn open_bracket(
        &mut self,
        byte: u8,
        take: &mut dyn FnMut(u64, RowValues),
    ) -> Result<(), FeedError> {
        if self.open.len() >= DEPTH_MAX {
            return Err(FeedError::unreadable(
                "the feed has brackets inside each other more than 32 deep",
            ));
        }
        let depth = self.open.len();
        let holds_products = ARRAY_NAMES.contains(&self.last_text.as_slice());
        match self.around {
            None if byte == b'[' && depth == 0 => self.around = Some(1),
            None if byte == b'[' && depth == 1 && holds_products && !self.is_over => {
                self.around = Some(2);
                self.object.clear();
            }
            None if !self.is_over => self.object.push(byte),
            Some(around) if depth == around && byte == b'{' => self.object.push(byte),
            Some(around) if depth == around => self.mark_stray(take),
            _ => self.keep_byte(byte),
        }
        self.open.push(byte);
        Ok(())
    }

    fn close_bracket(
        &mut self,
        byte: u8,
        take: &mut dyn FnMut(u64, RowValues),
    ) -> Result<(), FeedError> {
        let opened = self.open.pop();
        if !matches!((opened, byte), (Some(b'{'), b'}') | (Some(b'['), b']')) {
            return Err(FeedError::unreadable(
                "the feed closes a bracket that it has not opened",
            ));
        }
        self.keep_byte(byte);
        let depth = self.open.len();
        match self.around {
            Some(around) if depth == around && !self.object.is_empty() => self.end_object(take),
            Some(around) if depth + 1 == around => {
                self.around = None;
                self.is_stray = false;
                self.is_over = depth > 0;
            }
            None if depth == 0 && self.is_over => self.is_over = false,
            None if depth == 0 => self.end_object(take),
            _ => {}
        }
        Ok(())
    }

    /// Adds a byte to the current object.
    fn keep_byte(&mut self, byte: u8) {
        if !self.object.is_empty() {
            self.object.push(byte);
        }
    }

    /// Reports once a value that is not an object.
    fn mark_stray(&mut self, take: &mut dyn FnMut(u64, RowValues)) {
        let at_place = self
            .around
            .map_or(self.open.is_empty(), |around| around == self.open.len());
        if at_place && self.object.is_empty() && !self.is_stray {
            self.is_stray = true;
            self.row += 1;
            take(self.row, Err("it is not a JSON object".into()));
        }
    }

    fn end_object(&mut self, take: &mut dyn FnMut(u64, RowValues)) {
        let object = std::mem::take(&mut self.object);
        self.is_stray = false;
        self.row += 1;
        take(self.row, read_object(&object));
    }
}

fn read_object(bytes: &[u8]) -> RowValues {
    // The parser's reasons quote nothing, but its columns would be relative to the object, not to
    // the file.
    let object: Map<String, Value> =
        serde_json::from_slice(bytes).map_err(|_| "it is not valid JSON".to_owned())?;
    let mut row = RowFields::new(ExportDialect::Common);
    for (name, value) in &object {
        match (FeedColumn::from_name(name), value) {
            (FeedColumn::Variants, Value::Array(variants)) => add_variants(&mut row, variants),
            (FeedColumn::Variants, _) => {}
            (column, value) => {
                if let Some(text) = value_text(value) {
                    row.add(&column, &text);
                }
            }
        }
    }
    Ok(row)
}

/// Adds the prices of the first variant that has one; shop systems put them there.
fn add_variants(row: &mut RowFields, variants: &[Value]) {
    let price = |variant: &Value| value_text(variant.get("price")?);
    let priced = variants
        .iter()
        .find_map(|variant| Some((variant, price(variant)?)));
    if let Some((variant, price)) = priced {
        row.add(&FeedColumn::VariantPrice, &price);
        if let Some(text) = variant.get("compare_at_price").and_then(value_text) {
            row.add(&FeedColumn::CompareAtPrice, &text);
        }
    }
}

/// Returns a value as text; objects and lists are reduced to their essential values.
fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(values) => match values.first()? {
            Value::Object(_) | Value::Array(_) => value_text(values.first()?),
            _ => Some(
                values
                    .iter()
                    .take(JOINED_VALUES_MAX)
                    .filter_map(value_text)
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
        },
        Value::Object(object) => {
            let essential = ESSENTIAL_NAMES
                .iter()
                .find_map(|name| object.get(*name))
                .filter(|value| is_plain(value))?;
            let currency = CURRENCY_NAMES
                .iter()
                .find_map(|name| object.get(*name)?.as_str());
            let text = value_text(essential)?;
            Some(match currency {
                Some(currency) => format!("{text} {currency}"),
                None => text,
            })
        }
    }
}

const fn is_plain(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}
