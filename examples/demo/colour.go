package main

import "regexp"

func paint(code, text string) string { return "\x1b[" + code + "m" + text + "\x1b[0m" }

func bold(text string) string   { return paint("1", text) }
func dim(text string) string    { return paint("2", text) }
func red(text string) string    { return paint("31", text) }
func green(text string) string  { return paint("32", text) }
func yellow(text string) string { return paint("33", text) }

// ofReplica has the colours of the replicas.
var ofReplica = map[string]string{"one": "36", "two": "35", "three": "34"}

func (s *stream) name(replica string) string {
	if code := ofReplica[replica]; code != "" {
		return paint(code, replica)
	}
	return replica
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// plain returns a line without colours, for outputs other than a terminal.
func plain(line string) string { return escapes.ReplaceAllString(line, "") }
