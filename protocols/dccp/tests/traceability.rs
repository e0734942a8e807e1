// SPDX-License-Identifier: Apache-2.0
//! Which requirement of the RFCs is met by which line?
//!
//! `rfc/rfcNNNN.toml` quotes every sentence with a key word of RFC 2119. A line of code that meets one has it quoted
//! above: `//= rfc4340#5.1`, then `//# ` and the sentence or its essential part. What is deliberately not built
//! stands with its reason in `exceptions.toml`. Every MUST must be found in exactly one of the two.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

const RFCS: [&str; 7] = ["4340", "4341", "4342", "5348", "5596", "6323", "6773"];
/// Where quotations may stand, in protocols/.
const SOURCES: [&str; 2] = ["dccp/src", "dccp-carriers/src"];
/// A shorter part of a sentence could be part of many.
const SHORTEST_QUOTE: usize = 20;

/// A sentence of an RFC.
#[derive(Debug, Clone)]
struct Requirement {
    rfc: String,
    section: String,
    must: bool,
    quote: String,
}

/// A quotation in the source, or an exception.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Citation {
    place: String,
    rfc: String,
    section: String,
    quote: String,
}

impl Citation {
    /// Whether it quotes this sentence: part of it, or more than it.
    fn quotes(&self, requirement: &Requirement) -> bool {
        let (mine, whole) = (normal(&self.quote), normal(&requirement.quote));
        self.rfc == requirement.rfc
            && self.section == requirement.section
            && mine.len() >= SHORTEST_QUOTE
            && (whole.contains(&mine) || mine.contains(&whole))
    }
}

/// Text without differences of white space; a word broken after its hyphen is whole again.
fn normal(text: &str) -> String {
    let spaced = text.split_whitespace().collect::<Vec<_>>().join(" ");
    spaced.replace("- ", "-")
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read_table(path: &Path) -> Table {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn entries<'a>(table: &'a Table, key: &str) -> Vec<&'a Table> {
    let list = table.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_table).collect()
}

fn text(entry: &Table, key: &str) -> String {
    let value = entry.get(key).and_then(Value::as_str);
    value.unwrap_or_else(|| panic!("{key} is missing in {entry:?}")).to_owned()
}

fn read_requirements() -> Vec<Requirement> {
    let mut found = Vec::new();
    for rfc in RFCS {
        let table = read_table(&here(&format!("rfc/rfc{rfc}.toml")));
        for entry in entries(&table, "requirement") {
            found.push(Requirement {
                rfc: text(&table, "rfc"),
                section: text(entry, "section"),
                must: text(entry, "level") == "MUST",
                quote: text(entry, "quote"),
            });
        }
    }
    found
}

fn read_exceptions() -> Vec<(Citation, String)> {
    let table = read_table(&here("exceptions.toml"));
    let read = |entry: &Table| {
        let citation = Citation {
            place: "exceptions.toml".to_owned(),
            rfc: text(entry, "rfc"),
            section: text(entry, "section"),
            quote: text(entry, "quote"),
        };
        (citation, text(entry, "reason"))
    };
    entries(&table, "exception").into_iter().map(read).collect()
}

fn source_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            source_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
}

/// All quotations of one file, and what is wrong with how they stand.
fn citations_in(name: &str, source: &str) -> (Vec<Citation>, Vec<String>) {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut found = Vec::new();
    let mut problems = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let place = format!("{name}:{}", index + 1);
        if lines[index].starts_with("//#") {
            problems.push(format!("{place}: a quotation without its `//= rfcNNNN#section` line"));
        }
        let Some(target) = lines[index].strip_prefix("//=") else {
            index += 1;
            continue;
        };
        let quoted: Vec<&str> =
            lines[index + 1..].iter().map_while(|line| line.strip_prefix("//#")).collect();
        index += 1 + quoted.len();
        match parse_target(target) {
            Some((rfc, section)) if !quoted.is_empty() => {
                let quote = normal(&quoted.join(" "));
                found.push(Citation { place: place.clone(), rfc, section, quote });
            }
            Some(_) => problems.push(format!("{place}: nothing is quoted")),
            None => problems.push(format!("{place}: `{target}` is not of the form rfcNNNN#section")),
        }
        if !code_follows(&lines[index..]) {
            problems.push(format!("{place}: the quotation does not stand directly above code"));
        }
    }
    (found, problems)
}

