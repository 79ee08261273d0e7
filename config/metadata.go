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
func (d *decoder) aboutKeys() []strict.Key {
	return []strict.Key{
		{Name: "description", Kind: strict.KindText, Default: strict.None, Example: "sends the invoices of the day before", Form: lineForm(200),
			Show: strict.Shown, Also: []string{"desc", "summary", "comment", "title"},
			Decode: func(e strict.Entry) { d.line(e, &d.job.Description) },
			Doc:    "what the job is for: one line, at most 200 characters"},
		{Name: "owner", Kind: strict.KindText, Default: strict.None, Example: "team-billing", Form: lineForm(100),
			Show: strict.Shown, Common: true, Also: []string{"team", "maintainer", "contact", "responsible"},
			Decode: func(e strict.Entry) { d.line(e, &d.job.Owner) },
			Doc:    "whom to call: one line, at most 100 characters"},
		{Name: "runbook", Kind: strict.KindText, Default: strict.None, Example: "https://wiki.example.com/invoices#failed", Form: runbookForm,
			Show: strict.ShownURL, Common: true, Also: []string{"runbookUrl", "playbook", "docs", "documentation", "wiki"},
			Decode: d.runbook,
			Doc:    "what to do when it fails: an `http` or `https` URL without a password, at most 1000 characters"},
		{Name: "labels", Kind: strict.KindTextMap, Default: strict.None, Example: "{tier: gold}", Form: labelsForm,
			Show: strict.ShownNames, Common: true, Also: []string{"tags", "annotations"},
			Decode: d.labels,
			Doc:    "at most five texts of your own, for tools that read the status; each of them falls back to `defaults` alone"},
	}
}

// line reads text of one line.
func (d *decoder) line(e strict.Entry, to *string) {
	t := d.Text(e)
	if !t.OK() {
		return
	}
	if why, hint := checkLine(t.Value, e.Form.Length); why != "" {
		d.Bad(t, hint, "%s", why)
		return
	}
	*to = t.Value
	d.note(e, t)
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

func (d *decoder) runbook(e strict.Entry) {
	t := d.Text(e)
	if !t.OK() {
		return
	}
	why, hint := checkOpenURL(t.Value)
	if n := utf8.RuneCountInString(t.Value); why == "" && n > e.Form.Length {
		why = fmt.Sprintf("must have at most %d characters, has %d", e.Form.Length, n)
	}
	if why == "" {
		d.job.Runbook = t.Value
		d.note(e, t)
		return
	}
	if t.Opaque {
		hint = "check the values of its variables"
	}
	d.Bad(t, hint, "%s", why)
}

// checkOpenURL says what is wrong with a URL that people open in a browser, and what to write instead. It repeats
// nothing of the URL.
func checkOpenURL(raw string) (why, hint string) {
	const form = "write it like https://example.com/page"
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return "must not be empty", form
	case strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return "not a URL", form
	case err != nil && strings.Contains(raw, "://"):
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
	return "", ""
}

// metricLabels are the names of labels that Solotick's metrics have, or that Prometheus adds to them: a label of a job
// must not be mistaken for one.
var metricLabels = strings.Fields("job schedule time_zone guarantee owner runbook reason outcome fate hash version le quantile " +
	"service instance")

var (
	labelName = regexp.MustCompile(labelsForm.Names)
	notLabel  = regexp.MustCompile(`[^a-z0-9_]+`)
)

// labels reads a job's labels, on top of those in defaults.
func (d *decoder) labels(e strict.Entry) {
	own, all := 0, maps.Clone(d.job.Labels)
	d.TextMap(e, checkLabelName, func(name *yaml.Node, t strict.Text) {
		own++
		if why, hint := checkLine(t.Value, labelsForm.Length); why != "" {
			d.Bad(t, hint, "%s", why)
			return
		}
		set(&all, name.Value, t.Value)
	})
	switch {
	case own > labelsForm.Most:
		d.Fail(e.At, "", "labels: must have at most %d, has %d", labelsForm.Most, own)
	case len(all) > labelsForm.Most:
		d.Fail(e.At, "", "labels: must have at most %d, has %d with those from defaults", labelsForm.Most, len(all))
	default:
		d.job.Labels = all
	}
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
		return "Solotick's own metrics have a label of that name", "choose another name; what is taken: " + strings.Join(metricLabels, ", ")
	}
	return "", ""
}
