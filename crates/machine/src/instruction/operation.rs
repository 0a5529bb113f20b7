//! The operations that the execution loop knows.

/// Operation of a decoded instruction. Names are the specification's, without their dots.
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Operation {
    // Control of the decoded form itself.
    /// The block's last instruction lies before this point: go on at `immediate`.
    FallThrough,
    /// The block that began here is no longer what memory holds: look the address up again.
    Stale,

    // Not taken up by an encoding of their own: simplified forms of common instructions.
    Nop,
    LoadImmediate,
    Move,

    Auipc,
    Jump,
    Jal,
    Jalr,
    Beq,
    Bne,
    Blt,
    Bge,
    Bltu,
    Bgeu,
    Beqz,
    Bnez,

    Lb,
    Lh,
    Lw,
    Ld,
    Lbu,
    Lhu,
    Lwu,
    Sb,
    Sh,
    Sw,
    Sd,
    Flh,
    Flw,
    Fld,
    Fsh,
    Fsw,
    Fsd,

    Addi,
    Slti,
    Sltiu,
    Xori,
    Ori,
    Andi,
    Slli,
    Srli,
    Srai,
    Addiw,
    Slliw,
    Srliw,
    Sraiw,
    Add,
    Sub,
    Sll,
    Slt,
    Sltu,
    Xor,
    Srl,
    Sra,
    Or,
    And,
    Addw,
    Subw,
    Sllw,
    Srlw,
    Sraw,

    Mul,
    Mulh,
    Mulhsu,
    Mulhu,
    Mulw,
    Div,
    Divu,
    Rem,
    Remu,
    Divw,
    Divuw,
    Remw,
    Remuw,

    AddUw,
    Sh1add,
    Sh2add,
    Sh3add,
    Sh1addUw,
    Sh2addUw,
    Sh3addUw,
    SlliUw,
    Andn,
    Orn,
    Xnor,
    Clz,
    Clzw,
    Ctz,
    Ctzw,
    Cpop,
    Cpopw,
    Max,
    Maxu,
    Min,
    Minu,
    SextB,
    SextH,
    ZextH,
    Rol,
    Rolw,
    Ror,
    Rorw,
    Rori,
    Roriw,
    OrcB,
    Rev8,
    Bclr,
    Bclri,
    Bext,
    Bexti,
    Binv,
    Binvi,
    Bset,
    Bseti,
    CzeroEqz,
    CzeroNez,
    Clmul,
    Clmulh,
    Clmulr,
    Pack,
    Packh,
    Packw,
    Brev8,
    Xperm4,
    Xperm8,

    LrW,
    LrD,
    ScW,
    ScD,
    AmoW,
    AmoD,
    /// An AMO of a byte or a half-word: Zabha.
    AmoNarrow,
    /// SSAMOSWAP: Zicfiss.
    ShadowSwap,
    /// AMOCAS of any width: Zacas and Zabha.
    CompareAndSwap,

    /// SSPUSH, SSPOPCHK and SSRDP, which are may-be operations where no shadow stack is active: Zicfiss.
    ShadowStack,

    Float,
    /// An instruction of the opcodes OP-V and OP-VE, whose immediate is the encoding.
    Vector,
    /// A vector load or store, whose immediate is the encoding.
    VectorTransfer,

    Fence,
    Pause,
    FenceI,
    CacheBlock,
    Csr,
    System,
    Illegal,
}

impl Operation {
    /// Tests whether a block ends with this operation whatever follows.
    #[must_use]
    pub const fn ends_block(self) -> bool {
        matches!(
            self,
            Self::FallThrough
                | Self::Stale
                | Self::Jump
                | Self::Jal
                | Self::Jalr
                | Self::FenceI
                | Self::Csr
                | Self::System
                | Self::Illegal
        )
    }

    /// Tests whether no translator has it: each is the interpreter's. The first of a block does not count.
    #[inline]
    #[must_use]
    pub const fn is_interpreted(self) -> bool {
        matches!(
            self,
            Self::Vector
                | Self::VectorTransfer
                | Self::Float
                | Self::Flh
                | Self::Flw
                | Self::Fld
                | Self::Fsh
                | Self::Fsw
                | Self::Fsd
        )
    }

    /// Tests whether this is a branch or jump.
    #[must_use]
    pub const fn transfers_control(self) -> bool {
        self.is_relative() || matches!(self, Self::Jalr)
    }

    /// Tests whether `immediate` is a branch or jump displacement.
    #[must_use]
    pub const fn is_relative(self) -> bool {
        matches!(
            self,
            Self::Jump
                | Self::Jal
                | Self::Beq
                | Self::Bne
                | Self::Blt
                | Self::Bge
                | Self::Bltu
                | Self::Bgeu
                | Self::Beqz
                | Self::Bnez
        )
    }
}
