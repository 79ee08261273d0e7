package config

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

// aboutKeys are the keys that tell people about a job. They change nothing in how it runs.
func aboutKeys(to *Job) []strict.Key {
	return []strict.Key{
		{Name: "description", Type: line(&to.Description), Example: "sends yesterday's invoices",
			Form: lineForm(200), Show: strict.Shown, Also: "desc summary comment title",
			Doc: "what the job is for: one line, at most 200 characters"},
		{Name: "owner", Type: line(&to.Owner), Example: "team-billing",
			Form: lineForm(100), Show: strict.Shown, Common: true, Also: "team maintainer contact responsible",
			Doc: "whom to call: one line, at most 100 characters"},
		{Name: "runbook", Type: strict.Checked(strict.Into(&to.Runbook), checkVariables, checkRunbook),
			Example: "https://wiki.example.com/invoices#failed", Form: runbookForm, Show: strict.ShownURL, Common: true,
			Also: "runbookUrl playbook docs documentation wiki",
			Doc:  "what to do when it fails: a URL without a password, at most 1000 characters"},
		{Name: "labels", Type: labels(&to.Labels), Example: "{tier: gold}", Form: labelsForm, Show: strict.ShownNames,
			Common: true, Also: "tags annotations", Doc: "at most five texts of your own"},
	}
}

// line is text of one line.
func line(to *string) strict.Type {
	return strict.Accepted(strict.KindText, func(d *strict.Decoder, e strict.Entry, t strict.Text) bool {
		if why, hint := checkLine(t.Value, e.Form.Length); why != "" {
			return d.Bad(t, hint, "%s", why)
		}
		*to = t.Value
		return true
	}, "!!str")
}

// checkLine says what is wrong with a text that must be one line of at most so many characters, and what to write
// instead.
func checkLine(text string, most int) (why, hint string) {
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "":
		return "must not be empty", "give it a value, or remove the key"
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) }):
		if strings.HasSuffix(text, "\n") {
			hint = "a block after > or | ends in a line break: write >- instead"
		}
		return "must be one line without control characters", hint
	case n > most:
		return fmt.Sprintf("must have at most %d characters, has %d", most, n), ""
	}
	return "", ""
}

// checkRunbook says what is wrong with a URL that people open in a browser, and what to write instead. It repeats
// nothing of the URL.
func checkRunbook(raw string) (why, hint string) {
	const form = "write it like https://example.com/page"
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return "must not be empty", form
	case strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }),
		err != nil && strings.Contains(raw, "://"):
		return "not a URL", form
	case err != nil, u.Scheme != "http" && u.Scheme != "https":
		return "must begin with http:// or https://", form
	case u.Hostname() == "":
		return "has no host", form
	case u.User != nil:
		return "must not hold a user or password: Solotick shows the URL", ""
	case badPort(u.Port()):
		return "the port must be from 1 to 65535", ""
	}
	return checkLine(raw, runbookForm.Length)
}

// metricLabels are the names of labels that Solotick's metrics have, or that Prometheus adds to them: a label of a job
// must not be mistaken for one.
var metricLabels = strings.Fields("job schedule time_zone guarantee owner runbook reason outcome fate hash version " +
	"le quantile service instance")

var (
	labelName = regexp.MustCompile(labelsForm.Names)
	notLabel  = regexp.MustCompile(`[^a-z0-9_]+`)
)

// labels are a job's labels, on top of those in defaults.
func labels(to *map[string]string) strict.Type {
	return strict.Type{Kind: strict.KindTextMap, Decode: func(d *strict.Decoder, e strict.Entry) {
		own, all := 0, maps.Clone(*to)
		d.TextMap(e, checkLabelName, func(name *yaml.Node, t strict.Text) {
			own++
			if why, hint := checkLine(t.Value, labelsForm.Length); why != "" {
				d.Bad(t, hint, "%s", why)
				return
			}
			set(&all, name.Value, t.Value)
		}, nil)
		switch {
		case own > labelsForm.Most:
			d.Fail(e.At, "", "labels: must have at most %d, has %d", labelsForm.Most, own)
		case len(all) > labelsForm.Most:
			d.Fail(e.At, "", "labels: must have at most %d, has %d with those from defaults", labelsForm.Most, len(all))
		default:
			*to = all
		}
	}}
}

// checkLabelName says what is wrong with the name of a label, and what to write instead.
func checkLabelName(name string) (why, hint string) {
	switch {
	case !labelName.MatchString(name):
		better := strings.Trim(notLabel.ReplaceAllString(strings.ToLower(name), "_"), "_")
		if labelName.MatchString(better) && !slices.Contains(metricLabels, better) {
			hint = fmt.Sprintf("write %q", better)
		}
		return "must be lower-case letters, digits and _, begin with a letter, and have at most 40 characters", hint
	case slices.Contains(metricLabels, name):
		return "Solotick's own metrics have a label of that name",
			"choose another name; what is taken: " + strings.Join(metricLabels, ", ")
	}
	return "", ""
}
