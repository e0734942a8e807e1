// SPDX-License-Identifier: Apache-2.0
//! Which files a command line asks for.

use std::collections::BTreeSet;

use netjoule_measure::failure::{Code, Failure, Outcome};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::cli::GetArgs;
use crate::job::{Item, MEMORY};
use crate::network::origin::Origin;
use crate::sets::dataset::Dataset;
use crate::sets::manifest::{self, Entry, Manifest};

/// The files, each under a name of its own.
pub(crate) fn items(args: &GetArgs) -> Outcome<Vec<Item>> {
    let items = match (&args.dataset, &args.manifest) {
        (Some(name), _) => of_manifest(&Dataset::find(name)?.manifest(args.seed, args.files)?, args)?,
        (_, Some(path)) => of_manifest(&Manifest::read(path)?, args)?,
        _ => args.urls.iter().map(|text| of_url(text)).collect::<Outcome<_>>()?,
    };
    own_names(&items)?;
    Ok(items)
}

/// Refuses two files of one name, and one whose name is a folder of another.
fn own_names(items: &[Item]) -> Outcome<()> {
    let mut names = BTreeSet::new();
    // What is under way stands beside its final name.
    let own =
        |name: &str| ["", ".part", ".part.json", ".part.json.new"].map(|ending| format!("{name}{ending}"));
    for Item { name, .. } in items {
        if !own(name).into_iter().all(|name| names.insert(name)) {
            return Code::Usage.fail(format!("two files would be called {name}: name them in a manifest"));
        }
    }
    for Item { name, .. } in items {
        let mut folders = name.match_indices('/').map(|(end, _)| &name[..end]);
        if let Some(folder) = folders.find(|folder| names.contains(*folder)) {
            return Code::Usage
                .fail(format!("{folder} would be a file and the folder of {name}: rename one"));
        }
    }
    Ok(())
}

fn of_manifest(manifest: &Manifest, args: &GetArgs) -> Outcome<Vec<Item>> {
    let is_made = args.from.as_deref() == Some(MEMORY);
    let base = args.from.as_deref().filter(|_| !is_made).map(base).transpose()?;
    let item = |(number, entry): (usize, &Entry)| {
        let signed = manifest.signature(number);
        let url = match (&entry.url, &base) {
            _ if is_made && signed.is_none() => {
                return Code::Usage.fail("--from memory makes files of a data set: say --dataset NAME");
            }
            _ if is_made => Url::parse(&format!("{MEMORY}:{}", entry.name))
                .map_err(|error| Failure::new(Code::Usage, format!("{}: {error}", entry.name)))?,
            (Some(text), _) => url(text)?,
            (None, Some(base)) => below(base, &entry.name)?,
            (None, None) => return Code::Usage.fail(format!("{} has no url: say --from URL", entry.name)),
        };
        Ok(Item {
            name: entry.name.clone(),
            url,
            size: entry.size_bytes,
            sha256: entry.sha256.clone(),
            signed,
        })
    };
    manifest.files.iter().enumerate().map(item).collect()
}

/// A file of which only the URL is known: it is called as its last part, decoded where that makes a name.
fn of_url(text: &str) -> Outcome<Item> {
    let url = url(text)?;
    let name = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or("");
    let decoded = percent_decode_str(name).decode_utf8().ok();
    let decoded = decoded.filter(|name| !name.contains(|c: char| c == '/' || c.is_control()));
    let name = decoded.unwrap_or(name.into()).into_owned();
    let name = if name.is_empty() { "index.html".to_owned() } else { name };
    if !manifest::is_inside(&name) {
        return Code::Usage.fail(format!("{text}: its last part is no name of a file"));
    }
    Ok(Item { name, url, size: None, sha256: None, signed: None })
}

fn url(text: &str) -> Outcome<Url> {
    let wrong = || Failure::new(Code::Usage, format!("{text} is no URL of http or https"));
    let url = Url::parse(text).map_err(|_| wrong())?;
    Origin::of(&url).ok_or_else(wrong)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Code::Usage
            .fail(format!("{}: names and passwords are not sent", url.host_str().unwrap_or("URL")));
    }
    Ok(url)
}

/// A folder, be it written with `/` at the end or not.
fn base(text: &str) -> Outcome<Url> {
    let mut url = url(text)?;
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

fn below(base: &Url, name: &str) -> Outcome<Url> {
    let mut url = base.clone();
    let wrong = || Failure::new(Code::Usage, format!("{base} cannot have files below it"));
    // Part by part: a name may hold what a URL must escape.
    url.path_segments_mut().map_err(|()| wrong())?.pop_if_empty().extend(name.split('/'));
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_last_part_and_are_never_a_path() {
        let name = |text: &str| of_url(text).map(|item| item.name);
        assert_eq!(name("http://a/b/c.iso?x=1").unwrap(), "c.iso");
        assert_eq!(name("http://a").unwrap(), "index.html");
        assert_eq!(name("http://a/d%C3%A9j%C3%A0%20vu+.pdf").unwrap(), "déjà vu+.pdf");
        for kept in ["b%2Fc", "b%00", "b%1B", "b%FF"] {
            assert_eq!(name(&format!("http://a/{kept}")).unwrap(), kept);
        }
        for bad in ["ftp://a/b", "a/b", "http://me:secret@a/b"] {
            assert!(name(bad).is_err_and(|failure| !failure.message.contains("secret")), "{bad}");
        }
    }

    #[test]
    fn no_file_stands_where_another_or_its_folder_does() {
        let item = |name: &&str| Item { name: (*name).to_owned(), ..of_url("http://a/b").unwrap() };
        let are_own = |names: &[&str]| own_names(&names.iter().map(item).collect::<Vec<_>>()).is_ok();
        assert!(are_own(&["a", "b/a", "b/c/a", "ab/c"]));
        for names in [["a", "a"], ["a", "a.part"], ["a", "a/b"], ["a/b/c", "a/b"], ["a.part/b", "a"]] {
            assert!(!are_own(&names), "{names:?}");
        }
    }

    #[test]
    fn files_lie_below_the_folder_whatever_their_names_hold() {
        for folder in ["http://a/b", "http://a/b/"] {
            let base = base(folder).unwrap();
            assert_eq!(below(&base, "c/d e?.bin").unwrap().as_str(), "http://a/b/c/d%20e%3F.bin");
        }
    }
}
