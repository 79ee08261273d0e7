package service

import (
	_ "embed"

	"github.com/solotick/solotick/internal/rds"
)

var (
	//go:embed ask.lua
	askSource string
	//go:embed pause.lua
	pauseSource string
	//go:embed cancel.lua
	cancelSource string
	//go:embed timer.lua
	timerSource string
	//go:embed spring.lua
	springSource string

	askScript    = rds.NewScript(askSource, rds.WhatIsDone)
	pauseScript  = rds.NewScript(pauseSource, rds.WhatIsDone)
	cancelScript = rds.NewScript(cancelSource, rds.WhatIsDone)
	timerScript  = rds.NewScript(timerSource, rds.WhatIsDone)
	springScript = rds.NewScript(springSource, rds.Unconfirmed)
)
