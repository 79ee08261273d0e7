package rds

import (
	"crypto/sha1" // the name that Redis knows a script by
	"encoding/hex"
	"fmt"
	"strings"
)

// Script is one of the Lua files: each says at its top what KEYS, ARGV and answer mean.
type Script struct {
	Source, SHA string
	confirm     Confirm
	Herd        *Script // that answers many questions at once; nil = this one does
}

// Confirm says which answers of a script are believed only if enough of Redis' replicas have what the script wrote.
type Confirm int

const (
	Unconfirmed Confirm = iota // none
	WhatIsDone                 // those that say OK, SET or DELETED: Redis has done what an operator asked for
	AllAnswers                 // all: they tell of ticks and runs, which another client may have written just before
)

// prelude begins every script: `now` is Redis' time in milliseconds.
const prelude = "local t = redis.call('TIME')\nlocal now = t[1] * 1000 + math.floor(t[2] / 1000)\n"

// A herd runs the text of a script for many questions. KEYS and ARGV have those of all, one after the other; before the
// arguments of each stand how many keys and how many arguments it has. An error of one is its answer.
const herd = `local function one(KEYS, ARGV)
%s
end
local answers, k, a = {}, 0, 0
repeat
  local keys, args = ARGV[a + 1], ARGV[a + 2]
  local ok, answer = pcall(one, {unpack(KEYS, k + 1, k + keys)}, {unpack(ARGV, a + 3, a + 2 + args)})
  if not ok and type(answer) ~= 'table' then answer = {err = answer} end
  answers[#answers + 1] = answer
  k, a = k + keys, a + 2 + args
until a == #ARGV
return answers`

// NewScript makes a script of its source, which may be that of another Script.
func NewScript(source string, confirm Confirm) *Script {
	source = strings.TrimPrefix(source, prelude)
	script := func(source string, herd *Script) *Script {
		sum := sha1.Sum([]byte(source))
		return &Script{source, hex.EncodeToString(sum[:]), confirm, herd}
	}
	return script(prelude+source, script(prelude+fmt.Sprintf(herd, source), nil))
}

// promised reports whether an answer of the script has to be confirmed.
func (sc *Script) promised(answer any) bool {
	parts, _ := answer.([]any)
	if sc == nil || sc.confirm == Unconfirmed || len(parts) == 0 {
		return false
	}
	return sc.confirm == AllAnswers || parts[0] == "OK" || parts[0] == "SET" || parts[0] == "DELETED"
}
