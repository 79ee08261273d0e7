package main

import (
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
