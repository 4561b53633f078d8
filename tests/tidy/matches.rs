//! No wildcard arm on our own enums: it would swallow the next variant in silence.

use std::collections::{BTreeMap, BTreeSet};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::tidy::source::{Findings, SourceFile};

/// Enums of the domain by name, with their variants.
pub type Enums = BTreeMap<String, BTreeSet<String>>;

pub fn enums_of(files: &[SourceFile]) -> Enums {
    let mut enums = Enums::new();
    for file in files.iter().filter(|file| file.is_in(&["model", "machine"])) {
        for item in &file.syntax.items {
            let syn::Item::Enum(item) = item else { continue };
            let variants = item.variants.iter().map(|variant| variant.ident.to_string());
            enums.entry(item.ident.to_string()).or_default().extend(variants);
        }
    }
    enums
}

pub fn wildcards(file: &SourceFile, enums: &Enums) -> Findings {
    let mut matches = Matches { file, enums, self_name: String::new(), findings: Findings::new() };
    matches.visit_file(&file.syntax);
    matches.findings
}

struct Matches<'a> {
    file: &'a SourceFile,
    enums: &'a Enums,
    self_name: String,
    findings: Findings,
}

impl Matches<'_> {
    /// The enum of ours a pattern takes apart, if it does.
    fn enum_of(&self, pattern: &syn::Pat) -> Option<String> {
        let path = match pattern {
            syn::Pat::Or(or) => return or.cases.iter().find_map(|case| self.enum_of(case)),
            syn::Pat::Paren(inner) => return self.enum_of(&inner.pat),
            syn::Pat::Reference(inner) => return self.enum_of(&inner.pat),
            syn::Pat::Ident(ident) => return self.enum_of(&ident.subpat.as_ref()?.1),
            syn::Pat::Path(pattern) => &pattern.path,
            syn::Pat::TupleStruct(pattern) => &pattern.path,
            syn::Pat::Struct(pattern) => &pattern.path,
            _ => return None,
        };
        let mut names = path.segments.iter().rev().map(|segment| segment.ident.to_string());
        let variant = names.next()?;
        let name = names.next()?;
        let name = if name == "Self" { self.self_name.clone() } else { name };
        self.enums.get(&name)?.contains(&variant).then_some(name)
    }
}

fn is_wildcard(pattern: &syn::Pat) -> bool {
    match pattern {
        syn::Pat::Wild(_) => true,
        syn::Pat::Ident(ident) => ident.subpat.is_none(),
        syn::Pat::Paren(inner) => is_wildcard(&inner.pat),
        syn::Pat::Or(or) => or.cases.iter().any(is_wildcard),
        _ => false,
    }
}

impl Visit<'_> for Matches<'_> {
    fn visit_item_impl(&mut self, item: &syn::ItemImpl) {
        if let syn::Type::Path(path) = &*item.self_ty {
            let last = path.path.segments.last();
            self.self_name = last.map(|segment| segment.ident.to_string()).unwrap_or_default();
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_expr_match(&mut self, matched: &syn::ExprMatch) {
        let ours = matched.arms.iter().find_map(|arm| self.enum_of(&arm.pat));
        let wildcard = matched.arms.iter().find(|arm| is_wildcard(&arm.pat));
        if let (Some(name), Some(arm)) = (ours, wildcard) {
            let line = arm.pat.span().start().line;
            if !self.file.is_test(line) {
                let says = format!("a wildcard arm on our enum {name}, name every variant");
                self.findings.push(self.file.finding(line, &says));
            }
        }
        visit::visit_expr_match(self, matched);
    }
}

#[test]
fn wildcard_arms_are_found() {
    let noun = SourceFile::new("src/model/fire.rs", "pub enum State { Ready, Ended(u8), Gone }");
    let enums = enums_of(&[noun]);
    let bad = [
        "fn f() { match s { State::Ready => 1, _ => 2 } }",
        "fn f() { match s { fire::State::Ended(n) => n, other => g(other) } }",
        "fn f() { match &s { State::Ready | State::Gone => 1, _ if a => 2, State::Ended(_) => 3 }}",
        "impl State { fn f(self) { match self { Self::Ready => 1, _ => 2 } } }",
    ];
    for text in bad {
        assert_eq!(wildcards(&SourceFile::new("src/api/x.rs", text), &enums).len(), 1, "{text}");
    }
    let good = [
        "fn f() { match s { State::Ready => 1, State::Ended(_) | State::Gone => 2 } }",
        "fn f() { match s { Some(State::Ready) => 1, _ => 2 } }",
        "fn f() { match n { 1 => 1, _ => 2 } }",
        "fn f() { match s { other::State::New => 1, _ => 2 } }",
    ];
    for text in good {
        let findings = wildcards(&SourceFile::new("src/api/x.rs", text), &enums);
        assert_eq!(findings, Findings::new(), "{text}");
    }
}
