package rds

import (
	"crypto/sha1" // the name that Redis knows a script by
	"embed"
	"encoding/hex"
	"strings"
)

// Script is one of the Lua files: each says at its top what KEYS, ARGV and answer mean.
type Script struct {
	Source, SHA string
	confirm     Confirm
}

// Confirm says which answers of a script are believed only if enough of Redis' replicas have what the script wrote.
type Confirm int

const (
	Unconfirmed Confirm = iota // none
	WhatIsDone                 // those that say OK, SET or DELETED: Redis has done what an operator asked for
	AllAnswers                 // all: they tell of ticks and runs, which another client may have written just before
)

// prelude begins every script that knows `now`: Redis' time in milliseconds.
const prelude = "local t = redis.call('TIME')\nlocal now = t[1] * 1000 + math.floor(t[2] / 1000)\n"

// NewScript makes a script of its source, which may be that of another Script.
func NewScript(source string, confirm Confirm) *Script {
	if !strings.HasPrefix(source, "local t = ") && strings.Contains(source, "now") {
		source = prelude + source
	}
	sum := sha1.Sum([]byte(source))
	return &Script{Source: source, SHA: hex.EncodeToString(sum[:]), confirm: confirm}
}

// Load makes a script of an embedded file.
func Load(from embed.FS, file string, confirm Confirm) *Script {
	source, err := from.ReadFile(file)
	if err != nil {
		panic(err) // every test would show it
	}
	return NewScript(string(source), confirm)
}

// promised reports whether an answer of the script has to be confirmed.
func (sc *Script) promised(answer any) bool {
	parts, _ := answer.([]any)
	if len(parts) == 0 {
		return false
	}
	return sc.confirm == AllAnswers || parts[0] == "OK" || parts[0] == "SET" || parts[0] == "DELETED"
}
