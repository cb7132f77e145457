# SPDX-License-Identifier: MIT
# The front door.  CMake does the work; see CMakeLists.txt and
# CMakePresets.json.
#
#   make            build the library, and the `pirn` command if it can be
#   make demo       see Pirn at work
#   make test       build and run every test; ends in 'N passed, N failed'
#   make bench      measure, and print tables
#   make soak       what takes too long for a test: prints its budget, then runs
#                   it; tools/soak says what it is
#   make install    into PREFIX (/usr/local), below DESTDIR if given
#   make clean      forget everything that was built
#
#   PRESET=release  optimised (the default); dev, asan, tsan, hostile, fuzz or
#                   model: see the presets
#   JOBS=N          processes to build and test with; all processors
#   WERROR=ON       warnings are errors
#   TESTS=REGEX     only the tests whose names match
#   BUDGET=MINUTES  how long `make soak` may take on two processors
#   PARTS='A B'     only these parts of it
#
# What is built lies in build/PRESET.

PRESET ?= release
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

BUILD := build/$(PRESET)

export DESTDIR
MAKEFLAGS += --no-print-directory

# Ninja where it is installed; a build folder keeps the one it began with.
define configure
@generator='Unix Makefiles'; \
if command -v ninja >/dev/null; then generator=Ninja; fi; \
if [ -f $(BUILD)/CMakeCache.txt ]; then \
    generator=$$(sed -n 's/^CMAKE_GENERATOR:[A-Z]*=//p' $(BUILD)/CMakeCache.txt); \
fi; \
mkdir -p $(BUILD); \
if ! cmake --preset $(PRESET) -G "$$generator" $(if $(WERROR), \
        -DPIRN_WERROR=$(WERROR)) $(1) >$(BUILD)/configure.log 2>&1; then \
    cat $(BUILD)/configure.log; exit 1; \
fi; \
grep 'left out' $(BUILD)/configure.log || true
endef

.PHONY: all test test-programs demo bench soak install clean

all:
	$(call configure,)
	@cmake --build $(BUILD) -j $(JOBS) --target pirn_product

test: test-programs
	@JOBS=$(JOBS) scripts/run-tests $(PRESET) $(if $(TESTS),-R '$(TESTS)')

test-programs:
	@scripts/deps build test
	$(call configure,-DPIRN_TESTS=ON -DPIRN_TOOL=ON)
	@cmake --build $(BUILD) -j $(JOBS)

soak:
	@tools/soak -j $(JOBS) $(if $(BUDGET),--minutes $(BUDGET)) $(PARTS)

demo:
	@scripts/deps build demo
	$(call configure,-DPIRN_TOOL=ON)
	@cmake --build $(BUILD) -j $(JOBS) --target pirn_product
	@tools/demo $(BUILD)

# Without the rights to install, what is missing is left out of the tables.
bench:
	@scripts/deps build
	@scripts/deps bench || echo "make bench: going on with what is there"
	$(call configure,-DPIRN_TOOL=ON)
	@cmake --build $(BUILD) -j $(JOBS) --target pirn_product pirn_benches
	@bench/run $(BUILD)

install:
	$(call configure,)
	@cmake --build $(BUILD) -j $(JOBS) --target pirn_product
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf build
