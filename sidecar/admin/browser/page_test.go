package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

var shots = flag.String("shots", "", "directory in which to leave pictures of the page")

var short = []string{"app-1", "app-2", "app-3"}

// noIcon is part of the browser's message about an icon that it asks for by itself.
const noIcon = "/favicon.ico"

// click and typed find their element by a CSS selector; chromedp's own actions would also search for text.
//
// click waits until its element can be hit, and hits it in the same step: what loads meanwhile moves the rows below it,
// and a click by the mouse at the place where its element was a moment ago would hit another one, or none.
func click(selector string) chromedp.Action[chromedp.Void] {
	hit := chromedp.Evaluate[bool](`(e => {
		if (!e) return false;
		e.scrollIntoView({ block: 'nearest' });
		const r = e.getBoundingClientRect();
		if (!e.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2))) return false;
		e.focus({ preventScroll: true });
		e.click();
		return true;
	})(document.querySelector(` + quote(selector) + `))`)
	return func(ctx context.Context, target *chromedp.Target) (none chromedp.Void, err error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for {
			if done, err := hit(ctx, target); done || err != nil {
				return none, err
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return none, fmt.Errorf("clicking %s: %w", selector, ctx.Err())
			}
		}
	}
}

func typed(selector, text string) chromedp.Action[chromedp.Void] {
	return chromedp.SendKeys(chromedp.CSS(selector), text)
}

func TestThePageFitsEveryWidthInLightAndDark(t *testing.T) {
	pods := []string{"billing-api-deployment-5d9c7b6f8d-x2z9q", "billing-api-deployment-5d9c7b6f8d-k7wlm", "billing-api-deployment-5d9c7b6f8d-9bnht"}
	inTrouble, longNames := newScene(t, trouble, short...), newScene(t, trouble, pods...)
	isCalm := newScene(t, calm, short...) // the last to be made and the first to be seen: nobody fires its ticks, and they would be overdue
	for _, c := range []struct {
		name, scheme string
		width        int64
		of           *scene
	}{
		{"status-page", "light", 1280, isCalm}, {"status-page-dark", "dark", 1280, isCalm}, // for the README
		{"light", "light", 1280, inTrouble}, {"dark", "dark", 1280, inTrouble}, {"phone", "light", 360, inTrouble},
		{"pods", "dark", 1280, longNames}, {"pods-phone", "dark", 360, longNames}, {"tablet", "light", 768, longNames},
		{"narrow", "light", 1060, longNames}, {"window", "light", 1061, longNames},
	} {
		w := open(t, c.of, c.width, c.scheme)
		w.until(`document.getElementById('clock').innerText.includes('UTC')`)
		if c.of == isCalm {
			w.cutBelowARow(c.width)
		}
		w.picture(c.name, c.of != isCalm)
		for _, of := range [][2]string{{"send-invoices", "succeeded"}, {"export-analytics", "overlap"}, {"sync-ledger", "team-ledger"}} {
			w.do(click(row(of[0], ".what button"))) // one after the other: the API refuses a dozen large questions at once, if it is slow
			w.shows(row(of[0], ".more"), of[1])
		}
		if !w.is(`document.documentElement.scrollWidth <= innerWidth`) {
			t.Errorf("%s scrolls sideways", c.name)
		}
		w.quiet(noIcon)
	}
}

// TestEachMoodFitsEveryWidth leaves pictures of what is first seen in each mood.
func TestEachMoodFitsEveryWidth(t *testing.T) {
	for _, m := range []mood{allOK, failing, noRedis, unready} {
		s := newScene(t, m, short...)
		for _, width := range []int64{390, 1280, 1920} {
			for _, scheme := range []string{"light", "dark"} {
				w := open(t, s, width, scheme)
				w.picture(fmt.Sprintf("%s-%d-%s", m, width, scheme), false)
				if !w.is(`document.documentElement.scrollWidth <= innerWidth`) {
					t.Errorf("%s at %d scrolls sideways", m, width)
				}
				if clipped := w.said(`[...document.querySelectorAll('p, li, h1, h2, button, .text, .small, .outcome, .next, .name')].filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 1 &&
					getComputedStyle(e).overflowX !== 'visible').map(e => e.innerText).join('; ')`); clipped != "" {
					t.Errorf("%s at %d clips %q", m, width, clipped)
				}
				if small := w.said(`[...document.querySelectorAll('button, summary, #search')].filter(e => innerWidth < 600 && e.offsetParent && e.getBoundingClientRect().height < 44).map(e => e.innerText).join('; ')`); small != "" {
					t.Errorf("%s at %d has buttons that are too small for a finger: %q", m, width, small)
				}
			}
		}
	}
}

