//! Golden bytes of every stored form. A release reads what an older one wrote, so these bytes never
//! change: a failing test here is a format that changed under its version.
//!
//! Each file in `tests/compat` is one sample: its bytes in hexadecimal, then the value as text.
//! `HOROLOG_REWRITE=1` writes files that are missing, and never one that exists: a changed form is
//! a new variant, with a file of its own.

pub mod samples;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::compat::samples::Sample;
use crate::scenario::rewrites;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat/golden")
}

fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(32).map(|line| {
        line.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<String>>().join("")
    });
    lines.collect::<Vec<String>>().join("\n")
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// What is wrong with one sample, if anything is.
fn finding(sample: &Sample, golden: Option<&str>) -> Option<String> {
    let name = &sample.name;
    let Some(golden) = golden else {
        return Some(format!("{name}: no golden file, write one with HOROLOG_REWRITE=1"));
    };
    let (bytes, shown) = golden.split_once("\n\n").unwrap_or((golden, ""));
    let bytes = unhex(bytes);
    match (sample.read)(&bytes) {
        Err(error) => Some(format!("{name}: the golden bytes no longer decode: {error}")),
        Ok(read) if read != shown.trim_end() => {
            Some(format!("{name}: the golden bytes mean\n{read}\ninstead of\n{shown}"))
        }
        Ok(_) if bytes != sample.bytes => {
            Some(format!("{name}: encoded as\n{}\ninstead of\n{}", hex(&sample.bytes), hex(&bytes)))
        }
        Ok(_) => None,
    }
}

#[test]
fn stored_forms_never_change() {
    let samples = samples::all();
    let mut findings = Vec::new();
    for sample in &samples {
        let path = folder().join(format!("{}.txt", sample.name));
        let golden = fs::read_to_string(&path).ok();
        if golden.is_none() && rewrites() {
            fs::create_dir_all(folder()).unwrap();
            let shown = (sample.read)(&sample.bytes).unwrap();
            fs::write(&path, format!("{}\n\n{shown}\n", hex(&sample.bytes))).unwrap();
            continue;
        }
        findings.extend(finding(sample, golden.as_deref()));
    }
    assert!(findings.is_empty(), "{}", findings.join("\n\n"));
}

#[test]
fn every_golden_file_has_its_sample() {
    let names: BTreeSet<String> =
        samples::all().into_iter().map(|sample| format!("{}.txt", sample.name)).collect();
    let files = fs::read_dir(folder()).unwrap();
    let files: BTreeSet<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(files, names);
}

#[test]
fn every_variant_has_a_sample() {
    let source =
        |path: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let names: BTreeSet<String> = samples::all().into_iter().map(|sample| sample.name).collect();
    let enums = [
        ("src/machine/command.rs", "Command", "command"),
        ("src/machine/reply.rs", "Reply", "reply"),
        ("src/machine/reply.rs", "Rejection", "rejection"),
    ];
    let mut missing = Vec::new();
    for (path, name, prefix) in enums {
        let variants = variants_of(&source(path), name);
        assert!(!variants.is_empty(), "{name}");
        for variant in variants {
            let sample = format!("{prefix}-{}", kebab(&variant));
            if !names.contains(&sample) {
                missing.push(sample);
            }
        }
    }
    assert!(missing.is_empty(), "a variant without a sample: {missing:?}");
}

fn variants_of(source: &str, name: &str) -> Vec<String> {
    let file = syn::parse_file(source).unwrap();
    let found = file.items.into_iter().find_map(|item| match item {
        syn::Item::Enum(item) if item.ident == name => Some(item.variants),
        _ => None,
    });
    found.unwrap().iter().map(|variant| variant.ident.to_string()).collect()
}

fn kebab(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[test]
fn a_changed_form_is_found() {
    let sample = samples::all().remove(0);
    let shown = (sample.read)(&sample.bytes).unwrap();
    let golden = format!("{}\n\n{shown}\n", hex(&sample.bytes));
    assert_eq!(finding(&sample, Some(&golden)), None);
    assert!(finding(&sample, None).is_some());
    let mut longer = sample.bytes.clone();
    longer.push(0);
    let other = format!("{}\n\n{shown}\n", hex(&longer));
    assert!(finding(&sample, Some(&other)).is_some());
    let newer = format!("02{}\n\n{shown}\n", &hex(&sample.bytes)[2..]);
    assert!(finding(&sample, Some(&newer)).unwrap().contains("decode"));
    let renamed = format!("{}\n\nsomething else\n", hex(&sample.bytes));
    assert!(finding(&sample, Some(&renamed)).is_some());
}
