// SPDX-License-Identifier: Apache-2.0
//! What the head of an answer says about the bytes behind it. Pure.
//!
//! RFC 9110: ranges of one file may only be put together when all answers carry the same strong ETag (13.1.5, 14.2,
//! 15.3.7). A weak one, or none, means one request for the whole file.

use std::ops::Range;
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName};
use http::{response, StatusCode};
use url::Url;

use crate::fault::{Fault, Trouble};

/// What was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Bytes of the file; all of it when none are named.
    pub(crate) range: Option<Range<u64>>,
    /// Length that the file must have.
    pub(crate) size: Option<u64>,
    /// Whether that was promised, and not only said by an answer.
    pub(crate) is_promised: bool,
    /// ETag of what has come so far.
    pub(crate) etag: Option<String>,
    /// Nothing of it has come or is under way elsewhere: the whole file is as good as the range from 0 on.
    pub(crate) is_first: bool,
    /// Where.
    pub(crate) url: Url,
}

/// What comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Coming {
    /// From this byte of the file on.
    pub(crate) first: u64,
    /// Up to here; not known of an answer without a length.
    pub(crate) end: Option<u64>,
    /// Length of the file.
    pub(crate) size: Option<u64>,
    /// Its strong ETag.
    pub(crate) etag: Option<String>,
    /// Whether more than one range of it may be asked for.
    pub(crate) ranges: bool,
}

/// What the answer means for what was asked.
pub(crate) fn judge(asked: &Asked, head: &response::Parts) -> Result<Coming, Trouble> {
    match head.status {
        StatusCode::OK => whole(asked, &head.headers),
        StatusCode::PARTIAL_CONTENT => part(asked, &head.headers),
        StatusCode::RANGE_NOT_SATISFIABLE if asked.range.is_some() => {
            Err(Trouble::Restart(Fault::changed(format!("{} has no such range (416)", asked.url))))
        }
        status if status.is_redirection() => moved(asked, status, &head.headers),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            let words = format!("{} answers {}", asked.url, head.status);
            Err(Trouble::Busy(retry_after(&head.headers), words))
        }
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => {
            Err(Trouble::Busy(None, format!("{} answers {}", asked.url, head.status)))
        }
        status => Err(Trouble::Final(Fault::new("http_status", format!("{} answers {status}", asked.url)))),
    }
}

fn whole(asked: &Asked, headers: &HeaderMap) -> Result<Coming, Trouble> {
    not_coded(asked, headers)?;
    let size = text(headers, &header::CONTENT_LENGTH).and_then(|text| text.trim().parse().ok());
    right_size(asked, size)?;
    let is_whole_wanted = asked.range.is_none() || (asked.is_first && size.is_some());
    if !is_whole_wanted {
        let words = format!("{} answers a range with the whole file", asked.url);
        return Err(Trouble::Restart(Fault::changed(words)));
    }
    let etag = strong_etag(headers);
    let takes_ranges = text(headers, &header::ACCEPT_RANGES).is_some_and(|units| units.contains("bytes"));
    let ranges = takes_ranges && etag.is_some() && asked.range.is_none();
    Ok(Coming { first: 0, end: size, size, ranges, etag })
}

fn part(asked: &Asked, headers: &HeaderMap) -> Result<Coming, Trouble> {
    let restart = |why: &str| Trouble::Restart(Fault::changed(format!("{} {why}", asked.url)));
    let wanted = asked.range.clone().ok_or_else(|| restart("answers with a range that nobody asked for"))?;
    not_coded(asked, headers)?;
    let told = text(headers, &header::CONTENT_RANGE).and_then(content_range);
    let (range, size) = told.ok_or_else(|| restart("answers with a range that it does not tell"))?;
    if range.start != wanted.start || range.end > wanted.end {
        return Err(restart("answers with another range than was asked for"));
    }
    if size.or(asked.size).is_none() {
        return Err(restart("answers with a range and does not tell how long the whole is"));
    }
    right_size(asked, size)?;
    let etag = strong_etag(headers)
        .ok_or_else(|| restart("has no strong ETag, so that its ranges may be of two files"))?;
    if asked.etag.as_ref().is_some_and(|known| *known != etag) {
        return Err(restart("was changed"));
    }
    Ok(Coming { first: range.start, end: Some(range.end), size, etag: Some(etag), ranges: true })
}

fn not_coded(asked: &Asked, headers: &HeaderMap) -> Result<(), Trouble> {
    let is_packed = [".gz", ".tgz"].iter().any(|ending| asked.url.path().ends_with(ending));
    match text(headers, &header::CONTENT_ENCODING) {
        None | Some("identity") => Ok(()),
        // What such a file is, some servers call a coding of what is in it.
        Some("gzip" | "x-gzip") if is_packed => Ok(()),
        Some(coding) => {
            let words = format!(
                "{} comes as {coding}, which was not asked for: have the server send it as it is",
                asked.url
            );
            Err(Trouble::Final(Fault::new("coding", words)))
        }
    }
}

fn right_size(asked: &Asked, size: Option<u64>) -> Result<(), Trouble> {
    match (asked.size, size) {
        (Some(wanted), Some(size)) if wanted != size => {
            let words = format!("{} has {size} bytes, not {wanted}", asked.url);
            // What an earlier answer said is no promise: there is another file now.
            Err(if asked.is_promised {
                Trouble::Final(Fault::new("length", words))
            } else {
                Trouble::Restart(Fault::changed(words))
            })
        }
        _ => Ok(()),
    }
}

