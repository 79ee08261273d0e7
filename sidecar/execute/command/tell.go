package command

import (
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/execute"
)

// lines describes the command: its program, the number of its arguments, its directory, and the variables that it gets
// besides those of this process. Arguments and the table's variables are hidden: they may hold secrets.
func (e *command) lines(r execute.Run) []string {
	first := e.args[0]
	if n := len(e.args) - 1; n > 0 {
		first += " with " + text.Plural(n, "argument")
	}
	lines := []string{first + text.Between(" in ", e.dir, "")}
	told := map[string]bool{}
	for _, f := range r.Facts() {
		lines = append(lines, f.Env+"="+f.Value)
		told[f.Env] = true
	}
	for _, name := range e.named {
		if !told[name] { // a fact overrides the table
			lines = append(lines, name+"=***")
		}
	}
	return lines
}
