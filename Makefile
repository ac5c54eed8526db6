# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# A thin skin over Meson: `make demo` shows softib at work, `make check` tests it.
BUILD ?= build
T ?= all
SECONDS ?= 60

.PHONY: all deps check lint demo bench asan tsan fuzz docs install clean check-conformance check-kill

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja: | deps
	@meson setup $(BUILD) $(MESON_FLAGS) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }

deps:
	@tools/dev/deps

check: all
	@tests/run --build $(BUILD)

check-conformance: all
	@tests/conformance/run --build $(BUILD)

check-kill: all
	@tests/interop/kill_loop --build $(BUILD) --count 200

lint: all
	@tools/lint/run --build $(BUILD)

demo: all
	@tools/dev/demo $(BUILD)

bench: all
	@tests/bench/run --build $(BUILD)

asan:
	@$(MAKE) --no-print-directory BUILD=build-asan MESON_FLAGS="-Db_sanitize=address,undefined" all
	@tests/run --build build-asan --unit

tsan:
	@$(MAKE) --no-print-directory BUILD=build-tsan MESON_FLAGS="-Db_sanitize=thread" all
	@tests/run --build build-tsan --unit

fuzz:
	@$(MAKE) --no-print-directory deps
	@tests/fuzz/run --target $(T) --seconds $(SECONDS)

docs: all
	@ninja -C $(BUILD) docs

install: all
	@meson install -C $(BUILD)

clean:
	rm -rf $(BUILD) build-asan build-tsan build-fuzz
