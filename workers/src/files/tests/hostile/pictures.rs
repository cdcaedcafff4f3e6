//! Hostile pictures.

use image::ImageFormat;
use switchboard_schemas::file::FileType::{Gif, Jpeg, Png, Webp};

use super::{HostileFile, case, cuts, with_changed_bits};
use crate::files::tests::samples::{
    archive, chunk, encoded, exif, gif, jpeg, jpeg_with_exif, noise, png, raw_png, two_colors,
    with_chunk, zlib,
};

/// Unpacked size of bombs, in bytes.
const BOMB_BYTES: usize = 300 << 20;
const SVG: &str = r#"<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>"#;

pub(super) fn files() -> Vec<HostileFile> {
    [polyglots(), bombs(), damaged(), metadata(), disguised()]
        .into_iter()
        .flatten()
        .collect()
}

fn polyglots() -> Vec<HostileFile> {
    let zip = archive(&[("run.sh", b"rm -rf /")]);
    let script = b"<script>alert(1)</script>";
    let mut comment = jpeg(8, 8);
    let code = b"<?php system($_GET['c']); ?>";
    let length = u16::try_from(code.len() + 2).unwrap().to_be_bytes();
    comment.splice(2..2, [b"\xff\xfe", &length[..], code].concat());
    let mut gif_script = gif(0x2a2f, 1, 1);
    gif_script.extend(b"*/=1;alert(1)");
    let text = with_chunk(&png(8, 8), b"tEXt", &[b"Comment\0", &script[..]].concat());
    vec![
        case("GIF that is also JavaScript", Gif, gif_script).without("alert"),
        case(
            "GIF with JavaScript behind it",
            Gif,
            [gif(4, 4, 1), script.to_vec()].concat(),
        )
        .without("alert"),
        case(
            "PNG that is also a ZIP archive",
            Png,
            [png(8, 8), zip.clone()].concat(),
        )
        .without("rm -rf"),
        case(
            "JPEG that is also a ZIP archive",
            Jpeg,
            [jpeg(8, 8), zip].concat(),
        )
        .without("rm -rf"),
        case("PNG with a script in its description", Png, text).without("script"),
        case("JPEG with PHP code in its comment", Jpeg, comment).without("php"),
        case(
            "JPEG with HTML behind it",
            Jpeg,
            [jpeg(8, 8), script.to_vec()].concat(),
        )
        .without("script"),
    ]
}

fn bombs() -> Vec<HostileFile> {
    let bomb = zlib(&vec![0; BOMB_BYTES]);
    let described = |kind, head: &[u8]| with_chunk(&png(8, 8), kind, &[head, &bomb].concat());
    let mut data = raw_png(4, 4, 8, 2, &[]);
    let end = data.len() - 12;
    data.splice(end..end, chunk(b"IDAT", &bomb));
    vec![
        case(
            "PNG of 50,000 x 50,000",
            Png,
            raw_png(50_000, 50_000, 1, 0, &[]),
        ),
        case(
            "PNG of 4 billion x 4 billion",
            Png,
            raw_png(u32::MAX, u32::MAX, 16, 6, &[]),
        ),
        case(
            "PNG of 7,000 x 7,000 with 16 bits per color",
            Png,
            raw_png(7000, 7000, 16, 6, &[]),
        ),
        case(
            "PNG of 2 billion x 1",
            Png,
            raw_png(0x7fff_ffff, 1, 1, 0, &[]),
        ),
        case(
            "PNG with 300 MB in a `zTXt` description",
            Png,
            described(b"zTXt", b"a\0\0"),
        ),
        case(
            "PNG with 300 MB in an `iTXt` description",
            Png,
            described(b"iTXt", b"a\0\x01\0\0\0"),
        ),
        case(
            "PNG with a color profile of 300 MB",
            Png,
            described(b"iCCP", b"a\0\0"),
        ),
        case("PNG with 300 MB behind its 16 pixels", Png, data),
        case(
            "GIF with a canvas of 65,535 x 65,535",
            Gif,
            gif(65_535, 65_535, 1),
        ),
        case("GIF with 50,000 frames", Gif, gif(2, 2, 50_000)),
        case(
            "JPEG that claims 65,500 x 65,500",
            Jpeg,
            with_size(65_500, 65_500),
        ),
        case(
            "JPEG that claims 6,000 x 6,000 and has 8 x 8",
            Jpeg,
            with_size(6_000, 6_000),
        ),
        case("WebP with 5,000 frames", Webp, animated_webp(8, 8, 5_000)),
        case(
            "WebP with a canvas of 16,384 x 16,384",
            Webp,
            animated_webp(16_384, 16_384, 1),
        ),
    ]
}

