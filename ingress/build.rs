//! Embeds the web builds: generates a table of the files of each, plain and compressed. A build
//! script and not a macro, because names of the dashboard's files change with their content and
//! cargo has to notice new files.

use std::{
    env,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};

/// Output folders of `npm run build` in `web/dashboard` and `web/widget`.
const BUILDS: [(&str, &str); 2] = [
    ("dashboard", "assets/dashboard"),
    ("widget", "assets/widget"),
];

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for (name, folder) in BUILDS {
        writeln!(io::stdout(), "cargo::rerun-if-changed={folder}")?;
        embed(name, &root.join(folder), &out)?;
    }
    Ok(())
}

/// Writes the table of the files in `folder` to `NAME.rs` in `out`, with the compressed files
/// beside it.
fn embed(name: &str, folder: &Path, out: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for (number, file) in files.iter().enumerate() {
        let plain = fs::read(file)?;
        let gzip = out.join(format!("{name}-{number}.gz"));
        fs::write(&gzip, compress_gzip(&plain)?)?;
        let brotli = out.join(format!("{name}-{number}.br"));
        fs::write(&brotli, compress_brotli(&plain)?)?;
        let path = file
            .strip_prefix(folder)
            .unwrap_or(file)
            .to_string_lossy()
            .replace('\\', "/");
        // Debug formatting escapes any path as a Rust literal.
        let _ = writeln!(
            table,
            "    StaticFile {{ name: {path:?}, plain: include_bytes!({file:?}), gzip: include_bytes!({gzip:?}), \
             brotli: include_bytes!({brotli:?}) }},"
        );
    }
    table.push_str("]\n");
    fs::write(out.join(format!("{name}.rs")), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn compress_gzip(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain)?;
    encoder.finish()
}

fn compress_brotli(mut plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut plain, &mut compressed, &Default::default())?;
    Ok(compressed)
}
