package main

import (
	"slices"

	"github.com/spf13/cobra"
)

// completeJobs completes names of jobs in the table, each once: up to most arguments, or any number if that is 0. The
// shell filters by what was typed.
func (a *app) completeJobs(most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		known := a.config != standardInput && a.service == "" // standard input is the terminal
		if known && (most == 0 || len(args) < most) {
			if t, _ := a.readTable(); t != nil { // of a table with problems the rest is known
				for _, j := range t.Jobs {
					if !slices.Contains(args, j.Name) {
						names = append(names, j.Name)
					}
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
