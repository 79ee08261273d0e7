package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// kept are schedulers that people keep: each with Solotick's adapter, and after it with a plain lock. They run under
// faults alone.
var kept = []contender{
	keep("nodecron", "node-cron + Solotick", "the adapter as its page shows, "+byClaim, true, nodeCron),
	keep("nodecron-setnx", "node-cron + SET NX EX", "node-cron's `runCoordinator`, with the key that it names, which "+
		"contains the tick, and its 30 s. It does not prevent overlaps", false, nodeCron),
	keep("apscheduler", "APScheduler + Solotick", "the adapter as its page shows, 50 threads, `max_instances` 5, "+
		byClaim, true, apScheduler),
	keep("apscheduler-setnx", "APScheduler + SET NX EX", "in the job, a key for each job, 50 threads, "+
		"`max_instances` 5; "+halfPeriod, false, apScheduler),
	keep("quartz", "Quartz + Solotick", "the adapter as its page shows, 50 threads, "+byClaim, true, quartz),
	keep("quartz-setnx", "Quartz + SET NX EX", "in the job, a key for each fire time, 50 threads; it expires after "+
		"30 s, and is never released. It does not prevent overlaps", false, quartz),
	keep("gocron", "gocron + Solotick", "the adapter as its page shows, "+byClaim, true, goCron),
	keep("gocron-setnx", "gocron + SET NX EX", "a gocron `Locker`, a key for each job; "+halfPeriod, false, goCron),
	keep("crontab", "crontab + `solotick claim`", loop+byClaim, true, crontab),
	keep("crontab-setnx", "crontab + SET NX EX", loop+"redis-cli before the command, a key for each job; "+halfPeriod,
		false, crontab),
}

const (
	byClaim    = "`claim: {}`; a tick is lost if no app can ask for it, or while the lease of a killed run lasts"
	halfPeriod = "it expires after half of the time between two ticks, and is never released. " +
		"It does not prevent overlaps"
	loop = "a loop that knows seconds stands for cron; "
)

// contenderOf is the one of that key; its key is "" if there is none.
func contenderOf(key string) (found contender) {
	for _, c := range slices.Concat(contenders, kept) {
		if c.key == key {
			found = c
		}
	}
	return found
}

// scheduler is a program that runs jobs: by itself, or as the API at an address lets it.
type scheduler struct {
	lacks func(*bench) string
	// program returns the command line, and what is added to the environment. The address is that of the API if the
	// scheduler asks Solotick, and else that of Redis.
	program func(b *bench, s seat, asks bool, address, jobs string) (argv, env []string)
}

var (
	nodeCron    = scheduler{(*bench).nodeLacks, (*bench).nodeCron}
	apScheduler = scheduler{apSchedulerLacks, (*bench).apScheduler}
	quartz      = scheduler{(*bench).quartzLacks, (*bench).quartz}
	goCron      = scheduler{func(*bench) string { return "" }, (*bench).goCron}
	crontab     = scheduler{crontabLacks, (*bench).crontab}
)

func (b *bench) nodeCron(s seat, asks bool, address, jobs string) (argv, env []string) {
	return []string{"node", filepath.Join(b.node(), "cron.mjs"), how(asks), address, jobs, s.name}, nil
}

// how names the way in which a run is one's own, for the programs in ./peer.
func how(asks bool) string {
	if asks {
		return "solotick"
	}
	return "setnx"
}

func (b *bench) apScheduler(s seat, asks bool, address, jobs string) (argv, env []string) {
	app := filepath.Join(b.root, "bench", "peer", "apscheduler_app.py")
	return []string{python(), app, how(asks), address, jobs, s.name}, []string{"PYTHONDONTWRITEBYTECODE=1"}
}

func apSchedulerLacks(*bench) string {
	if exec.Command(python(), "-c", "import apscheduler.executors.pool, redis").Run() != nil {
		return "APScheduler 3 or redis-py is missing"
	}
	return ""
}

// python is the one for which the system's packages are, if there is one.
func python() string {
	const ofSystem = "/usr/bin/python3"
	if _, err := os.Stat(ofSystem); err == nil {
		return ofSystem
	}
	return "python3"
}

// quartzJars are those of Debian's libquartz2-java and libslf4j-java.
const quartzJars = "/usr/share/java/quartz2.jar:/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-nop.jar"

func (b *bench) quartz(s seat, asks bool, address, jobs string) (argv, env []string) {
	return []string{"java", noPerfData, "-XX:+UseSerialGC", "-cp", b.dir + ":" + quartzJars, "QuartzApp", how(asks),
		address, jobs, s.name}, rig.FakeClock(s.skew)
}

