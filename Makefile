# Everything here runs on a machine with Go alone; what else a target needs it installs or names.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)

BIN = bin
PROGRAMS = ./cmd/...

# Only what a tick passes is inlined: the binary is a megabyte smaller, and a replica as fast.
INLINED = std github.com/redis/... ./internal/... ./lock/... ./sidecar/...
RELEASE = -trimpath -gcflags=all=-l $(INLINED:%=-gcflags=%=) -tags nethttpomithttp2 -ldflags "-s -w -X main.version=$(VERSION)"

.PHONY: build completions release-snapshot check test test-product test-outside race budget proof proof-report lint soak bench bench-gate faults benchmarks stores nemesis hour model sim recording screenshot

build: ## the stripped static binaries in bin/, for GOOS and GOARCH
	CGO_ENABLED=0 go build $(RELEASE) -o $(BIN)/ $(PROGRAMS)

completions: build ## the scripts that complete command lines, in bin/completions; GOOS and GOARCH must be those of this machine
	mkdir -p bin/completions
	bin/solotick completion bash >bin/completions/solotick.bash
	bin/solotick completion fish >bin/completions/solotick.fish
	bin/solotick completion zsh >bin/completions/_solotick

release-snapshot: ## all files of a release in dist/, tried out; nothing is signed or published, and there is no image
	.ci/install rpm
	go tool -modfile=packaging/go.mod goreleaser release --snapshot --clean --skip=sign
	cd packaging && go test -count=1 ./... -dist ../dist

# internal/testing/suite says which tests are in which suite, and why.
SUITE = go run ./internal/testing/suite

check: ## the quick tests, in three minutes: build, vet, the tests of all packages without what takes long, the transcripts
	$(SUITE) check

test: ## all tests except the long proofs; installs what they need beside Go where it may, and says what was not run
	.ci/install
	$(SUITE) product outside

test-product: ## of these, the tests of the product and its examples
	.ci/install
	$(SUITE) product

test-outside: ## and those of the packages, the manifests, the page in a browser, and the benchmarks' own
	.ci/install
	$(SUITE) outside

race: ## all tests of the product under the race detector, in an hour
	.ci/install
	$(SUITE) race

proof: ## the long proofs: mutants of scripts, replays of the model, simulated seeds, seeded faults
	.ci/install redis
	$(SUITE) proof

budget: ## the size of the product beside its limits: lines, words, keys, verbs, metrics, the binary
	@go -C internal/budget test -count=1 -run TestTheProductIsNoLargerThanItsBudget

lint: ## formatting, marks of merges, words, vet, staticcheck, the workflows, a tidy go.mod, and known vulnerabilities
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'not formatted: run gofmt -w'; exit 1; }
	@! grep -rnE --exclude-dir=.git '^(<<<<<<<|>>>>>>>) ' .
	.ci/words
	go vet ./...
	go tool -modfile=.ci/tools/go.mod staticcheck ./...
	go -C proof tool -modfile=../.ci/tools/go.mod staticcheck ./...
	go tool -modfile=.ci/tools/go.mod actionlint
	go mod tidy -diff
	go -C proof mod tidy -diff
	.ci/vulns

soak: ## three replicas on a real Redis for ten minutes: every tick once (FLAGS="-skew 0,2.5s,-2.5s -clock local")
	.ci/install redis
	go -C proof test ./nemesis -run TestNemesis -count=1 -v -timeout 3h -for 10m -calm $(FLAGS)

stores: ## the tests of all that is kept in Redis on other servers, and their table in docs/redis.md (SERVERS="/opt/a/redis-server ...")
	.ci/stores $(SERVERS)

nemesis: ## half an hour of killed, stopped and cut off processes: every tick once (FLAGS="-seed 4711", or another -for)
	.ci/install redis
	go -C proof test ./nemesis -run TestNemesis -count=1 -v -timeout 3h -for 30m -seed $$(date +%s) $(FLAGS)

hour: ## an hour of all that can become of a tick: each has one fate, and the right one (FLAGS="-for 6m")
	.ci/install redis
	go -C proof test ./nemesis -run TestScriptedHour -count=1 -v -timeout 3h -for 60m $(FLAGS)

bench: ## delays, costs, crowds, timers and size beside what is built without Solotick (FLAGS="-h" lists the parts)
	.ci/install redis
	cd bench && go run . $(FLAGS)

faults: ## ticks doubled, lost, late and early under faults, of Solotick and of fifteen contenders (FLAGS="-faults calm,crash")
	.ci/install redis docs adapters faults
	cd bench && go run . -only faults $(FLAGS)

benchmarks: ## both, and docs/benchmarks.md anew, in 25 minutes on two quiet cores
	.ci/install redis docs adapters faults
	cd bench && go run . -all -write $(FLAGS)

bench-gate: ## a few steady ratios beside the committed ones: it fails if one is worse, and wants a quiet machine for two minutes
	.ci/install redis
	cd bench && go run . -gate

model: ## the protocol's model in full: every pair of faults, and three at once (FLAGS="-h" lists the options)
	go run ./internal/model/modelcheck $(FLAGS)

SEEDS ?= 100000
sim: ## whole replicas in simulated time under a seeded nemesis: SEEDS of them, or new ones for a time (FRESH=1h, FLAGS="-from=4711 -v")
	go -C proof test ./sim -run TestSeeds -count=1 -v -timeout 0 -long $(if $(FRESH),-for=$(FRESH) -from=$$(date +%s)000,-seeds=$(SEEDS)) $(FLAGS)

SCALE ?= small
FOR ?= 5m
proof-report: SEEDS = 20000
proof-report: export SOLOTICK_PROOF_RESULTS = $(CURDIR)/proof/results
proof-report: ## docs/proof.md anew, of runs of half an hour (SEEDS of the simulation, FOR=5m of the nemesis, SCALE=small of the model, SERVERS of stores)
	.ci/install redis
	go run ./internal/model/modelcheck -scale $(SCALE)
	go test ./internal/model/... -run 'LeftOutIsFound|WorldsOfTimers' -count=1
	go test ./lock -run 'EveryMutant|ReplaysOfTheModelMeet' -count=1 -timeout 30m
	go -C proof test ./sim -run TestSeeds -count=1 -v -timeout 0 -long -seeds=$(SEEDS)
	go -C proof test ./sim -run TestTeeth -count=1 -timeout 1h
	go -C proof test ./skew -count=1
	go -C proof test ./nemesis -run TestScriptedHour -count=1
	go -C proof test ./nemesis -run TestNemesis -count=1 -timeout 3h -for $(FOR) -seed $$(date +%s)
	.ci/stores $(SERVERS)
	go -C proof run ./report

recording: ## docs/demo.svg anew: a real run of the demo, recorded in half a minute
	go run ./docs/record

screenshot: ## docs/status-page.png and its dark twin anew, by a headless Chromium
	.ci/install chromium
	dir=$$(mktemp -d) && (cd sidecar/admin/browser && go test ./... -count=1 -run TestThePageFitsEveryWidth -shots $$dir) && mv $$dir/status-page*.png docs/ && rm -r $$dir
