//! Pictures: decoded within bounds, turned upright, made smaller, and encoded without metadata.

use std::io::Cursor;

use image::{
    DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageError, ImageReader, Limits,
    codecs::{
        jpeg::JpegEncoder,
        png::{CompressionType, FilterType, PngEncoder},
    },
    imageops::FilterType as ScaleFilter,
};

use super::{FileReading, ReadFailure, ReadResult};

pub(super) use image::ImageFormat as PictureFormat;

/// Most pixels of a picture that is decoded.
const PIXELS_MAX: u64 = 50_000_000;
/// Most memory for the decoded picture, in bytes.
const DECODED_BYTES_MAX: u64 = 256 << 20;
/// Longest side of a picture for a model, in pixels.
const SIDE_MAX: u32 = 2048;
/// Largest encoded picture for a model, in bytes. A prompt has several, which are all in memory.
pub(super) const IMAGE_BYTES_MAX: usize = 2 << 20;
/// Qualities of JPEG, until a picture is small enough.
const QUALITIES: [u8; 3] = [85, 70, 50];

/// Reads the first frame of a picture.
pub(super) fn read(format: PictureFormat, bytes: &[u8]) -> ReadResult {
    let picture = decode(format, bytes).map_err(|error| match error {
        ImageError::Limits(_) => ReadFailure::PictureTooLarge,
        _ => ReadFailure::Damaged,
    })?;
    let mut picture = shrink_to(picture, SIDE_MAX);
    let is_opaque = !picture.color().has_alpha()
        || picture
            .to_rgba8()
            .pixels()
            .all(|pixel| pixel.0[3] == u8::MAX);
    loop {
        let encoded = if is_opaque {
            encode_jpeg(&picture)
        } else {
            encode_png(&picture)
        };
        let encoded = encoded.map_err(|_| ReadFailure::Damaged)?;
        if encoded.len() <= IMAGE_BYTES_MAX {
            return Ok(FileReading::Image {
                mime_type: if is_opaque { "image/jpeg" } else { "image/png" },
                bytes: encoded.into(),
                width: picture.width(),
                height: picture.height(),
            });
        }
        let side = picture.width().max(picture.height());
        picture = shrink_to(picture, (side - side / 4).max(1));
    }
}

fn decode(format: PictureFormat, bytes: &[u8]) -> Result<DynamicImage, ImageError> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(DECODED_BYTES_MAX);
    reader.limits(limits);
    let mut decoder = reader.into_decoder()?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > PIXELS_MAX
        || decoder.total_bytes() > DECODED_BYTES_MAX
    {
        return Err(too_large());
    }
    // Damaged metadata is no reason to refuse a picture.
    let orientation = decoder.orientation().ok();
    let mut picture = DynamicImage::from_decoder(decoder)?;
    if let Some(orientation) = orientation {
        picture.apply_orientation(orientation);
    }
    Ok(picture)
}

fn too_large() -> ImageError {
    let kind = image::error::LimitErrorKind::DimensionError;
    ImageError::Limits(image::error::LimitError::from_kind(kind))
}

/// Makes a picture smaller, so that its longer side has at most `side` pixels.
fn shrink_to(picture: DynamicImage, side: u32) -> DynamicImage {
    let longer = picture.width().max(picture.height());
    if longer <= side {
        return picture;
    }
    // The average of whole pixels takes a fraction of the memory and time of a filter.
    let picture = if longer / 2 > side {
        picture.thumbnail(side * 2, side * 2)
    } else {
        picture
    };
    picture.resize(side, side, ScaleFilter::Triangle)
}

fn encode_jpeg(picture: &DynamicImage) -> Result<Vec<u8>, ImageError> {
    let pixels = picture.to_rgb8();
    let mut encoded = Vec::new();
    for quality in QUALITIES {
        encoded.clear();
        JpegEncoder::new_with_quality(&mut encoded, quality).encode(
            &pixels,
            pixels.width(),
            pixels.height(),
            ExtendedColorType::Rgb8,
        )?;
        if encoded.len() <= IMAGE_BYTES_MAX {
            break;
        }
    }
    Ok(encoded)
}

fn encode_png(picture: &DynamicImage) -> Result<Vec<u8>, ImageError> {
    let pixels = picture.to_rgba8();
    let mut encoded = Vec::new();
    PngEncoder::new_with_quality(&mut encoded, CompressionType::Default, FilterType::Adaptive)
        .write_image(
            &pixels,
            pixels.width(),
            pixels.height(),
            ExtendedColorType::Rgba8,
        )?;
    Ok(encoded)
}
