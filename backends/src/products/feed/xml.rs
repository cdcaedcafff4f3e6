//! Reads products from XML: RSS and Atom with Google's product data, and lists of products of other
//! shops. Entities of a document type are not expanded, and nothing is fetched.

use std::{
    cell::Cell,
    io::{self, BufReader, Read},
    rc::Rc,
};

use quick_xml::{
    Reader, XmlVersion,
    escape::resolve_predefined_entity,
    events::{BytesStart, Event},
};

use super::{
    FeedError, ROW_BYTES_MAX, RowValues,
    columns::{ExportDialect, FeedColumn},
    fields::RowFields,
};

/// Names of an element that is a product.
const PRODUCT_NAMES: [&str; 6] = ["item", "entry", "product", "offer", "shopitem", "artikel"];
/// Maximum nesting depth.
const DEPTH_MAX: usize = 64;
/// Maximum number of bytes read for one tag or text; some belong to the next ones.
const EVENT_BYTES_MAX: usize = 2 * ROW_BYTES_MAX;

/// A text that is read only as far as one tag or text may reach.
struct BoundedEvents<R> {
    text: R,
    left: Rc<Cell<usize>>,
}

impl<R: Read> Read for BoundedEvents<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let read = self.text.read(buffer)?;
        self.left.set(self.left.get().saturating_sub(read));
        Ok(read)
    }
}

/// A product under construction.
struct OpenProduct {
    depth: usize,
    row: RowFields,
    bytes: usize,
    /// Column of the open child and its text so far.
    child: Option<(FeedColumn, String)>,
}

/// Reads all products of a file.
pub(super) fn read_rows(
    text: impl Read,
    take: &mut dyn FnMut(u64, RowValues) -> Result<(), FeedError>,
) -> Result<(), FeedError> {
    let left = Rc::new(Cell::new(EVENT_BYTES_MAX));
    let mut reader = Reader::from_reader(BufReader::new(BoundedEvents {
        text,
        left: Rc::clone(&left),
    }));
    // Shops forget to escape `&`.
    reader.config_mut().allow_dangling_amp = true;
    reader.config_mut().expand_empty_elements = true;
    let (mut buffer, mut depth, mut rows) = (Vec::new(), 0, 0);
    let mut open: Option<OpenProduct> = None;
    loop {
        buffer.clear();
        left.set(EVENT_BYTES_MAX);
        let event = reader
            .read_event_into(&mut buffer)
            .map_err(|error| broken(&error, rows + 1))?;
        match event {
            Event::Start(tag) => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return Err(FeedError::unreadable(
                        "the feed has elements inside each other more than 64 deep",
                    ));
                }
                start_element(&mut open, &tag, depth);
            }
            Event::End(_) => {
                end_element(&mut open, depth);
                if let Some(product) = open.take_if(|product| product.depth == depth) {
                    rows += 1;
                    take(rows, Ok(product.row))?;
                }
                depth = depth.saturating_sub(1);
            }
            Event::Text(text) => add_text(&mut open, &text, rows)?,
            Event::CData(text) => add_text(&mut open, &text, rows)?,
            Event::GeneralRef(name) => {
                let character = name.resolve_char_ref().ok().flatten();
                let text = match (character, resolve_predefined_entity(&name)) {
                    (Some(character), _) => character.to_string(),
                    (None, Some(text)) => text.to_owned(),
                    // Names of HTML are decoded with the markup; others stay as they are.
                    (None, None) => format!("&{};", &*name),
                };
                add_text(&mut open, &text, rows)?;
            }
            Event::Eof if depth > 0 => return Err(FeedError::BrokenOff { row: rows + 1 }),
            Event::Eof if rows == 0 => {
                return Err(FeedError::unreadable(
                    "the feed is XML without products; they are elements item, entry or product",
                ));
            }
            Event::Eof => return Ok(()),
            Event::Empty(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_) => {}
        }
    }
}

fn start_element(open: &mut Option<OpenProduct>, tag: &BytesStart<'_>, depth: usize) {
    let local = tag.local_name().into_inner().to_ascii_lowercase();
    let Some(product) = open else {
        if PRODUCT_NAMES.contains(&local.as_str()) {
            *open = Some(OpenProduct {
                depth,
                row: RowFields::new(ExportDialect::Common),
                bytes: 0,
                child: None,
            });
            let id = attribute(tag, "id");
            if let (Some(product), Some(id)) = (open, id) {
                product.row.add_attribute("id", &id);
            }
        }
        return;
    };
    if depth == product.depth + 1 {
        let column = FeedColumn::from_name(&local);
        // Atom's link is an attribute; other relations are not the page of the product.
        let is_page = attribute(tag, "rel").is_none_or(|rel| rel == "alternate");
        if let Some(address) = attribute(tag, "href").filter(|_| is_page) {
            product.row.add(&column, &address);
        }
        product.child = Some((column, String::new()));
    } else if let Some((column, text)) = &mut product.child {
        // Markup that is not escaped belongs to a text; other nested elements are lists and prices
        // of shipping.
        match column {
            FeedColumn::Title | FeedColumn::Description => text.push(' '),
            _ => *column = FeedColumn::Ignored,
        }
    }
}

fn end_element(open: &mut Option<OpenProduct>, depth: usize) {
    if let Some(product) = open
        && depth == product.depth + 1
        && let Some((column, text)) = product.child.take()
    {
        product.row.add(&column, &text);
    }
}

fn add_text(open: &mut Option<OpenProduct>, text: &str, rows: u64) -> Result<(), FeedError> {
    let Some(product) = open else {
        return Ok(());
    };
    product.bytes += text.len();
    if product.bytes > ROW_BYTES_MAX {
        return Err(FeedError::RowTooLarge {
            row: rows + 1,
            max: ROW_BYTES_MAX,
        });
    }
    if let Some((_, known)) = &mut product.child {
        known.push_str(text);
    }
    Ok(())
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = tag.try_get_attribute(name).ok()??;
    let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
    Some(value.into_owned())
}

/// Returns the error without the parser's text, which quotes the file.
fn broken(error: &quick_xml::Error, row: u64) -> FeedError {
    match error {
        quick_xml::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            FeedError::RowTooLarge {
                row,
                max: ROW_BYTES_MAX,
            }
        }
        quick_xml::Error::Io(error) => FeedError::Storage(error.to_string()),
        quick_xml::Error::Syntax(_) => FeedError::BrokenOff { row },
        _ => FeedError::Unreadable(format!("the feed is not valid XML at product {row}")),
    }
}
