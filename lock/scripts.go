package lock

import (
	"embed"

	"github.com/solotick/solotick/internal/rds"
)

//go:embed *.lua
var scripts embed.FS

var (
	acquireScript  = rds.Load(scripts, "acquire.lua", rds.AllAnswers)
	extendScript   = rds.Load(scripts, "extend.lua", rds.Unconfirmed)
	settleScript   = rds.Load(scripts, "settle.lua", rds.AllAnswers)
	releaseScript  = rds.Load(scripts, "release.lua", rds.Unconfirmed)
	registerScript = rds.Load(scripts, "register.lua", rds.AllAnswers)
	bookScript     = rds.Load(scripts, "book.lua", rds.WhatIsDone)
	dropScript     = rds.Load(scripts, "drop.lua", rds.WhatIsDone)
)
