# Carillon. `make` alone shows what there is to make.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# gin can bind MessagePack, which nothing here uses; the codec for it alone
# took a sixth of the time of a build without caches.
#
# Without cgo and with -trimpath, as it is shipped, in all that is compiled here
# but tests with the race detector: compiling all libraries once more for
# another setting took minutes of CI on a machine without caches.
export GOFLAGS := $(strip $(GOFLAGS) -tags=nomsgpack -trimpath)
export CGO_ENABLED := 0

# One repository, several modules (docs/adr/0001, 0096), which go.work lists.
MODULES := $(shell build/modules.sh)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# Tools are pinned, and built into a folder that carries the version: changing
# a number here is all it takes to get the new one.
TOOLS := $(CURDIR)/.cache/tools
GOLANGCI := $(TOOLS)/golangci-lint-v2.15.0/golangci-lint
PROTOC_GEN_GO := $(TOOLS)/protoc-gen-go-v1.36.12/protoc-gen-go
OAPI_CODEGEN := $(TOOLS)/oapi-codegen-v2.8.2/oapi-codegen
CYCLONEDX_GOMOD := $(TOOLS)/cyclonedx-gomod-v1.10.0/cyclonedx-gomod
HELM := $(TOOLS)/helm-v3.22.0/helm

NPM_STAMP := web-ui/node_modules/.carillon-installed
UI_STAMP := .cache/ui-built
UI_SOURCES := $(shell find web-ui -type f -not -path 'web-ui/node_modules/*' \
	-not -path 'web-ui/dist/*' -not -path 'web-ui/e2e/*' -not -name '*.go')

##@ Use
# On a machine without caches the libraries are compiled while npm downloads
# and builds the pages, which only the last step needs. The compiler takes a fifth less
# time if its collector works less. It then uses up to 1.7 GB.
compile := GOGC=$(or $(GOGC),400) go build
.PHONY: build
build: ## web UI and server in one file, bin/carillon, without cgo; and the sample shop
	@$(MAKE) --no-print-directory -j2 ui libraries
	$(compile) -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ ./cmd/carillon ./examples/sample-shop

.PHONY: libraries
libraries:
	@$(compile) ./admin ./cmd/carillon/internal/... ./examples/sample-shop/internal/...

.PHONY: release
release: ui $(CYCLONEDX_GOMOD) ## static binaries, archives, deb packages, SBOMs and checksums for linux amd64 and arm64, in dist
	@CYCLONEDX_GOMOD=$(CYCLONEDX_GOMOD) build/release.sh $(VERSION)

# Tests of the chart ask where it is.
.PHONY: helm
helm: $(HELM)
	@echo $(HELM)

.PHONY: demo
demo: build ## an admin on SQLite and a sample application, until Ctrl-C; ARGS="--http 127.0.0.1:9000"
	@bin/carillon demo $(ARGS)

# Which database server proof, faults and bench start: mariadb or mysql.
PRODUCT ?= mariadb

.PHONY: proof
proof: ## two admins, two executors, 500 jobs a second for 5 min, one admin killed: missed, doubled, late; ARGS="--ci" for 30 s; PRODUCT=mysql
	@build/need.sh $(PRODUCT)
	go run ./tools/faults run --product $(PRODUCT) --only PROOF $(ARGS)

.PHONY: faults
faults: ## every row of the fault matrix against real processes, 2.5 h; ARGS="--only F01,F19 --rate 400 --rounds 100 --json out.json"; PRODUCT=mysql
	@build/need.sh $(PRODUCT)
	@build/need.sh faketime ip redis mysql galera || echo 'rows that need what is missing will say so'
	go run ./tools/faults run --product $(PRODUCT) $(ARGS)

.PHONY: faults-ci
faults-ci: ## a selection of them, smaller, some rows at once, 5 min; PRODUCT=mysql: four of them and the proof
	@$(MAKE) --no-print-directory faults ARGS="--ci $(ARGS)"

.PHONY: sim
sim: ## a long swarm of the simulator; ARGS="-for 1h -seed 5000 -keep", ARGS="-seed 309 -seeds 1"
	go test ./admin/tools/sim -run '^(TestSwarm|TestRegressions)$$' -count=1 -timeout 0 -v -args $(if $(ARGS),$(ARGS),-for 10m)

