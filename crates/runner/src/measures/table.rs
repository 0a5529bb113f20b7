//! The table of measures: a row a measure with its definition.

use super::measure::measures;

measures! {
    /// Measure of a run. A measure whose name ends in `.` is a family with a figure for each member.
    Measure;

    /// ETR: completions of all VMs / elapsed real time in seconds (paper 000 §3.3.2; paper 002 table 1, *1).
    /// Completions are what the guests' workloads count: jobs, transactions, block reads. Those of Debian guests are counted outside of them,
    /// by their lines on the console or at their terminals. The time is that of the VM that took longest, from the start of its work to its
    /// end, so that booting is no part of it.
    Throughput = "throughput", "completions/s", More, "completions per second of real time (ETR, external throughput)";

    /// Throughput of the VM that the name ends in, such as throughput.web: its completions / its own elapsed time.
    VmThroughput = "throughput.", "completions/s", More, "throughput of one VM, where there are several";

    /// ITR: throughput / busy, busy = (guest + scheduling + simulation) / elapsed over all harts (paper 000 §3.3.2). A busy second is one in
    /// which all harts are busy.
    CompletionsPerBusySecond = "completions-per-busy-second", "completions/s", More,
        "completions per second that the harts were busy (ITR, internal throughput)";

    /// Sum of the completions of all VMs: jobs, transactions, block reads, as each workload counts them.
    Completions = "completions", "", Neither, "work that the guests' workloads completed";

    /// Largest of the VMs' own elapsed times (paper 002 table 1, *4). The guest reads it from the time CSR, which is the computer's.
    Elapsed = "elapsed", "s", Less, "real time from the start of the work to its end, of the VM that took longest";

    /// 100 x cycles in VS and VU mode / elapsed cycles, over all harts (Guest rho of paper 000 tables 2 and 3).
    /// Elapsed cycles count from the hypervisor's entry on each hart. Where no other vCPU wants its hart, a guest waits in WFI or WRS without
    /// an exit: on the machine, whose hardware monitor tells, such waits are idle; on QEMU they are in here.
    GuestUtilisation = "guest-utilisation", "%", Neither, "part of the harts' time spent in guests";

    /// 100 x scheduling cycles, those owed to a VM and those owed to none, / elapsed cycles, over all harts (OVH of paper 000; *3 of
    /// paper 002 table 1).
    SchedulingOverhead = "scheduling-overhead", "%", Less, "part of the harts' time spent choosing, entering and leaving vCPUs";

    /// 100 x cycles of exit handling / elapsed cycles, over all harts and causes (*2 of paper 002 table 1).
    SimulationOverhead = "simulation-overhead", "%", Less, "part of the harts' time spent handling guests' exits";

    /// Simulation overhead of the exits of the cause that the name ends in, such as simulation-overhead.wfi. The causes are those of
    /// abi::monitor::ExitCause; their sum is simulation-overhead.
    CauseOverhead = "simulation-overhead.", "%", Less, "simulation overhead of one cause of exits";

    /// 100 x idle cycles / elapsed cycles, over all harts, with guests' untrapped waits (see guest-utilisation). Guest, scheduling,
    /// simulation and idle add up to 100.
    Idle = "idle", "%", Neither, "part of the harts' time with nothing to run";

    /// Guest, scheduling and simulation together; natively 100 x (cycles - cycles that harts waited) / cycles, which is the native load of
    /// paper 002 table 1. Booting is in it unless the run goes on from a checkpoint: work that is shorter than Debian's boot hardly shows.
    Busy = "busy", "%", Neither, "part of the harts' time that they were busy";

    /// Cycles of all harts in which they did not wait / completions, in microseconds of the computer's clock, from the hardware monitor
    /// alone: it can compare hypervisors that count differently, or nothing. Booting is in it.
    CpuTimePerCompletion = "cpu-time-per-completion", "us", Less, "time of harts for each completion, of guests and hypervisor together";

    /// (exits by WRS.NTO + SBI spin calls) / (busy x elapsed real time): the level of spinning (Hyp. Call of paper 000 tables 2 to 4, *1).
    SpinExitsPerBusySecond = "spin-exits-per-busy-second", "1/s", Neither, "exits to suspend a spin, per second that the harts were busy";

    /// events.request-fast / (events.request-fast + events.request-general) x 100: the hit ratio of fast translation (paper 001 table 3).
    /// There is none where no device is simulated.
    FastPathRatio = "fast-path-ratio", "%", More, "part of the operations of simulated devices that took the fast path";

    /// Dispatches on all harts / elapsed real time.
    DispatchesPerSecond = "dispatches-per-second", "1/s", Neither, "how often a vCPU was given a hart";

    /// Exits on all harts / elapsed real time.
    ExitsPerSecond = "exits-per-second", "1/s", Less, "exits of guests, all causes";

    /// Exits a second of the cause that the name ends in.
    CauseExitsPerSecond = "exits-per-second.", "1/s", Less, "exits of guests of one cause";

    /// Interrupts that harts took in HS-mode / seconds of machine time, as the hardware monitor counted them, whatever the hypervisor says:
    /// paper 002's host interrupts. Guests' own are no part of them, nor those of M-mode. Natively they are the guest's.
    HostInterruptsPerSecond = "host-interrupts-per-second", "1/s", Less, "interrupts that the hypervisor took";

    /// Host interrupts of one cause. guest: a guest interrupt file whose bit of hgeie was set had something pending (SGEIP), which is how a
    /// host learns of an interrupt for a vCPU that waits; external: a device's or another hart's message; timer; software.
    CauseHostInterruptsPerSecond = "host-interrupts-per-second.", "1/s", Less, "interrupts that the hypervisor took of one cause";

    /// Hypervisor's count of the event that the name ends in (abi::monitor::Event): futile-dispatch is a vCPU that got a hart though the
    /// word it spun on had not changed.
    Events = "events.", "", Neither, "how often an event other than an exit happened to vCPUs";

    /// Median of the time from a request to its completion, of the VM where it is largest. At terminals it is measured outside of the guest,
    /// from the user's line to the next prompt; jobs of Debian guests are timed by when their lines arrive on the console; the exerciser
    /// measures its own to within one part in eight.
    ResponseP50 = "response-p50", "ms", Less, "response time that half of the requests do not exceed";

    /// The 99th percentile of the times of response-p50.
    ResponseP99 = "response-p99", "ms", Less, "response time that 99 % of the requests do not exceed";

    /// The 99.9th percentile of the times of response-p50.
    ResponseP999 = "response-p99.9", "ms", Less, "response time that 99.9 % of the requests do not exceed";

    /// The workload's own percentile of the time from the wish for a lock to its possession, of the VM where it is largest.
    LockWaitP99 = "lock-wait-p99", "us", Less, "wait for a lock that 99 % of the waits do not exceed";

    /// Waits of the guests' workloads that found the lock or word taken, over all VMs.
    Spins = "spins", "", Neither, "waits that had to spin";

    /// Polls of the word / spins over all VMs, each as its workload counts them.
    PollsPerSpin = "polls-per-spin", "", Less, "how often a spinning vCPU polled before it had the lock or value";

    /// Virtual-instruction exceptions by PAUSE in guests (docs/reference/extensions.md, xpartitaple), from the machine's events. With
    /// --steady-state they are of the whole run, from a checkpoint of all that follows it.
    PauseExits = "pause-exits", "", Less, "pause-loop exits, as the machine saw them";

    /// holder-preempted: the lock's holder had no hart (lock-holder preemption). waiter-preempted: the lock had been passed on, and the vCPU
    /// whose turn it was had had no hart since (lock-waiter preemption). false-exit: the vCPU whose turn it was had a hart, or no vCPU had
    /// the lock. holder-unknown: a lock that was taken before its word was watched. not-a-lock: a word that is no ticket or swap lock
    /// by its stores. undecoded: the loop's code does not tell its word. Told from the machine's events (docs/why/pause-loops.md;
    /// paper 004 §4.3).
    PauseExitClasses = "pause-exits.", "%", Neither, "part of the pause-loop exits that are of one class";

    /// From an exit to the wait's next one or its end, by the class of that exit, over all waits: the classes are those of pause-exits. The
    /// time in which the vCPU had no hart is in it.
    PauseWaitShares = "pause-wait-share.", "%", Neither, "part of the time of waits with pause-loop exits that followed exits of one class";

    /// At each exit, the vCPUs that have had one within the last 100 microseconds, its own among them; the mean over all exits
    /// (paper 004 §4.2: several vCPUs exit in the same period).
    VcpusExiting = "vcpus-exiting", "", Less, "how many vCPUs have pause-loop exits at the same time, in the mean";

    /// Largest of the numbers of which vcpus-exiting is the mean.
    MaxVcpusExiting = "max-vcpus-exiting", "", Less, "most vCPUs that have pause-loop exits at the same time";

    /// Exits on words that were read off the loops / waits. A wait is a vCPU's at a word, from its first exit to when the lock is its own, or
    /// for any other word to the next store (paper 004 §4.2: PLEs within one acquisition).
    ExitsPerWait = "exits-per-wait", "", Less, "pause-loop exits of a wait that had any, in the mean";

    /// The 99th percentile of the exits of a wait; see exits-per-wait.
    ExitsPerWaitP99 = "exits-per-wait-p99", "", Less, "exits that 99 % of the waits with pause-loop exits do not exceed";

    /// Largest number of exits of a wait (paper 004 §4.2: 484); see exits-per-wait.
    MaxExitsPerWait = "max-exits-per-wait", "", Less, "most pause-loop exits of one wait";

    /// Cumulative distribution of exits-per-wait: exits-per-wait-cdf.10 is the part with ten exits or fewer.
    ExitsPerWaitCdf = "exits-per-wait-cdf.", "%", More, "part of the waits that have so many exits at most";

    /// Waits with ten exits or more; see exits-per-wait.
    PauseExitStorms = "pause-exit-storms", "", Less, "waits with ten pause-loop exits or more";

    /// Exits at locks / tickets that were drawn before it was their turn, of locks at which a loop has exited at least once, from its first
    /// exit on. Swap locks count above and not below.
    ExitsPerContendedAcquisition = "exits-per-contended-acquisition", "", Less,
        "pause-loop exits for each contended acquisition of a ticket lock";

    /// Median, in machine time; see exits-per-wait. On the machine itself, where no loop exits, the time is from when the wait's loop takes
    /// its first turn, and waits for locks alone count.
    PauseWaitP50 = "pause-wait-p50", "us", Less, "time from its first exit to its end that half of the waits do not exceed";

    /// The 99th percentile, in machine time; see exits-per-wait and pause-wait-p50.
    PauseWaitP99 = "pause-wait-p99", "us", Less, "time from its first exit to its end that 99 % of the waits do not exceed";

    /// Largest time from a wait's first exit to its end; see exits-per-wait.
    MaxPauseWait = "max-pause-wait", "us", Less, "the longest wait with pause-loop exits";

    /// Cumulative distribution of pause-wait-p50: pause-wait-cdf.2048 is the part of 2,048 cycles or fewer.
    PauseWaitCdf = "pause-wait-cdf.", "%", More, "part of the waits that take so many cycles at most";

    /// Median time from an acquisition, or from when the lock was passed on, to the release, of locks at which a loop has exited, or on the
    /// machine itself a hart has waited.
    LockHoldP50 = "lock-hold-p50", "us", Neither, "how long half of the acquisitions hold a lock at most";

    /// The 99.5th percentile of the times of lock-hold-p50 (paper 004 §4.3: 2,048 cycles natively).
    LockHoldP995 = "lock-hold-p99.5", "us", Less, "how long 99.5 % of the acquisitions hold a lock at most";

    /// Cumulative distribution of lock-hold-p50: lock-hold-cdf.2048 is the part of 2,048 cycles or fewer.
    LockHoldCdf = "lock-hold-cdf.", "%", More, "part of the acquisitions that hold a lock for so many cycles at most";

    /// Spins that reached the workload's spin-limit or spin-limit-ms (paper 000 §3.3.2), over all VMs.
    ExcessiveSpins = "excessive-spins", "", Less, "spins that went over the guest's own limit";

    /// Acquisitions of the exerciser's locks out of the order of tickets, over all VMs: zero is first come, first served.
    OutOfOrderAcquisitions = "out-of-order-acquisitions", "", Less, "how often a lock went to a waiter before an earlier one";

    /// The workloads' own count over all VMs (paper 000 §3.3.2: three of five systems lost two or three).
    OfflineCpus = "offline-cpus", "", Less, "processors that guests put off-line because they had spun excessively";

    /// NITR of paper 003 §3: 100 x page-table walks / instructions retired, over all harts and modes, from the hardware monitor. There with
    /// --profile alone: without one, TLBs are not modelled.
    TlbMissRatio = "tlb-miss-ratio", "%", Less, "translations that no TLB had, per instruction";

    /// VM NITR of paper 003 table 1: 100 x page-table walks in VS and VU mode / instructions retired there.
    GuestTlbMissRatio = "guest-tlb-miss-ratio", "%", Less, "translations of guests that no TLB had, per instruction of guests";

    /// NIBR of papers 001 and 003: 100 x misses of the first-level instruction and data caches, those of page-table walks too, /
    /// instructions retired, over all harts and modes, from the hardware monitor. There with --profile alone.
    CacheMissRatio = "cache-miss-ratio", "%", Less, "references that the first-level caches had not, per instruction";

    /// VM NIBR of paper 003 table 1: cache-miss-ratio in VS and VU mode.
    GuestCacheMissRatio = "guest-cache-miss-ratio", "%", Less, "references of guests that the first-level caches had not, per instruction of guests";

    /// VMEI of paper 003 table 1: instructions retired in VS and VU mode / harts, from the hardware monitor.
    GuestInstructions = "guest-instructions", "million", Neither, "instructions that guests retired, for each hart";

    /// VM NITLB of paper 003 table 1: page-table walks in VS and VU mode / harts, from the hardware monitor.
    GuestPageWalks = "guest-page-walks", "million", Less, "translations of guests that no TLB had, for each hart";

    /// MIET of paper 003 §4.3: cycles in VS and VU mode in which the hart did not wait / instructions retired there, from the hardware
    /// monitor. Traps begin and end in the hypervisor's time.
    GuestCpi = "guest-cpi", "cycles", Less, "cycles per instruction of guests (MIET)";

    /// T0 of paper 003 §4.3: guest-cpi - guest-tlb-miss-ratio / 100 x guest-cycles-per-walk.
    GuestBaseCpi = "guest-base-cpi", "cycles", Less, "cycles per instruction of guests without page-table walks (T0)";

    /// AT of paper 003 §4.3: cycles of page-table walks in VS and VU mode, both stages and their cache misses / walks there, from the
    /// hardware monitor.
    GuestCyclesPerWalk = "guest-cycles-per-walk", "cycles", Less, "mean time of a page-table walk of a guest (AT)";

    /// 1000 x misses / instructions retired, over all harts and modes, from the hardware monitor. A miss that the second level answers is
    /// one of them, and no part of tlb-miss-ratio.
    TlbMpki = "tlb-mpki", "per 1000", Less, "misses of the first-level TLBs per thousand instructions";

    /// 1000 x references of both stages / instructions retired, from the hardware monitor.
    WalkReferences = "walk-references", "per 1000", Less, "memory references of page-table walks per thousand instructions";

    /// 1000 x (data + instruction misses) / instructions retired, from the hardware monitor. The papers' NIBR is per access.
    CacheMpki = "cache-mpki", "per 1000", Less, "misses of the first-level caches per thousand instructions";

    /// MIET of paper 001: cycles in which harts did not wait / instructions retired, in nanoseconds of the computer's clock, from the
    /// hardware monitor.
    MeanInstructionTime = "mean-instruction-time", "ns", Less, "mean time of an instruction";

    /// Instructions from the hardware monitor, since reset: firmware and booting are in it.
    Instructions = "instructions", "million", Less, "instructions retired, all harts and modes";

    /// 100 x throughput / throughput of the same work by the same guest on the computer itself (a/c and b/c of paper 002 table 1).
    RelativeThroughput = "relative-throughput", "%", More, "throughput in per cent of the native computer's";

    /// Er = 100 x (T - N) / N, T the elapsed time for the work under the hypervisor, N on the computer itself (paper 001 §2). For work that
    /// a clock ends, times are those per completion.
    ElapsedTimeExpansion = "elapsed-time-expansion", "%", Less, "expansion of the elapsed time against native (Er)";

    /// Cr = 100 x (T - N) / N, T the busy time of all harts for a completion under the hypervisor, N on the computer itself (paper 001 §2;
    /// its formula has Te where Tc is meant).
    CpuTimeExpansion = "cpu-time-expansion", "%", Less, "expansion of the processor time against native (Cr)";

    /// Time of the hypervisor's own report, booting of the guests included.
    Uptime = "uptime", "s", Neither, "real time since the hypervisor's entry";

    /// Harts' time that each VM had over its entitlement, in each window of 20 ms of machine time in which all VMs worked; the minimum of
    /// all windows and VMs. A VM is entitled to its share at each moment, and to no more than its vCPUs could use then that run or only need
    /// a hart; the rest goes to the others, by their shares. Only windows in which a VM could use a hart all the time count
    /// (`run --shares`).
    MinShare20 = "min-share-20ms", "%", More, "smallest part of its entitlement that a VM had over 20 ms";

    /// Minimum of min-share-20ms over each ten windows in a row.
    MinShare200 = "min-share-200ms", "%", More, "smallest part of its entitlement that a VM had over 200 ms";

    /// Cycles in which harts did not wait / events, guests and hypervisor together: the part of the harts' time that they were busy, by
    /// the hardware monitor, x the work's elapsed time in cycles / the events that the exerciser counted (`event=`); where it repeats none,
    /// its reads. The part is that of the steady window, where there is one (paper 001, table 1).
    CyclesPerEvent = "cycles-per-event", "cycles", Less, "time of the harts for each event that a workload repeats";

    /// Instructions retired in all modes for each event; see cycles-per-event.
    InstructionsPerEvent = "instructions-per-event", "", Less, "instructions for each event that a workload repeats";

    /// cycles-per-event / cycles-per-event of the native run of the same start phase: Tsv / Tsb of paper 001, table 1.
    EventSlowdown = "event-slowdown", "", Less, "cycles-per-event under the hypervisor over those on the computer itself";

    /// Cycles from the trap out of a guest to the return into the same guest, mean over the exits in the steady window whose cause the
    /// name ends in, from the machine's events. Waits are left out. With --exit-latency alone.
    ExitLatencyCycles = "exit-latency-cycles.", "cycles", Less, "mean time from a guest's last instruction to its next, for one cause";

    /// Instructions retired from the trap out of a guest to the return into it; see exit-latency-cycles.
    ExitLatencyInstructions = "exit-latency-instructions.", "", Less, "mean instructions between a guest's last instruction and its next, for one cause";

    /// Cycles of all exits of one cause / cycles of the steady window x the work's elapsed time in cycles / events, which are those of
    /// cycles-per-event: a rare exit counts as rare. With --exit-latency alone.
    ExitLatencyCyclesPerEvent = "exit-latency-cycles-per-event.", "cycles", Less, "time of all exits of one cause for each event of the workload";

    /// Instructions of all exits of one cause for each event; see exit-latency-cycles-per-event.
    ExitLatencyInstructionsPerEvent = "exit-latency-instructions-per-event.", "", Less,
        "instructions of all exits of one cause for each event of the workload";

    /// Mean exit latency of exits that end in another vCPU, of any cause; see exit-latency-cycles. Those from an idle hart are not in it.
    /// With --exit-latency alone.
    DispatchLatencyCycles = "dispatch-latency-cycles", "cycles", Less, "mean time from a guest's last instruction to the next of another vCPU";

    /// Cycles of its waits in loops with PAUSE / cycles of all harts in the steady window. A wait counts from the poll before its first PAUSE
    /// to its last. With --exit-latency alone, whose --json names each loop's address.
    HypervisorSpinning = "hypervisor-spinning", "%", Less, "part of the harts' time that the hypervisor waited for locks or for other harts";

    /// The performance monitor's cycles of exits of the cause that the name ends in / their number. The trap itself and the way back are not
    /// in it; exit-latency-cycles has them.
    ExitHandlingCycles = "exit-handling-cycles.", "cycles", Less, "mean time of handling an exit, for one cause, as the hypervisor counts it";

    /// 100 x cycles of exits by accesses to virtio devices and by interrupts of the computer's devices / cycles of scheduling and of exits
    /// (TIOcr of paper 001, fig. 1).
    IoShare = "io-share", "%", Neither, "part of the hypervisor's time that simulated devices take";

    /// 1,000,000 x requests that the virtio devices took / instructions retired in VS and VU mode, natively those in S and U mode, from the
    /// hardware monitor (I/O frequency of paper 001, table 2).
    IoPerMillionInstructions = "io-per-million-instructions", "", Neither, "operations of the devices for each million of the guests' instructions";

    /// 100 x cycles in HS mode in which the hart did not wait / cycles, over all harts, from the hardware monitor: supervisor-state time of
    /// the hypervisor (paper 001, §5.4). Natively it is the guest's.
    HypervisorTime = "hypervisor-time", "%", Less, "part of the harts' time spent in HS mode";

    /// Longest time in which a hart is in no guest and takes and sees no interrupt: from an exit of a guest, the end of a wait or a read of sip,
    /// stopi or stopei to the next return to a guest, interrupt, wait or such read, from the machine. Which hart, when, and where it ended stand
    /// in the hardware monitor's figures (`longest_hypervisor_stretch`). Booting is not in it.
    LongestHypervisorStretch = "longest-hypervisor-stretch", "us", Less, "the longest time that the hypervisor keeps a hart without a look at interrupts";

    /// VMCP-MIET of paper 001, table 3: cycles in HS mode in which the hart did not wait / instructions retired there, from the hardware
    /// monitor.
    HypervisorCpi = "hypervisor-cpi", "cycles", Less, "cycles per instruction of the hypervisor (VMCP-MIET)";

    /// VMCP-NIBR of paper 001, table 3: cache-miss-ratio in HS mode.
    HypervisorCacheMissRatio = "hypervisor-cache-miss-ratio", "%", Less, "first-level cache misses per instruction of the hypervisor";

    /// VMCP-NITLBR of paper 001, table 3: tlb-miss-ratio in HS mode.
    HypervisorTlbMissRatio = "hypervisor-tlb-miss-ratio", "%", Less, "translations that no TLB had, per instruction of the hypervisor";

    /// Virtio disks that the hardware monitor tells of: the horizontal axis of figure 7 of paper 001, as far as each is a device of one VM.
    Disks = "disks", "", Neither, "disks of the computer";

    /// Memory by the hypervisor's first line: its image with heap and first stack, the other stacks, the G-stage tables, and the areas of
    /// simulated and shared devices; guests' memory is not in it. One without areas, of the same VMs, is the base of what areas cost
    /// (paper 001, fig. 7).
    HypervisorMemory = "hypervisor-memory", "KiB", Less, "memory that the hypervisor has for itself";
}
