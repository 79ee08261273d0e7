package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/sidecar/execute"
)

// block is the code of one language in a page; n counts from 0.
func block(t *testing.T, page, language string, n int) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	if n >= len(all) {
		t.Fatalf("%s has %d blocks of %s", page, len(all), language)
	}
	return all[n][1]
}

func TestAHandlerIsToldWhatThePageSays(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "handlers.md"), "<!-- facts -->")
	table, _, _ = strings.Cut(table, "<!-- end -->")
	var documented, told []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, row[1]+" "+row[2])
	}
	for _, f := range (execute.Run{Service: "s", Job: "j", Tick: time.Now(), Since: time.Now(), Token: 1, Parent: "any"}).Facts() {
		told = append(told, f.Header+" "+f.Env)
	}
	if !slices.Equal(documented, told) {
		t.Errorf("the page says %q, and a job is told %q", documented, told)
	}
}

func TestTheScriptRefusesAnOlderRun(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer client.Close()
	script := block(t, "handlers.md", "lua", 0)
	for _, write := range []struct {
		token, value string
		want         int
	}{{"1764000000000", "first", 1}, {"1764000000000", "again", 1}, {"1764000000007", "newer", 1}, {"1764000000006", "older", 0}} {
		if got, err := client.Eval(t.Context(), script, []string{"value", "token"}, write.token, write.value).Int(); err != nil || got != write.want {
			t.Errorf("token %s: %d, %v; want %d", write.token, got, err, write.want)
		}
	}
	if got := client.Get(t.Context(), "value").Val(); got != "newer" {
		t.Errorf("the value is %q", got)
	}
}