/// `rfc4340#7.5.4` or `rfc4340#A.2`: an RFC that we have, a section.
fn parse_target(target: &str) -> Option<(String, String)> {
    let (rfc, section) = target.trim().strip_prefix("rfc")?.split_once('#')?;
    let parts_fit = section.split('.').all(|part| {
        let letter = part.len() == 1 && part.chars().all(|c| c.is_ascii_uppercase());
        !part.is_empty() && (letter || part.chars().all(|c| c.is_ascii_digit()))
    });
    (RFCS.contains(&rfc) && parts_fit).then(|| (rfc.to_owned(), section.to_owned()))
}

/// Whether code comes next, after no more than further quotations (a blank line may part them), comments and
/// attributes.
fn code_follows(rest: &[&str]) -> bool {
    let mut lines = rest.iter().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            if !lines.peek().is_some_and(|next| next.starts_with("//=")) {
                return false;
            }
        } else if !line.starts_with("//") && !line.starts_with("#[") {
            return line.chars().any(char::is_alphanumeric);
        }
    }
    false
}

fn read_citations() -> (Vec<Citation>, Vec<String>) {
    let mut files = Vec::new();
    let protocols = here("").parent().expect("the crate lies in protocols/").to_owned();
    for source in SOURCES {
        source_files(&protocols.join(source), &mut files);
    }
    let mut found = Vec::new();
    let mut problems = Vec::new();
    for path in files {
        let name = path.strip_prefix(&protocols).unwrap_or(&path).display().to_string();
        let source = fs::read_to_string(&path).expect("a source file is UTF-8 text");
        let (cited, wrong) = citations_in(&name, &source);
        found.extend(cited);
        problems.extend(wrong);
    }
    (found, problems)
}

/// Quotations that are in no RFC. One without any key word cannot be looked up and passes.
fn misquotations(requirements: &[Requirement], citations: &[Citation]) -> Vec<String> {
    let words = ["MUST", "SHALL", "REQUIRED", "SHOULD", "RECOMMENDED"];
    let wrong = citations.iter().filter(|citation| {
        let normative =
            citation.quote.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(&word));
        normative && !requirements.iter().any(|requirement| citation.quotes(requirement))
    });
    let say = |c: &Citation| format!("{}: rfc{}#{} does not say: {}", c.place, c.rfc, c.section, c.quote);
    wrong.map(say).collect()
}

/// What is wrong with the exceptions themselves.
fn bad_exceptions(
    requirements: &[Requirement],
    citations: &[Citation],
    exceptions: &[(Citation, String)],
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (exception, reason) in exceptions {
        let name = format!("exception rfc{}#{}: {}", exception.rfc, exception.section, exception.quote);
        let about: Vec<_> = requirements.iter().filter(|r| r.must && exception.quotes(r)).collect();
        if about.is_empty() {
            problems.push(format!("stale, the RFC has no such requirement: {name}"));
        }
        if about.iter().any(|requirement| citations.iter().any(|citation| citation.quotes(requirement))) {
            problems.push(format!("superfluous, the requirement is implemented: {name}"));
        }
        if reason.split_whitespace().count() < 4 {
            problems.push(format!("no reason is given: {name}"));
        }
        if !seen.insert(name.clone()) {
            problems.push(format!("written twice: {name}"));
        }
    }
    problems
}

/// MUSTs, of these implemented, excepted and missing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    musts: usize,
    implemented: usize,
    excepted: usize,
}

/// The count per RFC and the sentences that have neither line nor exception.
fn coverage(
    requirements: &[Requirement],
    citations: &[Citation],
    exceptions: &[(Citation, String)],
) -> (BTreeMap<String, Count>, Vec<String>) {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let mut missing = Vec::new();
    for requirement in requirements.iter().filter(|requirement| requirement.must) {
        let count = counts.entry(requirement.rfc.clone()).or_default();
        count.musts += 1;
        if citations.iter().any(|citation| citation.quotes(requirement)) {
            count.implemented += 1;
        } else if exceptions.iter().any(|(exception, _)| exception.quotes(requirement)) {
            count.excepted += 1;
        } else {
            missing.push(format!("rfc{}#{}: {}", requirement.rfc, requirement.section, requirement.quote));
        }
    }
    (counts, missing)
}

