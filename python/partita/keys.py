"""Tables of a system file with their keys. Generated from docs/system.schema.json by python/generate.py.

A key's name has `_` where the file's has `-`. `None` leaves a key out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .table import Table

__all__ = ["Disk", "Slice", "VmExperiment", "Card", "Terminals", "Vm", "SharedDisk", "ServedDisk", "Experiment", "Switch", "SystemKeys"]


@dataclass(frozen=True, kw_only=True)
class Disk(Table):
    """The keys of vm.NAME.disks.0."""

    file: str = field(metadata={'key': 'file', 'check': {'text': '', 'path': True}})
    """Image of the disk: raw, or qcow2, VMDK, VHDX, VHD or VDI, of which QEMU's qemu-img makes a raw disk in the cache.
    Takes a path from the system file's folder, or one of image:debian/kernel, image:debian/initrd, image:debian/disk,
    image:board/disk, image:compiler/disk, image:database/disk, image:efi/disk, image:pci/initrd, image:perf/initrd,
    image:serve/initrd, image:system/disk, image:system/initrd, image:u-boot/firmware, image:vectors/initrd,
    image:exerciser, image:exerciser-shuffled. Without it: must be given. Example: file = "image:debian/disk"
    """
    io: Literal['direct', 'general', 'fast'] | None = field(default=None, metadata={'key': 'io', 'check': {'words': ('direct', 'general', 'fast')}})
    """Access to the device, as vm.NAME.io. Takes direct, general, fast. Without it: the VM's. Example: io = "fast"
    """
    persistent: bool | None = field(default=None, metadata={'key': 'persistent', 'check': {'truth': True}})
    """Keeps what guests write in the file. Otherwise each run begins with the same image. Takes true or false. Without
    it: false. Example: persistent = true
    """
    raw: bool | None = field(default=None, metadata={'key': 'raw', 'check': {'truth': True}})
    """Takes the file as a raw disk whatever its first bytes are. Otherwise a file that begins as one of another form
    does, such as qcow2, is converted. Takes true or false. Without it: false. Example: raw = true
    """
    slot: int | None = field(default=None, metadata={'key': 'slot', 'check': {'number': (0, 7)}})
    """virtio-mmio slot of the board. Takes a whole number, 0 to 7. Without it: the next free slot. Example: slot = 0
    """
    snapshot: str | None = field(default=None, metadata={'key': 'snapshot', 'check': {'text': ''}})
    """Snapshot in a qcow2 image with which the disk begins, by its name. Takes a text of at most 1023 bytes. Without
    it: the present state. Example: snapshot = "before"
    """


@dataclass(frozen=True, kw_only=True)
class Slice(Table):
    """The keys of vm.NAME.disks.1."""

    slice_of: str = field(metadata={'key': 'slice-of', 'check': {'text': ''}})
    """Shared disk [disk.NAME] that the slice is a part of. Takes a name. Without it: must be given. Example: slice-of =
    "disk0"
    """
    offset: str | None = field(default=None, metadata={'key': 'offset', 'check': {'text': '^[0-9]+ *[A-Za-z]+$'}})
    """Beginning of the slice on the disk. Takes a size in multiples of 512 B (B, KiB, MiB, GiB). Without it: the disk's
    beginning. Example: offset = "256 MiB"
    """
    read_only: bool | None = field(default=None, metadata={'key': 'read-only', 'check': {'truth': True}})
    """Forbids the guest to write. Several VMs may then have the same slice. Takes true or false. Without it: false.
    Example: read-only = true
    """
    size: str | None = field(default=None, metadata={'key': 'size', 'check': {'text': '^[0-9]+ *[A-Za-z]+$'}})
    """Length of the slice. Takes a size in multiples of 512 B (B, KiB, MiB, GiB). Without it: to the disk's end.
    Example: size = "256 MiB"
    """


@dataclass(frozen=True, kw_only=True)
class VmExperiment(Table):
    """The keys of vm.NAME.experiment."""

    ple: Literal['xen', 'kvm'] | None = field(default=None, metadata={'key': 'ple', 'check': {'words': ('xen', 'kvm')}})
    """Preset of pause-loop exiting: a guest that spins on PAUSE exits to the hypervisor. xen: a gap of 128 and a window
    of 4096 cycles. kvm: the same, with a window that doubles without a bound. ple-gap, ple-window and ple-window-max
    replace one number each. Only harts with xpartitaple have it: choose a profile with extensions.pause_loop_exit =
    true. Takes xen, kvm. Without it: the system's. Example: ple = "kvm"
    """
    ple_gap: int | None = field(default=None, metadata={'key': 'ple-gap', 'check': {'number': (0, 4294967295)}})
    """Greatest distance between two PAUSEs of one pause loop, on harts with xpartitaple. Takes a whole number of
    cycles, 0 to 4294967295. Without it: the system's. Example: ple-gap = 128
    """
    ple_window: int | None = field(default=None, metadata={'key': 'ple-window', 'check': {'number': (0, 4294967295)}})
    """Time after which a pause loop exits, on harts with xpartitaple; 0 is never. Takes a whole number of cycles, 0 to
    4294967295. Without it: the system's. Example: ple-window = 4096
    """
    ple_window_max: int | None = field(default=None, metadata={'key': 'ple-window-max', 'check': {'number': (0, 4294967295)}})
    """Bound of the window, which doubles at each exit until the vCPU is dispatched again. Takes a whole number of
    cycles, 0 to 4294967295. Without it: the system's. Example: ple-window-max = 65536
    """


@dataclass(frozen=True, kw_only=True)
class Card(Table):
    """The keys of vm.NAME.network.1."""

    network: str = field(metadata={'key': 'network', 'check': {'text': ''}})
    """Network that the card is on. Takes a name. Without it: must be given. Example: network = "lan"
    """
    io: Literal['direct', 'general', 'fast'] | None = field(default=None, metadata={'key': 'io', 'check': {'words': ('direct', 'general', 'fast')}})
    """Access to the device, as vm.NAME.io. Takes direct, general, fast. Without it: the VM's. Example: io = "fast"
    """


@dataclass(frozen=True, kw_only=True)
class Terminals(Table):
    """The keys of vm.NAME.terminals."""

    count: int = field(metadata={'key': 'count', 'check': {'number': (1, 7)}})
    """Number of terminals, each with a user. Takes a whole number, 1 to 7. Without it: must be given. Example: count =
    4
    """
    think_time: str = field(metadata={'key': 'think-time', 'check': {'text': '^[0-9]+ *[A-Za-z]+$'}})
    """Mean think time of a user before the next line. Takes a time, 1 ms to 60 min (us, ms, s, min). Without it: must
    be given. Example: think-time = "200 ms"
    """
    transactions: int = field(metadata={'key': 'transactions', 'check': {'number': (1, 1000000)}})
    """Lines that each user sends. Takes a whole number, 1 to 1000000. Without it: must be given. Example: transactions
    = 20
    """


@dataclass(frozen=True, kw_only=True)
class Vm(Table):
    """The keys of vm.NAME."""

    memory: str = field(metadata={'key': 'memory', 'check': {'text': '^[0-9]+ *[A-Za-z]+$'}})
    """Memory of the VM. Takes a size in multiples of 2 MiB (B, KiB, MiB, GiB). Without it: must be given. Example:
    memory = "512 MiB"
    """
    vcpus: int = field(metadata={'key': 'vcpus', 'check': {'number': (1, 64)}})
    """Number of vCPUs. Takes a whole number, 1 to 64. Without it: must be given. Example: vcpus = 4
    """
    autostart: bool | None = field(default=None, metadata={'key': 'autostart', 'check': {'truth': True}})
    """Starts the VM with the hypervisor. Takes true or false. Without it: true. Example: autostart = false
    """
    balloon: bool | None = field(default=None, metadata={'key': 'balloon', 'check': {'truth': True}})
    """Balloon, by which a guest in single pages (placement = "paged") gives pages back. Takes true or false. Without
    it: false. Example: balloon = true
    """
    command_line: str | None = field(default=None, metadata={'key': 'command-line', 'check': {'text': ''}})
    """Command line of the kernel. Takes a text of at most 1023 bytes. Without it: empty. Example: command-line =
    "console=ttyS0 quiet"
    """
    confined: Literal['trusted', 'required'] | None = field(default=None, metadata={'key': 'confined', 'check': {'words': ('trusted', 'required')}})
    """Need of an IOMMU between memory and the devices that the guest drives itself. required refuses every such device
    that reaches memory and that the board's device tree puts behind no RISC-V IOMMU. Takes trusted, required. Without
    it: trusted. Example: confined = "required"
    """
    dedicated_harts: Sequence[int] | None = field(default=None, metadata={'key': 'dedicated-harts', 'check': {'each': {'number': (0, 63)}}})
    """Harts that belong to the VM alone, one for each vCPU. Takes a list of whole numbers, 0 to 63. Without it: none.
    Example: dedicated-harts = [2, 3]
    """
    devices: Sequence[str] | None = field(default=None, metadata={'key': 'devices', 'check': {'each': {'text': '^/[^ ]+$'}}})
    """Devices of the board that the guest has for itself, by their paths in the board's device tree. partita board
    --describe names them, and says why one cannot be given. Takes a list of paths, each of which begins with /. Without
    it: none. Example: devices = ["/soc/ethernet@10090000"]
    """
    disks: Sequence[Disk | Slice] | None = field(default=None, metadata={'key': 'disks', 'check': {'each': {'any': [{'table': 'Disk'}, {'table': 'Slice'}]}}})
    """Disks in the guest's order: the VM's own, then its slices of shared disks. Takes a list of tables with the keys
    of vm.NAME.disks. Without it: none. Example: disks = [{ file = "image:debian/disk" }]
    """
    experiment: VmExperiment | None = field(default=None, metadata={'key': 'experiment', 'check': {'table': 'VmExperiment'}})
    """Parameters for experiments, which no VM needs. Takes a table with the keys of vm.NAME.experiment. Without it:
    none. Example: experiment = { ple-window = 0 }
    """
    fault_limit: int | None = field(default=None, metadata={'key': 'fault-limit', 'check': {'number': (0, 4294967295)}})
    """Guest page faults of a vCPU in a row, at up to four addresses in turn where the VM has nothing, after which the
    VM has failed. 0 is never. Takes a whole number of faults, 0 to 4294967295. Without it: 1000000. Example:
    fault-limit = 100000
    """
    firmware: str | None = field(default=None, metadata={'key': 'firmware', 'check': {'text': '', 'path': True}})
    """Firmware, in the place of a kernel: it reads the guest's disks and starts what it finds there. image:u-boot is
    Debian's U-Boot; a file of your own is an ELF file for QEMU's board, a flat program for address 0x80200000, or an
    Image. placement is resident and io is general unless the VM says otherwise. Takes a path from the system file's
    folder, or one of image:debian/kernel, image:debian/initrd, image:debian/disk, image:board/disk,
    image:compiler/disk, image:database/disk, image:efi/disk, image:pci/initrd, image:perf/initrd, image:serve/initrd,
    image:system/disk, image:system/initrd, image:u-boot/firmware, image:vectors/initrd, image:exerciser,
    image:exerciser-shuffled. Without it: none. Example: firmware = "image:u-boot"
    """
    hide: Sequence[Literal['sscofpmf', 'ssnpm', 'sstc', 'supm', 'svade', 'svadu', 'svinval', 'svnapot', 'svpbmt', 'v', 'zabha', 'zacas', 'zawrs', 'zba', 'zbb', 'zbc', 'zbkb', 'zbkc', 'zbkx', 'zbs', 'zcb', 'zfa', 'zfh', 'zicbom', 'zicbop', 'zicboz', 'zicond', 'zihintntl', 'zihintpause', 'zihpm', 'zkt']] | None = field(default=None, metadata={'key': 'hide', 'check': {'each': {'words': ('sscofpmf', 'ssnpm', 'sstc', 'supm', 'svade', 'svadu', 'svinval', 'svnapot', 'svpbmt', 'v', 'zabha', 'zacas', 'zawrs', 'zba', 'zbb', 'zbc', 'zbkb', 'zbkc', 'zbkx', 'zbs', 'zcb', 'zfa', 'zfh', 'zicbom', 'zicbop', 'zicboz', 'zicond', 'zihintntl', 'zihintpause', 'zihpm', 'zkt')}}})
    """Extensions that the guest's device tree does not name, though the harts have them. Without v, vector instructions
    are illegal. Takes a list of some of sscofpmf, ssnpm, sstc, supm, svade, svadu, svinval, svnapot, svpbmt, v, zabha,
    zacas, zawrs, zba, zbb, zbc, zbkb, zbkc, zbkx, zbs, zcb, zfa, zfh, zicbom, zicbop, zicboz, zicond, zihintntl,
    zihintpause, zihpm, zkt. Without it: none. Example: hide = ["zawrs"]
    """
    initrd: str | None = field(default=None, metadata={'key': 'initrd', 'check': {'text': '', 'path': True}})
    """Initial RAM disk. Takes a path from the system file's folder, or one of image:debian/kernel, image:debian/initrd,
    image:debian/disk, image:board/disk, image:compiler/disk, image:database/disk, image:efi/disk, image:pci/initrd,
    image:perf/initrd, image:serve/initrd, image:system/disk, image:system/initrd, image:u-boot/firmware,
    image:vectors/initrd, image:exerciser, image:exerciser-shuffled. Without it: none. Example: initrd =
    "image:debian/initrd"
    """
    io: Literal['direct', 'general', 'fast'] | None = field(default=None, metadata={'key': 'io', 'check': {'words': ('direct', 'general', 'fast')}})
    """Access to the VM's disks, network cards and entropy source: direct, by the guest's own driver, whose device
    reaches all memory, so that the guest must be trusted; general, through the hypervisor, which checks each request;
    fast, the same with less work for simple requests. Takes direct, general, fast. Without it: direct. Example: io =
    "general"
    """
    kernel: str | None = field(default=None, metadata={'key': 'kernel', 'check': {'text': '', 'path': True}})
    """Kernel: a RISC-V Linux Image, as it is or compressed, another file with its header, or an ELF file for QEMU's
    board. Takes a path from the system file's folder, or one of image:debian/kernel, image:debian/initrd,
    image:debian/disk, image:board/disk, image:compiler/disk, image:database/disk, image:efi/disk, image:pci/initrd,
    image:perf/initrd, image:serve/initrd, image:system/disk, image:system/initrd, image:u-boot/firmware,
    image:vectors/initrd, image:exerciser, image:exerciser-shuffled. Without it: none: either kernel or firmware must be
    given. Example: kernel = "image:debian/kernel"
    """
    network: Sequence[str | Card] | None = field(default=None, metadata={'key': 'network', 'check': {'each': {'any': [{'text': ''}, {'table': 'Card'}]}}})
    """Network cards, one for each name of a network. VMs on the same network see each other and nobody else. Where
    [switch.NAME] has the name, the card is a port of that switch. Takes a list of names (a letter, then letters,
    digits, - and _, at most 31), each of which may be a table with the keys of vm.NAME.network. Without it: none.
    Example: network = ["lan", { network = "other", io = "fast" }]
    """
    on_failure: Literal['stop', 'restart'] | None = field(default=None, metadata={'key': 'on-failure', 'check': {'words': ('stop', 'restart')}})
    """Action when the VM fails. Takes stop, restart. Without it: stop. Example: on-failure = "restart"
    """
    placement: Literal['real', 'resident', 'paged'] | None = field(default=None, metadata={'key': 'placement', 'check': {'words': ('real', 'resident', 'paged')}})
    """Placement of the VM's memory on the host. real: one piece at the addresses that the guest uses; it works with
    every guest. resident: one piece anywhere; the guest's drivers must honour dma-ranges, as Linux's do. paged: single
    pages, allocated when the guest touches them; its devices need io = "general" or io = "fast". Takes real, resident,
    paged. Without it: real. Example: placement = "paged"
    """
    rng: bool | None = field(default=None, metadata={'key': 'rng', 'check': {'truth': True}})
    """Entropy source (virtio-rng). Takes true or false. Without it: false. Example: rng = true
    """
    scheduling: Literal['floating', 'pinned'] | None = field(default=None, metadata={'key': 'scheduling', 'check': {'words': ('floating', 'pinned')}})
    """Harts that may run a vCPU of a VM with a share: any shared hart, or one that is chosen when the system starts.
    Takes floating, pinned. Without it: the system's. Example: scheduling = "pinned"
    """
    share: int | None = field(default=None, metadata={'key': 'share', 'check': {'number': (1, 10000)}})
    """Weight of the VM among those that share harts: its service is in proportion to it. Takes a whole number, 1 to
    10000. Without it: none: either share or dedicated-harts must be given. Example: share = 100
    """
    terminals: Terminals | None = field(default=None, metadata={'key': 'terminals', 'check': {'table': 'Terminals'}})
    """Terminals with simulated users, on the machine. Takes a table with the keys of vm.NAME.terminals. Without it:
    none. Example: terminals = { count = 4, transactions = 20, think-time = "200 ms" }
    """
    translation: Literal['two-stage', 'shadow'] | None = field(default=None, metadata={'key': 'translation', 'check': {'words': ('two-stage', 'shadow')}})
    """Address translation of the guest: by its own tables and the hypervisor's in two stages, or by shadow tables that
    the hypervisor makes of both. Takes two-stage, shadow. Without it: two-stage. Example: translation = "shadow"
    """
    vector_length: int | None = field(default=None, metadata={'key': 'vector-length', 'check': {'number': (128, 65536)}})
    """Length of a vector register that the guest needs, a power of two. The VM is refused where the harts have no
    vectors or another length, since no hart shortens its registers for a guest. Takes a whole number of bits, 128 to
    65536. Without it: that of the harts, if they have vectors. Example: vector-length = 256
    """


@dataclass(frozen=True, kw_only=True)
class SharedDisk(Table):
    """The keys of disk.NAME.0."""

    file: str = field(metadata={'key': 'file', 'check': {'text': '', 'path': True}})
    """Image of the disk: raw, or qcow2, VMDK, VHDX, VHD or VDI, of which QEMU's qemu-img makes a raw disk in the cache.
    Takes a path from the system file's folder, or one of image:debian/kernel, image:debian/initrd, image:debian/disk,
    image:board/disk, image:compiler/disk, image:database/disk, image:efi/disk, image:pci/initrd, image:perf/initrd,
    image:serve/initrd, image:system/disk, image:system/initrd, image:u-boot/firmware, image:vectors/initrd,
    image:exerciser, image:exerciser-shuffled. Without it: must be given. Example: file = "image:debian/disk"
    """
    persistent: bool | None = field(default=None, metadata={'key': 'persistent', 'check': {'truth': True}})
    """Keeps what guests write in the file. Otherwise each run begins with the same image. Takes true or false. Without
    it: false. Example: persistent = true
    """
    raw: bool | None = field(default=None, metadata={'key': 'raw', 'check': {'truth': True}})
    """Takes the file as a raw disk whatever its first bytes are. Otherwise a file that begins as one of another form
    does, such as qcow2, is converted. Takes true or false. Without it: false. Example: raw = true
    """
    slot: int | None = field(default=None, metadata={'key': 'slot', 'check': {'number': (0, 7)}})
    """virtio-mmio slot of the board. Takes a whole number, 0 to 7. Without it: the next free slot. Example: slot = 0
    """
    snapshot: str | None = field(default=None, metadata={'key': 'snapshot', 'check': {'text': ''}})
    """Snapshot in a qcow2 image with which the disk begins, by its name. Takes a text of at most 1023 bytes. Without
    it: the present state. Example: snapshot = "before"
    """


@dataclass(frozen=True, kw_only=True)
class ServedDisk(Table):
    """The keys of disk.NAME.1."""

    served_by: str = field(metadata={'key': 'served-by', 'check': {'text': ''}})
    """VM that serves the disk to others, by its name: a program in its guest carries their requests out.
    docs/guide/serve-a-disk.md says how. Takes a name. Without it: must be given. Example: served-by = "storage"
    """
    size: str = field(metadata={'key': 'size', 'check': {'text': '^[0-9]+ *[A-Za-z]+$'}})
    """Length of the disk. What the serving VM's guest keeps it in is not shorter. Takes a size in multiples of 512 B
    (B, KiB, MiB, GiB). Without it: must be given. Example: size = "1 GiB"
    """


@dataclass(frozen=True, kw_only=True)
class Experiment(Table):
    """The keys of experiment."""

    affinity: int | None = field(default=None, metadata={'key': 'affinity', 'check': {'number': (0, 64)}})
    """Times that the scheduler may prefer a vCPU that ran on this hart last, and finds its caches warm, to the one that
    is first in the queue. 0 keeps the order of the queue. Takes a whole number of dispatches, 0 to 64. Without it: 3.
    Example: affinity = 0
    """
    dispatch_cost: int | None = field(default=None, metadata={'key': 'dispatch-cost', 'check': {'number': (0, 1000000)}})
    """Extra time of the hypervisor for each dispatch. Takes a whole number of cycles, 0 to 1000000. Without it: 0.
    Example: dispatch-cost = 500
    """
    futile_pass_cost: int | None = field(default=None, metadata={'key': 'futile-pass-cost', 'check': {'number': (0, 1000000)}})
    """Extra time of the hypervisor for each pass through the scheduler that finds no vCPU to run. Takes a whole number
    of cycles, 0 to 1000000. Without it: 0. Example: futile-pass-cost = 500
    """
    host_interrupt_cost: int | None = field(default=None, metadata={'key': 'host-interrupt-cost', 'check': {'number': (0, 1000000)}})
    """Extra time of the hypervisor for each interrupt of a waiting vCPU that interrupts the hypervisor. Takes a whole
    number of cycles, 0 to 1000000. Without it: 0. Example: host-interrupt-cost = 500
    """
    migration: Literal['as-needed', 'always'] | None = field(default=None, metadata={'key': 'migration', 'check': {'words': ('as-needed', 'always')}})
    """Migration of vCPUs between harts: as needed, or at every dispatch, which tests whatever must follow a vCPU. Takes
    as-needed, always. Without it: as-needed. Example: migration = "always"
    """
    mode_change_cost: int | None = field(default=None, metadata={'key': 'mode-change-cost', 'check': {'number': (0, 1000000)}})
    """Extra time of the hypervisor for each change from a guest to the hypervisor, and for each change back. Takes a
    whole number of cycles, 0 to 1000000. Without it: 0. Example: mode-change-cost = 500
    """
    ple: Literal['xen', 'kvm'] | None = field(default=None, metadata={'key': 'ple', 'check': {'words': ('xen', 'kvm')}})
    """Preset of pause-loop exiting: a guest that spins on PAUSE exits to the hypervisor. xen: a gap of 128 and a window
    of 4096 cycles. kvm: the same, with a window that doubles without a bound. ple-gap, ple-window and ple-window-max
    replace one number each. Only harts with xpartitaple have it: choose a profile with extensions.pause_loop_exit =
    true. Takes xen, kvm. Without it: none. Example: ple = "kvm"
    """
    ple_gap: int | None = field(default=None, metadata={'key': 'ple-gap', 'check': {'number': (0, 4294967295)}})
    """Greatest distance between two PAUSEs of one pause loop, on harts with xpartitaple. Takes a whole number of
    cycles, 0 to 4294967295. Without it: 128. Example: ple-gap = 128
    """
    ple_window: int | None = field(default=None, metadata={'key': 'ple-window', 'check': {'number': (0, 4294967295)}})
    """Time after which a pause loop exits, on harts with xpartitaple; 0 is never. Takes a whole number of cycles, 0 to
    4294967295. Without it: 4096. Example: ple-window = 4096
    """
    ple_window_max: int | None = field(default=None, metadata={'key': 'ple-window-max', 'check': {'number': (0, 4294967295)}})
    """Bound of the window, which doubles at each exit until the vCPU is dispatched again. Takes a whole number of
    cycles, 0 to 4294967295. Without it: as ple-window. Example: ple-window-max = 65536
    """
    purge: Literal['fence', 'new-vmid'] | None = field(default=None, metadata={'key': 'purge', 'check': {'words': ('fence', 'new-vmid')}})
    """Way to purge a vCPU's TLB entries: by a fence, or by a new VMID. Takes fence, new-vmid. Without it: fence.
    Example: purge = "new-vmid"
    """
    remote_fences: Literal['precise', 'any-address', 'any-vcpu'] | None = field(default=None, metadata={'key': 'remote-fences', 'check': {'words': ('precise', 'any-address', 'any-vcpu')}})
    """Reach of a fence that a guest asks for on its other vCPUs: what it names, or one of the simplifications of paper
    003. Takes precise, any-address, any-vcpu. Without it: precise. Example: remote-fences = "any-address"
    """
    round: int | None = field(default=None, metadata={'key': 'round', 'check': {'number': (2, 1024)}})
    """Length of a service round, over which VMs get their shares, in slices of each shared hart. Takes a whole number
    of slices, 2 to 1024. Without it: 10 ms, and at least two slices. Example: round = 8
    """
    self_wait_budget: int | None = field(default=None, metadata={'key': 'self-wait-budget', 'check': {'number': (1, 1024)}})
    """vCPUs that a hart dispatches from the self-wait queue in a row while other vCPUs are ready. Takes a whole number
    of vCPUs, 1 to 1024. Without it: 16. Example: self-wait-budget = 16
    """
    trap_waits: bool | None = field(default=None, metadata={'key': 'trap-waits', 'check': {'truth': True}})
    """Makes WFI and WRS trap, and time slices end, even if no other vCPU wants the hart. Set it to count every wait as
    an exit; it costs time. Takes true or false. Without it: false. Example: trap-waits = true
    """


@dataclass(frozen=True, kw_only=True)
class Switch(Table):
    """The keys of switch.NAME."""

    uplink: bool | None = field(default=None, metadata={'key': 'uplink', 'check': {'truth': True}})
    """Joins the switch to the network of its name outside, by a card of the computer that the hypervisor drives. Takes
    true or false. Without it: false. Example: uplink = true
    """


@dataclass(frozen=True, kw_only=True)
class SystemKeys(Table):
    """The keys of a system file."""

    harts: int = field(metadata={'key': 'harts', 'check': {'number': (1, 64)}})
    """Number of harts of the computer. Takes a whole number, 1 to 64. Without it: must be given. Example: harts = 4
    """
    memory: str = field(metadata={'key': 'memory', 'check': {'text': '^[0-9]+ *[A-Za-z]+$'}})
    """Memory of the computer: for the hypervisor, the system image and all VMs together. Takes a size in multiples of 2
    MiB (B, KiB, MiB, GiB). Without it: must be given. Example: memory = "2 GiB"
    """
    vm: Mapping[str, Vm] = field(metadata={'key': 'vm', 'check': {'tables': {'table': 'Vm'}, 'minProperties': 1, 'maxProperties': 64}})
    """Virtual machines, by their names. Takes named tables with the keys of vm.NAME. Without it: must be given.
    Example: vm = { web = { vcpus = 1 } }
    """
    console: str | None = field(default=None, metadata={'key': 'console', 'check': {'text': ''}})
    """Console that a terminal shows at the start: a VM's name, or partita for the operator's prompt. Takes a name.
    Without it: none. Example: console = "partita"
    """
    date: str | None = field(default=None, metadata={'key': 'date', 'check': {'text': ''}})
    """Date and time of day in UTC at power-on, or host for the host's clock. A run with the host's clock cannot be
    repeated. Takes a text. Without it: 2025-01-01T00:00:00Z, or host if a network reaches the host. Example: date =
    "2026-01-31T12:00:00Z"
    """
    disk: Mapping[str, SharedDisk | ServedDisk] | None = field(default=None, metadata={'key': 'disk', 'check': {'tables': {'any': [{'table': 'SharedDisk'}, {'table': 'ServedDisk'}]}}})
    """Disks that VMs share, by their names. Takes named tables with the keys of disk.NAME. Without it: none. Example:
    disk = { disk0 = { file = "image:debian/disk" } }
    """
    experiment: Experiment | None = field(default=None, metadata={'key': 'experiment', 'check': {'table': 'Experiment'}})
    """Parameters for experiments, which no system needs. Takes a table with the keys of experiment. Without it: none.
    Example: experiment = { affinity = 0 }
    """
    forward: str | None = field(default=None, metadata={'key': 'forward', 'check': {'text': ''}})
    """Ports of the host's loopback address that lead to guests, with spaces between them: HOST:GUEST for the first
    guest, HOST:ADDRESS:GUEST for any guest. Takes a text. Without it: none. Example: forward = "2222:22
    8080:10.0.2.16:80"
    """
    guest_interrupt_files: int | None = field(default=None, metadata={'key': 'guest-interrupt-files', 'check': {'number': (0, 63)}})
    """Guest interrupt files of each hart. A vCPU that has none gets its interrupts through the hypervisor. Takes a
    whole number, 0 to 63. Without it: as many as the computer has. Example: guest-interrupt-files = 3
    """
    host_network: str | None = field(default=None, metadata={'key': 'host-network', 'check': {'text': ''}})
    """Network of the VMs that reaches the host's network, by QEMU's user-mode networking; QEMU must be installed. Such
    a run cannot be repeated. Takes a name. Without it: none. Example: host-network = "lan"
    """
    reservation_limit: str | None = field(default=None, metadata={'key': 'reservation-limit', 'check': {'text': '^[0-9]+ *[A-Za-z]+$'}})
    """Longest time that a vCPU waits for its watched word to change, under the spin policies that watch it. It is not
    below the time slice. Takes a time, 1 ms to 1 s (us, ms, s, min). Without it: 100 ms. Example: reservation-limit =
    "100 ms"
    """
    run_queue: Literal['global', 'per-hart'] | None = field(default=None, metadata={'key': 'run-queue', 'check': {'words': ('global', 'per-hart')}})
    """Run queues: one for all harts, or one for each hart. Takes global, per-hart. Without it: global. Example:
    run-queue = "per-hart"
    """
    scheduling: Literal['floating', 'pinned'] | None = field(default=None, metadata={'key': 'scheduling', 'check': {'words': ('floating', 'pinned')}})
    """Harts that may run a vCPU of a VM with a share: any shared hart, or one that is chosen when the system starts.
    Takes floating, pinned. Without it: floating. Example: scheduling = "pinned"
    """
    spin: Literal['none', 'wopd', 'wapd', 'rslp', 'yield', 'not-same', 'directed', 'reservation', 'gang', 'oracle'] | None = field(default=None, metadata={'key': 'spin', 'check': {'words': ('none', 'wopd', 'wapd', 'rslp', 'yield', 'not-same', 'directed', 'reservation', 'gang', 'oracle')}})
    """Policy for a vCPU that spins at a lock. docs/why/spinning.md compares the policies. Takes none, wopd, wapd, rslp,
    yield, not-same, directed, reservation, gang, oracle. Without it: reservation. Example: spin = "wapd"
    """
    switch: Mapping[str, Switch] | None = field(default=None, metadata={'key': 'switch', 'check': {'tables': {'table': 'Switch'}}})
    """Switches between VMs, by the names of their networks. Takes named tables with the keys of switch.NAME. Without
    it: none. Example: switch = { lan = {} }
    """
    time_limit: str | None = field(default=None, metadata={'key': 'time-limit', 'check': {'text': '^[0-9]+ *[A-Za-z]+$'}})
    """Time after which a run is given up: the machine's time on the machine, the host's on QEMU. Takes a time, 1 s to
    1440 min (us, ms, s, min). Without it: none. Example: time-limit = "2 min"
    """
    time_slice: str | None = field(default=None, metadata={'key': 'time-slice', 'check': {'text': '^[0-9]+ *[A-Za-z]+$'}})
    """Longest time that a vCPU keeps a shared hart while another vCPU is ready. Takes a time, 1 ms to 10 ms (us, ms, s,
    min). Without it: by the hart's speed: 1 ms, more below 125 million instructions a second. Example: time-slice = "2
    ms"
    """
    tlb_purge: Literal['clear', 'keep', 'last-host', 'purge-mask', 'purge-check', 'one-shot'] | None = field(default=None, metadata={'key': 'tlb-purge', 'check': {'words': ('clear', 'keep', 'last-host', 'purge-mask', 'purge-check', 'one-shot')}})
    """Rule by which a hart purges the TLB entries of a vCPU that it dispatches. docs/why/translations.md compares the
    rules. Takes clear, keep, last-host, purge-mask, purge-check, one-shot. Without it: last-host. Example: tlb-purge =
    "one-shot"
    """
    wait: Literal['host-interrupt', 'host-interrupt-all', 'active-wait-all', 'self-wait', 'self-wait-all', 'active-wait'] | None = field(default=None, metadata={'key': 'wait', 'check': {'words': ('host-interrupt', 'host-interrupt-all', 'active-wait-all', 'self-wait', 'self-wait-all', 'active-wait')}})
    """Policy for a vCPU that waits for an interrupt. docs/why/scheduling.md compares the policies. Takes
    host-interrupt, host-interrupt-all, active-wait-all, self-wait, self-wait-all, active-wait. Without it: self-wait.
    Example: wait = "self-wait"
    """
    when_idle: Literal['power-off', 'power-off-after-all', 'stay'] | None = field(default=None, metadata={'key': 'when-idle', 'check': {'words': ('power-off', 'power-off-after-all', 'stay')}})
    """Action when the last running VM has ended: power the computer off, power it off if every VM has run, or stay at
    the operator's prompt. Takes power-off, power-off-after-all, stay. Without it: power-off-after-all. Example:
    when-idle = "stay"
    """
