# make           what there is to make
# make test      everything that has to hold

.DEFAULT_GOAL := help
SHELL := /bin/sh

GO           ?= go
TEST_TIMEOUT ?= 20m
BENCH        ?= .
BENCH_TIME   ?= 1s
HOURS        ?= 100
FROM         ?= 1
PART         ?= 1/1
RANDOM       ?=
SEED         ?= 1
ROUNDS       ?= 1000
LOCAL_ROUNDS ?= 100
SOAK         ?= 1h
FUZZ         ?= .
FUZZ_TIME    ?= 30s

# Packages whose short tests take longest: of the library, and of the integration tests.
LARGEST      := ./unitofwork ./lockset
LARGEST_OF_INTEGRATION := ./simulation ./protocol

# Those with dependencies of their own. What is in otlp needs more than test fetches.
MODULES      := integration cmd/holdall otelholdall
OTLP         := otelholdall/otlp otelholdall/otlp/collector

TOOLS        := $(CURDIR)/.tools
LINT_VERSION := v2.15.0
LINT         := $(TOOLS)/golangci-lint-$(LINT_VERSION)
CFN_VERSION  := 1.58.0
CFN_LINT     := $(TOOLS)/cfn-lint-$(CFN_VERSION)/bin/cfn-lint

.PHONY: help demo engines test prove long sim chaos soak mutants model otlp before fuzz docs bench lint templates fmt aws aws-clean aws-policy

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: ## move money between accounts, many at a time, with crashes
	@$(GO) run ./examples/bank

engines: ## fetch the engines that tests run against into .engines/
	@$(GO) -C integration run ./engines/install

# The engines run as processes of the tests: a test without its engine fails. With
# -short every test is run on every engine, those with a long form in a short one: long
# has that. Only in cmd/holdall a test of many cases, or of words, has each case on one engine
# in short, in turn, as every step of every case is a process. The packages are vetted by lint,
# with more checks: here that would look at all dependencies again. A test binary needs little
# memory, so the collector may be lazy; and it need not wait a second at its end for goroutines
# that race then, as those of long do. Packages that wait for engines leave processors idle: one
# package more than there are processors runs, and the largest begin first, so that none is left
# to run alone at the end.
test: ## fetch the engines if missing, run all tests with the race detector, in short
	@began=$$(date +%s); set -e; \
	echo "engines"; $(GO) -C integration run ./engines/install; \
	test="$(GO) test -race -short -vet=off -timeout $(TEST_TIMEOUT) -p $$(($$(getconf _NPROCESSORS_ONLN) + 1))"; \
	export GOGC=400 GORACE=atexit_sleep_ms=50; \
	echo "$$test ./..."; $$test $(LARGEST) ./... || failed=1; \
	for module in $(MODULES); do echo "the same in $$module"; first=; \
	if [ $$module = integration ]; then first="$(LARGEST_OF_INTEGRATION)"; fi; \
	(cd $$module && $$test $$first ./...) || failed=1; done; \
	echo "make test took $$(( $$(date +%s) - began )) s"; \
	test -z "$$failed"

# About an hour on 2 cores. CI runs parts of it, others for every commit.
prove: ## what test leaves out: the long tests, the simulation for 500 hours, long chaos, all mutants, all models
	@$(MAKE) --no-print-directory long
	@$(MAKE) --no-print-directory sim HOURS=500
	@$(MAKE) --no-print-directory chaos
	@$(MAKE) --no-print-directory mutants
	@$(MAKE) --no-print-directory model

sim: ## simulate HOURS host-hours (100) of everything that can go wrong, from seed FROM (1)
	@echo "simulating $(HOURS) host-hours from seed $(FROM)"; \
	$(GO) -C integration test ./simulation -run 'TestSimulation$$' -count=1 -v -timeout 0 -hours $(HOURS) -from $(FROM)

# Those packages are found, not listed: none is forgotten. Those of the command and of exporters
# without the race detector, which their short tests have: with it the largest pictures take minutes.
long: ## the packages of which test has something in short, in full, with the race detector (PART=1/3: a third of them)
	@$(GO) -C integration run ./engines/install
	@all=$$(grep -rl --include='*_test.go' 'testing\.Short()' . | xargs -n 1 dirname | sort -u | \
	awk -v part=$(PART) 'BEGIN { split(part, p, "/") } NR % p[2] == p[1] % p[2]'); failed=; \
	test="test -vet=off -timeout $(TEST_TIMEOUT) -count=1"; export GOGC=400; \
	library=$$(echo "$$all" | grep -v $(MODULES:%=-e '^\./%\(/\|$$\)')); proof=$$(echo "$$all" | sed -n 's,^\./integration/,./,p'); \
	[ -z "$$library" ] || $(GO) $$test -race $$library || failed=1; \
	[ -z "$$proof" ] || $(GO) -C integration $$test -race $$proof || failed=1; \
	for dir in $$(echo "$$all" | grep $(patsubst %,-e '^\./%\(/\|$$\)',$(filter-out integration,$(MODULES)))); do (cd $$dir && $(GO) $$test .) || failed=1; done; test -z "$$failed"

# A short run of it is part of test.
chaos: ## kill and stop real processes, and their engine, ROUNDS times (1000): a quarter of an hour
	@$(GO) -C integration run ./engines/install
	@$(GO) -C integration test ./chaos -run 'TestChaos' -count=1 -v -timeout 0 -rounds $(ROUNDS) -local $(LOCAL_ROUNDS)

