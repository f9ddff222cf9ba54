# SPDX-License-Identifier: Apache-2.0
# Project commands. Each installs its prerequisites first, which takes under a second if they are installed.
.DEFAULT_GOAL := help
.PHONY: help setup build demo wheel quick test test-long bench check docs golden clean
JOBS ?= $(shell nproc)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## install the build prerequisites: Debian packages (as root), .venv, torch
	@tools/setup.sh demo

build: setup ## build build/flopmeter and the Python package for .venv
	@tools/build.sh -DFLOPMETER_TESTS=OFF

demo: setup ## train a small GPT twice, misconfigured and tuned, and diagnose it
	@tools/build.sh -DFLOPMETER_TESTS=OFF --target flopmeter_cli flopmeter_demo
	@build/flopmeter demo
	@echo "building the Python package for flopmeter run"
	@tools/build.sh -DFLOPMETER_TESTS=OFF

wheel: ## build self-contained wheels for Linux with glibc 2.28 or later, in build/wheel/dist
	@tools/setup.sh wheel
	@.venv/bin/python tools/make_wheel.py

quick: ## format, layers, text, and C++ unit tests (under 1 minute after a build)
	@tools/setup.sh test
	@tools/check.sh unit+format+layers+text

test: ## all tests that CI runs (about 20 minutes on 2 cores)
	@tools/setup.sh test
	@tools/check.sh format layers text release python+dev,readers consumer docs

test-long: ## long tests: soak, random configurations, injected faults, sanitizers, fuzzers
	@tools/setup.sh test
	@FLOPMETER_LONG=1 tools/check.sh release python readers dev asan tsan fuzz

check: ## static checks: format, layers, text, clang-tidy, generated pages
	@tools/setup.sh test
	@tools/check.sh format layers text tidy docs

bench: ## measure the overhead next to comparable tools
	@tools/setup.sh bench
	@tools/bench.sh

docs: build ## regenerate the reference pages
	@.venv/bin/python tools/docs.py

golden: ## accept the current output as the new golden files, then show the difference
	@tools/setup.sh test
	@tools/golden.sh

clean: ## delete build products (.venv stays)
	rm -rf build
