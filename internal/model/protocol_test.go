package model

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// docs/protocol.md names each mend twice: where it explains the rule, and in the list of all rules. It names no others.
func TestTheProtocolPageExplainsEachMend(t *testing.T) {
	text, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	explained, listed, ok := strings.Cut(string(text), "\n## The rules by name\n")
	if !ok {
		t.Fatal("docs/protocol.md has no list of the rules")
	}
	for i := range numberOfMends {
		name := Mend(1 << i).String()
		if !strings.Contains(explained, "**"+name+"**") {
			t.Errorf("docs/protocol.md does not explain %s", name)
		}
		if !strings.Contains(listed, "\n| **"+name+"** |") {
			t.Errorf("docs/protocol.md does not list %s", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)\(\*\*(\w+)\*\*\)|^\| \*\*(\w+)\*\* \|`).FindAllStringSubmatch(string(text), -1) {
		if _, err := MendNamed(m[1] + m[2]); err != nil {
			t.Errorf("docs/protocol.md: %v", err)
		}
	}
}
