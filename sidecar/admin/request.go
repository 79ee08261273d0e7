package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/text"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = 64 << 10

// parameters checks the query. It accepts only the known names, each at most once.
func parameters(r *http.Request, known ...string) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return refuse(http.StatusBadRequest, "", "the query cannot be read")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			return refuse(http.StatusBadRequest, "", "this path takes no parameters")
		case !slices.Contains(known, name):
			return refuse(http.StatusBadRequest, "known are "+strings.Join(known, ", "),
				"unknown parameter %q", text.OneLine(name))
		case len(query[name]) > 1:
			return refuse(http.StatusBadRequest, "", "parameter %q is given more than once", name)
		}
	}
	return nil
}

// read reads the body, which must be JSON, of at most so many bytes; nil if there is none.
func read(r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, refuse(http.StatusRequestEntityTooLarge, "", "the body is larger than %d KiB", most>>10)
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "", "the body did not arrive as a whole")
	case len(body) == 0:
		return nil, nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "Content-Type: application/json",
			"the body must be JSON, and say so")
	}
	return body, nil
}

// decode reads the body into a struct, and refuses unknown keys. Without a body the struct stays as it is.
func decode(r *http.Request, into any) error {
	body, err := read(r, maxBody)
	if err != nil || body == nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err = d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return refuse(http.StatusBadRequest, "", "the body goes on after its end")
		}
		return nil
	}
	f := refuse(http.StatusBadRequest, "", "the body is not JSON")
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		f.Message = "the body must be a JSON object"
		wanted := map[bool]string{true: "truth value", false: "text"}[kind.Type.Kind() == reflect.Bool]
		if field := kind.Field[strings.LastIndexByte(kind.Field, '.')+1:]; field != "" { // without its part
			f.Message = fmt.Sprintf("%q must be a %s, not a %s", field, wanted, kind.Value)
		}
	} else if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		f.Message = "unknown key " + text.OneLine(field)
	}
	return f
}

func instant(key, value string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return t, refuse(http.StatusUnprocessableEntity, "as "+time.Now().UTC().Format(time.RFC3339),
			"%q is not a time as in RFC 3339", key)
	}
	return t, nil
}

func length(key, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	switch hint := "as 90s, 30m or 2h"; {
	case err != nil:
		return 0, refuse(http.StatusUnprocessableEntity, hint, "%q is not a duration", key)
	case d <= 0:
		return 0, refuse(http.StatusUnprocessableEntity, hint, "%q must be longer than 0s", key)
	}
	return d, nil
}
