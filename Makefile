# The short way to everything: `make help` lists it. CMake and Ninja do the work; nothing here is needed to use them directly.
#
#   SANITIZER=address|undefined|thread   build and test under a sanitizer, in a build directory of its own
#   CC=clang                             another compiler (the build directory is configured anew)
#   CI=true                              warnings are errors
#   TESTS="base/test_rng cli/t0001"      only the tests whose path contains one of these words
#   PEERS="--quick"                      options of bench/peers, see bench/peers --help
#   EXCHANGE="--only inside"             options of bench/exchange, see bench/exchange --help
#   PREFIX=/usr/local DESTDIR=           where `make install` puts things
#   FUZZ_SECONDS=60                      how long `make fuzz` spends on each target
#   SOAK_MINUTES=30                      how long `make soak` trains

SANITIZER ?=
BUILD ?= build$(if $(SANITIZER),-$(SANITIZER))
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
SOAK_MINUTES ?= 30
COMPILER := $(if $(filter default,$(origin CC)),,$(CC))

.DEFAULT_GOAL := build
.PHONY: help deps build test test-golden ci demo install format lint bench-peers bench-exchange soak build-fuzz fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

deps: ## install the Debian packages that building needs (what is there already is left alone)
	tools/install-deps build

build: ## build everything into build/; the command is build/lockstep
	tools/configure "$(BUILD)" "$(SANITIZER)" "$(COMPILER)"
	cmake --build "$(BUILD)"

test: ## install what tests need, build, run all tests (with PyTorch: test-golden); SANITIZER=address|undefined|thread, TESTS="words"
	tools/install-deps build test
	$(MAKE) --no-print-directory build
	tools/python-packages "$(BUILD)"
	tools/run-tests "$(BUILD)" $(TESTS)

test-golden: ## compare with PyTorch: installs it (165 MB to fetch, 730 MB on disk), builds, runs tests/golden
	tools/install-deps build test golden
	$(MAKE) --no-print-directory build
	tools/run-tests "$(BUILD)" tests/golden/

ci: ## what a change must pass: every build variant with warnings as errors, all tests, unit tests under sanitizers
	.ci/run

demo: deps ## build, then the whole story: probe, ResNet-18 on one core and on all, a table, a prediction, a page
	tools/configure "$(BUILD)" "$(SANITIZER)" "$(COMPILER)"
	cmake --build "$(BUILD)" --target lockstep_cli
	tools/demo "$(BUILD)"

install: build ## install command, library, headers, pkg-config file and man pages under PREFIX
	DESTDIR="$(DESTDIR)" cmake --install "$(BUILD)" --prefix "$(PREFIX)"

format: ## rewrite C sources in the style of .clang-format
	tools/install-deps lint
	git ls-files '*.c' '*.h' | xargs clang-format -i

lint: ## check the C sources against .clang-format and the scripts with shellcheck
	tools/install-deps lint
	git rev-parse --is-inside-work-tree >/dev/null # without a list of files nothing would be checked
	git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror
	git grep -lE '^#!/bin/(ba)?sh' | xargs shellcheck -x -P SCRIPTDIR -S warning

bench-peers: deps build ## measure Lockstep beside PyTorch, interleaved in one run
	tools/install-deps peers
	bench/peers --lockstep "$(BUILD)/lockstep" $(PEERS)

bench-exchange: deps build ## measure the exchange beside MPI, Gloo and iperf3, inside a node and over links of the lab
	tools/install-deps peers lab
	bench/exchange --lockstep "$(BUILD)/lockstep" $(EXCHANGE)

soak: deps build ## train on four lab hosts for SOAK_MINUTES and fail when a node's memory grows; needs root
	tools/install-deps lab
	tools/soak --lockstep "$(BUILD)/lockstep" --minutes "$(SOAK_MINUTES)"

build-fuzz: ## build the fuzz targets with clang and libFuzzer, into build-fuzz/
	tools/install-deps build test fuzz
	tools/configure build-fuzz "" clang
	cmake --build build-fuzz --target fuzz

fuzz: build-fuzz ## fuzz every parser of outside files with libFuzzer, FUZZ_SECONDS each
	tools/run-fuzz build-fuzz "$(FUZZ_SECONDS)"

clean: ## remove the build directories
	rm -rf build build-clang build-address build-undefined build-thread build-fuzz
