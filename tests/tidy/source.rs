//! The tree as the rules see it: files, their tokens, their syntax, and which lines are test code.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// What is wrong, one line each; empty when the rule holds.
pub type Findings = Vec<String>;

/// One file of text, named by its path from the root of the repository.
pub struct TextFile {
    pub path: String,
    pub text: String,
}

/// One Rust file.
pub struct SourceFile {
    pub path: String,
    pub text: String,
    pub syntax: syn::File,
    pub tokens: Vec<Token>,
    test_lines: Vec<RangeInclusive<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ident,
    Punct,
    Literal,
}

/// A token with its line; groups are flattened into their delimiters, doc comments are left out.
#[derive(Debug)]
pub struct Token {
    pub kind: Kind,
    pub text: String,
    pub line: usize,
}

/// A path as it is written, `use` groups spelled out: `use a::{b, c::*}` is `a::b` and `a::c::*`.
#[derive(Debug, PartialEq, Eq)]
pub struct PathUse {
    pub segments: Vec<String>,
    pub line: usize,
}

impl SourceFile {
    pub fn new(path: &str, text: &str) -> SourceFile {
        let stream: TokenStream = text.parse().unwrap_or_else(|e| panic!("{path}: {e}"));
        let mut tokens = Vec::new();
        flatten(stream.clone(), &mut tokens);
        let syntax = syn::parse2(stream).unwrap_or_else(|e| panic!("{path}: {e}"));
        let mut tests = TestLines { ranges: Vec::new() };
        tests.visit_file(&syntax);
        SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
            syntax,
            tokens,
            test_lines: tests.ranges,
        }
    }

    /// Whether a line belongs to a test: by its file's place and name, or by `#[cfg(test)]`.
    pub fn is_test(&self, line: usize) -> bool {
        self.is_test_file() || self.test_lines.iter().any(|range| range.contains(&line))
    }

    pub fn is_test_file(&self) -> bool {
        self.path.starts_with("tests/")
            || self.path.ends_with("/tests.rs")
            || self.path.contains("/tests/")
    }

    /// The module of `src` this file belongs to: `api` for `src/api/jobs.rs`; `main` and `lib` as
    /// well.
    pub fn module(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("src/")?;
        let first = inside.split('/').next()?;
        Some(first.strip_suffix(".rs").unwrap_or(first))
    }

    pub fn is_in(&self, modules: &[&str]) -> bool {
        self.module().is_some_and(|module| modules.contains(&module))
    }

    pub fn finding(&self, line: usize, says: &str) -> String {
        format!("{}:{line}: {says}", self.path)
    }

    /// Every path of two or more segments, in macros too.
    pub fn paths(&self) -> Vec<PathUse> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            at = match self.tokens[at].kind {
                Kind::Ident => walk_path(&self.tokens, at, &[], &mut found),
                Kind::Punct | Kind::Literal => at + 1,
            };
        }
        found.retain(|path| path.segments.len() > 1);
        found
    }

    /// Every macro called, as its name and line.
    pub fn macros(&self) -> Vec<(&str, usize)> {
        let called = self.tokens.windows(3).filter(|w| {
            w[0].kind == Kind::Ident && w[1].text == "!" && matches!(&*w[2].text, "(" | "[" | "{")
        });
        called.map(|w| (w[0].text.as_str(), w[0].line)).collect()
    }

    /// Names of the functions that carry a test attribute.
    pub fn test_functions(&self) -> Vec<(&str, usize)> {
        let mut names = Vec::new();
        let mut attributed = false;
        for (i, token) in self.tokens.iter().enumerate() {
            let next = self.tokens.get(i + 1).map(|t| t.text.as_str());
            match token.text.as_str() {
                "test" if matches!(next, Some("]" | "(")) => attributed = true,
                "fn" if attributed => {
                    attributed = false;
                    names.extend(self.tokens.get(i + 1).map(|t| (t.text.as_str(), t.line)));
                }
                "mod" | "use" => attributed = false,
                _ => {}
            }
        }
        names
    }
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut i = 0;
    while i < trees.len() {
        let doc_at = doc_group(&trees[i..]);
        if doc_at > 0 {
            i += doc_at;
            continue;
        }
        let line = trees[i].span().start().line;
        let mut push = |kind, text: String, line| tokens.push(Token { kind, text, line });
        match &trees[i] {
            TokenTree::Ident(ident) => push(Kind::Ident, ident.to_string(), line),
            TokenTree::Punct(punct) => push(Kind::Punct, punct.to_string(), line),
            TokenTree::Literal(literal) => push(Kind::Literal, literal.to_string(), line),
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(Kind::Punct, open.to_owned(), line);
                flatten(group.stream(), tokens);
                let line = group.span_close().start().line;
                tokens.push(Token { kind: Kind::Punct, text: close.to_owned(), line });
            }
        }
        i += 1;
    }
}

