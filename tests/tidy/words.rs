//! One word for one thing: words the glossary bans stay out of names, texts and pages.

use syn::visit::{self, Visit};

use crate::tidy::source::{Findings, Kind, SourceFile, TextFile};
use crate::tidy::source::{assert_clean, assert_rule_bites, texts};

/// Words, each a run of whole words, with the word that is right.
const BANNED: &[(&[&str], &str)] = &[
    (&["task"], "job, fire or attempt"),
    (&["tasks"], "jobs, fires or attempts"),
    (&["execution"], "fire or attempt"),
    (&["executions"], "fires or attempts"),
    (&["executor", "id"], "worker id"),
    (&["master"], "leader"),
    (&["slave"], "follower"),
    (&["slaves"], "followers"),
];

/// Words of others that hold a banned one and are theirs to name.
const ALLOWED: &[&str] = &["tokio task", "tokio tasks"];

/// The banned word in a text, and the right one; `_`, `-` and a capital inside a word are borders.
fn banned_in(text: &str) -> Option<(String, &'static str)> {
    let mut lower = words_of(text).join(" ");
    for allowed in ALLOWED {
        lower = lower.replace(allowed, "");
    }
    let words: Vec<&str> = lower.split(' ').collect();
    for (run, right) in BANNED {
        if words.windows(run.len()).any(|window| window == *run) {
            return Some((run.join(" "), right));
        }
    }
    None
}

fn words_of(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in text.chars() {
        let begins = c.is_uppercase() && was_lower;
        if begins || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            let last = words.len() - 1;
            words[last].extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Names that a file declares, and its string literals. Uses of other crates' names are theirs.
pub fn names_and_texts(file: &SourceFile) -> Findings {
    let mut names = Names { file, findings: Findings::new() };
    names.visit_file(&file.syntax);
    let mut findings = names.findings;
    for token in &file.tokens {
        if token.kind == Kind::Literal && token.text.contains('"') && !file.is_test(token.line) {
            findings.extend(name_finding(file, &token.text, token.line));
        }
    }
    findings
}

fn name_finding(file: &SourceFile, text: &str, line: usize) -> Option<String> {
    let (word, right) = banned_in(text)?;
    Some(file.finding(line, &format!("{text}: the word {word:?} is not ours, say {right}")))
}

struct Names<'a> {
    file: &'a SourceFile,
    findings: Findings,
}

impl Names<'_> {
    fn check(&mut self, ident: &syn::Ident) {
        let line = ident.span().start().line;
        if !self.file.is_test(line) {
            self.findings.extend(name_finding(self.file, &ident.to_string(), line));
        }
    }
}

impl Visit<'_> for Names<'_> {
    fn visit_item(&mut self, item: &syn::Item) {
        let named = match item {
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Enum(item) => Some(&item.ident),
            syn::Item::Trait(item) => Some(&item.ident),
            syn::Item::Type(item) => Some(&item.ident),
            syn::Item::Const(item) => Some(&item.ident),
            syn::Item::Static(item) => Some(&item.ident),
            syn::Item::Mod(item) => Some(&item.ident),
            _ => None,
        };
        if let Some(ident) = named {
            self.check(ident);
        }
        visit::visit_item(self, item);
    }

    fn visit_signature(&mut self, signature: &syn::Signature) {
        self.check(&signature.ident);
        visit::visit_signature(self, signature);
    }

    fn visit_field(&mut self, field: &syn::Field) {
        if let Some(ident) = &field.ident {
            self.check(ident);
        }
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &syn::Variant) {
        self.check(&variant.ident);
        visit::visit_variant(self, variant);
    }
}

/// Prose. What stands in backticks, in a code block or in quotation marks belongs to someone else.
fn prose(file: &TextFile) -> Findings {
    let mut findings = Findings::new();
    let mut in_block = false;
    for (i, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        let said = without_quoted(&without_quoted(line, '`'), '"');
        if let Some((word, right)) = banned_in(&said) {
            let says = format!("the word {word:?} is not ours, say {right}, or quote it");
            findings.push(format!("{}:{}: {says}", file.path, i + 1));
        }
    }
    findings
}

fn without_quoted(line: &str, mark: char) -> String {
    let outside = line.split(mark).step_by(2);
    outside.collect::<Vec<&str>>().join(" ")
}

#[test]
fn banned_words_stay_out_of_the_pages() {
    let mut pages = texts(&["README.md", "CHANGELOG.md", "docs", "jepsen", "bench"], &["md"]);
    // The glossary and the guide name the banned words to ban them.
    pages.retain(|page| page.path != "docs/glossary.md" && page.path != "docs/style.md");
    pages.extend(texts(&["src"], &["html", "css", "js"]));
    assert_clean(&pages.iter().flat_map(prose).collect::<Findings>());
}

#[test]
fn banned_words_are_found() {
    assert_rule_bites(
        names_and_texts,
        &[
            ("src/x.rs", "struct TaskTable;"),
            ("src/x.rs", "enum A { MasterLost }"),
            ("src/x.rs", "struct A { executor_id: u8 }"),
            ("src/x.rs", "fn list_executions() {}"),
            ("src/x.rs", "fn f() { g(\"no such task\"); }"),
            ("src/x.rs", "#[error(\"the slave is gone\")]\nstruct A;"),
        ],
        &[
            ("src/x.rs", "use tokio::task::JoinSet;\nfn f() { tokio::task::spawn_blocking(g); }"),
            ("src/x.rs", "/// Dkron calls this an execution.\nstruct Executor { id: u8 }"),
            ("src/x.rs", "fn multitasking() { g(\"a tokio task ended\"); }"),
        ],
    );
    let page = |text: &str| TextFile { path: "docs/x.md".to_owned(), text: text.to_owned() };
    assert_eq!(prose(&page("fine\nThe master decides.")).len(), 1);
    assert_eq!(prose(&page("`tokio::task`, \"task\" in Dkron\n```\ntask\n```")), Findings::new());
}
