# Development commands. `make` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
SERVICES_DIR ?= $(CURDIR)/target/services
FUZZ_SECONDS ?= 60
SCREENSHOTS_DIR ?= $(CURDIR)/target/screenshots

.PHONY: help run test quick check mutants chaos lint fmt services-up services-down bench bench-products perf-budget provider-faults eval-routing screenshots recordings fuzz clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-14s %s\n", $$1, $$2}'

run: ## Start the whole product, embedded, on port 8080
	cargo run --release

test: ## Run everything, on embedded and production backends (SERVICES=none: embedded only)
	@tests/run.sh test

quick: ## Run lints, and the unit tests and embedded cases that touch the changes since BASE (main)
	@tests/run.sh quick

check: ## Run everything that needs no Kafka, Redis or Cassandra
	@tests/run.sh check

mutants: ## Run cargo-mutants on the diff to main, or on FILES="a.rs b.rs", and list surviving mutants
	@tests/run.sh mutants $(FILES)

chaos: ## Inject faults into a cluster under load and check that nothing is lost (SEED=7 MINUTES=30, or FAULT=F9,F20, or FAULT=all)
	@SWITCHBOARD_CHAOS_SEED="$(SEED)" SWITCHBOARD_CHAOS_MINUTES="$(MINUTES)" SWITCHBOARD_CHAOS_FAULT="$(FAULT)" tests/run.sh chaos

lint: ## Check formatting and lints; warnings are errors
	@tests/run.sh lint

fmt: ## Format the code
	cargo fmt --all

services-up: ## Start Kafka, Cassandra, Redis, an S3 server and a small language model on free ports
	@tests/services/install.sh services
	@tests/services/up.sh $(SERVICES_DIR)
	@echo "now: source $(SERVICES_DIR)/env"

services-down: ## Stop these services and remove their data
	@tests/services/down.sh $(SERVICES_DIR)

bench: ## Measure added latency, throughput and memory (also on services after `source target/services/env`)
	@tests/run.sh bench

bench-products: ## Measure product search with 50,000 products, with misspellings and filters
	@tests/run.sh bench-products

perf-budget: ## Count system calls, instructions, bytes and memory of a chat and compare with tests/bench/budget.tsv (UPDATE_BUDGET=1 rewrites it)
	@tests/run.sh perf-budget

provider-faults: ## Print 40 provider faults and their outcomes (also on services after `source target/services/env`)
	@tests/run.sh provider-faults

eval-routing: ## Measure routing accuracy on labeled sets (with a model if SWITCHBOARD_TEST_MODEL is its base URL)
	@tests/run.sh eval-routing

screenshots: ## Take screenshots of every page into SCREENSHOTS_DIR (target/screenshots) and refresh those in docs/images
	mkdir -p $(SCREENSHOTS_DIR)
	SWITCHBOARD_SCREENSHOTS=$(SCREENSHOTS_DIR) cargo test --locked --workspace --test it -- appearance:: demo_page::
	for picture in docs/images/*-desktop-*.webp; do cp $(SCREENSHOTS_DIR)/$$(basename $$picture) $$picture; done

recordings: ## Record a streaming reply in a terminal and in the widget (docs/images)
	@docs/record.sh

fuzz: ## Fuzz each parser of untrusted input for FUZZ_SECONDS (60)
	@tests/run.sh fuzz $(FUZZ_SECONDS)

clean: services-down ## Stop the services and remove build output
	cargo clean
