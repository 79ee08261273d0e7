package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/credentials"
)

// addresses are those of the flags, which stand in for the table's.
type addresses struct {
	listen, admin string
	passwordFile  string // of what other machines must know to use admin; "" = admin serves this machine alone
}

func (d *addresses) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&d.listen, "listen", "", "`address` of metrics and health, instead of the table's")
	f.StringVar(&d.admin, "admin", "", "`address` of the status page and the API, instead of the table's")
	f.StringVar(&d.passwordFile, "admin-password-file", "", "`file` with the password for which the admin address serves other machines, too")
	checks(c, d.check)
}

// check refuses an admin address that others can reach without a password. With one, it must be all addresses of the
// machine, so that the app beside the replica still reaches it on loopback.
func (d *addresses) check() error {
	host, _, err := net.SplitHostPort(d.admin)
	if d.admin == "" || err != nil || config.IsLoopback(host) { // listen says what is wrong with an address
		return nil
	}
	if all := slices.Contains([]string{"", "0.0.0.0", "::"}, host); !all || d.passwordFile == "" {
		return &failure{code: exitUsage, err: errors.New("--admin must be on this machine alone, or with a password on all of its addresses"),
			hint: "--admin 127.0.0.1:9748, or --admin 0.0.0.0:9748 --admin-password-file FILE"}
	}
	return nil
}

// replace puts the addresses into the table, which may be nil.
func (d *addresses) replace(t *config.Table) {
	if t != nil {
		t.Listen, t.Admin = cmp.Or(d.listen, t.Listen), cmp.Or(d.admin, t.Admin)
	}
}

// leastPassword is how many bytes a password must have: nothing limits how often a machine may guess.
const leastPassword = 16

// password returns what reads the password; nil if there is none.
func (d *addresses) password() (func() (string, error), error) {
	if d.passwordFile == "" {
		return nil, nil
	}
	read := credentials.Password(d.passwordFile, nil).Now
	password, err := read()
	if err == nil && len(password) < leastPassword {
		err = fmt.Errorf("%s has fewer than %d bytes", d.passwordFile, leastPassword)
	}
	if err != nil {
		return nil, &failure{code: exitCannot, err: fmt.Errorf("reading the password of the admin address: %w", err),
			hint: "head -c 24 /dev/urandom | base64 >" + d.passwordFile}
	}
	return read, nil
}
