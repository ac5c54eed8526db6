# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# A thin skin over Meson: `make demo` shows softib at work, `make check` tests it.
BUILD ?= build
T ?= all
SECONDS ?= 60
COUNT ?= 1000
SEEDS ?= 300
FIRST ?= 1

.PHONY: all deps tests check lint demo bench profile asan tsan check-asan check-tsan fuzz docs
.PHONY: install clean check-arm64 check-conformance check-fabrics check-kill check-modes check-polled check-stress check-sim check-guest check-ceph replay mutate hostile fuzz-coverage planted storage check-sockets check-redis

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

# What building needs is asked for here; what the tests need, where they are run.
$(BUILD)/build.ninja:
	@tools/dev/deps build
	@meson setup $(BUILD) $(MESON_FLAGS) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }

# everything, for whatever target
deps:
	@tools/dev/deps

# A plain `make` builds the tests where their libraries are installed; here they are asked for.
tests: $(BUILD)/build.ninja
	@tools/dev/deps build demo test
	@[ -e $(BUILD)/.tests ] || { meson setup --reconfigure $(BUILD) -Dtests=enabled >$(BUILD).log 2>&1 && \
		touch $(BUILD)/.tests; } || { cat $(BUILD).log; exit 1; }
	@ninja -C $(BUILD)

check: tests
	@tests/run --build $(BUILD)

check-conformance: tests
	@tests/conformance/run --build $(BUILD)
	@tests/conformance/run --build $(BUILD) --link-layer ethernet addr flow qp rss

# The data path's tests in each of its modes: through softibd, lanes, all.
check-modes: tests
	@tests/modes.py --build $(BUILD)

# The interop tests on adapters that raise no interrupt; SHORT=1: those of tests/short.py.
check-polled: tests
	@tests/run --build $(BUILD) --interop --polled $(if $(SHORT),--short)

# Rules of order and visibility on real cores, for a while, in each mode.
check-stress: tests
	@tests/stress/run waits --build $(BUILD)
	@tests/stress/run litmus --build $(BUILD) --seconds $(SECONDS)

# Sudden deaths; then some of perftest's programs.
check-kill: tests
	@tests/stress/run deaths --build $(BUILD) --count $(COUNT)
	@tests/interop/kill_loop --build $(BUILD) --count 20

# Fabrics of nodes with networks, up and down: none leaves a process, a mount, a namespace or a device.
check-fabrics: tests
	@SOFTIB_FABRICS=$(if $(filter command line,$(origin COUNT)),$(COUNT),100) tests/run --build $(BUILD) --interop \
		tests/interop/test_ipoib.py -k many_fabrics

# Scenarios from seeds, see docs/SIMULATION.md; KIND=... for one kind; BOTH=1: with the
# engine's fast paths and without, which must be the same
check-sim: tests
	@$(BUILD)/tests/sim/softib-sim --seeds $(SEEDS) --first $(FIRST) $(if $(KIND),--kind $(KIND)) \
		$(if $(BOTH),--both)

# Attacks by hostile programs, and the latency of innocent ones beside each: docs/SECURITY.md
hostile: tests
	@PYTHONPATH=tests SOFTIB_BUILD=$(BUILD) SOFTIB_MEASURE=1 \
		/usr/bin/python3 -m pytest -q -p no:cacheprovider tests/hostile

# CPython's own tests of sockets by TCP and by SDP: docs/SDP.md
check-sockets: tests
	@SOFTIB_ALL_SOCKETS=1 tests/run --build $(BUILD) --interop tests/interop/test_sdp_python.py

# redis' own integration tests by TCP and by SDP: docs/SDP.md
check-redis: tests
	@tests/redis/run --build $(BUILD)

# A virtual machine whose RDMA adapter is a node's: docs/GUESTS.md
check-guest: tests
	@tools/dev/deps guest
	@tests/guest/image.py $(BUILD)/guest
	@PYTHONPATH=tests SOFTIB_BUILD=$(BUILD) /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/guest

