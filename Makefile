# SPDX-License-Identifier: MIT
# The front door.  CMake does the work; see CMakeLists.txt and
# CMakePresets.json.
#
#   make            build the library, and the `pirn` command if it can be
#   make demo       see Pirn at work
#   make test       build and run every test; ends in 'N passed, N failed'
#   make bench      measure, and print tables
#   make soak       the tests in their long sizes; mutants against the models
#   make install    into PREFIX (/usr/local), below DESTDIR if given
#   make clean      forget everything that was built
#
#   PRESET=release  optimised (the default); dev, asan, tsan, hostile, fuzz or
#                   model: see the presets
#   JOBS=N          processes to build and test with; all processors
#   WERROR=ON       warnings are errors
#   TESTS=REGEX     only the tests whose names match
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

.PHONY: all test demo bench soak install clean

all:
	$(call configure,)
	@cmake --build $(BUILD) -j $(JOBS) --target pirn_product

test:
	@scripts/deps build test
	$(call configure,-DPIRN_TESTS=ON -DPIRN_TOOL=ON)
	@cmake --build $(BUILD) -j $(JOBS)
	@JOBS=$(JOBS) scripts/run-tests $(PRESET) $(if $(TESTS),-R '$(TESTS)')

soak:
	@scripts/deps build test
	$(call configure,-DPIRN_TESTS=ON -DPIRN_TOOL=ON)
	@cmake --build $(BUILD) -j $(JOBS)
	@PIRN_TEST_SIZE=long PIRN_TEST_TIMEOUT_S=7200 JOBS=1 \
	    scripts/run-tests $(PRESET) --timeout 14400 \
	    -C soak -L 'unit|conformance|regress|sim|stress|soak'
	@tools/mutate -j $(JOBS)

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