fn table(counts: &BTreeMap<String, Count>) -> String {
    let mut out = String::from("RFC   MUSTs  implemented  excepted  missing\n");
    let mut row = |name: &str, count: Count| {
        let missing = count.musts - count.implemented - count.excepted;
        let Count { musts, implemented, excepted } = count;
        let _ = writeln!(out, "{name:<5} {musts:>5}  {implemented:>11}  {excepted:>8}  {missing:>7}");
    };
    let mut all = Count::default();
    for (rfc, count) in counts {
        row(rfc, *count);
        all.musts += count.musts;
        all.implemented += count.implemented;
        all.excepted += count.excepted;
    }
    row("all", all);
    out
}

#[test]
fn every_requirement_has_a_line_or_an_exception() {
    let requirements = read_requirements();
    let exceptions = read_exceptions();
    let (citations, mut problems) = read_citations();
    problems.extend(misquotations(&requirements, &citations));
    problems.extend(bad_exceptions(&requirements, &citations, &exceptions));
    let (counts, missing) = coverage(&requirements, &citations, &exceptions);
    println!("{}", table(&counts));
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    assert!(missing.is_empty(), "{} requirements have neither:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn the_requirements_are_those_of_the_rfcs() {
    let requirements = read_requirements();
    let musts = |rfc: &str| requirements.iter().filter(|r| r.must && r.rfc == rfc).count();
    // Sentences; RFC 4340's hold 203 key words, and erratum 974 adds one sentence.
    assert_eq!(RFCS.map(musts), [180, 9, 25, 8, 13, 11, 22]);
    assert!(requirements.iter().all(|r| parse_target(&format!("rfc{}#{}", r.rfc, r.section)).is_some()));
}

#[test]
fn quotations_are_read_as_they_stand() {
    let source = "fn a() {\n    //= rfc4340#5.1\n    //# Receivers MUST ignore any packets with re-\n    //# served type.\n    // why\n    let b = 1;\n}\n";
    let (found, problems) = citations_in("x.rs", source);
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(found[0].place, "x.rs:2");
    assert_eq!(found[0].quote, "Receivers MUST ignore any packets with re-served type.");
}

#[test]
fn quotations_that_stand_above_nothing_are_refused() {
    let quotation = "//= rfc4340#5.1\n//# Receivers MUST ignore any packets with reserved type.\n";
    for after in ["", "\nfn a() {}", "}\n", "// and so on\n\nfn a() {}"] {
        let (_, problems) = citations_in("x.rs", &format!("{quotation}{after}"));
        assert_eq!(problems.len(), 1, "{after:?}");
    }
    for bad in [
        "//= rfc9999#1\n//# a\nfn a() {}",
        "//= rfc4340\n//# a\nfn a() {}",
        "//= rfc4340#1\nfn a() {}",
        "//# a",
    ] {
        assert_eq!(citations_in("x.rs", bad).1.len(), 1, "{bad:?}");
    }
}

#[test]
fn wrong_quotations_and_idle_exceptions_are_found() {
    let requirements = read_requirements();
    let cite = |section: &str, quote: &str| Citation {
        place: "x.rs:1".to_owned(),
        rfc: "4340".to_owned(),
        section: section.to_owned(),
        quote: quote.to_owned(),
    };
    let right = cite("5.1", "Receivers MUST ignore any packets with reserved type.");
    let elsewhere = cite("5.2", "Receivers MUST ignore any packets with reserved type.");
    let invented = cite("5.1", "Receivers MUST answer packets with reserved type.");
    let short = cite("5.1", "MUST ignore");
    let wrong = misquotations(&requirements, &[right.clone(), elsewhere.clone(), invented, short]);
    assert_eq!(wrong.len(), 3, "{wrong:?}");

    let reason = "a reason of several words".to_owned();
    let problems = |exception: &Citation, reason: &str| {
        bad_exceptions(&requirements, std::slice::from_ref(&right), &[(exception.clone(), reason.to_owned())])
            .len()
    };
    assert_eq!(problems(&right, &reason), 1, "implemented");
    assert_eq!(problems(&elsewhere, &reason), 1, "stale");
    let unmet = cite("18.1", "the link MUST provide a standard integrity check");
    assert_eq!(problems(&unmet, &reason), 0);
    assert_eq!(problems(&unmet, "no"), 1, "no reason");
}
