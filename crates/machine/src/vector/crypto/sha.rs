//! SHA-2: FIPS 180-4.

/// A word of SHA-256 or SHA-512.
pub(super) trait Word: Copy {
    /// Σ0, Σ1, σ0 and σ1: two rotations, and a third one or a shift.
    fn large0(self) -> Self;
    fn large1(self) -> Self;
    fn small0(self) -> Self;
    fn small1(self) -> Self;
    /// The sum modulo the word's size.
    fn plus(self, other: Self) -> Self;
    /// Bits of `a` where this word's are set, else of `b`.
    fn choose(self, a: Self, b: Self) -> Self;
    /// Bits that two of three words have.
    fn majority(self, a: Self, b: Self) -> Self;
}

macro_rules! word {
    ($type:ty, $large0:expr, $large1:expr, $small0:expr, $small1:expr) => {
        impl Word for $type {
            #[inline(always)]
            fn large0(self) -> Self {
                let [a, b, c] = $large0;
                self.rotate_right(a) ^ self.rotate_right(b) ^ self.rotate_right(c)
            }

            #[inline(always)]
            fn large1(self) -> Self {
                let [a, b, c] = $large1;
                self.rotate_right(a) ^ self.rotate_right(b) ^ self.rotate_right(c)
            }

            #[inline(always)]
            fn small0(self) -> Self {
                let [a, b, c] = $small0;
                self.rotate_right(a) ^ self.rotate_right(b) ^ self >> c
            }

            #[inline(always)]
            fn small1(self) -> Self {
                let [a, b, c] = $small1;
                self.rotate_right(a) ^ self.rotate_right(b) ^ self >> c
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn choose(self, a: Self, b: Self) -> Self {
                self & a ^ !self & b
            }

            #[inline(always)]
            fn majority(self, a: Self, b: Self) -> Self {
                self & a ^ self & b ^ a & b
            }
        }
    };
}

word!(u32, [2, 13, 22], [6, 11, 25], [7, 18, 3], [17, 19, 10]);
word!(u64, [28, 34, 39], [14, 18, 41], [1, 8, 7], [19, 61, 6]);

/// An instruction: VSHA2MS, VSHA2CH or VSHA2CL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Schedule,
    CompressUpper,
    CompressLower,
}

/// vd = step(vd, vs2, vs1). Inlined, so that the words stay in registers of the host.
#[inline(always)]
pub(super) fn step<W: Word>(step: Step, old: [W; 4], a: [W; 4], b: [W; 4]) -> [W; 4] {
    match step {
        Step::Schedule => schedule(old, a, b),
        Step::CompressUpper => compress(old, a, [b[2], b[3]]),
        Step::CompressLower => compress(old, a, [b[0], b[1]]),
    }
}

/// Four more words: from W0 to W3; W4, W9, W10, W11; W12 to W15.
#[inline(always)]
fn schedule<W: Word>(first: [W; 4], middle: [W; 4], last: [W; 4]) -> [W; 4] {
    let ([w0, w1, w2, w3], [w4, w9, w10, w11], [w12, _, w14, w15]) = (first, middle, last);
    let next = |two_before: W, seven_before: W, low: W, lowest: W| {
        two_before
            .small1()
            .plus(seven_before)
            .plus(low.small0())
            .plus(lowest)
    };
    let w16 = next(w14, w9, w1, w0);
    let w17 = next(w15, w10, w2, w1);
    let w18 = next(w16, w11, w3, w2);
    let w19 = next(w17, w12, w4, w3);
    [w16, w17, w18, w19]
}

/// Two rounds, by words to which the constants have been added.
#[inline(always)]
fn compress<W: Word>(old: [W; 4], state: [W; 4], words: [W; 2]) -> [W; 4] {
    let ([mut h, mut g, mut d, mut c], [mut f, mut e, mut b, mut a]) = (old, state);
    for word in words {
        let t1 = h.plus(e.large1()).plus(e.choose(f, g)).plus(word);
        let t2 = a.large0().plus(a.majority(b, c));
        (h, g, f, e) = (g, f, e, d.plus(t1));
        (d, c, b, a) = (c, b, a, t1.plus(t2));
    }
    [f, e, b, a]
}
