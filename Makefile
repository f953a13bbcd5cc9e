# Selvage: `make` lists what there is.
SHELL := bash
export CGO_ENABLED ?= 0
# One set of compiled packages for the release, the checks and the tests.
export GOFLAGS ?= -trimpath
# $$GOGC of the compiler: collecting its garbage less often saves a fifth of its time.
COMPILER_GC := $(or $(GOGC),400)
RUN   ?= .run/mesh
NODES ?= 3
HTTP  ?= 3100
MESH  ?= 9470
SEEDS ?= 200
CHAOS ?= 10m
STARVED ?= 10m
FUZZ ?= 120
SEED ?= 17
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

.DEFAULT_GOAL := help
.PHONY: where board ui ui-dev ui-types screenshots notice agent clients models model readme system help up down build examples test room race dates check contract metrics sizing bench soak fuzz dist clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t12

build: ## build bin/selvage, one static binary
	@mkdir -p bin
	GOGC=$(COMPILER_GC) go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/selvage ./cmd/node

examples: build ## build the demo company's agents into bin/
	@for e in ceo surveyor demo; do go build -trimpath -ldflags '-s -w' -o bin/example-$$e ./examples/$$e; done

agent: ## build the default agent of the wasm adapter into adapter/wasm
	@./scripts/agent

where:
	@echo "board: http://127.0.0.1:$(HTTP), as soon as the first node serves"

up: where examples ## start a local mesh of three nodes with a demo company at work
	@bin/selvage testnet up -n $(NODES) --dir $(RUN) --http-port $(HTTP) --mesh-port $(MESH)
	@bin/example-demo --api http://127.0.0.1:$(HTTP) --nodes $(NODES) --bin $(CURDIR)/bin --repo $(CURDIR) --dir $(RUN)

down: ## stop the local mesh (its data stays in .run)
	bin/selvage testnet down --dir $(RUN)

test: build ## run every test, the 200-seed fault simulation included
	./scripts/test

room: ## test one room and those inside it, without what takes long: make room ROOM=scheduler
	@test -n "$(ROOM)" || { echo "name a room: make room ROOM=scheduler"; exit 2; }
	go test -short ./$(ROOM)/...

dates: ## run what reads the time tomorrow, as the month turns, on 29 February, while summer time begins and ends, in 40 and 400 days
	go run ./scripts/dates

clients: ## install Paperclip's own clients for the tests that run them
	./scripts/clients

models: ## install a small model and llama.cpp's server for the tests that ask one
	./scripts/models

readme: ## run every command of README.md on a fresh clone and compare what it prints
	./scripts/readme

model: build ## give the local mesh a model: one that is there (Ollama, llama.cpp), or a small one that is installed and started
	bin/selvage --api http://127.0.0.1:$(HTTP) model local --dir $(CURDIR)/.cache/models

system: ## install what tests need of Debian: emulators, nftables, podman; and the Rust target of guests
	@./scripts/system

board: ## install what the board's pages are built and tested with (needs Node)
	@./scripts/ui install

ui: ## build the board's pages from ui/web into ui/dist (needs Node)
	@./scripts/ui build

ui-dev: ## serve the pages from their sources, against a node at SELVAGE_URL (default http://127.0.0.1:3100)
	@./scripts/ui dev

ui-types: ## write ui/web/src/api.d.ts from the API's description
	@./scripts/ui types

screenshots: build ## take every page in light, dark and phone width into .cache/screenshots (needs Node and Chromium)
	@./scripts/ui screenshots

check: ## formatting, vet, staticcheck, floors, known vulnerabilities
	./scripts/check

notice: ## write NOTICE: what is linked into the program, and under which licences
	go run ./scripts/notice

contract: ## replay the recorded exchanges and write docs/contract.md
	go test -count=1 ./api -run Recorded -contract.write

metrics: ## write docs/metrics.md: the figures of a node, and the alerts
	go test -count=1 -run TestMonitoring ./testnet/upkeep -metrics.write

sizing: build ## print the table of docs/sizing.md: memory and disk of agents, issues and runs (some minutes)
	go run ./scripts/sizing

bench: build ## print the table of docs/benchmarks.md (PARTS="checkout reads" for some of it)
	./scripts/bench -parts "$(PARTS)"

soak: build ## fault simulation for SEEDS seeds, nodes killed for CHAOS under 200 runs, starved for STARVED under 20; gossip under hogs; a page under an hour of 50 events a second; the API under FUZZ seconds of made up requests
	SELVAGE_SEEDS=$(SEEDS) go test -count=1 -timeout 24h -run TestMeshUnderFaults -v ./testnet/sim
	SELVAGE_CHAOS=$(CHAOS) go test -count=1 -timeout 24h -run TestRunsUnderKills -v ./testnet
	go test -count=1 -timeout 24h -tags measure -run TestMeasureDeaths -v ./discovery
	SELVAGE_STARVED=$(STARVED) go test -count=1 -timeout 24h -run TestAStarvedMeshLosesNothing -v ./testnet
	./scripts/bench -parts board -board 1h
	$(MAKE) fuzz

fuzz: ## ask a node for FUZZ seconds what schemathesis makes up from the description of the API, from SEED
	SELVAGE_FUZZ=$(FUZZ) SELVAGE_FUZZ_SEED=$(SEED) ./scripts/fuzz

dist: ## make all that a release has, into dist/: builds, packages, image, sums
	./scripts/dist $(if $(KEY),-key $(KEY))

clean: ## remove what was built and the local mesh's data
	rm -rf bin .run dist
