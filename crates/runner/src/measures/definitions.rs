//! The measures of a run, with their definitions.

use super::measure::{Better, Measure, measure};

/// Those of [`fn@super::compute`] itself, in the order of tables. One whose name ends in `.` stands for a family: a name for each cause.
pub(super) const GENERAL: [Measure; 67] = [
    measure(
        "etr",
        "ends/s",
        Better::More,
        "external throughput: ends per second of real time",
        "ETR = ends of all VMs / elapsed real time in seconds (paper 000 §3.3.2; paper 002 table 1, *1). \
         Ends are what the guests' workloads completed: jobs, transactions, block reads. Those of Debian guests are \
         counted outside of them, by their lines on the console or at their terminals. The time is that of the VM \
         that took longest, from the start of its work to its end, so that booting is no part of it.",
    ),
    measure(
        "etr.",
        "ends/s",
        Better::More,
        "the same for one VM, where there are several",
        "As etr, for the VM whose name the measure's ends in, such as etr.web: its ends / its own elapsed time.",
    ),
    measure(
        "itr",
        "ends/s",
        Better::More,
        "internal throughput: ends per second that the harts were busy",
        "ITR = ETR / busy, busy = (guest + scheduling + simulation) / elapsed over all harts (paper 000 §3.3.2). \
         A busy second is one in which all harts are busy.",
    ),
    measure(
        "ends",
        "",
        Better::Neither,
        "what the guests' workloads completed",
        "The sum of the ends of all VMs: jobs, transactions, block reads, as each workload counts them.",
    ),
    measure(
        "elapsed",
        "s",
        Better::Less,
        "real time from the start of the work to its end, of the VM that took longest",
        "The largest of the VMs' own elapsed times (paper 002 table 1, *4). The guest reads it from the time CSR, which \
         is the computer's.",
    ),
    measure(
        "guest-utilisation",
        "%",
        Better::Neither,
        "part of the harts' time spent in guests",
        "100 x cycles in VS and VU mode / elapsed cycles, over all harts (Guest rho of paper 000 tables 2 and 3). \
         Elapsed cycles count from the hypervisor's entry on each hart. Where nobody else wants its hart, a guest waits in \
         WFI or WRS without an exit: on the machine, whose hardware monitor tells, such waits are idle; on QEMU they \
         are in here.",
    ),
    measure(
        "scheduling-overhead",
        "%",
        Better::Less,
        "part of the harts' time spent choosing, entering and leaving vCPUs",
        "100 x scheduling cycles, those owed to a VM and those owed to none, / elapsed cycles, over all harts \
         (OVH of paper 000; *3 of paper 002 table 1).",
    ),
    measure(
        "simulation-overhead",
        "%",
        Better::Less,
        "part of the harts' time spent handling guests' exits",
        "100 x cycles of exit handling / elapsed cycles, over all harts and causes (*2 of paper 002 table 1).",
    ),
    measure(
        "simulation-overhead.",
        "%",
        Better::Less,
        "the same for one cause of exits",
        "As simulation-overhead, for the exits of the cause that the name ends in, such as simulation-overhead.wfi. \
         The causes are those of abi::monitor::ExitCause; their sum is simulation-overhead.",
    ),
    measure(
        "idle",
        "%",
        Better::Neither,
        "part of the harts' time with nothing to run",
        "100 x idle cycles / elapsed cycles, over all harts, with guests' untrapped waits (see guest-utilisation). \
         Guest, scheduling, simulation and idle add up to 100.",
    ),
    measure(
        "busy",
        "%",
        Better::Neither,
        "part of the harts' time that they were busy",
        "Guest, scheduling and simulation together; natively 100 x (cycles - cycles that harts waited) / cycles, which is \
         the native load of paper 002 table 1. Booting is in it unless the run goes on from a checkpoint: work that is \
         shorter than Debian's boot hardly shows.",
    ),
    measure(
        "busy-per-end",
        "us",
        Better::Less,
        "time of harts for each end, whoever had them",
        "Cycles of all harts in which they did not wait / ends, in microseconds of the computer's clock, from the hardware \
         monitor alone: it can compare hypervisors that count differently, or nothing. Booting is in it.",
    ),
    measure(
        "calls-per-busy-second",
        "1/s",
        Better::Neither,
        "hypervisor calls to suspend a spin, per second that the harts were busy",
        "(exits by WRS.NTO + spin calls) / (busy x elapsed real time): the level of spinning (Hyp. Call of paper 000 \
         tables 2 to 4, *1).",
    ),
    measure(
        "fast-translations",
        "%",
        Better::More,
        "part of the operations of simulated devices that took the fast way",
        "events.request-fast / (events.request-fast + events.request-general) x 100: the hit ratio of fast translation (paper 001 table 3). There is none \
         where no device is simulated.",
    ),
    measure(
        "dispatches-per-second",
        "1/s",
        Better::Neither,
        "how often a vCPU was given a hart",
        "Dispatches on all harts / elapsed real time.",
    ),
    measure(
        "exits-per-second",
        "1/s",
        Better::Less,
        "exits of guests, all causes",
        "Exits on all harts / elapsed real time.",
    ),
    measure(
        "exits-per-second.",
        "1/s",
        Better::Less,
        "the same for one cause",
        "As exits-per-second, for the cause that the name ends in.",
    ),
    measure(
        "host-interrupts",
        "1/s",
        Better::Less,
        "interrupts that the hypervisor took",
        "Interrupts that harts took in HS-mode / seconds of machine time, as the hardware monitor counted them, whatever the hypervisor says: paper \
         002's host interrupts. Guests' own are no part of them, nor those of M-mode. Natively they are the guest's.",
    ),
    measure(
        "host-interrupts.",
        "1/s",
        Better::Less,
        "the same for one cause",
        "guest: a guest interrupt file whose bit of hgeie was set had something pending (SGEIP), which is how a host learns of an interrupt for a \
         vCPU that waits; external: a device's or another hart's message; timer; software.",
    ),
    measure(
        "events.",
        "",
        Better::Neither,
        "how often something else happened to vCPUs",
        "The hypervisor's count of the event that the name ends in (abi::monitor::Event): futile-dispatch is a vCPU \
         that got a hart though the word it spun on had not changed.",
    ),
    measure(
        "response-p50",
        "ms",
        Better::Less,
        "response time that half of the requests do not exceed",
        "The median of the time from a request to its end, of the VM where it is largest. At terminals it is measured \
         outside of the guest, from the user's line to the next prompt; jobs of Debian guests are timed by when their \
         lines arrive on the console; the exerciser measures its own to within one part in eight.",
    ),
    measure(
        "response-p99",
        "ms",
        Better::Less,
        "response time that 99 % of the requests do not exceed",
        "As response-p50, for 99 %.",
    ),
    measure(
        "response-p99.9",
        "ms",
        Better::Less,
        "response time that 99.9 % of the requests do not exceed",
        "As response-p50, for 99.9 %.",
    ),
    measure(
        "lock-wait-p99",
        "us",
        Better::Less,
        "wait for a lock that 99 % of the waits do not exceed",
        "The workload's own quantile of the time from the wish for a lock to its possession, of the VM where it is \
         largest.",
    ),
    measure(
        "spins",
        "",
        Better::Neither,
        "waits that had to spin",
        "Waits of the guests' workloads that found what they wanted taken, over all VMs.",
    ),
    measure(
        "looks-per-spin",
        "",
        Better::Less,
        "how often a spinning vCPU looked before it had what it wanted",
        "Looks / spins over all VMs, each as its workload counts them.",
    ),
    measure(
        "pause-exits",
        "",
        Better::Less,
        "pause-loop exits, as the machine saw them",
        "Virtual-instruction exceptions by PAUSE in guests (docs/reference/extensions.md, xpartitaple), from the machine's events. With --steady they are \
         of the whole run, from a checkpoint of all that follows it.",
    ),
    measure(
        "pause-exits.",
        "%",
        Better::Neither,
        "part of the pause-loop exits that are of one class",
        "holder-off: the lock's holder had no hart (lock-holder preemption). next-off: the lock had been passed on, and the vCPU whose turn it \
         was had had no hart since (lock-waiter preemption). runs: the vCPU whose turn it was had a hart, or nobody had the lock, so that \
         the exit was false. holder-unknown: a lock that was taken before anybody listened to its word. other-word: a word that is no ticket \
         or swap lock by its stores. not-read: the loop's code does not tell its word. Told from the machine's events \
         (docs/why/pause-loops.md; paper 004 §4.3).",
    ),
    measure(
        "pause-time.",
        "%",
        Better::Neither,
        "part of the time of such waits that followed exits of one class",
        "From an exit to the wait's next one or its end, by the class of that exit, over all waits: the classes are those of pause-exits. The time in \
         which the vCPU had no hart is in it.",
    ),
    measure(
        "vcpus-exiting",
        "",
        Better::Less,
        "how many vCPUs have pause-loop exits at the same time, in the mean",
        "At each exit, the vCPUs that have had one within the last 100 microseconds, its own among them; the mean over all exits (paper 004 §4.2: \
         several vCPUs exit in the same period).",
    ),
    measure(
        "vcpus-exiting-most",
        "",
        Better::Less,
        "most vCPUs that have pause-loop exits at the same time",
        "The largest of these numbers; see vcpus-exiting.",
    ),
    measure(
        "exits-per-wait",
        "",
        Better::Less,
        "pause-loop exits of a wait that had any, in the mean",
        "Exits on words that were read off the loops / waits. A wait is a vCPU's at a word, from its first exit to when the lock is its own, or for \
         any other word to the next store (paper 004 §4.2: PLEs within one acquisition).",
    ),
    measure(
        "exits-per-wait-p99",
        "",
        Better::Less,
        "exits that 99 % of these waits do not exceed",
        "The 99th percentile of the exits of a wait; see exits-per-wait.",
    ),
    measure(
        "exits-per-wait-most",
        "",
        Better::Less,
        "most pause-loop exits of one wait",
        "The largest number of exits of a wait (paper 004 §4.2: 484); see exits-per-wait.",
    ),
    measure(
        "exits-per-wait-within.",
        "%",
        Better::More,
        "part of the waits that have so many exits at most",
        "exits-per-wait-within.10 is the part with ten exits or fewer: the distribution of exits-per-wait, cumulated.",
    ),
    measure(
        "storms",
        "",
        Better::Less,
        "waits with ten pause-loop exits or more",
        "How many waits had ten exits or more; see exits-per-wait.",
    ),
    measure(
        "exits-per-contended",
        "",
        Better::Less,
        "pause-loop exits for each contended acquisition of a ticket lock",
        "Exits at locks / tickets that were drawn before it was their turn, of locks at which a loop has exited at least once, from its first exit \
         on. Swap locks count above and not below.",
    ),
    measure(
        "pause-wait-p50",
        "us",
        Better::Less,
        "time from its first exit to its end that half of the waits do not exceed",
        "The median, in machine time; see exits-per-wait. On the machine itself, where no loop exits, the time is from when the wait's loop \
         takes its first turn, and waits for locks alone count.",
    ),
    measure(
        "pause-wait-p99",
        "us",
        Better::Less,
        "time from its first exit to its end that 99 % of the waits do not exceed",
        "The 99th percentile, in machine time; see exits-per-wait and pause-wait-p50.",
    ),
    measure(
        "pause-wait-most",
        "us",
        Better::Less,
        "the longest of these waits",
        "The largest time from a wait's first exit to its end; see exits-per-wait.",
    ),
    measure(
        "pause-wait-within.",
        "%",
        Better::More,
        "part of the waits that take so many cycles at most",
        "pause-wait-within.2048 is the part of 2,048 cycles or fewer: the distribution of pause-wait-p50, cumulated.",
    ),
    measure(
        "lock-hold-p50",
        "us",
        Better::Neither,
        "how long half of the acquisitions hold a lock at most",
        "The median time from an acquisition, or from when the lock was passed on, to the release, of locks at which a loop has exited, or on the machine itself a hart has waited.",
    ),
    measure(
        "lock-hold-p99.5",
        "us",
        Better::Less,
        "how long 99.5 % of the acquisitions hold a lock at most",
        "As lock-hold-p50 (paper 004 §4.3: 2,048 cycles natively).",
    ),
    measure(
        "lock-hold-within.",
        "%",
        Better::More,
        "part of the acquisitions that hold a lock for so many cycles at most",
        "lock-hold-within.2048 is the part of 2,048 cycles or fewer: the distribution of lock-hold-p50, cumulated.",
    ),
    measure(
        "excessive-spins",
        "",
        Better::Less,
        "spins that went over the guest's own limit",
        "Spins that reached the workload's spin-limit or spin-limit-ms (paper 000 §3.3.2), over all VMs.",
    ),
    measure(
        "overtaken",
        "",
        Better::Less,
        "how often a lock went to somebody before another one who had come first",
        "Of the exerciser's locks, those taken out of the order of tickets, over all VMs: zero is first come, first served.",
    ),
    measure(
        "off-line",
        "",
        Better::Less,
        "processors that guests put off-line because they had spun excessively",
        "The workloads' own count over all VMs (paper 000 §3.3.2: three of five systems lost two or three).",
    ),
    measure(
        "tlb-miss-ratio",
        "%",
        Better::Less,
        "translations that no TLB had, per instruction",
        "NITR of paper 003 §3: 100 x page-table walks / instructions retired, over all harts and modes, from the hardware \
         monitor. There with --profile alone: without one, TLBs are not modelled.",
    ),
    measure(
        "guest-tlb-miss-ratio",
        "%",
        Better::Less,
        "the same while guests had the harts",
        "VM NITR of paper 003 table 1: 100 x page-table walks in VS and VU mode / instructions retired there.",
    ),
    measure(
        "cache-miss-ratio",
        "%",
        Better::Less,
        "references that the first-level caches had not, per instruction",
        "NIBR of papers 001 and 003: 100 x misses of the first-level instruction and data caches, those of page-table \
         walks too, / instructions retired, over all harts and modes, from the hardware monitor. There with --profile alone.",
    ),
    measure(
        "guest-cache-miss-ratio",
        "%",
        Better::Less,
        "the same while guests had the harts",
        "VM NIBR of paper 003 table 1: as cache-miss-ratio, in VS and VU mode.",
    ),
    measure(
        "guest-instructions",
        "million",
        Better::Neither,
        "instructions that guests retired, for each hart",
        "VMEI of paper 003 table 1: instructions retired in VS and VU mode / harts, from the hardware monitor.",
    ),
    measure(
        "guest-walks",
        "million",
        Better::Less,
        "translations of guests that no TLB had, for each hart",
        "VM NITLB of paper 003 table 1: page-table walks in VS and VU mode / harts, from the hardware monitor.",
    ),
    measure(
        "guest-instruction-time",
        "cycles",
        Better::Less,
        "mean time of a guest's instruction",
        "MIET of paper 003 §4.3: cycles in VS and VU mode in which the hart did not wait / instructions retired there, from the \
         hardware monitor. Traps begin and end in the hypervisor's time.",
    ),
    measure(
        "guest-basic-time",
        "cycles",
        Better::Less,
        "the same without page-table walks",
        "T0 of paper 003 §4.3: guest-instruction-time - guest-tlb-miss-ratio / 100 x guest-walk-time.",
    ),
    measure(
        "guest-walk-time",
        "cycles",
        Better::Less,
        "mean time of a page-table walk of a guest",
        "AT of paper 003 §4.3: cycles of page-table walks in VS and VU mode, both stages and their cache misses / walks there, \
         from the hardware monitor.",
    ),
    measure(
        "tlb-misses",
        "per 1000",
        Better::Less,
        "misses of the first-level TLBs per thousand instructions",
        "1000 x misses / instructions retired, over all harts and modes, from the hardware monitor. A miss that the second \
         level answers is one of them, and no part of tlb-miss-ratio.",
    ),
    measure(
        "walk-references",
        "per 1000",
        Better::Less,
        "memory references of page-table walks per thousand instructions",
        "1000 x references of both stages / instructions retired, from the hardware monitor.",
    ),
    measure(
        "cache-misses",
        "per 1000",
        Better::Less,
        "misses of the first-level caches per thousand instructions",
        "1000 x (data + instruction misses) / instructions retired, from the hardware monitor. The papers' NIBR is per \
         access.",
    ),
    measure(
        "mean-instruction-time",
        "ns",
        Better::Less,
        "mean time of an instruction",
        "Cycles in which harts did not wait / instructions retired, in nanoseconds of the computer's clock, from the \
         hardware monitor (MIET of paper 001).",
    ),
    measure(
        "instructions",
        "million",
        Better::Less,
        "instructions retired, all harts and modes",
        "From the hardware monitor, since reset: firmware and booting are in it.",
    ),
    measure(
        "native-etr",
        "%",
        Better::More,
        "external throughput in per cent of the native computer's",
        "100 x ETR / ETR of the same work by the same guest on the computer itself (a/c and b/c of paper 002 table 1).",
    ),
    measure(
        "er",
        "%",
        Better::Less,
        "expansion of the elapsed time against native",
        "Er = 100 x (T - N) / N, T the elapsed time for the work under the hypervisor, N on the computer itself \
         (paper 001 §2). For work that a clock ends, times are those per end.",
    ),
    measure(
        "cr",
        "%",
        Better::Less,
        "expansion of the processor time against native",
        "Cr = 100 x (T - N) / N, T the busy time of all harts for an end under the hypervisor, N on the computer \
         itself (paper 001 §2; its formula has Te where Tc is meant).",
    ),
    measure(
        "seconds",
        "s",
        Better::Neither,
        "real time since the hypervisor's entry",
        "What the hypervisor's own report says, booting of the guests included.",
    ),
    measure(
        "least-of-share-20ms",
        "%",
        Better::More,
        "the least part of what it was due that a VM had over 20 ms",
        "The harts' time that each VM had over what it was due, in each window of 20 ms of machine time in which all VMs worked; the least of \
         all windows and VMs. A VM is due its share at each moment, and no more than its vCPUs could use then that run or only need a hart; \
         what it cannot use is due to the others, by their shares. Only windows in which a VM could use a hart all the time count \
         (`run --shares`).",
    ),
    measure(
        "least-of-share-200ms",
        "%",
        Better::More,
        "the same over 200 ms",
        "As least-of-share-20ms, over each ten windows in a row.",
    ),
];