func TestThePageTellsWhatIsTheMatter(t *testing.T) {
	w := open(t, newScene(t, trouble, short...), 1280, "light")
	for selector, text := range map[string]string{
		"#banners": "Tables differ.", "#service": "billing", "#live": "live, seen from app-1",
		"#health": "failing", "#well": "1 replica is ready", "#unwell li:nth-child(1)": "app not ready: http://127.0.0.1:8080/readyz answered 503", "#unwell li:nth-child(2)": "silent for 4 m",
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

func TestTheFirstLineTellsHowTheServiceFares(t *testing.T) {
	for m, want := range map[mood]string{
		allOK: "good 0 of 30 failing · 0 overdue · 0 missed today · 3/3 replicas ready · Redis ok", failing: "bad 10 of 30 failing", unready: "bad 0 of 30 failing · 0 overdue · 0 missed today · 0/3 replicas ready",
	} {
		w := open(t, newScene(t, m, short...), 1280, "light")
		cls, text, _ := strings.Cut(want, " ")
		w.shows("#health", text)
		if !w.is(`document.getElementById('health').className === 'health ` + cls + `'`) {
			t.Errorf("%s: the first line does not look %s", m, cls)
		}
		if m == allOK && !w.is(`document.querySelector('#rest .job').dataset.job === 'warm-cache'`) {
			t.Error("those that never ran are not the first of those that are well")
		}
		if m == failing && !w.is(`document.querySelectorAll('#attention .job').length === 10`) {
			t.Error("those that fail are not the first")
		}
		if m == unready {
			w.shows("#banners", "No replica is ready: nothing is fired. app-1: app not ready")
		}
	}
}

func TestWhileRedisIsAwayThePageTellsWhatTheReplicaKnows(t *testing.T) {
	s := newScene(t, noRedis, short...)
	w := open(t, s, 1280, "light") // it has never seen the jobs
	w.shows("#banners", "Nothing is fired while Redis is away. Redis does not answer, since ")
	w.shows("#banners", "i/o timeout (is it running")
	if shown := w.text("#banners"); strings.Contains(shown, "reading the state") || strings.Count(shown, "\n") > 0 {
		t.Errorf("the banners say it twice: %q", shown)
	}
	w.shows("#service", "billing")
	w.shows("#own", "Seen by replica app-1 alone")
	w.shows("#own-list", "export-analytics\nrunning here since ")
	w.shows("#own-list", "usage-metering\nfailed here, tick ")
	s.findRedis()
	w.until(`document.getElementById('banners').innerText === '' && document.getElementById('own').hidden && document.querySelectorAll('.job').length === 30`)
	s.loseRedis()
	w.shows("#banners", "Nothing is fired while Redis is away.")
	w.shows("#banners", "What you see is ")
}

// TestTheStripShowsFailuresByHandAndWhatDidNotRun shows the mark of each; a failure of the schedule keeps its own.
func TestTheStripShowsFailuresByHandAndWhatDidNotRun(t *testing.T) {
	s := newScene(t, trouble, short...)
	tick := s.now.Add(-2 * time.Second).Truncate(time.Millisecond)
	l, a, err := s.store.Locks.Acquire(t.Context(), lock.Claim{Job: "heartbeat", Tick: tick, Replica: s.names[0], TTL: time.Minute, Kind: "manual"})
	s.must(err)
	if l == nil {
		t.Fatalf("%+v", a)
	}
	e := service.Entry{Job: "heartbeat", Tick: tick, Run: l.Run(), Replica: s.names[0], Kind: "manual", Attempt: 1, Outcome: "failed", Failed: true, Ended: tick}
	_, err = l.Finish(t.Context(), 0, e.Ending())
	s.must(err)
	gone := service.Entry{Job: "sync-crm", Tick: tick, First: tick.Add(-time.Minute), Count: 3, Outcome: "missed", Ended: tick}
	for _, key := range s.mini.Keys() {
		if strings.Contains(key, gone.Job) && s.mini.Type(key) == "hash" && s.mini.HGet(key, "born") != "" {
			s.mini.HSet(key, "lastMissed", gone.Booking().Entry)
		}
	}
	w := open(t, s, 1280, "light")
	w.until(`document.querySelectorAll('[data-job="heartbeat"] .cell.warn').length === 1 && !document.querySelector('[data-job="heartbeat"] .cell.bad')`)
	w.until(`document.querySelector('[data-job="send-invoices"] .cell.bad')`)
	w.until(`document.querySelector('[data-job="export-analytics"] .cell.hole').title.includes('overlap, tick ')`)
	w.until(`document.querySelector('[data-job="sync-crm"] .cell.hole').innerText === '3'`)
	w.until(`document.querySelector('[data-job="sync-crm"] .cell.hole').title.startsWith('missed: 3 ticks, ')`)
	w.shows("#filters", "Missed 1")
	w.do(click(row("sync-crm", ".what button")))
	w.shows(row("sync-crm", ".more"), "Missed\n3 ticks, ")
}

// TestTheStripDrawsEachTickOnce has ticks that were missed, of which the status tells the last ones again; a tick that
// overlapped and was run after all; and overlaps one after the other, of which each heartbeat tells one. The job has no
// other ticks.
func TestTheStripDrawsEachTickOnce(t *testing.T) {
	s := newScene(t, trouble, short...)
	const job = "yearly-report"
	at := func(ago time.Duration) time.Time { return s.now.Add(-ago).Truncate(time.Second) }
	for _, ticks := range []int{3, 7} {
		last := at(time.Duration(40-ticks) * time.Second)
		gone := service.Entry{Job: job, Tick: last, First: last.Add(-time.Second), Count: ticks, Outcome: "missed", Ended: last}
		s.must(s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: "solotick:{billing}:history:" + job, Values: []any{"tick", gone.Booking().Entry}}).Err())
		s.mini.HSet("solotick:{billing}:job:"+job, "lastMissed", gone.Booking().Entry)
	}
	late := at(8 * time.Second)
	l, a, err := s.store.Locks.Acquire(t.Context(), lock.Claim{Job: job, Tick: late, Replica: s.names[1], TTL: time.Minute})
	s.must(err)
	if l == nil {
		t.Fatalf("%+v", a)
	}
	ran := service.Entry{Job: job, Tick: late, Run: l.Run(), Replica: s.names[1], Kind: "catchup", Attempt: 1,
		Outcome: "succeeded", Ended: s.now}
	_, err = l.Finish(t.Context(), 0, ran.Ending())
	s.must(err)
	overlaps := func(tick time.Time) {
		s.must(s.store.Beat(t.Context(), service.Replica{Name: "app-4", Version: "v0.1.0", Table: s.table.Hash,
			Skips: map[string]service.Skip{job: {Tick: tick, Reason: "overlap", At: s.now}}}))
	}
	overlaps(late)
	w := open(t, s, 1280, "light")
	marks := func(want string) {
		t.Helper()
		w.until(`[...document.querySelectorAll(` + quote(row(job, ".strip .cell")) + `)].map(c => c.innerText).join('') === ` + quote(want))
	}
	marks("273")
	overlaps(at(20 * time.Second))
	marks("2–73")
	overlaps(at(10 * time.Second))
	marks("2––73")
	w.quiet(noIcon)
}

