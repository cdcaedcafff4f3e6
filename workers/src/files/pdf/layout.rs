//! Order of the text on a page: lines and gaps, from the places of its pieces.

/// A piece of text on a line. Lengths are in the units of the page.
pub(super) struct PlacedText<'a> {
    pub(super) text: &'a str,
    /// Beginning of the piece.
    pub(super) start: (f32, f32),
    /// End of the piece.
    pub(super) end: (f32, f32),
    /// Height of the font.
    pub(super) size: f32,
}

/// Distance from the last line that begins a new line, in heights of the font.
const LINE_DISTANCE: f32 = 0.5;
/// Distance from the last line that begins a new paragraph.
const PARAGRAPH_DISTANCE: f32 = 1.9;
/// Gap between two words.
const WORD_GAP: f32 = 0.17;
/// Gap between two columns.
const COLUMN_GAP: f32 = 1.5;
/// Step back on a line that begins a new line.
const RETURN_GAP: f32 = 1.0;

/// The text of a page, in the order in which it is drawn.
#[derive(Default)]
pub(super) struct PageText {
    text: String,
    end: Option<(f32, f32)>,
}

impl PageText {
    /// Appends a piece after the gap that it has from the last piece.
    pub(super) fn place(&mut self, piece: &PlacedText<'_>) {
        if piece.text.is_empty() {
            return;
        }
        if let Some(gap) = self.gap_before(piece) {
            let is_spaced = self.text.ends_with(char::is_whitespace)
                || piece.text.starts_with(char::is_whitespace);
            if gap.contains('\n') {
                self.text.truncate(self.text.trim_end().len());
                self.text.push_str(gap);
            } else if !is_spaced {
                self.text.push_str(gap);
            }
        }
        self.text.push_str(piece.text);
        self.end = Some(piece.end);
    }

    fn gap_before(&self, piece: &PlacedText<'_>) -> Option<&'static str> {
        let end = self.end?;
        let size = piece.size.max(0.1);
        let (along, across) = direction(piece);
        let step = (piece.start.0 - end.0, piece.start.1 - end.1);
        let gap = (step.0 * along.0 + step.1 * along.1) / size;
        let distance = (step.0 * across.0 + step.1 * across.1).abs() / size;
        if distance > PARAGRAPH_DISTANCE {
            Some("\n\n")
        } else if distance > LINE_DISTANCE || gap < -RETURN_GAP {
            Some("\n")
        } else if gap > COLUMN_GAP {
            Some("\t")
        } else if gap > WORD_GAP {
            Some(" ")
        } else {
            None
        }
    }

    /// Returns the text.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Returns the length of the text, in bytes.
    pub(super) const fn len(&self) -> usize {
        self.text.len()
    }
}

/// Returns the direction of a piece and the one at a right angle to it.
fn direction(piece: &PlacedText<'_>) -> ((f32, f32), (f32, f32)) {
    let (x, y) = (piece.end.0 - piece.start.0, piece.end.1 - piece.start.1);
    let length = x.hypot(y);
    if length < f32::EPSILON || !length.is_finite() {
        return ((1.0, 0.0), (0.0, 1.0));
    }
    let along = (x / length, y / length);
    (along, (-along.1, along.0))
}
