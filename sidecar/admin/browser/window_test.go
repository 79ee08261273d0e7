package browser

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/solotick/solotick/internal/testing/needs"
)

// patience is how long a test waits for something to appear.
const patience = time.Minute

// started is the browser that all tests share.
var started = sync.OnceValues(func() (context.Context, error) {
	// The browser has no sandbox as root. The page is our own.
	ctx, _ := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)...)
	ctx, _ = chromedp.NewContext(ctx)
	return ctx, chromedp.Do(ctx)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if ctx, err := started(); err == nil {
		_ = chromedp.Cancel(ctx)
	}
	os.Exit(code)
}

// window is a window of the browser with a page in it.
type window struct {
	t   *testing.T
	ctx context.Context

	mu    sync.Mutex
	heard []string // from the page's scripts, and by the browser of the page
}

// open opens a window of the given width, light or dark, with the scene's page.
func open(t *testing.T, s *scene, width int64, scheme string) *window {
	t.Helper()
	needs.Program(t, "chromium", "chromium-browser", "google-chrome", "headless-shell")
	browser, err := started()
	if err != nil {
		t.Fatal(err)
	}
	w := &window{t: t}
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	w.ctx, cancel = context.WithTimeout(ctx, 3*patience)
	t.Cleanup(cancel)
	w.do(chromedp.EmulateViewport(width, 900))
	_, err = chromedp.Call(w.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	if err != nil {
		t.Fatal(err)
	}
	messages := chromedp.Console(w.ctx)
	go func() {
		for m := range messages {
			w.mu.Lock()
			w.heard = append(w.heard, m.String()+" "+m.URL)
			w.mu.Unlock()
		}
	}()
	w.do(chromedp.Navigate(s.url))
	w.until(`document.querySelector('.job, #own:not([hidden]) li')`)
	return w
}

func (w *window) do(steps ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	if err := chromedp.Do(w.ctx, steps...); err != nil {
		w.t.Fatal(err)
	}
}

// is evaluates a script's condition.
func (w *window) is(condition string) bool {
	w.t.Helper()
	v, err := chromedp.Run(w.ctx, chromedp.Evaluate[bool]("Boolean("+condition+")"))
	if err != nil {
		w.t.Fatalf("%s: %v", condition, err)
	}
	return v
}

// until waits for a condition. (The browser's own way to wait is a script in the page, which its policy forbids.)
func (w *window) until(condition string) {
	w.t.Helper()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	limit := time.After(patience)
	for !w.is(condition) {
		select {
		case <-every.C:
		case <-limit:
			w.t.Fatalf("not seen in %s: %s\n%s", patience, condition, w.text("body"))
		}
	}
}

// row is the selector of something in the row of a job.
func row(job, rest string) string { return `[data-job="` + job + `"] ` + rest }

// shows waits for a text in an element.
func (w *window) shows(selector, text string) {
	w.t.Helper()
	w.until(`document.querySelector(` + quote(selector) + `)?.innerText.includes(` + quote(text) + `)`)
}

func (w *window) text(selector string) string {
	w.t.Helper()
	return w.said(`document.querySelector(` + quote(selector) + `).innerText`)
}

// picture leaves a picture of the window, or of the whole page, if pictures are wanted.
func (w *window) picture(name string, whole bool) {
	w.t.Helper()
	if *shots == "" {
		return
	}
	take := chromedp.CaptureScreenshot()
	if whole {
		take = chromedp.FullScreenshot(100)
	}
	png, err := chromedp.Run(w.ctx, take)
	if err == nil {
		err = os.WriteFile(filepath.Join(*shots, strings.ReplaceAll(name, " ", "-")+".png"), png, 0o644)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// cutBelowARow makes the window about 1000 pixels high, and cuts no row in two.
func (w *window) cutBelowARow(width int64) {
	w.t.Helper()
	height, err := chromedp.Run(w.ctx, chromedp.Evaluate[int64](`Math.max(...[...document.querySelectorAll('.job')]
		.map(e => Math.floor(e.getBoundingClientRect().bottom)).filter(y => y <= 1000))`))
	if err != nil {
		w.t.Fatal(err)
	}
	w.do(chromedp.EmulateViewport(width, height))
}

// said evaluates a script's text.
func (w *window) said(script string) string {
	w.t.Helper()
	v, err := chromedp.Run(w.ctx, chromedp.Evaluate[string](script))
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func quote(s string) string {
	return "`" + strings.NewReplacer("`", "\\`", "\\", "\\\\", "$", "\\$").Replace(s) + "`"
}

// quiet checks that the scripts and the browser logged nothing except what is expected.
func (w *window) quiet(but ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.heard {
		if !slices.ContainsFunc(but, func(words string) bool { return strings.Contains(m, words) }) {
			w.t.Errorf("the browser says: %s", m)
		}
	}
}
