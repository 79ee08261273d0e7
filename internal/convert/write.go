package convert

import (
	"bytes"
	"cmp"
	"fmt"
	"github.com/solotick/solotick/config/strict"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// mark begins the comments of the import. It tells them from the comments of the files.
const mark = "import: "

// width of a line of comment.
const width = 118

func write(all []job, files []Input, kinds map[Format]bool, o Options) []byte {
	var b bytes.Buffer
	names := make([]string, 0, 4)
	for _, f := range files[:min(len(files), 4)] {
		names = append(names, oneLine(f.Name))
	}
	if len(files) > 4 {
		names = append(names, fmt.Sprintf("%d more", len(files)-4))
	}
	comment(&b, "", "", "Made by `solotick-import` from "+strings.Join(names, ", "))
	for _, text := range general(all, kinds, o) {
		comment(&b, "", mark, text)
	}
	b.WriteByte('\n')
	if o.Service == "" {
		comment(&b, "", mark, "name the service whose replicas share these jobs; --service does it")
	}
	b.Write(encode(mapping(scalar("service"), scalar(cmp.Or(o.Service, "imported")))))
	b.WriteByte('\n')
	if o.Redis != "" {
		b.Write(encode(mapping(scalar("redis"), flow(mapping(scalar("url"), quoted(o.Redis))))))
	} else {
		comment(&b, "", mark, "name the Redis that the replicas share, here or by --redis")
		b.WriteString("# redis: {url: \"redis://redis:6379/0\"}\n")
	}
	b.WriteByte('\n')
	writeDefaults(&b, o)
	b.WriteByte('\n')
	if !slices.ContainsFunc(all, func(j job) bool { return j.lost == "" }) {
		b.WriteString("jobs: []\n")
	} else {
		b.WriteString("jobs:\n")
	}
	for i, j := range all {
		if b.Len() > maxTable {
			break // check will refuse a larger table
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		writeJob(&b, j)
	}
	return b.Bytes()
}

// writeDefaults writes the defaults of cron and Kubernetes.
func writeDefaults(b *bytes.Buffer, o Options) {
	b.WriteString("defaults:\n")
	if o.TimeZone != "" {
		b.Write(indented("  ", encode(mapping(scalar("timeZone"), scalar(o.TimeZone)))))
	} else {
		b.WriteString("  # timeZone: Europe/Berlin\n")
	}
	b.WriteString("  concurrencyPolicy: Allow # runs may overlap, as before; " +
		"Forbid skips a tick that comes while the job still runs\n")
	fmt.Fprintf(b, "  timeout: %s # there was no limit; say for each job how long it may take\n",
		strict.ShortDuration(unlimited))
}

func writeJob(b *bytes.Buffer, j job) {
	for _, c := range j.comments {
		comment(b, "  ", "", c)
	}
	from := "from " + oneLine(j.at)
	if j.was != "" {
		from += ", " + oneLine(j.was)
	}
	comment(b, "  ", mark, from)
	if j.lost != "" {
		comment(b, "  ", mark, "NOT CARRIED OVER: "+j.lost)
	}
	var seen []string
	for _, n := range j.notes {
		if !slices.Contains(seen, n.text) {
			comment(b, "  ", mark, n.text)
		}
		seen = append(seen, n.text)
	}
	if j.lost != "" && j.schedule == "" {
		return
	}
	prefix := "  "
	if j.lost != "" {
		prefix = "  # "
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{j.node()}}
	b.Write(indented(prefix, encode(list)))
}

// node returns the job as YAML, without keys that have their default.
func (j *job) node() *yaml.Node {
	m := mapping(scalar("name"), scalar(j.name))
	add := func(key string, value *yaml.Node) { m.Content = append(m.Content, scalar(key), value) }
	text := func(key, value string) {
		if value != "" {
			add(key, scalar(value))
		}
	}
	duration := func(key string, d time.Duration) {
		if d > 0 {
			add(key, scalar(strict.ShortDuration(d)))
		}
	}
	add("schedule", quoted(j.schedule))
	text("timeZone", j.timeZone)
	run := mapping()
	command := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, word := range j.command {
		n := quoted(literal(word))
		if command.Content = append(command.Content, n); n.Style == yaml.LiteralStyle {
			command.Style = 0
		}
	}
	run.Content = append(run.Content, scalar("command"), command)
	if len(j.env) > 0 {
		env := mapping()
		for _, v := range j.env {
			env.Content = append(env.Content, scalar(v.name), quoted(literal(v.value)))
		}
		run.Content = append(run.Content, scalar("env"), env)
	}
	if j.dir != "" {
		run.Content = append(run.Content, scalar("dir"), scalar(literal(j.dir)))
	}
	add("exec", run)
	duration("timeout", j.timeout)
	text("guarantee", j.guarantee)
	text("concurrencyPolicy", j.concurrency)
	duration("startingDeadline", j.deadline)
	if j.retries > 0 {
		number := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprint(j.retries)}
		add("retry", flow(mapping(scalar("limit"), number, scalar("backoff"), scalar(strict.ShortDuration(podBackoff)),
			scalar("maxBackoff"), scalar(strict.ShortDuration(maxPodBackoff)))))
	}
	duration("jitter", j.jitter)
	if j.suspend {
		add("suspend", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	}
	return m
}

// literal escapes ${, so that the table does not read it as a variable.
func literal(s string) string { return strings.ReplaceAll(s, "${", "$${") }

// scalar returns text as YAML, quoted if it must be.
func scalar(s string) *yaml.Node {
	s = strings.ToValidUTF8(s, "\ufffd") // such a job is commented out
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if !shows(s) {
		n.Style = yaml.DoubleQuotedStyle // which has escapes
	}
	return n
}

// shows reports whether every editor shows the text as it is, with its line breaks.
func shows(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

// quoted returns text in the quotes that need the fewest escapes, or as a block of lines.
func quoted(s string) *yaml.Node {
	n := scalar(s)
	switch s = n.Value; {
	case !shows(s):
		n.Style = yaml.DoubleQuotedStyle
	case strings.ContainsAny(s, `"\`) && !strings.ContainsAny(s, "'\n\t"):
		n.Style = yaml.SingleQuotedStyle
	case (strings.ContainsAny(s, `"\`) || strings.Contains(s, "\n")) && blockable(s):
		n.Style = yaml.LiteralStyle
	default:
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// blockable reports whether text can be a block without the indicators that YAML needs for unusual beginnings and ends.
func blockable(s string) bool {
	return !strings.HasPrefix(s, "\n") && !strings.HasPrefix(s, " ") && !strings.HasSuffix(s, "\n\n") &&
		!strings.Contains(s+"\n", " \n")
}

func mapping(content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: content}
}

func flow(n *yaml.Node) *yaml.Node {
	n.Style = yaml.FlowStyle
	return n
}

// encode writes a tree without folding long lines.
func encode(n *yaml.Node) []byte {
	out, err := yaml.Dump(n, yaml.WithV4Defaults(), yaml.WithLineWidth(-1), yaml.WithQuotePreference(yaml.QuoteDouble),
		yaml.WithCompactSeqIndent(false))
	if err != nil {
		panic(err) // a tree made here can always be written
	}
	return out
}

// indented puts a prefix before every line that is not empty.
func indented(prefix string, text []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		if len(bytes.TrimRight(line, "\n")) > 0 {
			b.WriteString(prefix)
		} else {
			b.WriteString(strings.TrimRight(prefix, " "))
		}
		b.Write(line)
	}
	return b.Bytes()
}

// comment writes a comment and wraps its lines.
func comment(b *bytes.Buffer, indent, mark, text string) {
	line := indent + "# " + mark
	room := utf8.RuneCountInString(line)
	begun := room
	for _, w := range strings.Split(text, " ") {
		if n := utf8.RuneCountInString(w); room > begun && room+1+n > width {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent + "#" + strings.Repeat(" ", len(mark)+1)
			begun = utf8.RuneCountInString(line)
			room = begun
		}
		if room > begun {
			line += " "
			room++
		}
		line += w
		room += utf8.RuneCountInString(w)
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}
