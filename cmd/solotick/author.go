package main

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/service"
)

// authorFlags adds the flags that say who makes a request, and why. The named verbs show the reason.
func (a *app) authorFlags(c *cobra.Command, shown string) {
	by := c.Flags().String("by", os.Getenv(byVariable), fmt.Sprintf(
		"`name` of the person who asks, at most %d characters (env SOLOTICK_BY, else user@host)", service.MaxBy))
	reason := c.Flags().String("reason", "", fmt.Sprintf(
		"why: `text` of at most %d characters, shown by %s", service.MaxReason, shown))
	checks(c, func() error {
		a.author.By, a.author.Reason = text.OneLine(*by), text.OneLine(*reason)
		if a.author.By == "" {
			a.author.By = account()
		}
		return service.CheckAuthor(service.Field{Name: "--by", Text: a.author.By},
			service.Field{Name: "--reason", Text: a.author.Reason})
	})
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
	characters := []rune(text.OneLine(name))
	return string(characters[:min(len(characters), service.MaxBy)])
}
