package adapters_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/solotick/solotick/internal/testing/rig"
)

// start says how a block of the page becomes a program: what is replaced in it, by pairs, and what stands around it.
type start struct {
	language, file string
	replaced       []string // API is the URL of the replica
	before, after  string
}

var starts = map[string]start{
	"node-cron": {
		language: "js", file: "start.mjs",
		replaced: []string{"*/5 * * * *", "* * * * * *", "\n}));", "\n}, { api: 'API' }));"},
	},
	"APScheduler": {
		language: "python", file: "start.py",
		replaced: []string{`minute="*/5"`, `second="*"`, "SolotickExecutor()", `SolotickExecutor("API")`},
	},
	"Quartz": {
		language: "java", file: "Start.java",
		replaced: []string{`"0 */5 * * * ?"`, `"* * * * * ?"`, `"http://127.0.0.1:9748"`, `"API"`},
		before: `import static org.quartz.CronScheduleBuilder.cronSchedule;
import static org.quartz.JobBuilder.newJob;
import static org.quartz.TriggerBuilder.newTrigger;

import org.quartz.*;
import org.quartz.impl.StdSchedulerFactory;

public final class Start {
  public static final class Report implements Job {
    public void execute(JobExecutionContext context) {
      System.out.println("reporting " + Solotick.claim(context).get("tick"));
    }
  }

  public static void main(String[] args) throws SchedulerException {
`,
		after: "  }\n}\n",
	},
	"gocron": {
		language: "go", file: "start.go",
		replaced: []string{`"*/5 * * * *", false`, `"* * * * * *", true`, `New("")`, `New("API")`},
		before: `package main

import (
	"fmt"
	"log"

	"github.com/go-co-op/gocron/v2"

	solotick "github.com/solotick/solotick/examples/adapters/gocron"
)

func main() {
	var its *solotick.Locker
	report := func() { fmt.Println("reporting", its.Claimed("report").Tick) }
`,
		after: `
	its = locker
	if err != nil {
		log.Fatal(err)
	}
	select {}
}
`,
	},
}

// TestTheStartsOfThePageWork runs what a reader copies, for a job that is due each second.
func TestTheStartsOfThePageWork(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	each(t, adapters(t), func(t *testing.T, a adapter) {
		s := starts[a.name]
		_, block, _ := strings.Cut(string(page), "\n```"+s.language+"\n")
		block, _, _ = strings.Cut(block, "\n```\n")
		if n := strings.Count(block, "\n") + 1 - strings.Count(block, "\n\n"); n > 10 || n < 3 {
			t.Errorf("it has %d lines", n)
		}
		replica, server := newAPI(t)
		for i := 0; i < len(s.replaced); i += 2 {
			if strings.Count(block, s.replaced[i]) != 1 {
				t.Errorf("%q is not once in\n%s", s.replaced[i], block)
			}
			block = strings.Replace(block, s.replaced[i], strings.Replace(s.replaced[i+1], "API", server.URL, 1), 1)
		}
		dir := t.TempDir()
		file := filepath.Join(dir, s.file)
		if err := os.WriteFile(file, []byte(s.before+block+s.after), 0o600); err != nil {
			t.Fatal(err)
		}
		argv := []string{a.app[0], file}
		switch a.name {
		case "gocron":
			argv = []string{filepath.Join(dir, "start")}
			if err := rig.Build(".", file, argv[0]); err != nil {
				t.Fatal(err)
			}
		case "Quartz":
			argv = append(slices.Clone(java), "-cp", dir+":"+classes()+":"+jars, "Start")
			if err := compile(dir, file); err != nil {
				t.Fatal(err)
			}
		default:
			copied, _ := filepath.Glob(a.dir + "/*solotick*")
			here, err := filepath.Abs(a.dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range append(copied, a.dir+"/node_modules") {
				_ = os.Symlink(filepath.Join(here, filepath.Base(name)), filepath.Join(dir, filepath.Base(name)))
			}
			if a.name == "node-cron" {
				argv = []string{"node", "--preserve-symlinks", "--preserve-symlinks-main", file}
			}
		}
		p, err := rig.Launch(a.name, filepath.Join(dir, "log"), a.env, argv...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			p.Kill()
			if t.Failed() {
				t.Logf("it said:\n%s", tail(p.Log))
			}
		})
		await(t, "the end of a run", func() bool { return p.Ended() || replica.ends("report") })
		if said := string(tail(p.Log)); !strings.Contains(said, "reporting 2026-11-29") {
			t.Error("it does not report")
		}
	})
}