func TestARowSaysWhyItIsUrgent(t *testing.T) {
	s := newScene(t, failing, short...)
	w := open(t, s, 1280, "light")
	w.shows(row("send-invoices", ".notes"), "failing\nsince ")
	w.shows(row("send-invoices", ".notes"), ", 3 in a row, last success ")
	w.shows(row("send-invoices", ".next"), " CE")
	w.shows(row("send-invoices", ".next"), " UTC")
	if text := w.text(row("heartbeat", ".next")); strings.Count(text, ":") != 2 {
		t.Errorf("a job in UTC has another local time: %q", text)
	}
}

func TestAnOpenRowTellsAllOfItsTicks(t *testing.T) {
	s := newScene(t, failing, short...)
	if _, err := s.store.Cancel(t.Context(), "export-analytics", []string{s.state("export-analytics").Running[0].Run}, "d8593ae8-b0c6-432f-9178-700b9b46c629"); err != nil {
		t.Fatal(err)
	}
	w := open(t, s, 1280, "light")
	w.do(click(row("send-invoices", ".what button")), click(row("export-analytics", ".what button")))
	w.shows(row("send-invoices", ".more ol"), "2 ticks before ended the same way, since ")
	w.shows(row("send-invoices", ".more dl"), "guarantee at-most-once; missed latest; concurrencyPolicy Forbid")
	w.shows(row("send-invoices", ".more dl"), "calls POST 127.0.0.1:8080")
	w.shows(row("send-invoices", ".more dl"), "Now\n")
	w.shows(row("send-invoices", ".more li:first-child"), s.state("send-invoices").Last.Run[:8])
	w.do(click(row("send-invoices", ".more li:first-child .tick")))
	w.shows(row("send-invoices", ".more li:first-child .told"), "attempt 3 failed after ")
	w.picture("opened", false)
	w.do(click(row("send-invoices", ".more li:first-child .again button")))
	w.shows("#rerun", "Rerun send-invoices, tick ")
	w.do(click("#rerun .close"))
	w.shows(row("export-analytics", ".more dl"), "ago: cancel")
	if strings.Contains(w.text("body"), "undefined") {
		t.Error("something is shown that is not known")
	}
	w.do(click(row("export-analytics", ".more dd button")))
	w.shows("#cancel", "Cancel run "+s.state("export-analytics").Running[0].Run[:8]+" of export-analytics?")
	w.do(click("#cancel .close"), click("#events summary"))
	w.shows("#event-list", "export-analytics\n")
	w.quiet(noIcon)
}

