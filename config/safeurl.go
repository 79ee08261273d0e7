package config

import (
	"regexp"
	"strings"
)

const (
	urlRef  = `\$\{[A-Za-z_][A-Za-z0-9_]*\}`
	urlHost = `(?:(?:[A-Za-z0-9._-]|\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[A-Za-z0-9._-]*)?\})+|\[[0-9A-Fa-f:.%]*\])`
	urlPort = `(?::(?:[0-9]{1,6}|` + urlRef + `))?`
)

// What a URL may show of itself: scheme, host and port, then a path of plain characters and variables.
var (
	urlScheme = regexp.MustCompile(`^[a-z+]{1,16}://`)
	urlHead   = regexp.MustCompile(`^(?:https?://unix:|unix:(?://[A-Za-z0-9._-]*)?|` +
		`(?:(?:https?|rediss?|ftp)://)?` + urlHost + urlPort + `)`)
	urlPath   = regexp.MustCompile(`^(?:[A-Za-z0-9._~/%+,:; -]|` + urlRef + `)*`)
	openQuery = regexp.MustCompile(`^\?db=[0-9]{1,5}$`)
)

// safeURL is a URL as it may be shown: without user, password and query. Of what does not look like a URL, as of
// redis://:secret, of one whose @ was forgotten or of one with an @ in its query, nothing but the scheme is shown.
func safeURL(raw string) string {
	scheme := urlScheme.FindString(raw)
	if at := strings.LastIndex(raw, "@"); at >= 0 {
		if strings.Contains(raw[:at], "?") { // it may end a password, or stand in a query
			return scheme + mask
		}
		return scheme + mask + "@" + strings.TrimPrefix(safeURL(scheme+raw[at+1:]), scheme)
	}
	head := urlHead.FindString(raw)
	rest := raw[len(head):]
	if rest != "" && !strings.ContainsAny(rest[:1], "/?#") {
		return scheme + mask
	}
	path := urlPath.FindString(rest)
	head, rest = head+path, rest[len(path):]
	switch {
	case rest == "" || openQuery.MatchString(rest):
		return raw
	case rest[0] == '?' || rest[0] == '#':
		return head + rest[:1] + mask
	}
	return head + mask
}
