package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion {bash|zsh|fish|powershell}",
		Short: "Print the script that completes command lines in a shell",
		Example: `  solotick completion bash >/etc/bash_completion.d/solotick
  solotick completion zsh >"${fpath[1]}/_solotick"
  solotick completion fish >~/.config/fish/completions/solotick.fish
  solotick completion powershell | Out-String | Invoke-Expression`,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch strings.Join(args, " ") { // two of them are the name of none
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return usage("solotick completion bash",
				"completion takes the name of one shell: bash, zsh, fish or powershell")
		},
	}
}

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

// completeFile completes one name of a file with one of the extensions.
func completeFile(extensions ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return extensions, cobra.ShellCompDirectiveFilterFileExt
	}
}
