//! Sizes and headers: a file, a function and a line that a reader can take in at once.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::tidy::source::{Findings, SourceFile, assert_rule_bites};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_COLUMNS_MAX: usize = 100;
/// A header of fewer words repeats the file's name.
const HEADER_WORDS_MIN: usize = 4;

pub fn file_size(file: &SourceFile) -> Findings {
    let lines = file.text.lines().count();
    if file.is_test_file() || lines <= FILE_LINES_MAX {
        return Findings::new();
    }
    let says = format!("{lines} lines, a file stops at {FILE_LINES_MAX} (tests go beside it)");
    vec![file.finding(lines, &says)]
}

pub fn line_width(file: &SourceFile) -> Findings {
    let mut findings = Findings::new();
    for (i, line) in file.text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > LINE_COLUMNS_MAX {
            let says = format!("{columns} columns, a line stops at {LINE_COLUMNS_MAX}");
            findings.push(file.finding(i + 1, &says));
        }
    }
    findings
}

pub fn header(file: &SourceFile) -> Findings {
    let first = file.text.lines().next().unwrap_or_default();
    let says = match first.strip_prefix("//! ") {
        None => "a file opens with a //! header that says what lives there",
        Some(text) if text.split_whitespace().count() < HEADER_WORDS_MIN => {
            "the header only repeats a name, say what lives there"
        }
        Some(_) => return Findings::new(),
    };
    vec![file.finding(1, says)]
}

pub fn function_size(file: &SourceFile) -> Findings {
    let mut functions = Functions { file, findings: Findings::new() };
    functions.visit_file(&file.syntax);
    functions.findings
}

struct Functions<'a> {
    file: &'a SourceFile,
    findings: Findings,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.span().start().line;
        let lines = block.span().end().line - first + 1;
        if lines > FUNCTION_LINES_MAX && !self.file.is_test(first) {
            let name = &signature.ident;
            let says =
                format!("{name} has {lines} lines, a function stops at {FUNCTION_LINES_MAX}");
            self.findings.push(self.file.finding(first, &says));
        }
    }
}

impl Visit<'_> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &syn::ItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &syn::ImplItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[test]
fn oversize_is_found() {
    let long_file = "fn f() {}\n".repeat(FILE_LINES_MAX + 1);
    assert_rule_bites(file_size, &[("src/x.rs", &long_file)], &[("src/x/tests.rs", &long_file)]);

    let body = "    g();\n".repeat(FUNCTION_LINES_MAX - 1);
    let long = format!("impl A {{\nfn f() {{\n{body}}}\n}}");
    let fits = format!("/// Doc.\n#[must_use]\nfn f() {{\n{}}}", &body[..body.len() - 9]);
    let test = format!("#[cfg(test)]\nmod tests {{\nfn f() {{\n{body}}}\n}}");
    assert_rule_bites(
        function_size,
        &[("src/x.rs", &long)],
        &[("src/x.rs", &fits), ("src/x.rs", &test)],
    );

    let wide = format!("//{}", "é".repeat(LINE_COLUMNS_MAX - 1));
    let narrow = format!("//{}", "é".repeat(LINE_COLUMNS_MAX - 2));
    assert_rule_bites(line_width, &[("src/x.rs", &wide)], &[("src/x.rs", &narrow)]);
}

#[test]
fn missing_headers_are_found() {
    assert_rule_bites(
        header,
        &[
            ("src/x.rs", "fn f() {}"),
            ("src/x.rs", "// What lives here and why.\nfn f() {}"),
            ("src/x.rs", "//! x\n"),
        ],
        &[("src/x.rs", "//! What lives here and why.\n")],
    );
}
