# Statemill's commands. A bare `make` prints them.
SHELL        := bash
.SHELLFLAGS  := -euo pipefail -c
.DEFAULT_GOAL := help

GO          ?= go
FUZZTIME    ?= 5s
FUZZPKG     ?= ./...
BENCH       ?= all
ARGS        ?=
ROUNDS      ?= 10
HISTORIES   ?= 90s
SOAK_TIMEOUT ?= 70m
LONG         = $(if $(filter file,$(origin HISTORIES)),10m,$(HISTORIES))
LEADERS     ?= TestLeader|TestHistories$$
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
MODULES     := . bench test/sql
comma       := ,

.PHONY: help run test race crash test-kafka test-kafka3 test-sql fuzz lint bench bench-kafka cover golden soak sabotage ci

help: ## print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

run: ## write real text to an embedded Kafka and count its words with mapWithState (ARGS="file …" or ARGS=-h)
	@$(GO) run ./examples/wordcount $(ARGS)

test: ## everything that needs only Go: build, vet, all tests, the oracle
	@for m in . bench; do (cd $$m && $(GO) build -o /dev/null ./... && $(GO) vet ./...); done
	$(GO) test -count=1 $$($(GO) list ./... | grep -v '/internal/oracle$$')
	cd bench && $(GO) test -count=1 ./...
	$(GO) test ./internal/oracle -v -count=1

# Loops that crash at every call are whole in make test; here they take every nth, as the detector makes them ten times as long.
# The rooms whose invariants the detector turns on run whole.
race: ## all tests under the race detector (which also turns the invariants on)
	$(GO) test -race -count=1 ./statemap ./staterdd
	$(GO) test -race -short -count=1 $$($(GO) list ./... | grep -Ev '/(statemap|staterdd)$$')

crash: ## kill -9 a real program over a real Apache Kafka, in 10 rounds (ROUNDS=50 for more), and compare what it counted
	@STATEMILL_CRASH_ROUNDS=$(ROUNDS) test/kafka/broker/with.sh $(GO) test ./test/crash -count=1 -v -timeout 15m $(ARGS)

test-kafka: ## tests against a real Apache Kafka, started and stopped here; random histories for HISTORIES (90s) on it and as long on an embedded one
	@STATEMILL_HISTORIES=$(HISTORIES) test/kafka/broker/with.sh $(GO) test ./test/kafka/... -p 1 -count=1 -v -timeout 15m $(ARGS)

test-kafka3: ## three real brokers: leaders are killed in mid-batch, and random histories for HISTORIES (90s) kill them too
	@KAFKA_NODES=3 STATEMILL_HISTORIES=$(HISTORIES) test/kafka/broker/with.sh $(GO) test ./test/kafka -run '$(LEADERS)' -count=1 -v -timeout 15m $(ARGS)

test-sql: ## the SQL sink on SQLite and on a PostgreSQL of the system's packages, started and stopped here
	@cd test/sql && ./postgres.sh $(GO) test -count=1 -v -timeout 15m ./... $(ARGS)

soak: ## what takes long: 50 rounds of kill -9, the protocol and the Kafka sink in their greatest bounds, random histories for HISTORIES (10m here) each, in SOAK_TIMEOUT (70m)
	@$(MAKE) --no-print-directory crash ROUNDS=50
	@$(GO) test ./internal/protocol -run TestModelBig -count=1 -v -timeout 120m -soak
	@STATEMILL_SOAK_SAGAS=10m $(GO) test ./test/metamorphic -run TestSagas -count=1 -v -timeout 30m
	@STATEMILL_SOAK=1 KAFKA_TIMEOUT=$(SOAK_TIMEOUT) $(MAKE) --no-print-directory test-kafka HISTORIES=$(LONG) ARGS="-timeout $(SOAK_TIMEOUT)"
	@KAFKA_TIMEOUT=$(SOAK_TIMEOUT) $(MAKE) --no-print-directory test-kafka3 HISTORIES=$(LONG) ARGS="-timeout $(SOAK_TIMEOUT)"
	@STATEMILL_SOAK=1 $(MAKE) --no-print-directory test-sql

fuzz: ## every Fuzz target of every package (FUZZPKG=./codec for some) for FUZZTIME (default 5s) each
	@found=0; out=$$(mktemp); trap 'rm -f "$$out"' EXIT; \
	for p in $$($(GO) list $(FUZZPKG)); do \
		for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
			found=$$((found+1)); tries=0; echo "fuzz: $$p $$f $(FUZZTIME)"; \
			until $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$p 2>&1 | tee "$$out"; do \
				tries=$$((tries+1)); \
				if [ $$tries -gt 2 ] || grep -q 'Failing input' "$$out" || ! grep -q '^ *context deadline exceeded$$' "$$out"; then exit 1; fi; \
				echo "fuzz: the time was over in the middle of a call, and Go calls that a failure: once more"; \
			done; \
		done; \
	done; \
	echo "fuzz: $$found targets, $(FUZZTIME) each"; [ $$found -gt 0 ]

lint: ## gofmt, vet (with all build tags), staticcheck, tidy modules, the rules of internal/lint
	@bad=$$(gofmt -s -l .); \
	if [ -n "$$bad" ]; then echo "not formatted (gofmt -s):"; echo "$$bad"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags invariants ./...
	$(GO) vet -tags sabotage ./...
	@for m in $(MODULES); do \
		echo "$$m: vet, staticcheck, go mod tidy -diff"; \
		(cd $$m && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) mod tidy -diff); \
	done
	$(GO) test -count=1 ./internal/lint

bench: ## the speed targets as one JSON line each (BENCH=statemap_update_1m for one of them, BENCH=list for the names)
	@cd bench && $(GO) run . -bench '$(BENCH)' $(ARGS)

bench-kafka: ## the benchmarks of Kafka (BENCH=kafka_fetch for one of them) with a real Apache Kafka, started and stopped here
	@test/kafka/broker/with.sh $(MAKE) --no-print-directory bench BENCH='$(if $(filter all,$(BENCH)),kafka_fetch$(comma)kafka_count_10k$(comma)kafka_count_1m$(comma)kafka_backlog,$(BENCH))'

cover: ## statement coverage of each package by its own tests, and the total over all tests
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	$(GO) test -count=1 -coverprofile "$$tmp/own" ./... | grep -v 'no test files' | sed 's/^ok  *//'; \
	$(GO) test -count=1 -coverpkg=./... -coverprofile "$$tmp/all" ./... >/dev/null; \
	grep -Ev '/(examples|test|internal/lint)/' "$$tmp/all" > "$$tmp/product"; \
	$(GO) tool cover -func "$$tmp/product" | awk 'END {print "total coverage of the product by all tests: " $$NF}'

golden: ## rewrite the golden files (tests that have some know the flag -rewrite), then show what changed
	@pkgs=$$(git grep -l 'flag.Bool("rewrite"' -- '*_test.go' | xargs -rn1 dirname | sort -u | sed 's|^|./|'); \
	for p in $$pkgs; do $(GO) test -count=1 $$p -rewrite; done; git status --short -- $$pkgs

sabotage: ## break the code one named line at a time: each break must be caught by the test named for it, those of the protocol by the model checker too
	@$(GO) test -tags sabotage -count=1 -run TestModelSees ./internal/protocol
	@$(GO) run ./test/sabotage $(ARGS)

ci: ## what the continuous build runs, with its time budget
	@.ci/run