# What is measured is the binary as it is shipped, from outside. The server is
# set up as for production, with durable commits; its data and SQLite's lie where
# TMPDIR says.
BENCH_REPORT ?= .cache/bench/$(shell date -u +%Y%m%dT%H%M%SZ).json
.PHONY: bench
bench: ## rate, lateness and price beside their floors, on a private MariaDB and on SQLite; ARGS=--quick; PRODUCT=mysql
	@build/need.sh $(PRODUCT)
	go build -ldflags '-s -w -X main.version=$(VERSION)' -o .cache/bin/ ./cmd/carillon
	go build -o .cache/bin/ ./admin/tools/bench ./tools/withparts
	@.cache/bin/withparts -product $(PRODUCT) -name CARILLON_MYSQL -dir "$${TMPDIR:-/tmp}" \
		-server --innodb-buffer-pool-size=2G -server --innodb-log-file-size=1G -- \
		.cache/bin/bench --carillon .cache/bin/carillon --report $(BENCH_REPORT) $(ARGS)

.PHONY: ui
ui: $(UI_STAMP) ## pages of the web UI, into web-ui/dist; only when its sources changed

##@ Check
.PHONY: test
test: ## the tests for each change, on real parts, which it installs; 12 min, 22 without caches
	@build/test.sh test

.PHONY: check
check: ## rules, engine, API, SDK, the store on SQLite; no race detector, no server; 2 min
	@build/test.sh check

.PHONY: test-engine
test-engine: ## the engine with the race detector, which CI adds to test; 2 min
	@build/test.sh engine

.PHONY: proof-all
proof-all: ## make test, the proofs below and the whole fault matrix, before a release; about 5 h
	@build/proof.sh

.PHONY: proof-race
proof-race: ## all tests of Go with the race detector, on MariaDB, also clusters, brokers, documents and packages; 30 min
	@build/test.sh race

.PHONY: proof-mysql
proof-mysql: ## the store and whole paths on MySQL; 10 min
	@build/test.sh mysql mysql-path

.PHONY: proof-ui
proof-ui: ## all steps in a real browser, and clients generated from the OpenAPI document; 10 min
	@build/test.sh browser clients

.PHONY: proof-large
proof-large: build ## requests and pages of 10,000 jobs with 1,000,000 runs; 20 min
	@build/need.sh mariadb node chromium fonts
	go test -tags nomsgpack,large ./admin/internal/api -run TestPagesOfAMillionRuns -v -timeout 40m
	CARILLON_BIN=$(CURDIR)/bin/carillon npm --prefix web-ui run --silent e2e -- --alone e2e/large.mjs

.PHONY: mutants
mutants: ## faults in the code, one after the other, each of which a test has to notice; ARGS="-only journal"; 15 min
	@build/need.sh mariadb redis
	@go build -o .cache/bin/ ./tools/withparts ./tools/mutants
	@.cache/bin/withparts -- .cache/bin/mutants $(ARGS)

.PHONY: crosscheck
crosscheck: ## the cron engine against a second implementation, 60 zones, 20 years, N=3000 expressions; 6 min
	go -C schedule test . -run TestCrossCheck -v -timeout 60m -crosscheck $(or $(N),3000)

.PHONY: lint
lint: lint-go lint-ui ## gofmt, golangci-lint on all modules, oxlint, the UI's types, sizes and texts against their bounds; 30 s, 6 min without caches

.PHONY: size
size: ## lines of code of each room; ARGS="-since REV", ARGS=-check as lint, ARGS=-update for tools/size/budget.txt
	@go -C tools run ./size $(ARGS)

.PHONY: prose
prose: ## how comments and documents read, and the worst sentences; ARGS="-change REV", ARGS="-files admin", ARGS=-check as lint, ARGS=-update
	@go -C tools run ./prose $(ARGS)

