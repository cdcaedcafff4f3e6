//! Content of PDF pages: the operations that place text, and the forms that contain more of them.

use std::{collections::HashMap, rc::Rc};

use lopdf::{
    Dictionary, Document, Object, ObjectId, Stream,
    content::{Content, Operation},
};

use super::{
    fonts::DocumentFont,
    layout::{PageText, PlacedText},
};
use crate::files::TEXT_BYTES_MAX;

/// Largest unpacked content of a page, in bytes.
const PAGE_BYTES_MAX: usize = 8 << 20;
/// Operations that are looked at in one document.
const OPERATIONS_MAX: usize = 5_000_000;
/// Forms that are read in one document.
const FORMS_MAX: usize = 2_000;
/// Bytes of pages and forms that are unpacked in one document; a form anew at each use.
const UNPACKED_BYTES_MAX: usize = 64 << 20;
/// Depth of forms within forms.
const FORM_DEPTH_MAX: usize = 8;
/// Depth of saved states.
const STATES_MAX: usize = 256;

/// Places in a row of resources, nearest first.
type ResourceList<'a> = Vec<&'a Dictionary>;

/// A transformation of points, as in the operator `cm`.
#[derive(Clone, Copy)]
struct TextMatrix([f32; 6]);

impl TextMatrix {
    const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    fn moved(x: f32, y: f32) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// Returns the transformation that applies `self` first, and `next` to its result.
    fn then(self, next: Self) -> Self {
        let ([a, b, c, d, e, f], [na, nb, nc, nd, ne, nf]) = (self.0, next.0);
        Self([
            a * na + b * nc,
            a * nb + b * nd,
            c * na + d * nc,
            c * nb + d * nd,
            e * na + f * nc + ne,
            e * nb + f * nd + nf,
        ])
    }

    const fn origin(self) -> (f32, f32) {
        (self.0[4], self.0[5])
    }
}

/// The state that `q` saves.
#[derive(Clone)]
struct GraphicsState<'a> {
    matrix: TextMatrix,
    font: Option<Rc<DocumentFont<'a>>>,
    size: f32,
    character_spacing: f32,
    word_spacing: f32,
    scale: f32,
    leading: f32,
}

/// Reads the pages of a document.
pub(super) struct ContentReader<'a> {
    document: &'a Document,
    fonts: HashMap<ObjectId, Rc<DocumentFont<'a>>>,
    operations: usize,
    forms: usize,
    unpacked: usize,
}