/// How many trees a doc comment at the front takes: `#[doc = ..]` or `#![doc = ..]`; 0 when none is
/// there.
fn doc_group(trees: &[TokenTree]) -> usize {
    let is_punct = |tree: Option<&TokenTree>, c: char| match tree {
        Some(TokenTree::Punct(punct)) => punct.as_char() == c,
        _ => false,
    };
    if !is_punct(trees.first(), '#') {
        return 0;
    }
    let group_at = if is_punct(trees.get(1), '!') { 2 } else { 1 };
    let Some(TokenTree::Group(group)) = trees.get(group_at) else {
        return 0;
    };
    let mut inner = group.stream().into_iter();
    let named_doc = matches!(inner.next(), Some(TokenTree::Ident(ident)) if ident == "doc");
    let assigned = is_punct(inner.next().as_ref(), '=');
    if named_doc && assigned { group_at + 1 } else { 0 }
}

/// Reads the path that begins at the identifier `at` and returns where to go on.
fn walk_path(tokens: &[Token], at: usize, prefix: &[String], found: &mut Vec<PathUse>) -> usize {
    let text = |i: usize| tokens.get(i).map_or("", |token| token.text.as_str());
    let mut segments = prefix.to_vec();
    segments.push(tokens[at].text.clone());
    let line = tokens[at].line;
    let mut at = at;
    while text(at + 1) == ":" && text(at + 2) == ":" {
        let next = at + 3;
        match tokens.get(next) {
            Some(token) if token.kind == Kind::Ident => {
                segments.push(token.text.clone());
                at = next;
            }
            Some(token) if token.text == "*" => {
                segments.push("*".to_owned());
                found.push(PathUse { segments, line: token.line });
                return next + 1;
            }
            Some(token) if token.text == "{" => {
                return walk_group(tokens, next + 1, &segments, found);
            }
            _ => break,
        }
    }
    found.push(PathUse { segments, line });
    at + 1
}

fn walk_group(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    found: &mut Vec<PathUse>,
) -> usize {
    while let Some(token) = tokens.get(at) {
        at = match (token.kind, token.text.as_str()) {
            (Kind::Punct, "}") => return at + 1,
            (Kind::Punct, "*") => {
                let mut segments = prefix.to_vec();
                segments.push("*".to_owned());
                found.push(PathUse { segments, line: token.line });
                at + 1
            }
            (Kind::Ident, "as") => at + 2,
            (Kind::Ident, _) => walk_path(tokens, at, prefix, found),
            (Kind::Punct | Kind::Literal, _) => at + 1,
        };
    }
    at
}

struct TestLines {
    ranges: Vec<RangeInclusive<usize>>,
}

impl TestLines {
    fn note(&mut self, attributes: &[syn::Attribute], span: proc_macro2::Span) -> bool {
        let marked = attributes.iter().any(is_test_attribute);
        if marked {
            self.ranges.push(span.start().line..=span.end().line);
        }
        marked
    }
}

