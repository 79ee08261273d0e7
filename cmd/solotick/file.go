package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// atMostOneFile accepts the name of one file in place of a flag. It repeats no URL: one may hold a password whose flag
// was forgotten.
func atMostOneFile(c *cobra.Command, args []string) error {
	if len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "://") {
		return usage(c.CommandPath()+" --help", "%s takes the name of one file", c.CommandPath())
	}
	return nil
}

// fileArgument puts the file that is given as an argument where the flag would put it.
func fileArgument(c *cobra.Command, args []string, flag string, to *string) error {
	if len(args) == 0 {
		return nil
	}
	if c.Flag(flag).Changed {
		return usage(c.CommandPath()+" "+args[0], "--%s and FILE both name the file", flag)
	}
	*to = args[0]
	return nil
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