fn damaged() -> Vec<HostileFile> {
    let photo = encoded(&noise(40, 40).into(), ImageFormat::Jpeg);
    let drawing = encoded(&noise(40, 40).into(), ImageFormat::Png);
    let webp = encoded(&noise(40, 40).into(), ImageFormat::WebP);
    let mut wrong_check = png(8, 8);
    wrong_check[29] ^= 1;
    let group = HostileFile::group;
    vec![
        case("no bytes", Png, ""),
        case("one byte", Jpeg, "\u{7f}"),
        case("first 8 bytes of a PNG", Png, &png(8, 8)[..8]),
        case("GIF without frames", Gif, gif(4, 4, 0)),
        case("PNG without pixels", Png, raw_png(4, 4, 8, 2, &[])),
        case("PNG of 0 x 4", Png, raw_png(0, 4, 8, 2, &[])),
        case(
            "PNG with a palette that is missing",
            Png,
            raw_png(4, 4, 1, 3, &[0; 8]),
        ),
        case("PNG with a wrong checksum", Png, wrong_check),
        case(
            "PNG with 16 bits per color",
            Png,
            raw_png(2, 2, 16, 2, &[0; 26]),
        ),
        case("CMYK JPEG", Jpeg, cmyk_jpeg()),
        group("PNG that ends early", Png, cuts(&drawing)),
        group("JPEG that ends early", Jpeg, cuts(&photo)),
        group("WebP that ends early", Webp, cuts(&webp)),
        group("GIF that ends early", Gif, cuts(&gif(2, 2, 5))),
        group(
            "JPEG with one changed bit, 400 files",
            Jpeg,
            with_changed_bits(&photo, 400),
        ),
        group(
            "PNG with one changed bit, 200 files",
            Png,
            with_changed_bits(&drawing, 200),
        ),
        group(
            "WebP with one changed bit, 200 files",
            Webp,
            with_changed_bits(&webp, 200),
        ),
        group(
            "GIF with one changed bit, 50 files",
            Gif,
            with_changed_bits(&gif(2, 2, 5), 50),
        ),
    ]
}

fn metadata() -> Vec<HostileFile> {
    let place = exif(3);
    let mut endless = exif(1);
    // The next directory is the first one.
    endless[46..50].copy_from_slice(&8_u32.to_be_bytes());
    let mut many = exif(1);
    many[8..10].copy_from_slice(&u16::MAX.to_be_bytes());
    let mut turned = exif(1);
    turned[18..20].copy_from_slice(&999_u16.to_be_bytes());
    let photo = |exif: &[u8]| jpeg_with_exif(&jpeg(40, 20), exif);
    let case =
        |name, exif: &[u8]| HostileFile::new(name, Jpeg, photo(exif)).without("SECRETCAMERA");
    vec![
        case("JPEG with the place where it was taken", &place),
        case("JPEG with an endless list of metadata", &endless),
        case("JPEG with 65,535 announced entries of metadata", &many),
        case("JPEG with metadata that end early", &place[..20]),
        case("JPEG with an unknown orientation", &turned),
        HostileFile::new(
            "PNG with a place",
            Png,
            with_chunk(&png(40, 20), b"eXIf", &place),
        )
        .without("SECRETCAMERA"),
    ]
}

fn disguised() -> Vec<HostileFile> {
    vec![
        case("SVG with a script, as PNG", Png, SVG),
        case(
            "HTML page, as JPEG",
            Jpeg,
            "<html><script>alert(1)</script></html>",
        ),
        case("TIFF, as PNG", Png, b"II*\0\x08\0\0\0\0\0"),
        case(
            "BMP, as PNG",
            Png,
            b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0",
        ),
        case(
            "ICO, as PNG",
            Png,
            b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0",
        ),
        case("HEIC, as JPEG", Jpeg, b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"),
        case("AVIF, as WebP", Webp, b"\0\0\0\x1cftypavif\0\0\0\0avifmif1"),
        case(
            "sound (WAV), as WebP",
            Webp,
            b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0",
        ),
        case("JPEG, as PNG", Png, jpeg(8, 8)),
        case("PNG, as WebP", Webp, png(8, 8)),
        case("PDF, as GIF", Gif, b"%PDF-1.7\n%%EOF"),
    ]
}

/// A JPEG of 8 x 8 pixels that claims another size.
fn with_size(width: u16, height: u16) -> Vec<u8> {
    let mut photo = jpeg(8, 8);
    let frame = photo
        .windows(2)
        .position(|mark| mark == b"\xff\xc0")
        .unwrap();
    photo[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    photo[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    photo
}

/// A gray JPEG of 8 x 8 pixels with four colors of ink.
fn cmyk_jpeg() -> Vec<u8> {
    let mut photo = b"\xff\xd8\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0".to_vec();
    photo.extend(b"\xff\xdb\0\x43\0");
    photo.extend([1; 64]);
    photo.extend(b"\xff\xc0\0\x14\x08\0\x08\0\x08\x04");
    for component in 1..=4 {
        photo.extend([component, 0x11, 0]);
    }
    // One code each: no difference, and end of the block.
    for table in [0x00, 0x10] {
        photo.extend(b"\xff\xc4\0\x14");
        photo.extend([table, 1]);
        photo.extend([0; 16]);
    }
    photo.extend(b"\xff\xda\0\x0e\x04\x01\0\x02\0\x03\0\x04\0\0\x3f\0\0\xff\xd9");
    photo
}

/// A WebP with frames of 8 x 8 pixels on a canvas.
fn animated_webp(width: u32, height: u32, frames: usize) -> Vec<u8> {
    let still = encoded(&two_colors(8, 8, 255), ImageFormat::WebP);
    let pixels = &still[12..];
    let part = |kind: &[u8; 4], data: &[u8]| {
        let length = u32::try_from(data.len()).unwrap().to_le_bytes();
        [kind, &length[..], data].concat()
    };
    let size = |length: u32| (length - 1).to_le_bytes()[..3].to_vec();
    let canvas = [vec![0x02, 0, 0, 0], size(width), size(height)].concat();
    let place = [vec![0; 6], size(8), size(8), vec![10, 0, 0, 0]].concat();
    let frame = part(b"ANMF", &[&place, pixels].concat());
    let animation = part(b"ANIM", &[0; 6]);
    let body = [part(b"VP8X", &canvas), animation, frame.repeat(frames)].concat();
    part(b"RIFF", &[&b"WEBP"[..], &body].concat())
}