impl Visit<'_> for TestLines {
    fn visit_item(&mut self, item: &syn::Item) {
        let attributes: &[syn::Attribute] = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Enum(item) => &item.attrs,
            syn::Item::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !self.note(attributes, item.span()) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &syn::ImplItemFn) {
        self.note(&item.attrs, item.span());
    }
}

/// `#[test]`, `#[tokio::test]`, `#[cfg(test)]`, `#[cfg(any(test, ..))]`; not `#[cfg(not(test))]`.
fn is_test_attribute(attribute: &syn::Attribute) -> bool {
    let path = attribute.path();
    let last = path.segments.last().map(|segment| segment.ident.to_string());
    match last.as_deref() {
        Some("test") => true,
        Some("cfg") => attribute.meta.require_list().is_ok_and(|list| {
            let mut tokens = Vec::new();
            flatten(list.tokens.clone(), &mut tokens);
            let names = |name: &str| tokens.iter().any(|token| token.text == name);
            names("test") && !names("not")
        }),
        _ => false,
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below the given folders, in the order of their paths.
pub fn sources(folders: &[&str]) -> Vec<SourceFile> {
    let texts = texts(folders, &["rs"]);
    texts.iter().map(|file| SourceFile::new(&file.path, &file.text)).collect()
}

/// Every text file with one of the endings below the given folders, or the given files themselves.
pub fn texts(places: &[&str], endings: &[&str]) -> Vec<TextFile> {
    let root = root();
    let mut paths = Vec::new();
    for place in places {
        collect(&root.join(place), &mut paths);
    }
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if !endings.contains(&ending) {
            continue;
        }
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        files.push(TextFile { path: name, text });
    }
    files
}

fn collect(place: &Path, paths: &mut Vec<PathBuf>) {
    if place.is_file() {
        paths.push(place.to_owned());
        return;
    }
    let Ok(entries) = fs::read_dir(place) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let is_output = path.file_name().is_some_and(|name| name == "target");
        if !is_output {
            collect(&path, paths);
        }
    }
}

/// Fails with every finding when there is one.
#[track_caller]
pub fn assert_clean(findings: &[String]) {
    assert!(findings.is_empty(), "{} findings\n{}", findings.len(), findings.join("\n"));
}

/// Shows that a rule fails on each bad snippet, in the named file, and passes the good ones.
#[track_caller]
pub fn assert_rule_bites(
    rule: impl Fn(&SourceFile) -> Findings,
    bad: &[(&str, &str)],
    good: &[(&str, &str)],
) {
    for (path, text) in bad {
        assert!(!rule(&SourceFile::new(path, text)).is_empty(), "{path} passes with: {text}");
    }
    for (path, text) in good {
        assert_eq!(rule(&SourceFile::new(path, text)), Findings::new(), "{path} with: {text}");
    }
}

#[test]
fn paths_are_found_in_groups_and_macros() {
    let file = SourceFile::new(
        "src/x.rs",
        "/// `a::doc`\nuse a::{b, c::{self, d as e}, f::*};\nfn g() { h!(i::j(k), l::m::<n::o>) }",
    );
    let found: Vec<String> = file.paths().iter().map(|path| path.segments.join("::")).collect();
    assert_eq!(found, ["a::b", "a::c::self", "a::c::d", "a::f::*", "i::j", "l::m", "n::o"]);
    assert_eq!(file.paths()[4].line, 3);
}

#[test]
fn lines_of_tests_are_told_from_the_rest() {
    let file = SourceFile::new(
        "src/x.rs",
        "fn a() {}\n#[cfg(test)]\nmod tests {\n#[test]\nfn b() {}\n}\n#[cfg(not(test))]\nfn c() {}",
    );
    let marked: Vec<usize> = (1..=8).filter(|&line| file.is_test(line)).collect();
    assert_eq!(marked, [2, 3, 4, 5, 6]);
    assert_eq!(file.test_functions(), [("b", 5)]);
}
