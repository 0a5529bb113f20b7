# `make run` and `make test` do all of their own set-up.

CARGO := scripts/cargo
PARTITA := target/release/partita
SYSTEM := systems/two-debian.toml
BARE := -p hypervisor -p exerciser -p serve

# Where `make install` puts things, below DESTDIR if that is set.
PREFIX := /usr/local

.PHONY: all build setup run install dist deny test check-style host-tests system-tests soak conformance conformance-all bench boards guests site clean

all: build

# Installs what is missing, or says what is.
setup:
	@scripts/setup

# The command, the hypervisor and the exerciser that it runs, and the program that serves disks in a guest. Running needs no QEMU.
build:
	@scripts/setup --without-qemu
	$(CARGO) --bare build --release $(BARE)
	$(CARGO) build --release -p partita

# Two Debian guests doing real work, on the machine.
run: build
	$(PARTITA) run $(SYSTEM)

# The command with all that it finds at run time, manual pages and completions. The images stay in each user's cache.
install: build
	scripts/install "$(DESTDIR)$(PREFIX)"

# What a user installs: target/dist has a tar, a .deb and their hashes.
dist: build
	scripts/dist

# Licences and sources of all dependencies.
deny:
	@command -v cargo-deny >/dev/null 2>&1 || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check licenses bans sources

# Everything that must hold before a change is taken.
test: setup
	scripts/test

# What the hypervisor costs, in instructions, and how fast the machine is; takes some minutes.
bench: setup build
	$(PARTITA) bench --document docs/results/benchmarks.md
	$(CARGO) bench -p machine --bench speed

# Two Debian guests on every form of QEMU's board, and the page of what passes; takes an hour.
boards: setup build
	scripts/boards

# Guests of other people's making, each to its end, and the page of what ran; takes some minutes.
guests: setup build
	scripts/guests

# The pages of docs with search, and the API documentation beside them: target/site.
site:
	@scripts/site

# Runs every ELF program of a folder on the machine: make conformance SUITE=dir [KNOWN=list] [OPTIONS=...]
conformance: setup
	$(CARGO) run --release -p lockstep --bin conformance -- $(SUITE) $(if $(KNOWN),--known $(KNOWN)) $(OPTIONS)

# Every table of docs/reference/conformance.md anew: fetches and builds the public suites, and takes hours the first time.
conformance-all: setup
	$(CARGO) build --release -p lockstep
	scripts/conformance-all --document docs/reference/conformance.md

# What takes minutes each and is no part of `make test`: all states of larger models, and long runs of guests.
soak: setup
	scripts/test soak

check-style host-tests system-tests: setup
	scripts/test $@

clean:
	$(CARGO) clean
