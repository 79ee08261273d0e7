package lock

import (
	"crypto/sha1" // the name that Redis knows a script by
	_ "embed"
	"encoding/hex"
)

// A script is one of the Lua files: each says at its top what KEYS, ARGV and answer mean.
type script struct{ source, sha string }

func newScript(source string) *script {
	sum := sha1.Sum([]byte(source))
	return &script{source: source, sha: hex.EncodeToString(sum[:])}
}

var (
	//go:embed acquire.lua
	acquireSource string
	//go:embed extend.lua
	extendSource string
	//go:embed settle.lua
	settleSource string
	//go:embed release.lua
	releaseSource string
	//go:embed register.lua
	registerSource string
	//go:embed ask.lua
	askSource string
	//go:embed pause.lua
	pauseSource string
	//go:embed book.lua
	bookSource string
	//go:embed drop.lua
	dropSource string
	//go:embed timer.lua
	timerSource string
	//go:embed dynamic.lua
	dynamicSource string

	acquireScript  = newScript(acquireSource)
	extendScript   = newScript(extendSource)
	settleScript   = newScript(settleSource)
	releaseScript  = newScript(releaseSource)
	registerScript = newScript(registerSource)
	askScript      = newScript(askSource)
	pauseScript    = newScript(pauseSource)
	bookScript     = newScript(bookSource)
	dropScript     = newScript(dropSource)
	timerScript    = newScript(timerSource)
	dynamicScript  = newScript(dynamicSource)
)
