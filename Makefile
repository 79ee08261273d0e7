# Everything here runs on a machine with Go alone; what else a target needs it installs or names.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)

# Inlining makes code that runs once at the start, or never, a tenth larger; where it matters it stays on.
COLD = github.com/alicebob/... github.com/yuin/... google.golang.org/... go.yaml.in/... github.com/prometheus/... \
	github.com/spf13/... github.com/netresearch/... net/http
RELEASE = -trimpath -tags nethttpomithttp2 -ldflags "-s -w -X main.version=$(VERSION)" $(COLD:%=-gcflags=%=-l)

.PHONY: build test lint soak bench

build: ## the stripped static binary, for GOOS and GOARCH
	CGO_ENABLED=0 go build $(RELEASE) -o bin/solotick ./cmd/solotick

test: ## all tests, with the race detector; installs redis-server when it is missing and it may
	.ci/redis
	go test -race -timeout 15m ./...
	cd bench && go vet ./... && go test -timeout 5m ./...

lint: ## formatting, vet, staticcheck, and a tidy go.mod
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'not formatted: run gofmt -w'; exit 1; }
	go vet ./...
	go tool -modfile=.ci/tools/go.mod staticcheck ./...
	go mod tidy -diff

soak: ## three replicas on a real Redis for ten minutes: every tick once (FLAGS="-skew 0,2.5s,-2.5s -clock local")
	go run ./internal/soak -for 10m $(FLAGS)

bench: ## delays, round trips, capacity and size beside a plain gocron + redsync (FLAGS="-h" lists the parts)
	cd bench && go run . $(FLAGS)
