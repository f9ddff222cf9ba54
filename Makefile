# SPDX-License-Identifier: Apache-2.0
# The commands of the project. Each does its own set-up first; the second time that takes under a second.
.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-long bench check docs clean
JOBS ?= $(shell nproc)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## install what the build needs: Debian packages (as root), .venv, torch
	@tools/setup.sh demo

build: setup ## build/flopmeter, and the Python package for .venv
	@tools/build.sh -DFLOPMETER_TESTS=OFF

demo: setup ## see it work
	@tools/build.sh -DFLOPMETER_TESTS=OFF --target flopmeter_cli flopmeter_demo
	@build/flopmeter demo
	@echo "building the Python package, for flopmeter run"
	@tools/build.sh -DFLOPMETER_TESTS=OFF

test: ## all tests that fit in a coffee break (.ci/run calls this)
	@tools/setup.sh test
	@tools/check.sh format layers text release python+dev consumer docs

test-long: ## the long suites: soak, random configurations, injected faults, thread sanitizer
	@tools/setup.sh test
	@FLOPMETER_LONG=1 tools/check.sh release python tsan

check: ## what a reviewer would ask first: layout, layers, text, lint, generated pages
	@tools/setup.sh test
	@tools/check.sh format layers text tidy docs

bench: ## measure ourselves beside our peers
	@tools/setup.sh bench
	@tools/bench.sh

docs: build ## write the generated reference pages anew
	@.venv/bin/python tools/docs.py

clean: ## delete what was built (.venv stays)
	rm -rf build