func TestTheAddressHoldsWhatIsSeen(t *testing.T) {
	s := newScene(t, failing, short...)
	w := open(t, s, 1280, "light")
	w.do(click(row("send-invoices", ".what button")), click("[data-filter=attention]"), typed("#search", "send"))
	w.until(`location.hash === '#job=send-invoices&filter=attention&q=send'`)
	w.do(click(row("send-invoices", ".what button")))
	w.until(`location.hash === '#filter=attention&q=send'`)
	s.url += "/#job=send-invoices&q=send"
	other := open(t, s, 1280, "light")
	other.until(`document.querySelectorAll('.job').length === 3 && document.getElementById('search').value === 'send'`)
	other.shows(row("send-invoices", ".more"), "Settings")
	if _, err := chromedp.Run(other.ctx, chromedp.Evaluate[string](`location.hash = '#filter=attention'`)); err != nil {
		t.Fatal(err)
	}
	other.until(`document.querySelectorAll('.job').length === 10 && !document.querySelector('[aria-expanded=true]')`)
}

func TestHostileTextIsShownAndDoesNothing(t *testing.T) {
	w := open(t, newScene(t, trouble, short...), 1280, "light")
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
	s := newScene(t, calm, short...)
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
	if labels := w.text(row("poll-mailbox", ".more dl")); strings.Contains(labels, "Description") || strings.Contains(labels, "Labels") {
		t.Errorf("of a job of which nothing is told: %s", labels)
	}
	w.quiet(noIcon)
}