impl<'a> ContentReader<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        Self {
            document,
            fonts: HashMap::new(),
            operations: 0,
            forms: 0,
            unpacked: 0,
        }
    }

    /// Returns `true` if parts were not read because the document has too many.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.operations >= OPERATIONS_MAX
            || self.forms >= FORMS_MAX
            || self.unpacked >= UNPACKED_BYTES_MAX
    }

    /// Returns the text of a page. Parts that are damaged are missing.
    pub(super) fn read_page(&mut self, page: ObjectId) -> String {
        let mut text = PageText::default();
        if self.is_exhausted() {
            return String::new();
        }
        let content = self
            .document
            .get_page_content_with_limit(page, PAGE_BYTES_MAX);
        let unpacked = content.as_ref().map_or(PAGE_BYTES_MAX, Vec::len);
        self.unpacked += unpacked;
        let resources = self.document.get_page_resources(page);
        if let (Ok(content), Ok((direct, referenced))) = (content, resources) {
            let referenced = referenced.into_iter();
            let referenced = referenced.filter_map(|id| self.document.get_dictionary(id).ok());
            let resources = direct.into_iter().chain(referenced).collect();
            self.read_content(&content, &resources, TextMatrix::IDENTITY, 0, &mut text);
        }
        text.into_text()
    }

    fn read_content(
        &mut self,
        content: &[u8],
        resources: &ResourceList<'a>,
        matrix: TextMatrix,
        depth: usize,
        text: &mut PageText,
    ) {
        let mut run = ContentRun {
            state: GraphicsState {
                matrix,
                font: None,
                size: 0.0,
                character_spacing: 0.0,
                word_spacing: 0.0,
                scale: 1.0,
                leading: 0.0,
            },
            saved: Vec::new(),
            line: TextMatrix::IDENTITY,
            place: TextMatrix::IDENTITY,
            text,
        };
        for operation in Content::decode_iter(content) {
            let Ok(operation) = operation else { return };
            self.operations += 1;
            if self.operations >= OPERATIONS_MAX || run.text.len() > TEXT_BYTES_MAX {
                return;
            }
            match operation.operator.as_str() {
                "Tf" => {
                    if let [Object::Name(name), size] = operation.operands.as_slice() {
                        run.state.font = self.font(resources, name);
                        run.state.size = size.as_float().unwrap_or(0.0);
                    }
                }
                "Do" => {
                    if let [Object::Name(name)] = operation.operands.as_slice() {
                        let matrix = run.state.matrix;
                        self.read_form(resources, name, matrix, depth, run.text);
                    }
                }
                _ => run.apply(&operation),
            }
        }
    }

    fn font(&mut self, resources: &ResourceList<'a>, name: &[u8]) -> Option<Rc<DocumentFont<'a>>> {
        let (id, font) = self.resource(resources, b"Font", name)?;
        if let Some(font) = id.and_then(|id| self.fonts.get(&id)) {
            return Some(font.clone());
        }
        let font = Rc::new(DocumentFont::read(self.document, font.as_dict().ok()?));
        if let Some(id) = id {
            self.fonts.insert(id, font.clone());
        }
        Some(font)
    }

    fn read_form(
        &mut self,
        resources: &ResourceList<'a>,
        name: &[u8],
        matrix: TextMatrix,
        depth: usize,
        text: &mut PageText,
    ) {
        let form = self.resource(resources, b"XObject", name);
        let Some(form) = form.and_then(|(_, form)| form.as_stream().ok()) else {
            return;
        };
        let is_form = form.dict.get(b"Subtype").and_then(Object::as_name);
        if is_form.ok() != Some(b"Form") || depth >= FORM_DEPTH_MAX || self.is_exhausted() {
            return;
        }
        self.forms += 1;
        let Ok(content) = form.get_plain_content_with_limit(PAGE_BYTES_MAX) else {
            // It was too large, or damaged, perhaps only near its end.
            self.unpacked += PAGE_BYTES_MAX;
            return;
        };
        self.unpacked += content.len();
        let matrix = self.form_matrix(form).then(matrix);
        let own = form.dict.get_deref(b"Resources", self.document);
        let own = own.and_then(Object::as_dict).ok();
        let resources = own.map_or_else(|| resources.clone(), |own| vec![own]);
        self.read_content(&content, &resources, matrix, depth + 1, text);
    }

    fn form_matrix(&self, form: &'a Stream) -> TextMatrix {
        let matrix = form.dict.get_deref(b"Matrix", self.document);
        let matrix = matrix.and_then(Object::as_array).ok();
        let matrix = matrix.and_then(|matrix| numbers(matrix));
        matrix.map_or(TextMatrix::IDENTITY, TextMatrix)
    }

    /// Returns a named resource and its id, if it has one.
    fn resource(
        &self,
        resources: &ResourceList<'a>,
        category: &[u8],
        name: &[u8],
    ) -> Option<(Option<ObjectId>, &'a Object)> {
        let mut places = resources.iter();
        places.find_map(|place| {
            let named = place.get_deref(category, self.document).ok()?;
            let object = named.as_dict().ok()?.get(name).ok()?;
            self.document.dereference(object).ok()
        })
    }
}

/// One pass through a stream of operations.
struct ContentRun<'a, 't> {
    state: GraphicsState<'a>,
    saved: Vec<GraphicsState<'a>>,
    /// Beginning of the line.
    line: TextMatrix,
    /// Place of the next character.
    place: TextMatrix,
    text: &'t mut PageText,
}

