//! The characters of the codes of a font, from its `ToUnicode` stream.

use std::collections::HashMap;

use lopdf::{Object, content::Content};

/// Most codes and ranges of a font.
const ENTRIES_MAX: usize = 100_000;
/// Most UTF-16 units for one code.
const UNITS_MAX: usize = 32;

/// Characters by code.
#[derive(Default)]
pub(super) struct UnicodeMap {
    codes: HashMap<u32, String>,
    /// First code, last code and the units for the first one, sorted.
    ranges: Vec<(u32, u32, Vec<u16>)>,
    /// Length of codes, in bytes.
    pub(super) code_bytes: Option<usize>,
}

impl UnicodeMap {
    /// Reads a stream. Entries that are damaged are skipped.
    pub(super) fn parse(stream: &[u8]) -> Self {
        let mut map = Self::default();
        for operation in Content::decode_iter(stream) {
            let Ok(operation) = operation else { break };
            let operands = operation.operands.as_slice();
            match operation.operator.as_str() {
                "endcodespacerange" => {
                    map.code_bytes = operands.first().and_then(string).map(<[u8]>::len);
                }
                "endbfchar" => operands.chunks_exact(2).for_each(|pair| map.add_code(pair)),
                "endbfrange" => operands
                    .chunks_exact(3)
                    .for_each(|range| map.add_range(range)),
                _ => {}
            }
            if map.codes.len() + map.ranges.len() > ENTRIES_MAX {
                break;
            }
        }
        map.ranges.sort_unstable();
        map
    }

    /// Returns the characters of a code.
    pub(super) fn get(&self, code: u32) -> Option<String> {
        if let Some(text) = self.codes.get(&code) {
            return Some(text.clone());
        }
        let next = self.ranges.partition_point(|range| range.0 <= code);
        let (first, last, units) = self.ranges.get(next.checked_sub(1)?)?;
        if code > *last {
            return None;
        }
        let mut units = units.clone();
        let unit = units.last_mut()?;
        *unit = unit.wrapping_add(u16::try_from(code - first).ok()?);
        Some(String::from_utf16_lossy(&units))
    }

    fn add_code(&mut self, pair: &[Object]) {
        if let [code, text] = pair
            && let (Some(code), Some(units)) = (string(code).and_then(number), units(text))
        {
            self.codes.insert(code, String::from_utf16_lossy(&units));
        }
    }

    fn add_range(&mut self, range: &[Object]) {
        let [first, last, target] = range else { return };
        let bounds = string(first)
            .and_then(number)
            .zip(string(last).and_then(number));
        let Some((first, last)) = bounds else { return };
        if let Object::Array(texts) = target {
            for (code, text) in (first..=last).zip(texts.iter().take(ENTRIES_MAX)) {
                if let Some(units) = units(text) {
                    self.codes.insert(code, String::from_utf16_lossy(&units));
                }
            }
        } else if let Some(units) = units(target) {
            self.ranges.push((first, last, units));
        }
    }
}

fn string(object: &Object) -> Option<&[u8]> {
    object.as_str().ok()
}

fn number(bytes: &[u8]) -> Option<u32> {
    (bytes.len() <= 4).then(|| {
        let digits = bytes.iter();
        digits.fold(0, |number, byte| number << 8 | u32::from(*byte))
    })
}

fn units(object: &Object) -> Option<Vec<u16>> {
    let bytes = string(object)?;
    let units = bytes.chunks_exact(2).take(UNITS_MAX);
    Some(
        units
            .map(|unit| u16::from_be_bytes([unit[0], unit[1]]))
            .collect(),
    )
}
