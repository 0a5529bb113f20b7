//! Form of the table of measures: the macro that makes an enum, its rows and its documentation of one text.

/// Row of the table of measures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Name in options, reports and tables. The name of a family ends in `.`; a member's name follows the dot.
    pub(super) name: &'static str,
    /// Unit, empty for pure numbers.
    pub(super) unit: &'static str,
    /// Direction in which the measure is better.
    pub(super) better: Better,
    /// Meaning in one line.
    pub(super) line: &'static str,
    /// Computation, and the section of the paper that defines it.
    pub(super) definition: &'static str,
}

/// Direction in which a measure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    More,
    /// Less is better.
    Less,
    /// The measure says what happened, not how well.
    Neither,
}

/// Makes the enum of measures of its rows.
///
/// A row is `Name = "name", "unit", better, "meaning";` below the sentences that define the measure.
macro_rules! measures {
    (
        $(#[doc = $about:literal])+
        $kind:ident;
        $(
            $(#[doc = $text:literal])+
            $measure:ident = $name:literal, $unit:literal, $better:ident, $line:literal;
        )+
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $kind {
            $($(#[doc = $text])+ $measure,)+
        }

        impl $kind {
            /// Every measure, in the order of tables.
            pub const ALL: &'static [Self] = &[$(Self::$measure),+];

            pub(in crate::measures) const ROWS: &'static [$crate::measures::measure::Row] = &[$($crate::measures::measure::Row {
                name: $name,
                unit: $unit,
                better: $crate::measures::Better::$better,
                line: $line,
                definition: concat!($($text),+),
            }),+];
        }
    };
}
pub(super) use measures;
