# Everything here runs on a machine with Go alone; what else a target needs it installs or names.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)

RELEASE = -trimpath -tags nethttpomithttp2 -ldflags "-s -w -X main.version=$(VERSION)"

.PHONY: build completions release-snapshot test proof lint soak bench faults benchmarks stores nemesis hour model sim recording screenshot

build: ## the stripped static binary, for GOOS and GOARCH
	CGO_ENABLED=0 go build $(RELEASE) -o bin/solotick ./cmd/solotick

completions: build ## the scripts that complete command lines, in bin/completions; GOOS and GOARCH must be those of this machine
	mkdir -p bin/completions
	bin/solotick completion bash >bin/completions/solotick.bash
	bin/solotick completion fish >bin/completions/solotick.fish
	bin/solotick completion zsh >bin/completions/_solotick

release-snapshot: ## all files of a release in dist/, tried out; nothing is signed or published, and there is no image
	.ci/rpm
	go tool -modfile=packaging/go.mod goreleaser release --snapshot --clean --skip=sign
	cd packaging && go test -count=1 ./... -dist ../dist

# Those that take the longest begin first, so that none of them is left alone at the end.
LONGEST = ./cmd/solotick ./sidecar ./lock

# These have tests that -short leaves out: under the race detector they would compute for ten minutes, or kill processes that do
# not have it. They run without it.
SHORTENED = ./sidecar ./config/...

# At its end, a process with the race detector sleeps for a second by default. The transcripts end hundreds of them.
test: ## all tests but the proofs, with the race detector; installs redis-server, prometheus, systemd, rpm, node, uvicorn, a JDK and chromium when they are missing and it may
	.ci/redis
	.ci/prometheus
	.ci/systemd
	.ci/handlers
	GORACE=atexit_sleep_ms=10 go test -race -short -timeout 20m $(LONGEST) ./...
	go test -timeout 20m $(SHORTENED)
	go -C proof test -race -short -timeout 20m ./...
	go -C proof test -timeout 20m ./nemesis
	cd bench && go vet ./... && go test -timeout 5m ./...
	cd examples/check && go vet ./... && go test -timeout 5m ./...
	.ci/rpm
	cd packaging && go vet ./... && go test -count=1 -timeout 5m ./...
	.ci/chromium
	cd sidecar/admin/browser && go vet ./... && go test -timeout 5m ./...

# The race detector sees nothing of scripts, and little in a simulation on one processor. Both would be three to ten times as slow.
proof: ## the long proofs, without the race detector: mutants of scripts, replays of the model, its small worlds, simulated seeds, seeded faults
	.ci/redis
	go test -timeout 20m -run 'Mutant|Replay' ./lock
	go test -timeout 40m ./internal/model/...
	go -C proof test -timeout 40m ./sim

lint: ## formatting, marks of merges, vet, staticcheck, the workflows, a tidy go.mod, and known vulnerabilities
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'not formatted: run gofmt -w'; exit 1; }
	@! grep -rnE --exclude-dir=.git '^(<<<<<<<|>>>>>>>) ' .
	go vet ./...
	go -C proof vet ./...
	go tool -modfile=.ci/tools/go.mod staticcheck ./...
	go tool -modfile=.ci/tools/go.mod actionlint
	go mod tidy -diff
	.ci/vulns

soak: ## three replicas on a real Redis for ten minutes: every tick once (FLAGS="-skew 0,2.5s,-2.5s -clock local")
	.ci/redis
	go -C proof test ./nemesis -run TestNemesis -count=1 -v -timeout 3h -for 10m -calm $(FLAGS)

stores: ## the tests of all that is kept in Redis on other servers, and their table in docs/redis.md (SERVERS="/opt/a/redis-server ...")
	.ci/stores $(SERVERS)

nemesis: ## half an hour of killed, stopped and cut off processes: every tick once (FLAGS="-seed 4711", or another -for)
	.ci/redis
	go -C proof test ./nemesis -run TestNemesis -count=1 -v -timeout 3h -for 30m -seed $$(date +%s) $(FLAGS)

hour: ## an hour of all that can become of a tick: each has one fate, and the right one (FLAGS="-for 6m")
	.ci/redis
	go -C proof test ./nemesis -run TestScriptedHour -count=1 -v -timeout 3h -for 60m $(FLAGS)

bench: ## delays, costs, crowds, timers and size beside what is built without Solotick (FLAGS="-h" lists the parts)
	.ci/redis
	cd bench && go run . $(FLAGS)

faults: ## ticks doubled, lost, late and early under faults, of Solotick and of six contenders (FLAGS="-faults calm,crash")
	.ci/redis
	cd bench && go run . -only faults $(FLAGS)

benchmarks: ## both, and docs/benchmarks.md anew, in 20 minutes on two quiet cores
	.ci/redis
	cd bench && go run . -all -write $(FLAGS)

model: ## the protocol's model in full: every pair of faults, and three at once (FLAGS="-h" lists the options)
	go run ./internal/model/modelcheck $(FLAGS)

SEEDS ?= 100000
sim: ## whole replicas in simulated time under a seeded nemesis: SEEDS of them, or new ones for a time (FRESH=1h, FLAGS="-from=4711 -v")
	go -C proof test ./sim -run TestSeeds -count=1 -v -timeout 0 -long $(if $(FRESH),-for=$(FRESH) -from=$$(date +%s)000,-seeds=$(SEEDS)) $(FLAGS)

SCALE ?= small
FOR ?= 5m
.PHONY: proof-report
proof-report: SEEDS = 20000
proof-report: export SOLOTICK_PROOF_RESULTS = $(CURDIR)/proof/results
proof-report: ## docs/proof.md anew, of runs of half an hour (SEEDS of the simulation, FOR=5m of the nemesis, SCALE=small of the model, SERVERS of stores)
	.ci/redis
	go run ./internal/model/modelcheck -scale $(SCALE)
	go test ./internal/model -run TestEachMendLeftOutIsFound -count=1
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

screenshot: ## docs/status-page.png anew, by a headless Chromium
	.ci/chromium
	dir=$$(mktemp -d) && (cd sidecar/admin/browser && go test ./... -count=1 -run TestThePageFitsEveryWidth -shots $$dir) && mv $$dir/readme.png docs/status-page.png && rm -r $$dir