.PHONY: lint-go
lint-go: $(GOLANGCI)
	@go -C tools run ./size -check
	@go -C tools run ./prose -check
	@unformatted=$$(find . -name '*.go' -not -path './web-ui/node_modules/*' -not -path './.cache/*' -exec gofmt -l {} +); \
	[ -z "$$unformatted" ] || { printf 'gofmt would change (make fmt):\n%s\n' "$$unformatted"; exit 1; }
	@build/tidy.sh --check
	@status=0; for module in $(MODULES); do \
		echo "golangci-lint $$module"; \
		(cd $$module && $(GOLANGCI) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...) || status=1; \
	done; exit $$status
	@status=0; $(call tagged,failpoints); for dir in $$dirs; do go -C $$dir vet -tags=nomsgpack,failpoints . || status=1; done; \
	$(call tagged,race); for dir in $$dirs; do CGO_ENABLED=1 go -C $$dir vet -race . || status=1; done; exit $$status

# The linter sees no file with a build tag. Tests with one are vetted when they run.
tagged = dirs=$$(grep -rlE '^//go:build .*\b$(1)\b' --include='*.go' --exclude='*_test.go' --exclude-dir=node_modules --exclude-dir=.cache . | xargs -n1 dirname | sort -u)

.PHONY: lint-ui
lint-ui: $(NPM_STAMP)
	@npm --prefix web-ui run --silent lint
	@npm --prefix web-ui run --silent typecheck

.PHONY: generate-check
generate-check: $(PROTOC_GEN_GO) $(OAPI_CODEGEN) $(NPM_STAMP) ## fails if a generated file is not what generate writes; 15 s, 1 min without caches
	@PATH=$(dir $(PROTOC_GEN_GO)):$(dir $(OAPI_CODEGEN)):$$PATH build/generate.sh --check

##@ Change
.PHONY: generate
generate: $(PROTOC_GEN_GO) $(OAPI_CODEGEN) $(NPM_STAMP) ## writes all generated files: what go:generate lines ask for, and the UI's API types
	@PATH=$(dir $(PROTOC_GEN_GO)):$(dir $(OAPI_CODEGEN)):$$PATH build/generate.sh

.PHONY: tour
tour: build ## takes the pictures of README and docs/guide/tour.md from a demo of its own, into docs/images; 2 min
	@build/need.sh chromium fonts
	@cd web-ui && CARILLON_BIN=$(CURDIR)/bin/carillon CARILLON_E2E_TOUR=$(CURDIR)/docs/images node --test --test-reporter=spec e2e/screenshots.mjs

.PHONY: fmt
fmt: ## gofmt on all Go files
	@find . -name '*.go' -not -path './web-ui/node_modules/*' -not -path './.cache/*' -exec gofmt -w {} +

.PHONY: hooks
hooks: ## has git refuse commits in this clone that gofmt would change
	git config core.hooksPath .githooks

.PHONY: clean
clean: ## removes what was built; keeps downloaded tools and packages
	rm -rf bin .cache/bin .cache/tally .cache/tally-ci $(UI_STAMP)
	find web-ui/dist -mindepth 1 -not -name .keep -delete

.PHONY: help
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- files ----

$(GOLANGCI): PACKAGE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(PROTOC_GEN_GO): PACKAGE := google.golang.org/protobuf/cmd/protoc-gen-go
$(OAPI_CODEGEN): PACKAGE := github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen
$(CYCLONEDX_GOMOD): PACKAGE := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
$(HELM): PACKAGE := helm.sh/helm/v3/cmd/helm
# The version is what follows the last hyphen of the folder's name.
$(GOLANGCI) $(PROTOC_GEN_GO) $(OAPI_CODEGEN) $(CYCLONEDX_GOMOD) $(HELM):
	GOBIN=$(@D) go install $(PACKAGE)@$(lastword $(subst -, ,$(notdir $(@D))))

$(NPM_STAMP): web-ui/package.json web-ui/package-lock.json
	@build/need.sh node
	cd web-ui && npm ci --no-audit --no-fund
	@touch $@

$(UI_STAMP): $(NPM_STAMP) $(UI_SOURCES)
	cd web-ui && npm run build
	@mkdir -p $(@D) && touch $@

# The stamp knows nothing of pages that somebody removed.
ifeq ($(wildcard web-ui/dist/index.html*),)
.PHONY: $(UI_STAMP)
endif
