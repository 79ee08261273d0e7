package credentials

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/solotick/solotick/config"
)

// maxText is more bytes than a token or a few secrets have. Servers take headers of 8 to 64 KiB.
const maxText = 64 << 10

// Header returns the value of a header that comes from a file. One line break at its end does not count.
func Header(h config.HeaderFile, warn func(error)) *Kept[string] {
	return Keep(maxText, func(contents [][]byte) (string, error) {
		text := bytes.TrimSuffix(bytes.TrimSuffix(contents[0], []byte("\n")), []byte("\r"))
		switch {
		case len(text) == 0:
			return "", errors.New("it is empty")
		case !utf8.Valid(text) || !config.IsHeaderValue(string(text)):
			return "", errors.New("it holds line breaks or control characters, which no header can have")
		}
		return h.Prefix + string(text), nil
	}, warn, h.File)
}

// Password returns the password in a file. Line breaks at its end do not count. An empty file says that there is none,
// but it never replaces a password: whoever writes it has only begun.
func Password(path string, warn func(error)) *Kept[string] {
	had := false // there was a password
	return Keep(maxText, func(contents [][]byte) (string, error) {
		text := bytes.TrimRight(contents[0], "\r\n")
		if len(text) == 0 && had {
			return "", errors.New("it is empty")
		}
		had = len(text) > 0
		return string(text), nil
	}, warn, path)
}

// Secrets are keys that sign as Standard Webhooks 1.0.0 says.
type Secrets [][]byte

// SecretFile returns the secrets in a file.
func SecretFile(path string, warn func(error)) *Kept[Secrets] {
	return Keep(maxText, func(contents [][]byte) (Secrets, error) {
		return ParseSecrets(string(contents[0]))
	}, warn, path)
}

var errSecret = errors.New("not a secret of Standard Webhooks: whsec_ and the base64 of 24 to 64 bytes")

// ParseSecrets reads secrets with white space between them. The error repeats none of them.
func ParseSecrets(text string) (Secrets, error) {
	var all Secrets
	for secret := range strings.FieldsSeq(text) {
		coded, marked := strings.CutPrefix(secret, "whsec_")
		key, err := base64.StdEncoding.DecodeString(coded)
		if !marked || err != nil || len(key) < 24 || len(key) > 64 {
			return nil, errSecret
		}
		all = append(all, key)
	}
	if len(all) == 0 {
		return nil, errors.New("it is empty")
	}
	return all, nil
}

// SignIn sets the headers of a signature: the id of the message, the time, and what Sign makes of them and the body.
func (s Secrets) SignIn(h map[string][]string, id, body string, now time.Time) {
	at := strconv.FormatInt(now.Unix(), 10)
	h["Webhook-Id"], h["Webhook-Timestamp"] = []string{id}, []string{at}
	h["Webhook-Signature"] = []string{s.Sign(id, at, body)}
}

// Sign returns a signature by each of the secrets: while one secret replaces another, both are valid. It signs the id
// of the message, the time in Unix seconds, and the body.
func (s Secrets) Sign(id, at, body string) string {
	all := make([]string, len(s))
	for i, key := range s {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "." + body))
		all[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(all, " ")
}
