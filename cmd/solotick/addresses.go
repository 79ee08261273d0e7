package main

import (
	"cmp"
	"net"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
)

// addresses are those of the flags, which stand in for the table's.
type addresses struct{ listen, admin string }

func (d *addresses) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&d.listen, "listen", "", "`address` of metrics and health, instead of the table's")
	f.StringVar(&d.admin, "admin", "", "`address` of the status page and the API, instead of the table's")
	checks(c, func() error {
		host, _, err := net.SplitHostPort(d.admin)
		if d.admin == "" || err != nil || config.IsLoopback(host) { // listen says what is wrong with an address
			return nil
		}
		return usage("--admin 127.0.0.1:9748", "--admin must be on this machine alone")
	})
}

// replace puts the addresses into the table, which may be nil.
func (d *addresses) replace(t *config.Table) {
	if t != nil {
		t.Listen, t.Admin = cmp.Or(d.listen, t.Listen), cmp.Or(d.admin, t.Admin)
	}
}