func TestTriggerIsClickedAndItsEndIsTold(t *testing.T) {
	s := newScene(t, calm, short...)
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
	w.shows(row("purge-sessions", ".notes"), "by hand\nfailed on app-2")
	w.shows(row("purge-sessions", ".last"), "succeeded")                                      // by the schedule
	if notes := w.text(row("purge-sessions", ".notes")); strings.Contains(notes, "failing") { // three times an hour it is overdue
		t.Errorf("a run by hand makes the schedule look bad: %s", notes)
	}
	w.quiet(noIcon)
}

func TestCancelAndRerunAreClicked(t *testing.T) {
	s := newScene(t, calm, short...)
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
	s := newScene(t, calm, short...)
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
	s := newScene(t, calm, short...)
	w := open(t, s, 1280, "light")
	w.do(click(row("new-feature-rollout", ".acts button:first-child")), click("#trigger .main"))
	w.shows("#trigger .wrong", "the job is not known to Redis")
	w.do(click("#trigger .close"))
	if w.is(`document.getElementById('trigger').open`) {
		t.Error("the dialog does not close")
	}
}

func TestThePageSaysThatItIsOutOfDateAndComesBack(t *testing.T) {
	s := newScene(t, calm, short...)
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
	w := open(t, newScene(t, calm, short...), 1280, "light")
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
	s := newScene(t, calm, short...)
	w := open(t, s, 1280, "light")
	w.do(chromedp.Focus(chromedp.CSS(row("heartbeat", ".acts button:first-child"))), chromedp.KeyEvent("\r"))
	w.shows("#trigger", "Trigger heartbeat?")
	w.do(chromedp.KeyEvent("\x1b"))
	w.until(`!document.getElementById('trigger').open && document.activeElement.getAttribute('aria-label') === 'Trigger heartbeat'`)
	w.do(chromedp.Focus(chromedp.CSS(row("heartbeat", ".what button"))), chromedp.KeyEvent(" "))
	w.until(`document.activeElement.getAttribute('aria-expanded') === 'true'`)
	w.shows(row("heartbeat", ".more"), "succeeded")
}

func TestTimersAreCountedFoundAndSaidToBeLate(t *testing.T) {
	s := newScene(t, calm, short...)
	set := func(id string, at time.Time, source string) {
		t.Helper()
		_, err := s.store.SetTimer(t.Context(), id, at, []byte(source))
		s.must(err)
	}
	set("late", s.now.Add(-5*time.Minute), "{}") // the scene has no replica that fires it
	w := open(t, s, 1280, "light")
	w.shows("#timer-count", "2 waiting, the oldest is late by 5 m")
	w.shows("#timer-list", "late\nlate by 5 m")
	w.shows("#timer-list", "invoice-4711-reminder\nin 2")
	w.picture("timers", true)

	next, err := time.Parse(time.RFC3339, "2100-01-01T09:00:00Z")
	s.must(err)
	_, _, err = s.store.SetSeries(t.Context(), "user-17.mail", next, []byte(`{"schedule": "0 9 * * *", "timeZone": "Asia/Tokyo", "http": {"url": "http://127.0.0.1/"}}`))
	s.must(err)
	find := func(text string) {
		w.is(`(e => { e.value = ` + quote(text) + `; e.dispatchEvent(new Event('change')); })(document.getElementById('timer-search'))`)
	}
	w.do(typed("#timer-search", "user-17.mail"), chromedp.KeyEvent("\r"))
	w.shows("#timer-list", "user-17.mail\n0 9 * * * · Asia/Tokyo\nin ")
	w.shows("#timer-told", "The next tick is ")
	w.until(`document.querySelectorAll('#timer-list li').length === 1`)
	w.shows("#timer-count", "3 waiting")
	find(hostile)
	w.shows("#timer-told", "No timer of this id waits")
	w.until(`document.getElementById('timer-list').hidden`)
	find("user-17")
	w.shows("#timer-list", "user-17.mail\n0 9 * * * · Asia/Tokyo\nin ")
	w.until(`document.getElementById('timer-told').hidden`) // one of that id there never was
	find("")
	w.shows("#timer-list", "invoice-4711-reminder\nin 2")
	w.quiet(noIcon, "404", "422", "400")
}
