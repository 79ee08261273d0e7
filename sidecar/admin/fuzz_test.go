package admin

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzAPI sends requests as they arrive over the wire, also such that no client of ours sends.
func FuzzAPI(f *testing.F) {
	const id = `{"id": "d8593ae8-b0c6-432f-9178-700b9b46c624"}`
	for _, seed := range [][4]string{
		{"GET", "/", "Host: localhost", ""},
		{"GET", "/v1/status", "Host: localhost:9748", ""},
		{"HEAD", "/v1/runs?job=reports&limit=7&failed=true", "Host: [::1]:9748", ""},
		{"GET", "/v1/runs?each=3", "Host: 127.0.0.1", ""},
		{"POST", "/v1/jobs/reports/trigger", "Host: localhost\r\nContent-Type: application/json", id},
		{"POST", "/v1/jobs/reports/pause", "Host: localhost\r\nContent-Type: application/json", `{"reason": "x", "for": "2h"}`},
		{"POST", "/v1/jobs/reports/resume", "Host: localhost\r\nOrigin: http://localhost\r\nSec-Fetch-Site: same-origin", ""},
		{"PUT", "/v1/timers/one", "Host: localhost\r\nContent-Type: application/json", `{"after": "1s", "http": {"url": "http://127.0.0.1:8080/"}}`},
		{"DELETE", "/v1/timers/one", "Host: localhost", ""},
		{"GET", "/v1/timers?limit=3", "Host: localhost", ""},
		{"PUT", "/v1/timers/each", "Host: localhost\r\nContent-Type: application/json", `{"schedule": "@daily", "http": {"url": "http://127.0.0.1:8080/"}}`},
		{"POST", "/v1/drain?timeout=1s", "Host: localhost\r\nTransfer-Encoding: chunked", "2\r\n{}\r\n0\r\n\r\n"},
		{"POST", "/v1/runs/" + someRun + "/heartbeat", "Host: localhost\r\nAuthorization: Bearer TOKEN", ""},
		{"POST", "/v1/runs/" + someRun + "/finish", "Host: localhost\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json", `{"outcome": "failed", "detail": "<\u001b>"}`},
		{"GET", "http://evil.example/v1/status", "Host: localhost", ""},
		{"OPTIONS", "*", "Host: localhost", ""},
		{"CONNECT", "localhost:80", "Host: localhost", ""},
		{"GET", "/v1/jobs/%2e%2e%2f/%00", "Host: localhost\r\nHost: evil.example", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	w := newWorld(f) // one for all requests: each finds the effects of the ones before
	call := w.open(someRun, nil)
	f.Fuzz(func(t *testing.T, method, target, headers, body string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\n" + headers + "\r\n\r\n" + body)))
		if err != nil {
			return
		}
		if r.Header.Get("Authorization") == "Bearer TOKEN" { // which is random
			r.Header.Set("Authorization", "Bearer "+call.Token())
		}
		out := httptest.NewRecorder()
		w.api.ServeHTTP(out, r)
		h := out.Header()
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%d without its headers: %v", out.Code, h)
		}
		if !isLoopback(r.Host) && out.Code != http.StatusForbidden {
			t.Errorf("Host %q was answered with %d", r.Host, out.Code)
		}
		if kind := h.Get("Content-Type"); strings.HasPrefix(kind, "application/json") {
			if !json.Valid(out.Body.Bytes()) {
				t.Errorf("no JSON: %q", out.Body)
			}
			if strings.ContainsAny(out.Body.String(), "<>\x1b\x00") {
				t.Errorf("unsafe: %q", out.Body)
			}
		} else if out.Code != http.StatusOK || r.URL.Path != "/" {
			t.Errorf("%d %s: %q", out.Code, kind, out.Body)
		}
		if out.Code == http.StatusInternalServerError {
			t.Errorf("%d %s", out.Code, out.Body)
		}
	})
}
