package main

import (
	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the table, for editors",
		Long: `Print the JSON Schema of the table. An editor that knows the YAML language server completes keys by it, explains them
and marks what is wrong, when the table begins with the line

  # yaml-language-server: $schema=table.schema.json

What takes more than looking at one value, as a schedule that never ticks, is found by ` + "`solotick validate`" + ` alone.`,
		Example:           `  solotick schema >table.schema.json`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(config.Schema())
			return err
		},
	}
}
