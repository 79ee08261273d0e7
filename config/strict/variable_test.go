package strict

import "testing"

func TestVariablesAreFilledIn(t *testing.T) {
	env := func(name string) (string, bool) {
		value, ok := map[string]string{"A": "a", "B_2": "b", "EMPTY": "", "REF": "${A}", "YAML": "{x: [y]}"}[name]
		return value, ok
	}
	for value, want := range map[string]string{
		"":                   "",
		"plain":              "plain",
		"$A $ $$":            "$A $ $$",
		"${A}":               "a",
		"x${A}${B_2}y":       "xaby",
		"${EMPTY}":           "",
		"${EMPTY:-c}":        "c",
		"${NONE:-c d}":       "c d",
		"${NONE:-}":          "",
		"${A:-c}":            "a",
		"${NONE:-:-$x}":      ":-$x",
		"$${A}":              "${A}",
		"$$${A}":             "$${A}",
		"$${A} ${A} $${":     "${A} a ${",
		"${REF}":             "${A}",
		"${YAML}":            "{x: [y]}",
		"${NONE:-ä}":         "ä",
		"{${A}}":             "{a}",
		"${A}-${A}":          "a-a",
		"${NONE:-{\"x\": 1}": "{\"x\": 1",
	} {
		got, _, errs := substitute(value, env)
		if got != want || len(errs) > 0 {
			t.Errorf("%q became %q, %v, want %q", value, got, errs, want)
		}
	}
	for value, want := range map[string]string{
		"${NONE}":         "the environment variable NONE is not set",
		"${NONE} ${NONE}": "the environment variable NONE is not set",
		"${":              "malformed ${…}",
		"${}":             "malformed ${…}",
		"${1A}":           "malformed ${…}",
		"${A":             "malformed ${…}",
		"${A-b}":          "malformed ${…}",
		"${A:b}":          "malformed ${…}",
		"${ A }":          "malformed ${…}",
		"${A:-${B_2}}":    "malformed ${…}",
		"x $${ ${":        "malformed ${…}",
	} {
		if got, _, errs := substitute(value, env); len(errs) != 1 || errs[0].Error() != want {
			t.Errorf("%q became %q, %v, want the error %s", value, got, errs, want)
		}
	}
}
