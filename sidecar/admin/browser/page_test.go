package browser

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

var shots = flag.String("shots", "", "directory in which to leave pictures of the page")

var short = []string{"app-1", "app-2", "app-3"}

// noIcon is part of the browser's message about an icon that it asks for by itself.
const noIcon = "/favicon.ico"

// click and typed find their element by a CSS selector; chromedp's own actions would also search for text.
func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.CSS(selector))
}

func typed(selector, text string) chromedp.Action[chromedp.Void] {
	return chromedp.SendKeys(chromedp.CSS(selector), text)
}

func TestThePageFitsEveryWidthInLightAndDark(t *testing.T) {
	pods := []string{"billing-api-deployment-5d9c7b6f8d-x2z9q", "billing-api-deployment-5d9c7b6f8d-k7wlm", "billing-api-deployment-5d9c7b6f8d-9bnht"}
	trouble, calm, longNames := newScene(t, true, short...), newScene(t, false, short...), newScene(t, true, pods...)
	for _, c := range []struct {
		name, scheme string
		width        int64
		of           *scene
	}{
		{"light", "light", 1280, trouble}, {"dark", "dark", 1280, trouble}, {"phone", "light", 360, trouble},
		{"readme", "light", 1280, calm}, {"pods", "dark", 1280, longNames}, {"pods-phone", "dark", 360, longNames}, {"tablet", "light", 768, longNames},
		{"narrow", "light", 1060, longNames}, {"window", "light", 1061, longNames},
	} {
		w := open(t, c.of, c.width, c.scheme)
		w.until(`document.getElementById('clock').innerText.includes('UTC')`)
		if *shots != "" {
			take := chromedp.FullScreenshot(100)
			if c.name == "readme" {
				take = chromedp.CaptureScreenshot()
			}
			png, err := chromedp.Run(w.ctx, take)
			if err == nil {
				err = os.WriteFile(filepath.Join(*shots, c.name+".png"), png, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		w.do(click(row("send-invoices", ".what button")), click(row("export-analytics", ".what button")), click(row("sync-ledger", ".what button")))
		w.shows(row("send-invoices", ".more"), "succeeded")
		w.shows(row("export-analytics", ".more"), "overlap")
		w.shows(row("sync-ledger", ".more"), "team-ledger")
		if !w.is(`document.documentElement.scrollWidth <= innerWidth`) {
			t.Errorf("%s scrolls sideways", c.name)
		}
		w.quiet(noIcon)
	}
}

func TestThePageTellsWhatIsTheMatter(t *testing.T) {
	w := open(t, newScene(t, true, short...), 1280, "light")
	for selector, text := range map[string]string{
		"#banners": "Tables differ.", "#service": "billing", "#live": "live, seen from app-1",
		"#replicas li:nth-child(1)": "ready", "#replicas li:nth-child(2)": "app not ready: http://127.0.0.1:8080/readyz answered 503", "#replicas li:nth-child(3)": "silent for 4 m",
		"#attention": "send-invoices", row("poll-mailbox", ".notes"): "its replica is silent", row("expire-carts", ".notes"): "database migration, ask #ops",
		row("export-analytics", ".notes"): "1 manual", row("vat-report", ".notes"): "2 backfill", row("new-feature-rollout", ".notes"): "no replica has registered it",
		row("legacy-sync", ".next"): "suspended", row("sitemap", ".next"): "paused", row("yearly-report", ".last"): "never ran", row("warm-cache", ".last"): "on every replica",
		row("usage-metering", ".next"): "in ", "#timers": "invoice-4711-reminder",
	} {
		w.shows(selector, text)
	}
	for job, cells := range map[string]string{"sync-ledger": "3 bad", "resend-webhooks": "1 good", "rebuild-search-index": "2 busy"} { // the newest first
		label, look, _ := strings.Cut(cells, " ")
		if !w.is(fmt.Sprintf(`(c => c.length === 20 && c[0].innerText === '%s' && c[0].className === 'cell %s')(document.querySelectorAll(%s))`, label, look, quote(row(job, ".strip .cell")))) {
			t.Errorf("%s does not show its 20 newest runs", job)
		}
	}
	if !w.is(`document.title === '(3) billing · Solotick'`) {
		t.Errorf("the title does not count what needs attention")
	}
}

func TestHostileTextIsShownAndDoesNothing(t *testing.T) {
	w := open(t, newScene(t, true, short...), 1280, "light")
	w.shows(row("send-invoices", ".notes"), "<img src=x onerror=alert(1)></script><b> gnp.exe [2J ${x} {{y}}")
	w.shows(row("sitemap", ".notes"), "<img src=x onerror=alert(1)></script>")
	if w.is(`document.querySelector('img, iframe, main b')`) {
		t.Error("a text became an element")
	}
	// The policy also forbids scripts to turn text into elements or code.
	for _, attempt := range []string{`document.body.innerHTML = '<p>'`, `document.write('<p>')`, `eval('1')`, `new Function('return 1')()`,
		`(() => { const s = document.createElement('script'); s.text = 'window.broken = true'; document.body.append(s) })()`} {
		if _, err := chromedp.Run(w.ctx, chromedp.Evaluate[chromedp.Void](`(() => { `+attempt+`; return window.broken })()`)); err == nil && w.is(`window.broken || !document.querySelector('main')`) {
			t.Errorf("the page allows %s", attempt)
		}
	}
}

func TestAnOpenRowTellsWhatTheJobIsForAndWhomToCall(t *testing.T) {
	s := newScene(t, false, short...)
	w := open(t, s, 1280, "light")
	w.do(click(row("sync-ledger", ".what button")), click(row("poll-mailbox", ".what button")))
	for _, text := range []string{"Description\nbooks <b>it</b>", "Owner\nteam-ledger, #ledger", "Runbook\nhttps://wiki.example.com/ledger?a=<b>#fails", "Labels\ntier: gold"} {
		w.shows(row("sync-ledger", ".more dl"), text)
	}
	leads := func(selector, text, url string) {
		t.Helper()
		if !w.is(fmt.Sprintf(`(a => a?.innerText === %s && a.href === %s && a.target === '_blank' && a.rel === 'noopener noreferrer')(document.querySelector(%s))`, quote(text), quote(url), quote(selector))) {
			t.Errorf("%s does not lead to %s", selector, url)
		}
	}
	leads(row("sync-ledger", ".more dd a"), "https://wiki.example.com/ledger?a=<b>#fails", "https://wiki.example.com/ledger?a=%3Cb%3E#fails")
	w.shows(row("sync-ledger", ".more ol"), "succeeded")
	leads(row("sync-ledger", ".more li a"), "logs", "https://logs.example.com/sync-ledger?q="+s.state("sync-ledger").Last.Run)
	leads(row("poll-mailbox", ".more dd a"), "logs", "https://logs.example.com/poll-mailbox?q="+s.state("poll-mailbox").Running[0].Run)
	if labels := w.text(row("poll-mailbox", ".more dl")); strings.Contains(labels, "Description") || strings.Contains(labels, "Labels") {
		t.Errorf("of a job of which nothing is told: %s", labels)
	}
	w.quiet(noIcon)
}

func TestTriggerIsClickedAndItsEndIsTold(t *testing.T) {
	s := newScene(t, false, short...)
	w := open(t, s, 1280, "light")
	w.do(click(row("purge-sessions", ".acts button:first-child")))
	w.shows("#trigger", "Trigger purge-sessions?")
	w.do(click("#trigger .main"))
	w.shows("#toasts", "Triggered purge-sessions")
	w.shows(row("purge-sessions", ".notes"), "1 manual")

	waiting := s.state("purge-sessions").Waiting
	if len(waiting) != 1 || waiting[0].Kind != "manual" {
		t.Fatalf("waiting in Redis: %+v", waiting)
	}
	d := waiting[0]
	l, a, err := s.store.Locks.Acquire(t.Context(), lock.Claim{Job: d.Job, Tick: d.Tick, Replica: "app-2", TTL: 15 * time.Second, Kind: d.Kind, Attempt: d.Attempt, Member: d.Member()})
	if err != nil || l == nil {
		t.Fatalf("%+v, %v", a, err)
	}
	w.shows(row("purge-sessions", ".notes"), "on app-2, manual")
	failed := service.Entry{Job: d.Job, Tick: d.Tick, Run: l.Run(), Replica: "app-2", Kind: d.Kind, Attempt: 1, Outcome: "failed",
		Failed: true, Took: 1500 * time.Millisecond, Ended: time.Now()}
	if _, err := l.Finish(t.Context(), 0, failed.Ending()); err != nil {
		t.Fatal(err)
	}
	w.shows("#toasts", "purge-sessions failed on app-2 after 1.5 s")
	w.shows("#attention", "purge-sessions")
	w.quiet(noIcon)
}

func TestCancelAndRerunAreClicked(t *testing.T) {
	s := newScene(t, false, short...)
	w := open(t, s, 1280, "light")
	tick := time.Now().Truncate(time.Second)
	l, a, err := s.store.Locks.Acquire(t.Context(), lock.Claim{Job: "purge-sessions", Tick: tick, Replica: "app-2", TTL: 15 * time.Second, Policy: lock.Allow})
	if err != nil || l == nil {
		t.Fatalf("%+v, %v", a, err)
	}
	w.shows(row("purge-sessions", ".notes"), "on app-2")
	w.do(click(row("purge-sessions", ".acts button:nth-child(5)")))
	w.shows("#cancel", "Cancel the run of purge-sessions?")
	w.do(typed("#cancel-reason", "it hangs"), click("#cancel .main"))
	w.shows("#toasts", "Cancelled 1 run of purge-sessions")
	if err := l.Verify(t.Context()); !errors.Is(err, lock.ErrCancelled) {
		t.Errorf("not cancelled: %v", err)
	}
	failed := service.Entry{Job: "purge-sessions", Tick: tick, Run: l.Run(), Replica: "app-2", Kind: "schedule", Attempt: 1, Outcome: "failed",
		Failed: true, Took: 1500 * time.Millisecond, Ended: time.Now()}
	if _, err := l.Finish(t.Context(), 0, failed.Ending()); err != nil {
		t.Fatal(err)
	}
	w.shows("#attention", "purge-sessions")
	w.do(click(row("purge-sessions", ".acts button:nth-child(4)")))
	w.shows("#rerun", "Rerun purge-sessions, tick ")
	w.do(click("#rerun .main"))
	w.shows("#toasts", "Rerunning purge-sessions, tick ")
	if waiting := s.state("purge-sessions").Waiting; len(waiting) != 1 || waiting[0].Kind != "backfill" || !waiting[0].Tick.Equal(tick) {
		t.Errorf("waiting in Redis: %+v", waiting)
	}
	acts, err := s.store.Acts(t.Context(), "purge-sessions", 9)
	if err != nil || len(acts) != 2 || acts[1].What != "cancel" || acts[1].Reason != "it hangs" {
		t.Errorf("the acts are %+v, %v", acts, err)
	}
	w.quiet(noIcon)
}

func TestPauseAndResumeAreClicked(t *testing.T) {
	s := newScene(t, false, short...)
	w := open(t, s, 360, "dark")
	w.do(click(row("usage-metering", ".acts button:nth-child(2)")))
	w.shows("#pause", "Pause usage-metering")
	w.do(click("#pause .main")) // without a reason
	if s.state("usage-metering").Paused != nil || !w.is(`document.getElementById('pause').open`) {
		t.Error("it was paused without a reason")
	}
	w.do(typed("#pause-reason", "moving <b>house</b>"), chromedp.SetValue(chromedp.CSS("#pause-for"), "4h"), click("#pause .main"))
	w.shows("#toasts", "Paused usage-metering until ")
	w.shows(row("usage-metering", ".notes"), ": moving <b>house</b>")
	p := s.state("usage-metering").Paused
	if p == nil || p.Reason != "moving <b>house</b>" || p.Until.Sub(time.Now()).Round(time.Minute) != 4*time.Hour {
		t.Errorf("in Redis it is paused like this: %+v", p)
	}
	w.do(click(row("usage-metering", ".acts button:nth-child(3)")))
	w.shows("#toasts", "Resumed usage-metering")
	w.until(`!document.querySelector(` + quote(row("usage-metering", ".notes")) + `).innerText.includes('paused')`)
	if p := s.state("usage-metering").Paused; p != nil {
		t.Errorf("in Redis it is still paused: %+v", p)
	}
	w.quiet(noIcon)
}

func TestAnErrorIsShownWhereItWasAskedFor(t *testing.T) {
	s := newScene(t, false, short...)
	w := open(t, s, 1280, "light")
	w.do(click(row("new-feature-rollout", ".acts button:first-child")), click("#trigger .main"))
	w.shows("#trigger .wrong", "the job is not known to Redis")
	w.do(click("#trigger .close"))
	if w.is(`document.getElementById('trigger').open`) {
		t.Error("the dialog does not close")
	}
}

func TestThePageSaysThatItIsOutOfDateAndComesBack(t *testing.T) {
	s := newScene(t, false, short...)
	w := open(t, s, 1280, "light")
	s.away.Store(true)
	w.shows("#banners", "Out of date: the replica does not answer. What you see is ")
	w.shows("#live", "out of date")
	s.away.Store(false)
	w.shows("#live", "live")
	s.mini.SetError("LOADING Redis is loading the dataset in memory")
	w.shows("#banners", "LOADING Redis is loading")
	s.mini.SetError("")
	w.until(`document.getElementById('banners').innerText === ''`)
}

func TestJobsAreFoundByNameAndState(t *testing.T) {
	w := open(t, newScene(t, false, short...), 1280, "light")
	rows := func(n int) {
		t.Helper()
		w.until(fmt.Sprintf(`document.querySelectorAll('.job').length === %d`, n))
	}
	rows(30)
	w.do(click("[data-filter=running]"))
	rows(4)
	w.do(click("[data-filter=all]"), chromedp.KeyEvent("/"))
	w.until(`document.activeElement.id === 'search'`)
	w.is(`document.getElementById('search').value = ''`) // a person's / does not get there
	w.do(typed("#search", "sync"))
	rows(3)
	w.do(typed("#search", "xyz"))
	w.shows("#nothing", "No job matches.")
}

func TestThePageIsUsedByKeyboard(t *testing.T) {
	s := newScene(t, false, short...)
	w := open(t, s, 1280, "light")
	w.do(chromedp.Focus(chromedp.CSS(row("heartbeat", ".acts button:first-child"))), chromedp.KeyEvent("\r"))
	w.shows("#trigger", "Trigger heartbeat?")
	w.do(chromedp.KeyEvent("\x1b"))
	w.until(`!document.getElementById('trigger').open && document.activeElement.getAttribute('aria-label') === 'Trigger heartbeat'`)
	w.do(chromedp.Focus(chromedp.CSS(row("heartbeat", ".what button"))), chromedp.KeyEvent(" "))
	w.until(`document.activeElement.getAttribute('aria-expanded') === 'true'`)
	w.shows(row("heartbeat", ".more"), "succeeded")
}
