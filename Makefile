STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
ERRCHECK    = github.com/kisielk/errcheck@v1.30.0

MODULES     = web/app/node_modules/.package-lock.json # what npm writes last

ARGS      ?= # of demo, such as ARGS='--event theatre --crowd 50'
TESTFLAGS ?= # of test, such as TESTFLAGS='-run TestTake -v'

.DEFAULT_GOAL := help
.PHONY: help demo demo-deps test test-deps lint build bench bench-map assets assets-check screenshots

help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: demo-deps ## put a stadium on sale at http://127.0.0.1:8080 (ARGS='--event theatre --crowd 50')
	@echo 'building bin/seatcast, which takes minutes the first time'
	@mkdir -p bin && go build -buildvcs=false -o bin/ ./cmd/seatcast && exec bin/seatcast demo $(ARGS)

# One package at a time: what is promised within seconds is measured, and each
# package has servers, crowds and browsers of its own.
test: test-deps ## run all tests with the race detector, on real servers
	@go test -race -p 1 -timeout 30m $(TESTFLAGS) ./...

lint: ## gofmt, go vet, staticcheck, errcheck
	@unformatted=$$(gofmt -l .) && test -z "$$unformatted" || { printf 'not gofmt:\n%s\n' "$$unformatted"; exit 1; }
	@go vet ./...
	@go run $(STATICCHECK) ./...
	@go run $(ERRCHECK) -ignoretests ./...

build: ## build bin/seatcast
	@mkdir -p bin && go build -o bin/ ./cmd/seatcast

# web/dist is committed: nothing but these two needs Node.
assets: $(MODULES) ## build the browser client of web/app into web/dist
	@npm --prefix web/app run --silent build

assets-check: $(MODULES) ## fail when web/dist is not what web/app makes, or the axe-core of the tests not the one it pins
	@cmp web/app/node_modules/axe-core/axe.min.js web/testdata/axe.min.js
	@made=$$(mktemp -d) && trap 'rm -rf "$$made"' EXIT && DIST="$$made" npm --prefix web/app run --silent build && \
		{ diff -rq "$$made" web/dist || { echo 'web/dist is not what web/app makes: run make assets and commit it'; exit 1; }; }

# The tests that take pictures are those that call Shot.
screenshots: test-deps ## save pictures of the pages, as the tests see them, in docs/screens
	@SEATCAST_SCREENSHOTS=$(CURDIR)/docs/screens go test -count=1 -p 1 -timeout 20m ./web ./cmd/seatcast -run "^($$(awk \
		'/^func /{name = $$2; sub(/\(.*/, "", name)} /\.Shot\(/ && name {print name}' web/*_test.go cmd/seatcast/*_test.go | sort -u | paste -sd '|'))$$"

bench: test-deps ## run the benchmarks
	@go test -run '^$$' -bench . -benchmem ./...

bench-map: test-deps ## draw 60,000 seats in a browser, on canvas and on WebGL
	@go test -run '^$$' -bench '^BenchmarkMap$$' -benchtime 1x ./cmd/seatcast

demo-deps: ## install what demo needs, on Debian
	@scripts/install demo

$(MODULES): web/app/package-lock.json
	@scripts/install assets
	@npm --prefix web/app ci --no-audit --no-fund --loglevel=error && touch $@

test-deps: ## install what test needs, on Debian
	@scripts/install demo test
