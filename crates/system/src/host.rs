//! Network and hour of the day that a system takes from the host. Both are off unless a file asks for them, because a
//! run that takes something from the host cannot be repeated.

use std::net::Ipv4Addr;
use std::time::{SystemTime, UNIX_EPOCH};

/// The address that the first guest gets from the host's user-mode network.
const FIRST_GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);

/// One of a system's networks reaches the host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNetwork {
    /// Its name.
    pub network: String,
    /// The ports of the host's loopback address that lead to guests.
    pub forwards: Vec<Forward>,
}

/// A port of the host's loopback address that leads to a port of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forward {
    /// The port on the host.
    pub host: u16,
    /// The guest's address.
    pub address: Ipv4Addr,
    /// The port there.
    pub guest: u16,
}

impl Forward {
    /// Reads `HOST:GUEST` or `HOST:ADDRESS:GUEST`, `None` if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let port = |text: &str| text.parse().ok().filter(|port| *port != 0);
        let mut parts = text.split(':');
        let (host, second, third) = (parts.next()?, parts.next()?, parts.next());
        let (address, guest) = match third {
            Some(guest) => (second.parse().ok()?, guest),
            None => (FIRST_GUEST, second),
        };
        let end = parts.next().is_none();
        let (host, guest) = (port(host)?, port(guest)?);
        end.then_some(Self {
            host,
            address,
            guest,
        })
    }
}

/// The hour of the day when a computer is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Date {
    /// The host's.
    Host,
    /// Always this, in seconds since 1970.
    At(u64),
}

impl Date {
    /// Date of a system that names none: the beginning of 2025, which is also the date of everything in built images.
    pub const FIXED: Self = Self::At(1_735_689_600);

    /// Reads `host` or `YYYY-MM-DDTHH:MM:SSZ`; `None` if it is neither, or lies before 1970 or after 2199.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "host" {
            return Some(Self::Host);
        }
        let bytes = text.as_bytes();
        let marks = [
            (4, b'-'),
            (7, b'-'),
            (10, b'T'),
            (13, b':'),
            (16, b':'),
            (19, b'Z'),
        ];
        if bytes.len() != 20 || marks.iter().any(|(at, mark)| bytes.get(*at) != Some(mark)) {
            return None;
        }
        let number = |from: usize, to: usize| -> Option<u64> {
            let digits = text.get(from..to)?;
            let all = digits.bytes().all(|byte| byte.is_ascii_digit());
            all.then(|| digits.parse().ok()).flatten()
        };
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let good = (1970..2200).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_of(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        let years: u64 = (1970..year).map(days_of_year).sum();
        let months: u64 = (1..month).map(|month| days_of(year, month)).sum();
        let days = years + months + day.checked_sub(1)?;
        good.then_some(Self::At(((days * 24 + hour) * 60 + minute) * 60 + second))
    }

    /// In seconds since 1970, now.
    pub fn seconds(self) -> u64 {
        match self {
            Self::At(seconds) => seconds,
            Self::Host => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        }
    }
}

/// Days in a year.
fn days_of_year(year: u64) -> u64 {
    365 + u64::from(leaps(year))
}

fn leaps(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// Days in a month, of which the first is 1.
fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(leaps(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A time in seconds since 1970 in UTC, as `YYYY-MM-DDTHH:MM:SS`.
pub fn calendar(seconds: u64) -> String {
    let (mut days, rest) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    while days >= days_of_year(year) {
        days -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let day = days + 1;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read() {
        let at = |text| Date::parse(text);
        assert_eq!(at("1970-01-01T00:00:00Z"), Some(Date::At(0)));
        assert_eq!(at("2025-01-01T00:00:00Z"), Some(Date::FIXED));
        // `date -u -d 2024-02-29T23:59:59Z +%s` and one in a century that is a leap year.
        assert_eq!(at("2024-02-29T23:59:59Z"), Some(Date::At(1_709_251_199)));
        assert_eq!(at("2000-03-01T00:00:00Z"), Some(Date::At(951_868_800)));
        assert_eq!(at("host"), Some(Date::Host));
        for wrong in [
            "",
            "now",
            "2025-01-01",
            "2025-02-29T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-00-01T00:00:00Z",
            "2025-01-00T00:00:00Z",
            "2025-01-01T24:00:00Z",
            "1969-12-31T23:59:59Z",
            "2025-01-01T00:00:00+",
            "+025-01-01T00:00:00Z",
        ] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn forwards_are_read() {
        let forward = |host, last, guest| Forward {
            host,
            address: Ipv4Addr::new(10, 0, 2, last),
            guest,
        };
        assert_eq!(Forward::parse("2222:22"), Some(forward(2222, 15, 22)));
        assert_eq!(
            Forward::parse("8080:10.0.2.16:80"),
            Some(forward(8080, 16, 80))
        );
        for wrong in [
            "",
            "22",
            "a:22",
            "0:22",
            "70000:22",
            "1:2:3",
            "1:10.0.2.16:80:9",
            "1:22,x",
        ] {
            assert_eq!(Forward::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn dates_survive_writing_and_reading() {
        for text in [
            "1970-01-01T00:00:00",
            "2024-02-29T23:59:59",
            "2100-12-31T12:34:56",
        ] {
            let Some(Date::At(seconds)) = Date::parse(&format!("{text}Z")) else {
                panic!("{text}");
            };
            assert_eq!(calendar(seconds), text);
        }
    }
}
