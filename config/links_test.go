package config

import (
	"net/url"
	"strings"
	"testing"
)

func TestALinkIsFilledWithEscapedValues(t *testing.T) {
	const awkward = `../%2F?a=1&b#c "<é>+{run}` + "\n"
	const escaped = "..%2F%252F%3Fa%3D1%26b%23c%20%22%3C%C3%A9%3E%2B%7Brun%7D%0A"
	for _, c := range []struct {
		link Link
		job  string
		want string
	}{
		{"", "a", ""},
		{"https://h/", "a", "https://h/"},
		{"https://h/{job}?q={job}#{job}", "a.b-c", "https://h/a.b-c?q=a.b-c#a.b-c"},
		{"https://h/{job}/x", awkward, "https://h/" + escaped + "/x"},
		{"https://h/?q=%22{job}%22&x", awkward, "https://h/?q=%22" + escaped + "%22&x"},
		{"https://h/#/{job}", awkward, "https://h/#/" + escaped},
		{"https://h/{run}{job}", "x", "https://h/{run}x"}, // no name in a value is one of the link
		{"https://h/{job}", "", ""},
		{"https://h/a/{job}/b", ".", ""},
		{"https://h/a/{job}/b", "..", ""},
		{"https://h/a/.{job}/b", ".", ""},
		{"https://h/a/{job}{job}/b", ".", ""},
		{"https://h/{other}", "a", ""},
	} {
		got := c.link.Fill(map[string]string{"job": c.job, "run": "{run}"})
		if want := strings.ReplaceAll(c.want, "/{run}x", "/%7Brun%7Dx"); got != want {
			t.Errorf("%s of %q is %q, want %q", c.link, c.job, got, want)
		}
	}
}

// FuzzLink fills good links with any value: it stays where the link has it.
func FuzzLink(f *testing.F) {
	f.Add("a/b?c=d&e#f{run}")
	f.Add("..")
	f.Add("\\\\evil.example.com/ \x00\xff")
	f.Fuzz(func(t *testing.T, value string) {
		const link = Link("https://h:1/a/{job}/b?x={job}&y=1#{job}/c")
		filled := link.Fill(map[string]string{"job": value})
		if strings.Trim(value, ".") == "" {
			if filled != "" {
				t.Errorf("%q gives %s", value, filled)
			}
			return
		}
		u, err := url.Parse(filled)
		if err != nil {
			t.Fatal(err)
		}
		base, _ := url.Parse("https://h:1/")
		if u.Scheme != "https" || u.Host != "h:1" || u.User != nil || u.Path != "/a/"+value+"/b" || u.Fragment != value+"/c" ||
			u.Query().Get("x") != value || u.Query().Get("y") != "1" || len(u.Query()) != 2 ||
			base.ResolveReference(u).EscapedPath() != u.EscapedPath() {
			t.Errorf("%q gives %s", value, filled)
		}
	})
}

func TestALinkIsCheckedByWhatItLeadsTo(t *testing.T) {
	for value, want := range map[string]string{
		"https://h/{job}?a={run}#{tick}": "", "HTTP://h:80/": "", "http://[::1]:3000/{from}/{to}": "", "http://h?q={replica}": "", "http://h#{service}": "",
		"https://h{job}": "cannot stand in the host", "https://u{job}@h/": "cannot stand in the host", "{job}://h/": "must begin with http",
		"https://h\\\\{job}": "not a URL", "https://{job}": "cannot stand in the host", "//h/{job}": "must begin with http", "/{job}": "must begin with http",
		"data:text/html,{job}": "must begin with http", "https:{job}": "has no host", "https://u:p@h/": "must not hold a user",
		"https://h:0/": "port", "https://h/%{job}": "not a URL", "https://h/ {job}": "not a URL", "https://h/{}": `unknown placeholder "{}"`,
		"https://h/{Job}": `unknown placeholder "{Job}"`, "https://h/{{job}}": "brace", "https://h/}{": "brace", "": "must not be empty",
	} {
		table, err := parse("table.yaml", []byte("service: s\nlinks: {logs: \""+value+"\"}\njobs: []\n"), testEnv, testNow)
		switch {
		case err == nil && (want != "" || string(table.Links.Logs) != value):
			t.Errorf("%s is accepted, want %q", value, want)
		case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
}