soak: ## have a bank of several processes work for SOAK (1h), with mishaps: what it needs must not grow
	@$(GO) -C integration run ./engines/install
	@$(GO) -C integration test ./chaos -run 'TestSoak$$' -count=1 -v -timeout 0 -soak $(SOAK)

# Not part of test: it takes minutes. A change of the protocol runs it.
mutants: ## weaken the protocol clause by clause: a test must notice each time (PART=1/4: of a quarter; RANDOM=100 SEED=1: change any code so often, drawn by the seed)
	@$(GO) -C integration run ./tools/mutants -part $(PART) $(if $(RANDOM),-random $(RANDOM) -seed $(SEED))

model: ## search the models of the protocol, all of them and each without its clauses, with Spin (PART=1/2: half of that)
	@$(GO) -C integration run ./engines/install spin gcc
	@$(GO) -C integration run ./tools/model -part $(PART)

# Not part of test: building the collector takes a minute or two, once.
otlp: ## the example bank, watched by a collector and a Prometheus that really run; the alert rules by promtool
	@$(GO) -C integration run ./engines/install collector prometheus
	@cd otelholdall/otlp && $(GO) vet ./... && $(GO) test -race -vet=off -timeout $(TEST_TIMEOUT) -count=1 ./...

# Not part of test: they need a JDK, a Redis and the libraries, and say nothing of ours.
before: ## the Java programs of the guide on coming from other libraries: compiled, and run on DynamoDB Local and a Redis
	@$(GO) -C integration run ./engines/install java javac mvn redis-server
	@$(GO) -C integration run ./tools/before

# What the caller gives of it goes to the program, which says what is missing. It takes the
# signals itself, and so runs in the place of the shell.
AWS_OPTIONS   = -region '$(REGION)' -prefix '$(PREFIX)' -endpoint '$(ENDPOINT)' -engine '$(ENGINE)' -consent '$(CONSENT)'
AWS           = mkdir -p $(TOOLS) && $(GO) -C integration build -o $(TOOLS)/aws ./aws && exec $(TOOLS)/aws

aws: ## run the suites on your AWS account, after asking (REGION= PREFIX=), or in its place (PREFIX= ENGINE=dynamodb-local): docs/aws.md
	@$(AWS) run $(AWS_OPTIONS)

aws-clean: ## delete tables that an interrupted make aws has left, after asking (the same REGION= PREFIX=)
	@$(AWS) clean $(AWS_OPTIONS)

aws-policy: ## print the permissions that make aws needs, as an IAM policy
	@$(AWS) policy -region '$(REGION)' -prefix '$(PREFIX)'

# Not part of test: that runs the inputs that were kept.
fuzz: ## any input to every fuzz target that matches FUZZ (all), each for FUZZ_TIME (30s)
	@failed=; for file in $$(grep -rl --include='*_test.go' '^func Fuzz' . | sort); do dir=$$(dirname $$file); \
	for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' $$file | grep -E '$(FUZZ)'); do echo "$$dir $$target"; \
	(cd $$dir && $(GO) test . -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime 500x) || failed="$$failed $$dir.$$target"; done; done; \
	[ -z "$$failed" ] || { echo "failed:$$failed; the inputs are in testdata/fuzz of their folders, and go test -run NAME/INPUT runs one again" >&2; exit 1; }

docs: ## write what is generated: docs/model/clauses.md and docs/pictures
	@$(GO) -C integration run ./tools/model -docs
	@$(GO) -C integration test ./tools/pictures -count=1 -write

bench: ## what locking, committing and waiting cost: requests, capacity, time
	@$(GO) -C integration run ./engines/install
	@for module in . integration otelholdall/otlp; do \
	$(GO) -C $$module test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCH_TIME) -benchmem ./... || exit 1; done

# Built with the versions golangci-lint itself was released with, away from
# go.mod: its dependencies must never become ours.
lint: $(LINT) ## golangci-lint, the version this file names
	@$(LINT) run ./...
	@for module in $(MODULES) $(OTLP); do (cd $$module && $(LINT) run ./...) || exit 1; done

$(LINT):
	@echo "building golangci-lint $(LINT_VERSION), once; this takes minutes"
	@mkdir -p $(TOOLS)/build
	@cd $(TOOLS) && GOBIN=$(TOOLS)/build GOFLAGS= GOWORK=off \
		$(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv $(TOOLS)/build/golangci-lint $@

# Away from the machine's Python. The rules for Terraform are in the tests of cmd/holdall.
templates: $(CFN_LINT) ## cfn-lint on the CloudFormation that holdall init prints
	@mkdir -p $(TOOLS)/printed && cd cmd/holdall && $(GO) build -o $(TOOLS)/printed/holdall . && cd $(TOOLS)/printed && \
	./holdall init --print cloudformation --table locks --units units --records accounts,orders.v2 >all.yaml && \
	./holdall init --print cloudformation --table locks --units units --operator >operator.yaml 2>/dev/null && \
	./holdall init --print cloudformation --table 123-locks --hash-key yes >locks.yaml 2>/dev/null && \
	$(CFN_LINT) all.yaml operator.yaml locks.yaml && echo "cfn-lint has nothing to say"

$(CFN_LINT):
	@python3 -m venv $(TOOLS)/cfn-lint-$(CFN_VERSION)
	@$(TOOLS)/cfn-lint-$(CFN_VERSION)/bin/pip install -q cfn-lint==$(CFN_VERSION)

include integration/tools/release.mk

fmt: ## gofmt
	@gofmt -l -w .
