package lock

import (
	_ "embed"

	"github.com/solotick/solotick/internal/rds"
)

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
	//go:embed book.lua
	bookSource string
	//go:embed drop.lua
	dropSource string

	acquireScript  = rds.NewScript(acquireSource, rds.AllAnswers)
	extendScript   = rds.NewScript(extendSource, rds.Unconfirmed)
	settleScript   = rds.NewScript(settleSource, rds.AllAnswers)
	releaseScript  = rds.NewScript(releaseSource, rds.Unconfirmed)
	registerScript = rds.NewScript(registerSource, rds.AllAnswers)
	bookScript     = rds.NewScript(bookSource, rds.WhatIsDone)
	dropScript     = rds.NewScript(dropSource, rds.WhatIsDone)
)
