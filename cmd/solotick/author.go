package main

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/service"
)

// author says who makes a request, and why.
type author struct{ by, reason string }

// flags adds the flags of a verb whose reasons the named verbs show.
func (f *author) flags(c *cobra.Command, shown string) {
	c.Flags().StringVar(&f.by, "by", os.Getenv(byVariable), fmt.Sprintf(
		"`name` of the person who asks, at most %d characters (env SOLOTICK_BY, else user@host)", service.MaxBy))
	c.Flags().StringVar(&f.reason, "reason", "", fmt.Sprintf(
		"why: `text` of at most %d characters, shown by %s", service.MaxReason, shown))
	checks(c, f.check)
}

func (f *author) check() error {
	f.by, f.reason = text.OneLine(f.by), text.OneLine(f.reason)
	if f.by == "" {
		f.by = account()
	}
	return service.CheckAuthor(service.Field{Name: "--by", Text: f.by}, service.Field{Name: "--reason", Text: f.reason})
}

// account names the user and the host that the command runs on.
func account() string {
	name := strconv.Itoa(os.Getuid()) // an image without a list of users knows no more
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	name = text.OneLine(name)
	for utf8.RuneCountInString(name) > service.MaxBy {
		_, last := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-last]
	}
	return name
}