fn moved(asked: &Asked, status: StatusCode, headers: &HeaderMap) -> Result<Coming, Trouble> {
    let wrong = |why: &str| Fault::new("http_status", format!("{} answers {status} {why}", asked.url));
    let place = text(headers, &header::LOCATION).ok_or_else(|| Trouble::Final(wrong("without a place")))?;
    let url = asked.url.join(place).map_err(|_| Trouble::Final(wrong("with a place that is no URL")))?;
    if asked.url.scheme() == "https" && url.scheme() != "https" {
        return Err(Trouble::Final(wrong("and leads away from https")));
    }
    Err(Trouble::Moved(url))
}

/// The ETag, if there is a strong one.
pub(crate) fn strong_etag(headers: &HeaderMap) -> Option<String> {
    let etag = text(headers, &header::ETAG)?.trim();
    let is_strong = etag.len() >= 2 && etag.starts_with('"') && etag.ends_with('"');
    is_strong.then(|| etag.to_owned())
}

/// Seconds of a Retry-After; a date is as good as none, as this program knows no time of day.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    text(headers, &header::RETRY_AFTER)?.trim().parse().ok().map(Duration::from_secs)
}

/// `bytes 0-99/1000`: the range and the file's length, if that is told.
fn content_range(text: &str) -> Option<(Range<u64>, Option<u64>)> {
    let (range, size) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let size = if size == "*" { None } else { Some(size.trim().parse().ok()?) };
    let fits = first <= last && size.is_none_or(|size| last < size);
    fits.then_some((first..last.checked_add(1)?, size))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(range: Option<Range<u64>>) -> Asked {
        let url = Url::parse("http://a/b").unwrap();
        let etag = Some("\"x\"".into());
        Asked { range, size: Some(1_000), is_promised: true, etag, is_first: false, url }
    }

    fn head(status: u16, headers: &[(&str, &str)]) -> response::Parts {
        let answer =
            headers.iter().fold(http::Response::builder().status(status), |answer, (name, value)| {
                answer.header(*name, *value)
            });
        answer.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_range_is_taken_only_where_all_of_it_fits() {
        let judged = |range: &str, etag: &str| {
            judge(&asked(Some(100..200)), &head(206, &[("content-range", range), ("etag", etag)]))
        };
        let coming = judged("bytes 100-199/1000", "\"x\"").unwrap();
        assert_eq!((coming.first, coming.end, coming.ranges), (100, Some(200), true));
        assert_eq!(judged("bytes 100-149/1000", "\"x\"").unwrap().end, Some(150), "a server may send less");
        for (range, etag) in [
            ("bytes 0-199/1000", "\"x\""),
            ("bytes 100-200/1000", "\"x\""),
            ("bytes 100-199/150", "\"x\""),
            ("lines 100-199/1000", "\"x\""),
            ("bytes 100-199/1000", "\"y\""),
            ("bytes 100-199/1000", "W/\"x\""),
        ] {
            assert!(matches!(judged(range, etag), Err(Trouble::Restart(_))), "{range} {etag}");
        }
        let longer = judged("bytes 100-199/1001", "\"x\"");
        assert!(matches!(longer, Err(Trouble::Final(fault)) if fault.code == "length"));
        let learned = Asked { is_promised: false, ..asked(Some(100..200)) };
        let other =
            judge(&learned, &head(206, &[("content-range", "bytes 100-199/1001"), ("etag", "\"x\"")]));
        assert!(matches!(other, Err(Trouble::Restart(_))), "another file than before begins anew");
    }

    #[test]
    fn the_whole_file_for_a_range_is_a_new_start() {
        let answer = head(200, &[("content-length", "1000"), ("etag", "\"x\""), ("accept-ranges", "bytes")]);
        assert!(matches!(judge(&asked(Some(0..10)), &answer), Err(Trouble::Restart(_))));
        assert!(judge(&asked(None), &answer).unwrap().ranges);
        let weak = head(200, &[("etag", "W/\"x\""), ("accept-ranges", "bytes")]);
        assert!(!judge(&asked(None), &weak).unwrap().ranges);
        let first = Asked { is_first: true, etag: None, ..asked(Some(0..10)) };
        let coming = judge(&first, &answer).unwrap();
        assert_eq!(
            (coming.end, coming.ranges),
            (Some(1_000), false),
            "the first range may be the whole file"
        );
    }

    #[test]
    fn a_compressed_file_may_be_called_a_coding_and_no_other() {
        let coded = |path: &str, coding: &str| {
            let url = Url::parse("http://a/").unwrap().join(path).unwrap();
            judge(&Asked { url, ..asked(None) }, &head(200, &[("content-encoding", coding)])).is_ok()
        };
        for (path, coding) in [("b.tar.gz", "x-gzip"), ("b.tgz?x", "gzip"), ("b", "identity")] {
            assert!(coded(path, coding), "{path} {coding}");
        }
        for (path, coding) in [("b", "gzip"), ("b?c.gz", "gzip"), ("b.gz", "br")] {
            assert!(!coded(path, coding), "{path} {coding}");
        }
    }

    #[test]
    fn redirects_never_leave_https() {
        let mut from = asked(None);
        let to = |from: &Asked, place: &str| judge(from, &head(302, &[("location", place)]));
        assert!(matches!(to(&from, "/c"), Err(Trouble::Moved(url)) if url.as_str() == "http://a/c"));
        from.url = Url::parse("https://a/b").unwrap();
        assert!(matches!(to(&from, "http://a/c"), Err(Trouble::Final(_))));
    }

    #[test]
    fn a_busy_server_says_when() {
        let answer = head(503, &[("retry-after", "7")]);
        let busy = judge(&asked(None), &answer);
        assert!(matches!(busy, Err(Trouble::Busy(Some(time), _)) if time == Duration::from_secs(7)));
        let status = judge(&asked(None), &head(404, &[]));
        assert!(matches!(status, Err(Trouble::Final(fault)) if fault.code == "http_status"));
    }
}