impl ContentRun<'_, '_> {
    fn apply(&mut self, operation: &Operation) {
        let operands = operation.operands.as_slice();
        match operation.operator.as_str() {
            "q" if self.saved.len() < STATES_MAX => self.saved.push(self.state.clone()),
            "Q" => {
                if let Some(state) = self.saved.pop() {
                    self.state = state;
                }
            }
            "cm" => {
                if let Some(matrix) = numbers(operands) {
                    self.state.matrix = TextMatrix(matrix).then(self.state.matrix);
                }
            }
            "BT" => self.start_line(TextMatrix::IDENTITY),
            "Tm" => {
                if let Some(matrix) = numbers(operands) {
                    self.start_line(TextMatrix(matrix));
                }
            }
            "Td" | "TD" => {
                if let Some([x, y]) = numbers(operands) {
                    if operation.operator == "TD" {
                        self.state.leading = -y;
                    }
                    self.start_line(TextMatrix::moved(x, y).then(self.line));
                }
            }
            "T*" => self.next_line(),
            "Tj" => self.show(operands),
            "'" => {
                self.next_line();
                self.show(operands);
            }
            "\"" => {
                self.next_line();
                self.show(operands.get(2..).unwrap_or_default());
            }
            "TJ" => {
                if let Some(Object::Array(pieces)) = operands.first() {
                    self.show(pieces);
                }
            }
            operator => self.set_parameter(operator, operands),
        }
    }

    fn set_parameter(&mut self, operator: &str, operands: &[Object]) {
        let Some([value]) = numbers(operands) else {
            return;
        };
        match operator {
            "TL" => self.state.leading = value,
            "Tc" => self.state.character_spacing = value,
            "Tw" => self.state.word_spacing = value,
            "Tz" => self.state.scale = value / 100.0,
            _ => {}
        }
    }

    const fn start_line(&mut self, line: TextMatrix) {
        self.line = line;
        self.place = line;
    }

    fn next_line(&mut self) {
        self.start_line(TextMatrix::moved(0.0, -self.state.leading).then(self.line));
    }

    /// Shows texts, between which numbers are steps back in thousandths of the font's height.
    fn show(&mut self, pieces: &[Object]) {
        let Some(font) = self.state.font.clone() else {
            return;
        };
        let state = &self.state;
        let (mut text, mut advance) = (String::new(), 0.0);
        let mut start = self.place;
        for piece in pieces {
            match piece {
                Object::String(bytes, _) => font.decode(bytes, |code| {
                    let spacing = if code.is_space {
                        state.word_spacing
                    } else {
                        0.0
                    };
                    advance +=
                        (code.width * state.size + state.character_spacing + spacing) * state.scale;
                    text.push_str(&code.text);
                }),
                other => {
                    let step = other.as_float().unwrap_or(0.0) / 1000.0 * state.size * state.scale;
                    let next = TextMatrix::moved(advance, 0.0).then(start);
                    place(self.text, &text, start, next, state);
                    text.clear();
                    start = TextMatrix::moved(-step, 0.0).then(next);
                    advance = 0.0;
                }
            }
        }
        let end = TextMatrix::moved(advance, 0.0).then(start);
        place(self.text, &text, start, end, state);
        self.place = end;
    }
}

fn place(
    page: &mut PageText,
    text: &str,
    start: TextMatrix,
    end: TextMatrix,
    state: &GraphicsState<'_>,
) {
    let (start, end) = (start.then(state.matrix), end.then(state.matrix));
    // Height of a vertical line of the font's height.
    let height = start.0[2].hypot(start.0[3]) * state.size;
    page.place(&PlacedText {
        text,
        start: start.origin(),
        end: end.origin(),
        size: height.abs(),
    });
}

/// Returns operands as numbers, if there are exactly so many.
fn numbers<const COUNT: usize>(operands: &[Object]) -> Option<[f32; COUNT]> {
    let mut numbers = [0.0; COUNT];
    if operands.len() != COUNT {
        return None;
    }
    for (number, operand) in numbers.iter_mut().zip(operands) {
        *number = operand.as_float().ok()?;
    }
    Some(numbers)
}
