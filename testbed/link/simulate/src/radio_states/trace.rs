// SPDX-License-Identifier: Apache-2.0
//! How does a trace of packets come in? As lines of CSV under the header `t_s,direction,bytes`, in order of time.

use netjoule_link_model::radio_states::packet::{Direction, Packet};
use netjoule_link_model::radio_states::replay::Arrival;
use netjoule_link_model::range::{within, ParameterError};

/// The first line.
pub const HEADER: &str = "t_s,direction,bytes";

/// The longest trace, s.
pub const MAX_S: f64 = 1e6;

/// Packets of the text of the file `name`. `bytes` are IP bytes; spaces around values and empty lines are no matter.
///
/// # Errors
/// [`ParameterError`] names file and line.
pub fn parse(name: &str, text: &str) -> Result<Vec<Arrival>, ParameterError> {
    let refuse = |line: usize, what: String| ParameterError(format!("{name}, line {line}: {what}"));
    let mut lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    match lines.next() {
        Some((_, HEADER)) => {}
        Some((line, _)) => return Err(refuse(line, format!("the first line must be {HEADER}"))),
        None => return Err(refuse(1, format!("it is empty; begin it with {HEADER}"))),
    }
    let mut trace: Vec<Arrival> = Vec::new();
    for (number, line) in lines {
        let arrival = arrival(line).map_err(|what| refuse(number, what))?;
        if trace.last().is_some_and(|last| last.at_ns > arrival.at_ns) {
            return Err(refuse(
                number,
                "t_s is before that of the line above; sort the lines by time".to_owned(),
            ));
        }
        trace.push(arrival);
    }
    Ok(trace)
}

fn arrival(line: &str) -> Result<Arrival, String> {
    let values: Vec<_> = line.split(',').map(str::trim).collect();
    let [t_s, direction, bytes] = values[..] else {
        return Err(format!("{} values stand where three are wanted, {HEADER}", values.len()));
    };
    let t_s: f64 = t_s.parse().map_err(|_| format!("t_s is {t_s:?}; give a number of seconds"))?;
    let t_s =
        within("t_s", t_s, 0.0..=MAX_S).map_err(|error| format!("{error}, from the start of the trace"))?;
    let direction = match direction {
        "up" => Direction::Up,
        "down" => Direction::Down,
        _ => return Err(format!("direction is {direction:?}; give up or down")),
    };
    let ip_bytes: u32 = bytes.parse().map_err(|_| format!("bytes is {bytes:?}; give a whole number"))?;
    let ip_bytes = within("bytes", ip_bytes, 1..=65_535).map_err(|error| error.to_string())?;
    Ok(Arrival { at_ns: (t_s * 1e9).round() as u64, packet: Packet { direction, ip_bytes } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_to_the_nanosecond() {
        let trace =
            parse("a.csv", "t_s,direction,bytes\n0,up,40\n\n 1.000000001 , down , 1500 \r\n").unwrap();
        let packet = |direction, ip_bytes| Packet { direction, ip_bytes };
        let first = Arrival { at_ns: 0, packet: packet(Direction::Up, 40) };
        let second = Arrival { at_ns: 1_000_000_001, packet: packet(Direction::Down, 1500) };
        assert_eq!(trace, [first, second]);
    }

    #[test]
    fn what_is_no_packet_is_refused_with_file_and_line() {
        for (lines, expected) in [
            ("", "a.csv, line 1: it is empty"),
            ("t_s,bytes", "a.csv, line 1: the first line must be"),
            ("t_s,direction,bytes\n1,up", "a.csv, line 2: 2 values"),
            ("t_s,direction,bytes\n\nx,up,40", "a.csv, line 3: t_s is \"x\""),
            ("t_s,direction,bytes\n-1,up,40", "line 2: t_s is -1"),
            ("t_s,direction,bytes\nNaN,up,40", "line 2: t_s is NaN"),
            ("t_s,direction,bytes\n1,left,40", "line 2: direction is \"left\""),
            ("t_s,direction,bytes\n1,up,4.5", "line 2: bytes is \"4.5\""),
            ("t_s,direction,bytes\n1,up,0", "line 2: bytes is 0"),
            ("t_s,direction,bytes\n1,up,65536", "line 2: bytes is 65536"),
            ("t_s,direction,bytes\n1,up,40\n0.9,up,40", "line 3: t_s is before"),
        ] {
            let error = parse("a.csv", lines).unwrap_err().to_string();
            assert!(error.contains(expected), "{error:?} lacks {expected:?}");
        }
    }
}
