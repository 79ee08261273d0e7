package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Seeds are played by processes with one processor each: bubbles switch between goroutines all the time, which is fast
// and has an order only where there is nobody else to run them.

// shardEnv makes of a test binary a shard: "<first seed> <step> <last seed>".
const shardEnv = "SOLOTICK_SIM_SHARD"

// classEnv is the class whose seeds a shard plays; all when it is not set.
const classEnv = "SOLOTICK_SIM_CLASS"

// patience with one seed, in real time: a seed takes a twentieth of a second, one that hangs takes for ever.
const patience = 3 * time.Minute

// line is what a shard says: that a seed begins, or what came of it.
type line struct {
	Begins uint64  `json:",omitempty"`
	Done   *Result `json:",omitempty"`
}

// TestShard plays the seeds of a shard. It is no test by itself.
func TestShard(t *testing.T) {
	words := strings.Fields(os.Getenv(shardEnv))
	if len(words) != 3 {
		t.Skip("played by TestSeeds and TestTeeth")
	}
	var n [3]uint64
	for i, word := range words {
		v, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		n[i] = v
	}
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1) // but between seeds
	debug.SetMemoryLimit(1 << 30)
	out := json.NewEncoder(os.Stdout)
	class := os.Getenv(classEnv)
	for s := n[0]; s <= n[2]; s += n[1] {
		if class != "" && NewPlan(s).Class != class {
			continue
		}
		r := play(t, s, out)
		if err := out.Encode(line{Done: &r}); err != nil {
			t.Fatal(err)
		}
	}
}

func play(t *testing.T, seed uint64, out *json.Encoder) Result {
	if err := out.Encode(line{Begins: seed}); err != nil {
		t.Fatal(err)
	}
	return Play(t, seed)
}

// shards plays seeds first to last (those of a class, if it is not "") with a test binary, on all processors, and tells
// of each as it ends; until told to stop.
func shards(t *testing.T, binary, class string, first, last uint64, each func(Result) (goOn bool)) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	step, tmp := uint64(runtime.NumCPU()), t.TempDir()
	stop := make(chan struct{})
	halt := sync.OnceFunc(func() { close(stop) })
	for i := range min(step, last-first+1) {
		all.Go(func() {
			for next := first + i; next <= last; {
				ended, err := shard(binary, class, tmp, fmt.Sprintf("%d %d %d", next, step, last), stop, func(r Result) {
					mu.Lock()
					defer mu.Unlock()
					if !each(r) {
						halt()
					}
				})
				if err == nil {
					return
				}
				t.Error(err)
				if !*long || ended == 0 {
					halt()
					return
				}
				next = ended + step // the seed that ended it is told of
			}
		})
	}
	all.Wait()
}

// shard runs one process, and ends it when it is told to or when a seed takes for ever. With an error it tells at which
// seed; 0 when there was none. A process that is killed leaves what it has made in tmp.
func shard(binary, class, tmp, which string, stop <-chan struct{}, each func(Result)) (seed uint64, err error) {
	cmd := exec.Command(binary, "-test.run=^TestShard$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), shardEnv+"="+which, classEnv+"="+class, "TMPDIR="+tmp)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	var said []string
	lines := make(chan line)
	go func() {
		defer close(lines)
		sc := bufio.NewScanner(stdout)
		sc.Buffer(nil, 1<<26)
		for sc.Scan() {
			var l line
			if json.Unmarshal(sc.Bytes(), &l) == nil {
				lines <- l
			} else {
				said = append(said, sc.Text())
			}
		}
	}()
	ended := func() error {
		for range lines {
		}
		return cmd.Wait()
	}
	for {
		select {
		case <-stop:
			_ = cmd.Process.Kill()
			_ = ended()
			return 0, nil
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			_ = ended()
			return seed, fmt.Errorf("seed %d did not end within %s\n%s", seed, patience, again(seed))
		case l, ok := <-lines:
			switch {
			case !ok:
				if err := cmd.Wait(); err != nil {
					return seed, fmt.Errorf("seed %d: %w\n%s\n%s\n%s", seed, err, strings.Join(said, "\n"), stderr.String(), again(seed))
				}
				return 0, nil
			case l.Done != nil:
				each(*l.Done)
			default:
				seed = l.Begins
			}
		}
	}
}

// again is the command that plays a seed once more.
func again(seed uint64) string {
	how := ""
	if *long {
		how = " -long"
	}
	return fmt.Sprintf("again: go -C proof test ./sim -run TestSeeds -from=%d -seeds=1 -v%s", seed, how)
}
