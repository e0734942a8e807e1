// SPDX-License-Identifier: Apache-2.0
//! Which files a command line asks for.

use std::collections::BTreeSet;

use netjoule_measure::failure::{Code, Failure, Outcome};
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
    let mut names = BTreeSet::new();
    // What is under way stands beside its final name.
    let own = |item: &Item| ["", ".part", ".part.json"].map(|ending| format!("{}{ending}", item.name));
    for item in &items {
        if !own(item).into_iter().all(|name| names.insert(name)) {
            let words = format!("two files would be called {}: name them in a manifest", item.name);
            return Code::Usage.fail(words);
        }
    }
    Ok(items)
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

/// A file of which only the URL is known: it is called as its last part.
fn of_url(text: &str) -> Outcome<Item> {
    let url = url(text)?;
    let name = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or("");
    let name = if name.is_empty() { "index.html" } else { name };
    if !manifest::is_inside(name) {
        return Code::Usage.fail(format!("{text}: its last part is no name of a file"));
    }
    Ok(Item { name: name.to_owned(), url, size: None, sha256: None, signed: None })
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
        for bad in ["ftp://a/b", "a/b", "http://me:secret@a/b"] {
            assert!(name(bad).is_err_and(|failure| !failure.message.contains("secret")), "{bad}");
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
