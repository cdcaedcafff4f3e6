//! Embeds the built dashboard: generates a table of its files, each plain and compressed. A build
//! script and not a macro, because file names change with their content and cargo has to notice new
//! files.

use std::{
    env,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};

/// Output folder of `npm run build` in `web/dashboard`.
const BUILT: &str = "assets/dashboard";

fn main() -> io::Result<()> {
    writeln!(io::stdout(), "cargo::rerun-if-changed={BUILT}")?;
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join(BUILT);
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for (number, file) in files.iter().enumerate() {
        let compressed = out.join(format!("{number}.gz"));
        compress(file, &compressed)?;
        let name = file
            .strip_prefix(&root)
            .unwrap_or(file)
            .to_string_lossy()
            .replace('\\', "/");
        // Debug formatting escapes any path as a Rust literal.
        let _ = writeln!(
            table,
            "    DashboardFile {{ name: {name:?}, plain: include_bytes!({file:?}), gzip: include_bytes!({compressed:?}) }},"
        );
    }
    table.push_str("]\n");
    fs::write(out.join("dashboard_files.rs"), table)
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

fn compress(file: &Path, compressed: &Path) -> io::Result<()> {
    let mut encoder = GzEncoder::new(fs::File::create(compressed)?, Compression::best());
    encoder.write_all(&fs::read(file)?)?;
    encoder.finish()?.flush()
}
