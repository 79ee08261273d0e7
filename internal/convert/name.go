package convert

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxName is the length of the longest name that a table accepts.
const maxName = 63

var notInNames = regexp.MustCompile(`[^a-z0-9.]+`)

// slug turns any text into a valid name; "" if nothing is left.
func slug(text string) string {
	s := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(text), "-"), "-.")
	if len(s) > maxName {
		s = strings.TrimRight(s[:maxName], "-.")
	}
	return s
}

// nameAll gives every job the first of its wishes that is valid and free. If none is, it adds a number to the first.
func nameAll(all []job) {
	taken := map[string]bool{}
	last := map[string]int{} // the highest number given to a name
	for i := range all {
		if all[i].schedule == "" {
			continue // a bad line needs no name
		}
		wishes := slices.DeleteFunc(slices.Clone(all[i].wish), func(w string) bool { return slug(w) == "" })
		if len(wishes) == 0 {
			wishes = []string{"job"}
		}
		name := ""
		for _, w := range wishes {
			if s := slug(w); name == "" && !taken[s] {
				name = s
			}
		}
		for base := slug(wishes[0]); name == ""; {
			last[base]++
			number := fmt.Sprintf("-%d", last[base]+1)
			if try := strings.TrimRight(base[:min(len(base), maxName-len(number))], "-.") + number; !taken[try] {
				name = try
			}
		}
		taken[name] = true
		all[i].name = name
	}
}

// Words of a command line that do not say what it does.
var (
	preparing = words("cd test [ [[ export source . sleep set umask ulimit true : mkdir date echo printf")
	wrapping  = words("nice ionice nohup time timeout sudo env exec chronic setsid flock stdbuf eval command " +
		"systemd-cat cronlock if then bundle npx")
	running = words("sh bash dash zsh ksh python python2 python3 perl ruby php node deno java")
	having  = words("docker podman npm yarn make rake systemctl service curl wget find run-parts rsync git aws " +
		"gcloud kubectl go artisan manage console")
	joining   = regexp.MustCompile(`&&|\|\||[;|\n]`)
	assigning = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	numeric   = regexp.MustCompile(`^[0-9.]+[smhd]?$`)
	extension = regexp.MustCompile(`\.(sh|bash|py|pl|rb|php|js|jar|cgi|exe)$`)
	verb      = regexp.MustCompile(`^[a-z][a-z0-9:_-]*$`)
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// nameOfCommand names a shell's command line after its first program that is no preparation or wrapper.
func nameOfCommand(line string) string {
	first := ""
	for _, part := range joining.Split(line, 20) {
		program, rest := head(shellWords(part))
		if program == "" {
			continue
		}
		if first == "" {
			first = program
		}
		if !preparing[program] {
			return aboutProgram(program, rest)
		}
	}
	return first
}

// shellWords splits at the spaces outside of quotes.
func shellWords(line string) []string {
	var out []string
	var quote byte
	from := -1
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
			continue
		case c == '"' || c == '\'':
			quote = c
		}
		if space := c == ' ' || c == '\t'; space && from >= 0 {
			out = append(out, line[from:i])
			from = -1
		} else if !space && from < 0 {
			from = i
		}
	}
	if from >= 0 {
		out = append(out, line[from:])
	}
	return out
}

// head finds the program, after assignments and wrappers.
func head(words []string) (program string, rest []string) {
	for i := 0; i < len(words); i++ {
		w := strings.Trim(words[i], `"'(){}!@`)
		switch base := bare(w); {
		case w == "" || assigning.MatchString(w) || strings.HasPrefix(w, "-") || i > 0 && numeric.MatchString(w):
			if w == "-u" {
				i++ // sudo's user
			}
		case wrapping[base]:
			if base == "flock" {
				i = behindLock(words, i)
			}
		default:
			if inner := shellWords(w); len(inner) > 1 { // a shell's script in quotes
				return head(inner)
			}
			return base, words[i+1:]
		}
	}
	return "", nil
}

// behindLock returns the index of flock's file.
func behindLock(words []string, i int) int {
	for i++; i < len(words); i++ {
		if w := words[i]; !strings.HasPrefix(w, "-") && !numeric.MatchString(w) {
			break
		}
	}
	return i
}

// aboutProgram adds words to a program's name that tell its calls apart.
func aboutProgram(program string, args []string) string {
	var plain []string
	for _, a := range args {
		if a = strings.Trim(a, `"'(){}`); a != "" && !strings.HasPrefix(a, "-") && !strings.ContainsAny(a, "<>&$`") {
			plain = append(plain, a)
		}
	}
	switch {
	case len(plain) == 0:
		return program
	case running[program]:
		script := bare(plain[0])
		if having[script] && len(plain) > 1 {
			return script + "-" + plain[1]
		}
		return script
	case having[program] && strings.Contains(plain[0], "://"):
		_, url, _ := strings.Cut(plain[0], "://")
		url, _, _ = strings.Cut(url, "?")
		return program + "-" + url[strings.LastIndexByte(strings.TrimRight(url, "/"), '@')+1:]
	case having[program]:
		return program + "-" + bare(plain[0])
	case len(plain) > 1 && verb.MatchString(plain[0]) && len(plain[0]) <= 20:
		return program + "-" + plain[0]
	}
	return program
}

// bare returns the last part of a path without the extension of a language.
func bare(p string) string { return extension.ReplaceAllString(path.Base(p), "") }
