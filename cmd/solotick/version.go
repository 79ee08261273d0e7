package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/spf13/cobra"
)

// version is set by the linker for releases: -X main.version=v0.1.0.
var version string

// buildVersion returns the version of this binary. Outside of releases it is the version of the module, or "dev".
var buildVersion = sync.OnceValue(func() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
})

func (a *app) versionCommand() *cobra.Command {
	return a.outputFlag(&cobra.Command{
		Use:   "version",
		Short: "Show the version of this binary",
		Example: `  solotick version
  solotick version -o json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			return a.answer(struct {
				Version  string `json:"version"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
			}{buildVersion(), runtime.Version(), platform},
				fmt.Sprintf("solotick %s (%s, %s)", buildVersion(), runtime.Version(), platform))
		},
	})
}