// noPerfData keeps Java from leaving a directory beside its temporary ones.
const noPerfData = "-XX:-UsePerfData"

// quartzLacks compiles the app.
func (b *bench) quartzLacks() string {
	if rig.Faketime() == "" {
		return "libfaketime is missing"
	}
	if _, err := exec.LookPath("javac"); err != nil {
		return "a JDK is missing"
	}
	adapter := filepath.Join(b.root, "examples", "adapters", "quartz", "Solotick.java")
	app := filepath.Join(b.root, "bench", "peer", "QuartzApp.java")
	javac := exec.CommandContext(b.ctx, "javac", "-J"+noPerfData, "-cp", quartzJars, "-d", b.dir, adapter, app)
	if text, err := javac.CombinedOutput(); err != nil {
		return fmt.Sprintf("the app cannot be compiled (is Quartz 2 there?): %v: %.300s", err,
			strings.Join(strings.Fields(string(text)), " "))
	}
	return ""
}

func (b *bench) goCron(s seat, asks bool, address, jobs string) (argv, env []string) {
	kind, at := "half", "-redis"
	if asks {
		kind, at = "adapter", "-api"
	}
	return []string{pick(s, b.peer, b.peerSkewed), "-kind", kind, at, address, "-jobs", jobs, "-name", s.name}, nil
}

// The lines of the crontab, and the command in them. redis-cli exits with 0 also if the key was there.
const (
	claimLine = `exec "$SOLOTICK" claim "$JOB" --admin "$HOST:$PORT" -- sh -c "$CALL"`
	setLine   = `[ "$(redis-cli -h "$HOST" -p "$PORT" SET "lock:$JOB" 1 NX PX "$HALF")" = OK ] && exec sh -c "$CALL"`
	callLine  = `exec curl -sS --noproxy '*' -X POST -H "Solotick-Replica: $REPLICA" ` +
		`-H "Solotick-Tick: ${SOLOTICK_TICK:-$TICK}" "$URL"`
)

func (b *bench) crontab(s seat, asks bool, address, jobs string) (argv, env []string) {
	host, port, _ := strings.Cut(address, ":")
	line := setLine
	if asks {
		line = claimLine
	}
	return []string{pick(s, b.peer, b.peerSkewed), "-kind", "crontab", "-jobs", jobs, "-command", line},
		[]string{"SOLOTICK=" + pick(s, b.ours, b.oursSkewed), "HOST=" + host, "PORT=" + port, "REPLICA=" + s.name,
			"CALL=" + callLine}
}

func crontabLacks(*bench) string {
	for _, program := range []string{"curl", "redis-cli"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is missing"
		}
	}
	return ""
}

// keep makes a contender whose replica is an app with a scheduler. If it asks Solotick, a sidecar is beside the app and
// meets the same faults.
func keep(key, name, settings string, asks bool, runs scheduler) contender {
	start := func(b *bench, s seat) (r replica, ready func() error, err error) {
		jobs, err := writeJobs(s)
		if err != nil {
			return nil, nil, err
		}
		address, sidecarReady := s.redis, func() error { return nil }
		if asks {
			port, err := rig.FreePort()
			if err != nil {
				return nil, nil, err
			}
			address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
			sidecar, err := b.replica(s, func(listen string) string { return claimTable(s.jobs, listen, address) })
			if err != nil {
				return nil, nil, err
			}
			r, sidecarReady = replica{sidecar.Process}, func() error { return sidecar.Ready(time.Minute) }
		}
		argv, env := runs.program(b, s, asks, address, jobs)
		log := filepath.Join(s.dir, s.name+"-app.log")
		app, err := rig.Launch(s.name+"-app", log, append(env, skewed(s)...), argv...)
		if err != nil {
			r.Kill()
			return nil, nil, err
		}
		return append(r, app), func() error {
			if err := sidecarReady(); err != nil {
				return err
			}
			return rig.Until(time.Minute, app.Name+" to be ready", func() bool {
				said, err := os.ReadFile(log)
				return err == nil && bytes.Contains(said, []byte("ready\n"))
			})
		}, nil
	}
	return contender{key: key, name: name, settings: settings, start: start, missing: runs.lacks, asks: asks}
}

// claimTable is that of a sidecar whose app asks it at the address admin.
func claimTable(jobs []job, listen, admin string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "service: bench\nlisten: %q\nadmin: %q\njobs:\n", listen, admin)
	for _, j := range jobs {
		fmt.Fprintf(&b, "  - {name: %s, schedule: \"*/%d * * * * *\", claim: {}}\n", j.Name, j.Every)
	}
	return b.String()
}
