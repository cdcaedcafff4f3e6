# The commands of this project; each target says what it does, and `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
SERVICES_DIR ?= $(CURDIR)/target/services
FUZZ_SECONDS ?= 60
SCREENSHOTS_DIR ?= $(CURDIR)/target/screenshots

.PHONY: help run test check mutants lint fmt services-up services-down bench bench-products provider-faults eval-routing screenshots recordings fuzz clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-14s %s\n", $$1, $$2}'

run: ## Start the whole product, embedded, on port 8080
	cargo run --release

test: ## Everything: lints, unit tests, the same suite embedded and over real services (SERVICES=none leaves the services out)
	@tests/run.sh test

check: ## The quick part: formatting, lints, unit tests and the integration suite, embedded
	@tests/run.sh check

mutants: ## Mutate what differs from main, or FILES="a.rs b.rs", and list the mutants that no test notices
	@tests/run.sh mutants $(FILES)

lint: ## Formatting and clippy, warnings are errors
	@tests/run.sh lint

fmt: ## Format the code
	cargo fmt --all

services-up: ## Start Kafka, Cassandra, Redis and a small language model on free ports
	@tests/services/install.sh services
	@tests/services/up.sh $(SERVICES_DIR)
	@echo "now: source $(SERVICES_DIR)/env"

services-down: ## Stop them and remove their data
	@tests/services/down.sh $(SERVICES_DIR)

bench: ## Measure added latency, throughput and memory (over real services too, after: source target/services/env)
	@tests/run.sh bench

bench-products: ## Measure the search for products: 50,000 made-up ones, with and without misspelt words and filters
	@tests/run.sh bench-products

provider-faults: ## Print what providers do wrong and what comes of it, 40 ways (over real services too, after: source target/services/env)
	@tests/run.sh provider-faults

eval-routing: ## Measure how well teams choose by intent, on labelled sets; with a model too if SWITCHBOARD_TEST_MODEL names its base URL
	@tests/run.sh eval-routing

screenshots: ## Take pictures of every page into SCREENSHOTS_DIR (target/screenshots), and refresh those that docs/images has
	mkdir -p $(SCREENSHOTS_DIR)
	SWITCHBOARD_SCREENSHOTS=$(SCREENSHOTS_DIR) cargo test --locked --workspace --test it -- appearance:: demo_page::
	for picture in docs/images/*-desktop-*.webp; do cp $(SCREENSHOTS_DIR)/$$(basename $$picture) $$picture; done

recordings: ## Record a streaming reply in a terminal and in the widget (docs/images)
	@docs/record.sh

fuzz: ## Feed each parser that strangers can reach with made-up bytes, FUZZ_SECONDS (60) for each target
	@tests/run.sh fuzz $(FUZZ_SECONDS)

clean: services-down ## Stop the services and remove what was built
	cargo clean
