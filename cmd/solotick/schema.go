package main

import (
	_ "embed"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
)

//go:embed starter.yaml
var starter []byte

func (a *app) schemaCommand() *cobra.Command {
	var example bool
	c := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the table, for editors",
		Long: `Print the JSON Schema of the table. With it, an editor that uses the YAML language server completes and
explains keys, and marks mistakes. The table must begin with the line

  # yaml-language-server: $schema=table.schema.json

The schema judges single values. Only solotick validate finds the rest, such as a schedule that never ticks.`,
		Example: `  solotick schema >table.schema.json`,
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			text := config.Schema()
			if example {
				text = starter
			}
			_, err := a.out.Write(text)
			return err
		},
	}
	c.Flags().BoolVar(&example, "example", false, "print a small table to begin with instead")
	return c
}