# Ceph's daemons and clients by RDMA: docs/RECIPES.md
check-ceph: tests
	@tools/dev/deps ceph
	@PYTHONPATH=tests SOFTIB_BUILD=$(BUILD) /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/ceph

# fio with verification on two paths, one of which is always being pulled: SECONDS=..
storage: SECONDS = 600
storage: tests
	@tools/dev/deps test
	@PYTHONPATH=tests SOFTIB_BUILD=$(BUILD) SOFTIB_SECONDS=$(SECONDS) \
		/usr/bin/python3 -m pytest -q -p no:cacheprovider tests/interop/test_srp_ports.py -k cables

# Rules of the protocol broken one at a time: which test notices? ONLY=text
mutate: SEEDS = 100
mutate:
	@tools/dev/deps build demo test
	@tests/mutate/run --build $(BUILD) --seeds $(SEEDS) $(if $(ONLY),--only "$(ONLY)")

# One of them again: make replay SEED=17 [KIND=..] [FAULTS=0,3|none] [OPS=..] [VERBOSE=1]
replay: tests
	$(if $(SEED),,$(error which seed? For example: make replay SEED=17))
	@$(BUILD)/tests/sim/softib-sim --seed $(SEED) $(if $(KIND),--kind $(KIND)) \
		$(if $(FAULTS),--faults $(FAULTS)) $(if $(OPS),--ops $(OPS)) $(if $(VERBOSE),--verbose)

# The tree built for arm64, its unit tests by qemu-user: docs/TESTING.md.
check-arm64:
	@tools/dev/deps build arm64
	@tools/dev/arm64 build-arm64

lint: all
	@tools/lint/run --build $(BUILD)

demo: all
	@tools/dev/deps demo
	@tools/dev/demo $(BUILD)

bench: tests
	@tools/dev/deps bench
	@tests/bench/run --build $(BUILD) $(BENCH)

profile: tests
	@tests/bench/profile --build $(BUILD)

# Sanitizers: the unit tests; check-asan and check-tsan run the interop tests as
# well: SAMPLE=n every n-th of them, SHORT=1 those of tests/short.py.
SAMPLE ?= 1
PORTION = --sample $(SAMPLE) $(if $(SHORT),--short)
asan: build-asan/.built
	@tests/run --build build-asan --unit

tsan: build-tsan/.built
	@tests/run --build build-tsan --unit

check-asan: build-asan/.built
	@tests/run --build build-asan $(PORTION)

check-tsan: build-tsan/.built
	@tests/run --build build-tsan $(PORTION)

# -O1: the compiler takes about half the time that -O2 takes with these checks; -g1: lines are all
# that a sanitizer's report shows
build-asan/.built: MESON_FLAGS = -Db_sanitize=address,undefined -Doptimization=1 -Dc_args=-g1
build-tsan/.built: MESON_FLAGS = -Db_sanitize=thread -Doptimization=1 -Dc_args=-g1
build-asan/.built build-tsan/.built: FORCE
	@$(MAKE) --no-print-directory BUILD=$(@D) MESON_FLAGS="$(MESON_FLAGS)" tests

build-fuzz/.built: FORCE
	@tools/dev/deps build test fuzz
	@tests/fuzz/run --build

.PHONY: FORCE
FORCE:

fuzz:
	@tools/dev/deps build test fuzz
	@tests/fuzz/run --target $(T) --seconds $(SECONDS)

# Which lines of the sources the inputs of the fuzz targets reach
fuzz-coverage:
	@tools/dev/deps build test fuzz
	@tests/fuzz/coverage --missed

# Checks of foreign input left out one at a time: does the fuzz target notice? ONLY=text
planted:
	@tools/dev/deps build test fuzz
	@tests/fuzz/plant --seconds $(SECONDS) $(if $(ONLY),--only "$(ONLY)")

docs: all
	@tools/dev/deps dev
	@ninja -C $(BUILD) docs

install: all
	@meson install -C $(BUILD)

clean:
	rm -rf $(BUILD) build-asan build-tsan build-fuzz build-arm64
