package service

import (
	"embed"

	"github.com/solotick/solotick/internal/rds"
)

//go:embed *.lua
var scripts embed.FS

var (
	askScript     = rds.Load(scripts, "ask.lua", rds.WhatIsDone)
	pauseScript   = rds.Load(scripts, "pause.lua", rds.WhatIsDone)
	cancelScript  = rds.Load(scripts, "cancel.lua", rds.WhatIsDone)
	timerScript   = rds.Load(scripts, "timer.lua", rds.WhatIsDone)
	springScript  = rds.Load(scripts, "spring.lua", rds.Unconfirmed)
	examineScript = rds.Load(scripts, "examine.lua", rds.Unconfirmed)
)
