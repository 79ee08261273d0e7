package docs_test

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
)

var update = flag.Bool("update", false, "write into the pages what the commands print and what the schedules mean, where it differs")

// A fence is a fenced block of a page, with what the comments directly above it tell the test of commands:
//
//	<!-- exit 1 -->        its last command ends with this exit code, and not with 0
//	<!-- file NAME -->     it is the content of this file, which the commands below it find in their directory
//	<!-- given STATE -->   before its commands the world is brought into this state (world_test.go lists them)
type fence struct {
	page     string
	line     int // of the fence that opens it, from 1
	language string
	indent   string
	lines    []string
	exit     int
	file     string
	given    []string
}

// A command is one command line of a page, and what the page shows of its output.
type command struct {
	fence
	at    int // its line in the page, from 1
	text  string
	after int // index in the fence's lines of the line after the command
	shown []string
	shows bool // the page shows what it prints, if only nothing
}

func (c command) String() string { return fmt.Sprintf("%s:%d: %s", c.page, c.at, c.text) }

var directive = regexp.MustCompile(`^<!-- ((?:exit|file|given) .+) -->$`)

// blocks are the fenced blocks of a page. A comment that the test would read, but that stands above no block, is an
// error.
func blocks(page, text string) (all []fence, err error) {
	next := fence{page: page}
	told := 0
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if m := directive.FindStringSubmatch(line); m != nil {
			for said := range strings.SplitSeq(m[1], "; ") {
				key, value, _ := strings.Cut(said, " ")
				if err := next.tell(key, value); err != nil {
					return nil, fmt.Errorf("%s:%d: %w", page, i+1, err)
				}
			}
			told = i + 1
			continue
		}
		if !strings.HasPrefix(line, "```") {
			if told != 0 && line != "" {
				return nil, fmt.Errorf("%s:%d: the comment belongs to no block", page, told)
			}
			continue
		}
		next.line, next.language = i+1, strings.TrimPrefix(line, "```")
		next.indent = lines[i][:strings.Index(lines[i], "```")] // of a block in a list
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
			next.lines = append(next.lines, strings.TrimPrefix(lines[i], next.indent))
		}
		if i == len(lines) {
			return nil, fmt.Errorf("%s:%d: the block does not end", page, next.line)
		}
		all = append(all, next)
		next, told = fence{page: page}, 0
	}
	return all, nil
}

func (b *fence) tell(key, value string) error {
	switch key {
	case "exit":
		if _, err := fmt.Sscanf(value, "%d", &b.exit); err != nil {
			return fmt.Errorf("%q is no exit code", value)
		}
	case "file":
		b.file = value
	case "given":
		for state := range strings.SplitSeq(value, ", ") {
			b.given = append(b.given, state)
		}
	}
	return nil
}

var solotickLine = regexp.MustCompile(`(^|\| )solotick `)

// commands are the command lines of a block: of `sh`, all lines; of `console`, those after a `$`, with the output below
// them. A block without a language is one of both if it looks so.
func (b fence) commands() (all []command) {
	language := b.language
	if language == "" && len(b.lines) > 0 {
		switch first := b.lines[0]; {
		case strings.HasPrefix(first, "$ "):
			language = "console"
		case solotickLine.MatchString(first):
			language = "sh"
		}
	}
	defer func() {
		for i := range all[:max(0, len(all)-1)] {
			all[i].exit = 0
		}
	}()
	for i := 0; i < len(b.lines); i++ {
		line, isCommand := b.lines[i], language == "sh" || language == "bash"
		if language == "console" {
			line, isCommand = strings.CutPrefix(line, "$ ")
			if !isCommand && len(all) > 0 {
				last := &all[len(all)-1]
				last.shown = append(last.shown, b.lines[i])
			}
		}
		if !isCommand || strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		c := command{fence: b, at: b.line + 1 + i, text: line, shows: language == "console"}
		for strings.HasSuffix(c.text, `\`) && i+1 < len(b.lines) {
			i++
			c.text = strings.TrimSuffix(c.text, `\`) + strings.TrimSpace(b.lines[i])
		}
		c.after = i + 1
		all = append(all, c)
	}
	return all
}

// parts are the simple commands of a command line, as words, without quotes, comments, redirections and leading
// assignments.
func parts(line string) (all [][]string) {
	var words []string
	var word strings.Builder
	var quote rune
	inWord := false
	endWord := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	endPart := func() {
		endWord()
		for len(words) > 0 && assignment.MatchString(words[0]) {
			words = words[1:]
		}
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == '#' && !inWord:
			endPart()
			return all
		case r == ' ' || r == '\t':
			endWord()
		case r == '|' || r == ';' || r == '&':
			endPart()
		case r == '>' || r == '<':
			endWord()
			words = append(words, string(r))
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	endPart()
	return all
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
