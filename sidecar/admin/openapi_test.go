package admin

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/sidecar/service"
)

// described is docs/openapi.yaml. Each answer that a test of this package gets is held against it: see world.ask.
type described struct {
	raw        any // the document, as JSON has it
	paths      map[string]map[string]operation
	parameters map[string]parameter
	schemas    *jsonschema.Compiler

	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema
	met      map[string]bool // "PUT /v1/timers/{id} 201": answers that some test got
}

type operation struct {
	Parameters  []ref
	RequestBody struct {
		Required bool
		Content  map[string]media
	} `json:"requestBody"`
	Responses map[string]response
}

type media struct{ Schema map[string]any }

type response struct {
	Ref     string `json:"$ref"`
	Content map[string]media
	Headers map[string]struct{ Required bool }
}

type parameter struct {
	Name, In string
	Schema   map[string]any
}

type ref struct {
	Ref string `json:"$ref"`
}

const openAPI = "../../docs/openapi.yaml"

// theDescription reads the document once.
var theDescription = sync.OnceValues(func() (*described, error) {
	text, err := os.ReadFile(openAPI)
	if err != nil {
		return nil, err
	}
	d := &described{compiled: map[string]*jsonschema.Schema{}, met: map[string]bool{}, schemas: jsonschema.NewCompiler(), parameters: map[string]parameter{}}
	if d.raw, err = asJSONValue(text); err != nil {
		return nil, err
	}
	table, err := os.ReadFile("../../docs/table.schema.json")
	if err != nil {
		return nil, err
	}
	tableSchema, err := jsonschema.UnmarshalJSON(bytes.NewReader(table))
	if err != nil {
		return nil, err
	}
	delete(tableSchema.(map[string]any), "$id") // the document names it by its place beside it
	for name, doc := range map[string]any{"openapi.yaml": d.raw, "table.schema.json": tableSchema} {
		if err := d.schemas.AddResource("file:///"+name, doc); err != nil {
			return nil, err
		}
	}
	whole, err := json.Marshal(d.raw)
	if err != nil {
		return nil, err
	}
	var in struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Parameters map[string]parameter }
	}
	if err := json.Unmarshal(whole, &in); err != nil {
		return nil, err
	}
	d.parameters, d.paths = in.Components.Parameters, map[string]map[string]operation{}
	for path, item := range in.Paths {
		d.paths[path] = map[string]operation{}
		var shared []ref
		if p, ok := item["parameters"]; ok {
			if err := json.Unmarshal(p, &shared); err != nil {
				return nil, err
			}
			delete(item, "parameters")
		}
		for method, text := range item {
			var o operation
			if err := json.Unmarshal(text, &o); err != nil {
				return nil, err
			}
			o.Parameters = append(slices.Clone(shared), o.Parameters...)
			d.paths[path][strings.ToUpper(method)] = o
		}
	}
	return d, nil
})

// asJSONValue reads YAML as the values of JSON that a schema judges.
func asJSONValue(text []byte) (any, error) {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	out, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(out))
}

