//! The board's console.

use alloc::string::String;

use crate::tree::{Node, Tree};

/// Register layouts of UARTs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UartKind {
    /// A 16550.
    Ns16550,
    /// Synopsys DesignWare's 16550, which interrupts when its line control is written while it is busy.
    DesignWare,
    /// Intel XScale's 16550, whose interrupt enable register also has the unit's enable (UUE).
    XScale,
    /// SiFive's UART.
    SiFive,
}

/// `compatible` of each layout. A node may name several: the first row that it names decides.
const KINDS: [(&str, UartKind); 9] = [
    ("snps,dw-apb-uart", UartKind::DesignWare),
    ("spacemit,k1-uart", UartKind::XScale),
    ("spacemit,k3-uart", UartKind::XScale),
    ("intel,xscale-uart", UartKind::XScale),
    ("mrvl,mmp-uart", UartKind::XScale),
    ("sifive,uart0", UartKind::SiFive),
    ("ns16550a", UartKind::Ns16550),
    ("ns16550", UartKind::Ns16550),
    ("ns8250", UartKind::Ns16550),
];

/// A UART that the hypervisor can drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uart {
    /// Path in the tree.
    pub path: String,
    /// Register layout.
    pub kind: UartKind,
    /// First register.
    pub base: u64,
    /// log2 of the distance between two registers (`reg-shift`).
    pub register_shift: u32,
    /// Bytes of an access (`reg-io-width`): 1, 2 or 4.
    pub access_bytes: u32,
    /// Interrupt source, where the UART has one.
    pub source: Option<u32>,
}

fn kind(node: Node<'_, '_>) -> Option<UartKind> {
    let row = KINDS.iter().find(|(name, _)| node.is_compatible(name));
    row.map(|(_, kind)| *kind)
}

impl Uart {
    fn read(node: Node<'_, '_>) -> Option<Self> {
        let kind = kind(node)?;
        let (shift, bytes) = match kind {
            UartKind::SiFive => (2, 4),
            _ => (0, 1),
        };
        let register_shift = node.word("reg-shift").unwrap_or(shift);
        let access_bytes = node.word("reg-io-width").unwrap_or(bytes);
        // The registers of a 16550 lie in a page.
        if register_shift > 4 || !matches!(access_bytes, 1 | 2 | 4) {
            return None;
        }
        Some(Self {
            path: node.path(),
            kind,
            base: node
                .registers()
                .first()?
                .start
                .checked_add(u64::from(node.word("reg-offset").unwrap_or(0)))?,
            register_shift,
            access_bytes,
            source: node.word("interrupts"),
        })
    }
}

/// The UART that `/chosen/stdout-path` names, or else the first one.
pub(crate) fn read(tree: &Tree<'_>) -> Option<Uart> {
    let chosen = tree
        .find("/chosen")
        .and_then(|chosen| {
            chosen
                .text("stdout-path")
                .or_else(|| chosen.text("linux,stdout-path"))
        })
        .and_then(|path| tree.find(path))
        .filter(|node| node.is_enabled());
    chosen.and_then(Uart::read).or_else(|| {
        tree.nodes()
            .filter(|node| node.is_enabled())
            .find_map(Uart::read)
    })
}
