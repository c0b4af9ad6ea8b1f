# What a release is made of, and what is looked at before one.

# The newest Go. The library is tested with it beside that of go.mod, and the command built.
NEWEST_GO       := go1.27.4
VULN_VERSION    := v1.9.0
SBOM_VERSION    := v1.10.0
APIDIFF_VERSION := v0.0.0-20261113113407-e3970619a1a4

VULN    := $(TOOLS)/govulncheck-$(VULN_VERSION)
SBOM    := $(TOOLS)/cyclonedx-gomod-$(SBOM_VERSION)
APIDIFF := $(TOOLS)/apidiff-$(APIDIFF_VERSION)

TARGETS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
SINCE   ?= $(shell git describe --tags --abbrev=0 --match 'v*' 2>/dev/null)
LIBRARY := ./ordering ./fencing ./heartbeat ./trace ./record ./lockset ./unitofwork ./holdalltest

# For one target, and whoever builds it: no C, no paths, no settings of the machine's.
plainly = GOTOOLCHAIN=$(NEWEST_GO) GOFLAGS= GOWORK=off GOEXPERIMENT= GOAMD64= GOARM64= CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target\#*/}

.PHONY: verify newest vuln api release sbom twice

verify: ## compare the dependencies in the module cache with go.sum
	@for module in . $(MODULES); do (cd $$module && printf "%s: " $$module && $(GO) mod verify) || exit 1; done

newest: ## vet and the quick tests of the library, with the newest Go
	@echo "$(NEWEST_GO)"; export GOTOOLCHAIN=$(NEWEST_GO); $(GO) vet $(LIBRARY) && $(GO) test -short -vet=off -timeout $(TEST_TIMEOUT) $(LIBRARY)

# It looks for vulnerabilities in a database that it fetches. Where it cannot, it has checked nothing.
vuln: $(VULN) ## govulncheck on all modules, which needs https://vuln.go.dev
	@for module in . $(MODULES); do echo "$$module:"; \
	said=$$(cd $$module && $(VULN) ./... 2>&1); code=$$?; \
	case "$$said" in *"fetching vulnerabilities"*) echo "NOT checked: the database of govulncheck, https://vuln.go.dev, does not answer from here" >&2; exit 1;; esac; \
	echo "$$said"; [ $$code = 0 ] || exit $$code; done

api: ## what changed in the Go API since the last tag, or since SINCE
	@if [ -z "$(SINCE)" ]; then echo "no version is tagged yet, so there is nothing to compare the API with; SINCE=COMMIT names something"; \
	else $(MAKE) --no-print-directory $(APIDIFF) && was=$$(mktemp -d) && trap 'rm -rf "$$was"' EXIT && git archive $(SINCE) >$$was/was.tar && \
	mkdir $$was/tree && tar -xf $$was/was.tar -C $$was/tree && for module in . otelholdall; do \
	[ -e $$was/tree/$$module/go.mod ] || { echo "$$module is new since $(SINCE)"; continue; }; echo "$$module since $(SINCE):"; path=$$(cd $$module && $(GO) list -m); \
	(cd $$was/tree/$$module && $(APIDIFF) -m -w $$was/export $$path 2>/dev/null) && (cd $$module && $(APIDIFF) -m $$was/export $$path >$$was/changes 2>$$was/said) || \
	{ cat $$was/said >&2; exit 1; }; grep -v -E '^(Ignoring|- (\./|package [^ ]*holdall/)(docs|examples|integration|simulation|tools)[./])' $$was/changes || echo "nothing"; done; fi

release: ## the command for all TARGETS, with their SBOMs and checksums, in dist/
	@[ -z "$$(git status --porcelain)" ] || { echo "a release is built from a commit, and here are changes: git status" >&2; exit 1; }
	@rm -rf dist && mkdir dist && for target in $(TARGETS); do \
	name=holdall_$$(echo $$target | tr / _); case $$target in windows/*) name=$$name.exe;; esac; echo "dist/$$name"; \
	(cd cmd/holdall && $(plainly) $(GO) build -trimpath -buildvcs=true -o $(CURDIR)/dist/$$name .) || exit 1; done
	@$(MAKE) --no-print-directory sbom
	@cd dist && sha256sum holdall_* >SHA256SUMS && cat SHA256SUMS

sbom: $(SBOM) ## what the command in dist/ is made of, as CycloneDX, beside it
	@for target in $(TARGETS); do name=dist/holdall_$$(echo $$target | tr / _); \
	from=$$name; case $$target in windows/*) from=$$name.exe;; esac; [ -e $$from ] || { echo "$$from is not there: make release" >&2; exit 1; }; \
	GOOS=$${target%/*} GOARCH=$${target#*/} $(SBOM) bin -json -noserial -notimestamp -std -output $$name.cdx.json $$from || exit 1; done

# Where the second is built, nothing is there that the first has compiled.
twice: ## build the command twice, in different folders: every byte must be the same
	@twice=$$(mktemp -d) && trap 'chmod -R u+w "$$twice"; rm -rf "$$twice"' EXIT && mkdir -p $$twice/one $$twice/another/place && \
	for into in one another/place; do tar -cf - --exclude=./.engines --exclude=./.tools --exclude=./dist . | tar -xf - -C $$twice/$$into && \
	(cd $$twice/$$into && if [ $$into != one ]; then export GOCACHE=$$twice/cache; fi; target=linux/amd64; cd cmd/holdall && $(plainly) $(GO) build -trimpath -buildvcs=true -o $$twice/holdall.$${into%/*} .) || exit 1; done && \
	cmp $$twice/holdall.one $$twice/holdall.another && echo "the command is the same from both: $$(sha256sum <$$twice/holdall.one | cut -d ' ' -f 1)"

$(VULN):
	@$(call install,golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION))

$(SBOM):
	@$(call install,github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(SBOM_VERSION))

$(APIDIFF):
	@$(call install,golang.org/x/exp/cmd/apidiff@$(APIDIFF_VERSION))

# Built with the versions it was released with, away from go.mod.
define install
echo "building $(1), once"; mkdir -p $(TOOLS)/build && cd $(TOOLS) && GOBIN=$(TOOLS)/build GOFLAGS= GOWORK=off \
$(GO) install $(1) && mv $(TOOLS)/build/$(notdir $(firstword $(subst @, ,$(1)))) $@
endef