func description(t testing.TB) *described {
	t.Helper()
	d, err := theDescription()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// operationOf finds what the document says of a request; path is "" if it has no such path.
func (d *described) operationOf(method, target string) (path string, o operation, known bool) {
	given := strings.Split(target, "/")
	for p, methods := range d.paths {
		parts := strings.Split(p, "/")
		fits := len(parts) == len(given)
		for i := 0; fits && i < len(parts); i++ {
			fits = parts[i] == given[i] || strings.HasPrefix(parts[i], "{") && given[i] != ""
		}
		if fits {
			o, known = methods[method]
			return p, o, known
		}
	}
	return "", o, false
}

// declares checks that the document has this answer, and that its body is as the document says. A random request
// counts for nothing: the next one may get another answer.
func (d *described) declares(r *http.Request, out *httptest.ResponseRecorder, random bool) error {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	path, o, known := d.operationOf(method, r.URL.EscapedPath())
	body, content := out.Body.Bytes(), out.Header().Get("Content-Type")
	status := strconv.Itoa(out.Code)
	switch {
	case !known && out.Code == http.StatusForbidden:
		return d.fits("#/components/schemas/Error", body)
	case path == "" && out.Code != http.StatusNotFound:
		return fmt.Errorf("a path that the document does not have is answered with %s", status)
	case path != "" && !known && out.Code != http.StatusMethodNotAllowed:
		return fmt.Errorf("a method that the document does not have is answered with %s", status)
	case !known:
		return d.fits("#/components/schemas/Error", body)
	}
	answer, ok := o.Responses[status]
	if !ok {
		return fmt.Errorf("%s is not in the document", status)
	}
	at := fmt.Sprintf("#/paths/%s/%s/responses/%s", strings.ReplaceAll(url.PathEscape(strings.ReplaceAll(path, "/", "~1")), "%2F", "/"), strings.ToLower(method), status)
	if answer.Ref != "" {
		at = answer.Ref
		if err := d.resolve(answer.Ref, &answer); err != nil {
			return err
		}
	}
	for name, h := range answer.Headers {
		if h.Required && out.Header().Get(name) == "" {
			return fmt.Errorf("the header %s is missing", name)
		}
	}
	for kind := range answer.Content {
		if strings.HasPrefix(content, strings.TrimSuffix(kind, "; charset=utf-8")) {
			if !random {
				d.mu.Lock()
				d.met[method+" "+path+" "+status] = true
				d.mu.Unlock()
			}
			if kind != "application/json" || r.Method == http.MethodHead {
				return nil
			}
			return d.fits(at+"/content/application~1json/schema", body)
		}
	}
	return fmt.Errorf("%q is not in the document", content)
}

// resolve reads what a reference within the document names.
func (d *described) resolve(name string, into any) error {
	v := d.raw
	for _, part := range strings.Split(strings.TrimPrefix(name, "#/"), "/") {
		m, _ := v.(map[string]any)
		v = m[part]
	}
	if v == nil {
		return fmt.Errorf("%s is nowhere in the document", name)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// fits judges a body by a schema of the document.
func (d *described) fits(schema string, body []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.compiled[schema]
	if s == nil {
		var err error
		if s, err = d.schemas.Compile("file:///openapi.yaml" + schema); err != nil {
			return err
		}
		d.compiled[schema] = s
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	return s.Validate(v)
}

// TestTheDescriptionIsOpenAPI judges the document by the schema of OpenAPI 3.1, and all its schemas by that of JSON
// Schema.
func TestTheDescriptionIsOpenAPI(t *testing.T) {
	d := description(t)
	text, err := os.ReadFile("testdata/openapi-3.1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("file:///openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("file:///openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(d.raw); err != nil {
		t.Error(err)
	}
	var components struct{ Schemas map[string]any }
	if err := d.resolve("#/components", &components); err != nil {
		t.Fatal(err)
	}
	used, _ := os.ReadFile(openAPI)
	for name := range components.Schemas {
		if _, err := d.schemas.Compile("file:///openapi.yaml#/components/schemas/" + name); err != nil {
			t.Error(err)
		}
		if !bytes.Contains(used, []byte("schemas/"+name+`"`)) {
			t.Errorf("nothing uses the schema %s", name)
		}
	}
}

// TestTheDescriptionHasEveryRouteAndNoOther compares paths and methods.
func TestTheDescriptionHasEveryRouteAndNoOther(t *testing.T) {
	served := map[string]string{}
	for path, methods := range (&api{}).routes() {
		served[strings.TrimSuffix(path, "{$}")] = strings.Join(slices.Sorted(maps.Keys(methods)), " ")
	}
	for path, methods := range description(t).paths {
		if got := strings.Join(slices.Sorted(maps.Keys(methods)), " "); got != served[path] {
			t.Errorf("%s: the document has %q, the API %q", path, got, served[path])
		}
		delete(served, path)
	}
	for path := range served {
		t.Errorf("%s is not in the document", path)
	}
}

// TestTheDescriptionOfATimerHasItsKeys: the API itself says which it allows.
func TestTheDescriptionOfATimerHasItsKeys(t *testing.T) {
	var timer struct{ Properties map[string]any }
	if err := description(t).resolve("#/components/schemas/TimerDefinition", &timer); err != nil {
		t.Fatal(err)
	}
	var said refusal
	if err := json.Unmarshal(newWorld(t).ask("PUT", "/v1/timers/new", `{"zzz": 1}`).Body.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(said.Problems, func(p problemJSON) bool { return strings.HasPrefix(p.Hint, "allowed here: ") })
	if i < 0 {
		t.Fatalf("%+v", said)
	}
	allowed := strings.Split(strings.TrimPrefix(said.Problems[i].Hint, "allowed here: "), ", ")
	slices.Sort(allowed)
	if got := slices.Sorted(maps.Keys(timer.Properties)); !slices.Equal(got, allowed) {
		t.Errorf("the document has %v, the API allows %v", got, allowed)
	}
}

// TestWhatAnyRequestCanBeAnsweredIsDescribed plays what is the same for all operations. Their other answers have tests
// of their own.
func TestWhatAnyRequestCanBeAnsweredIsDescribed(t *testing.T) {
	for path, methods := range description(t).paths {
		for method, o := range methods {
			t.Run(method+path, func(t *testing.T) {
				w, path := newWorld(t), path
				token := w.token(someRun)
				ask := func(body string, headers ...string) {
					t.Helper()
					headers = append([]string{"Authorization", "Bearer " + token}, headers...) // which most paths do not look at
					w.ask(method, strings.NewReplacer("{job}", "reports", "{id}", "a", "{tick}", "now", "{run}", someRun).Replace(path), body, headers...)
				}
				body := ""
				switch {
				case strings.HasSuffix(path, "/pause"):
					body = `{"reason": "because"}`
				case strings.HasSuffix(path, "/rerun"):
					body = `{"tick": "2027-03-28T07:00:00Z"}`
				case method == http.MethodPut && strings.Contains(path, "timers"):
					body = `{"after": "1h", "http": {"url": "http://127.0.0.1/"}}`
				case path == "/v1/jobs/{job}" && method != http.MethodGet:
					path = "/v1/jobs/made"
					if method == http.MethodPut {
						body = `{"schedule": "@hourly", "http": {"url": "http://127.0.0.1/"}}`
					}
				}
				ask(body, "Solotick-Run", "5e4d3c2b-1a09-4f8e-8d7c-6b5a49382705")
				w.ask(method, strings.NewReplacer("{job}", "nobody", "{id}", "b", "{tick}", "now", "{run}", "nobody").Replace(path), body)
				if o.RequestBody.Content != nil {
					ask(strings.Repeat(" ", maxBody+1))
					ask("{}", "Content-Type", "text/plain")
					ask(`{"by": "` + strings.Repeat("x", 101) + `"}`)
				}
				w.mini.SetError("LOADING Redis is loading the dataset in memory")
				w.patience = 50 * time.Millisecond // or else a change is tried for seconds
				ask(body)
				w.mini.SetError("")
				w.patience = 0
				path += "?unknown=1"
				ask(body)
			})
		}
	}
}

// TestAServiceThatIsFullSaysSo: of timers, and of requests by hand.
func TestAServiceThatIsFullSaysSo(t *testing.T) {
	w := newWorld(t)
	w.mini.HSet("solotick:{billing}:job:"+service.TimerJobs, "bytes", strconv.Itoa(service.MaxTimerSources))
	w.refuses(w.ask("PUT", "/v1/timers/a", `{"after": "1h", "http": {"url": "http://127.0.0.1/"}}`), 507, "too many")
	for n := range 5000 {
		if _, err := w.mini.ZAdd("solotick:{billing}:due", 0, fmt.Sprintf("%d other backfill 1 0 0 x", n)); err != nil {
			t.Fatal(err)
		}
	}
	w.refuses(w.ask("POST", "/v1/jobs/reports/rerun", `{"tick": "2027-03-28T07:00:00Z"}`), 507, "too many")
}

var (
	requests = flag.Int("requests", 1000, "how `many` requests TestNoRequestHasAnAnswerThatIsNotDescribed makes")
	chance   = flag.Uint64("chance", 1, "its `seed`")
)

// TestNoRequestHasAnAnswerThatIsNotDescribed makes requests from the document: each of its paths, with values that fit,
// that do not and that nobody expects. world.ask holds the answers against the document.
func TestNoRequestHasAnAnswerThatIsNotDescribed(t *testing.T) {
	d, w := description(t), newWorld(t)
	w.random = true
	sure := false
	call := w.open(someRun, func(time.Duration) bool { return sure })
	g := &generator{r: rand.New(rand.NewPCG(*chance, 0)), d: d}
	paths := slices.Sorted(maps.Keys(d.paths))
	for range *requests {
		path := paths[g.r.IntN(len(paths))]
		methods := slices.Sorted(maps.Keys(d.paths[path]))
		method := methods[g.r.IntN(len(methods))]
		if g.r.IntN(20) == 0 {
			method = g.pick("GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS")
		}
		target, body := g.request(path, d.paths[path][method])
		var headers []string
		if g.r.IntN(10) == 0 {
			headers = []string{g.pick("Host", "Content-Type", "Solotick-Run", "Origin", "Sec-Fetch-Site"), g.text()}
		}
		if strings.HasPrefix(path, "/v1/runs/{run}/") && g.r.IntN(8) > 0 {
			headers = append(headers, "Authorization", g.pick("Bearer ", "Bearer ", "Bearer ", "Basic ")+g.pick(call.Token(), call.Token(), call.Token(), g.text()))
			if sure = g.r.IntN(4) > 0; g.r.IntN(8) == 0 {
				call = w.open(someRun, func(time.Duration) bool { return sure })
			}
		}
		w.ask(method, target, body, headers...)
		if method == http.MethodGet && g.r.IntN(100) == 0 { // Redis is away for a while
			w.mini.SetError("LOADING Redis is loading the dataset in memory")
			w.ask(method, target, body)
			w.mini.SetError("")
		}
	}
}

// generator makes requests.
type generator struct {
	r *rand.Rand
	d *described
}

func (g *generator) pick(of ...string) string { return of[g.r.IntN(len(of))] }

func (g *generator) text() string {
	return g.pick("", "send-invoices", "reports", "warm-cache", "nobody", "a", "timer:a", "now", "true", "1", "0", "-1", "1e9", "90s", "2h",
		"2027-03-28T07:00:00Z", "2027-03-28T07:20:00Z", "9999-12-31T23:59:59Z", "d8593ae8-b0c6-432f-9178-700b9b46c624", "5e4d3c2b", "Ä", "\x1b[1m", "\x00",
		"a b", "../..", "%", "{", `"`, strings.Repeat("x", 300), "localhost", "text/plain", "application/json", "null")
}

// request makes a request of an operation: its target and its body.
func (g *generator) request(path string, o operation) (target, body string) {
	target = path
	query := url.Values{}
	for _, use := range o.Parameters {
		var p parameter
		if err := g.d.resolve(use.Ref, &p); err != nil {
			panic(err) // the document was read
		}
		switch {
		case p.In == "path":
			value := g.text()
			if g.r.IntN(2) == 0 {
				value = g.pick("send-invoices", "reports", "warm-cache", "new-one", "made", "2027-03-28T07:00:00Z", "now")
			}
			if p.Name == "run" && g.r.IntN(4) > 0 {
				value = someRun
			}
			if value == "" || strings.Contains(value, "/") || value == "%" {
				value = "x"
			}
			target = strings.ReplaceAll(target, "{"+p.Name+"}", url.PathEscape(value))
		case g.r.IntN(2) == 0:
			query.Add(p.Name, g.text())
		}
	}
	if g.r.IntN(20) == 0 {
		query.Add(g.text(), g.text())
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	if schema := o.RequestBody.Content["application/json"].Schema; schema != nil && g.r.IntN(8) > 0 {
		body = g.document(schema)
	} else if g.r.IntN(4) == 0 {
		body = g.pick("{}", "[]", "null", "{", `{"a": 1}`, "{} {}", "\x00", strings.Repeat(" ", maxBody+1))
	}
	return target, body
}

// document makes a JSON document from a schema, mostly one that fits.
func (g *generator) document(schema map[string]any) string {
	if of, many := schema["items"].(map[string]any); many {
		return "[" + g.document(of) + ", " + g.document(of) + "]"
	}
	var of struct{ Properties map[string]any }
	name, _ := schema["$ref"].(string)
	if err := g.d.resolve(name, &of); err != nil {
		panic(err)
	}
	fitting := map[string]any{"http": map[string]any{"url": "http://127.0.0.1:8080/x"}, "schedule": "0 10 * * *", "reason": "because", "at": "2027-03-30T08:00:00Z",
		"after": "90s", "for": "2h", "id": "d8593ae8-b0c6-432f-9178-700b9b46c624", "tick": "2027-03-28T07:00:00Z", "until": "2027-03-28T12:00:00Z", "by": "anna", "outcome": "failed"}
	out := map[string]any{}
	for key := range of.Properties {
		switch value, ok := fitting[key]; {
		case ok && g.r.IntN(3) > 0:
			out[key] = value
		case g.r.IntN(10) == 0:
			out[key] = []any{g.text(), g.r.IntN(100), true, nil, []any{}, map[string]any{g.text(): g.text()}}[g.r.IntN(6)]
		}
	}
	if out["at"] != nil && g.r.IntN(4) > 0 {
		delete(out, "after")
	}
	if out["until"] != nil && g.r.IntN(4) > 0 {
		delete(out, "for")
	}
	if g.r.IntN(20) == 0 {
		out[g.text()] = g.text()
	}
	text, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestMain checks, when all tests have run, that some test got each answer of the document.
func TestMain(m *testing.M) {
	code := m.Run()
	whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.fuzz").Value.String() == "" && flag.Lookup("test.list").Value.String() == ""
	if d, err := theDescription(); err == nil && code == 0 && whole {
		for path, methods := range d.paths {
			for method, o := range methods {
				for status := range o.Responses {
					if !d.met[method+" "+path+" "+status] {
						fmt.Printf("%s %s: no test got the answer %s of docs/openapi.yaml\n", method, path, status)
						code = 1
					}
				}
			}
		}
	}
	os.Exit(code)
}
