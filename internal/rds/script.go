package rds

import (
	"crypto/sha1" // the name that Redis knows a script by
	"encoding/hex"
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

// NewScript makes a script of its source.
func NewScript(source string, confirm Confirm) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{Source: source, SHA: hex.EncodeToString(sum[:]), confirm: confirm}
}

// promised tells whether an answer of the script has to be confirmed.
func (sc *Script) promised(answer any) bool {
	parts, _ := answer.([]any)
	if len(parts) == 0 {
		return false
	}
	return sc.confirm == AllAnswers || parts[0] == "OK" || parts[0] == "SET" || parts[0] == "DELETED"
}
