package convert

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxUnread is how many bad lines are reported. A file with more of them counts as something other than a crontab.
const maxUnread = 1000

// crontab is a crontab while it is read. Variables apply to the entries below them.
type crontab struct {
	file       string
	userColumn bool
	shell      string
	zone       string // CRON_TZ
	delay      time.Duration
	env        []variable
	home       string
	comments   []string // above the next entry
	pending    []note   // about the variables, for the next entry
	jobs       []job
	read       int    // entries that were understood
	unread     int    // lines that were not
	why        string // the reason for the first of them
}

// readCrontab reads all entries. A bad line becomes a job that cannot be carried over, unless the file has bad lines
// only.
func readCrontab(f Input, userColumn *bool) ([]job, error) {
	text := strings.TrimPrefix(string(f.Data), "\ufeff")
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	c := &crontab{file: f.Name, shell: "/bin/sh"}
	if userColumn != nil {
		c.userColumn = *userColumn
	} else {
		c.userColumn = hasUserColumn(f.Name, lines)
	}
	for i, line := range lines {
		c.line(i+1, strings.TrimRight(line, " \t\r"))
		if c.unread > maxUnread {
			break
		}
	}
	switch {
	case len(c.jobs) == 0:
		return nil, &Error{f.Name, "it holds no entry of a crontab", readable}
	case c.read == 0 || c.unread > maxUnread:
		return nil, &Error{f.Name, "it is no crontab: " + c.why, readable}
	}
	return c.jobs, nil
}

// readable is the hint for a file that is neither.
const readable = "crontab -l, or kubectl get cronjob -o yaml, gives what can be read"

func (c *crontab) line(number int, line string) {
	trimmed := strings.TrimLeft(line, " \t")
	switch {
	case trimmed == "":
		if len(c.jobs) == 0 {
			c.comments = nil // comments at the top are about the file
		}
		return
	case trimmed[0] == '#':
		c.comment(strings.TrimSpace(strings.TrimLeft(trimmed, "#")))
		return
	}
	if v, ok := variableOf(line); ok {
		if zone, rest, ok := zonedEntry(v); ok { // robfig's cron accepts this
			before := c.zone
			c.zone = zone
			c.entry(number, rest)
			c.zone = before
			return
		}
		c.set(v)
		return
	}
	c.entry(number, line)
}

// formatComment matches the line that explains the columns. This line and the comments above it are about crontabs in
// general.
var formatComment = regexp.MustCompile(`(?i)\b(dow|wday)\b.*\bcommand\b|\buser-name\b`)

func (c *crontab) comment(text string) {
	text = oneLine(text)
	if formatComment.MatchString(text) {
		c.comments = nil
		return
	}
	c.comments = append(c.comments, text)
}

// zonedEntry splits "CRON_TZ=Europe/Berlin 0 3 * * * command".
func zonedEntry(v variable) (zone, rest string, ok bool) {
	if v.name != "CRON_TZ" && v.name != "TZ" {
		return "", "", false
	}
	zone, rest = word(v.value)
	_, ok = entryOf(rest, false)
	return zone, rest, ok
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (c *crontab) set(v variable) {
	add := func(about, format string, args ...any) {
		c.pending = append(c.pending, note{about, oneLine(fmt.Sprintf(format, args...))})
	}
	switch v.name {
	case "SHELL":
		c.shell = v.value
		return
	case "CRON_TZ":
		c.zone = v.value
		return
	case "MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING":
		if v.value != "" {
			add("mail", "%s=%s: no mail is sent; what a command writes is in the log, "+
				"and notify.change tells of failures", v.name, v.value)
		}
		return
	case "LOGNAME", "USER":
		add("user", "%s=%s: cron and Solotick both run commands as a user that is set elsewhere", v.name, v.value)
		return
	case "RANDOM_DELAY":
		minutes, err := strconv.ParseUint(v.value, 10, 16)
		if err != nil {
			add("random delay", "RANDOM_DELAY=%s is no number of minutes", v.value)
			return
		}
		c.delay = time.Duration(minutes) * time.Minute
		return
	case "HOME":
		c.home = v.value
	case "TZ":
		add("time zone", "TZ=%s is the command's time zone; "+
			"a cron that takes it for the schedule's too needs timeZone: %[1]s here", v.value)
	}
	if !variableName.MatchString(v.name) || strings.HasPrefix(v.name, "SOLOTICK_") || v.name == "TRACEPARENT" {
		add("environment", "variable %s cannot be set by a table", v.name)
	} else {
		c.env = with(c.env, v)
	}
}

// entry handles a line that runs something, or should.
func (c *crontab) entry(number int, line string) {
	j := job{at: fmt.Sprintf("%s:%d", c.file, number), comments: c.comments, notes: c.pending,
		timeZone: c.zone, jitter: c.delay, env: c.env, dir: c.home}
	c.comments, c.pending = nil, nil
	understood := false
	defer func() {
		c.jobs = append(c.jobs, j)
		if understood {
			c.read++
			return
		}
		if c.unread++; c.unread == 1 {
			c.why = fmt.Sprintf("line %d: %s", number, j.lost)
		}
	}()
	// A dash keeps SUSE's cron from logging.
	e, ok := entryOf(strings.TrimPrefix(strings.TrimLeft(line, " \t"), "-"), c.userColumn)
	if !ok {
		j.comments = append(j.comments, oneLine(line))
		takes := "and a command"
		if c.userColumn {
			takes = "a user and a command"
		}
		j.lose("this line is no entry: it takes five fields or a word such as @daily, %s", takes)
		return
	}
	command, stdin, hasStdin := split(e.command)
	if at := background.FindStringIndex(command); at != nil {
		command = strings.TrimRight(command[:at[0]+1], " \t")
		j.note("background",
			"the & at the end is left out: a run lasts as long as its work, and what it leaves behind is killed")
	}
	j.wish = wishes(j.comments, command)
	j.command = []string{c.shell, "-c", command}
	if hasStdin {
		j.command = []string{"/bin/sh", "-c", `printf %s "$2" | "$0" -c "$1"`, c.shell, command, stdin}
		j.note("standard input", "what follows %% in the crontab is the command's standard input: a shell pipes it in")
	}
	if e.user != "" {
		j.note("user", "user %s: the command runs as the user that Solotick runs as", e.user)
	}
	if flocked.MatchString(command) {
		j.note("flock", "flock keeps runs on one machine apart; concurrencyPolicy: Forbid does so for all replicas")
	}
	j.schedule = e.schedule
	if first, _ := word(command); scheduleLike.MatchString(first) {
		j.lose("a sixth field, %q: whether it is a second, a year or a command's name is not known; "+
			"a table has seconds first, then the five, then the year", first)
		return
	}
	t, err := translate(e.schedule)
	understood = err == nil || e.schedule == "@reboot"
	if err != nil {
		j.lose("%v", err)
		return
	}
	j.schedule = t.schedule
	j.notes = append(j.notes, t.notes...)
}

var (
	flocked    = regexp.MustCompile(`\bflock\s`)
	background = regexp.MustCompile(`[^&\\]&\s*$`) // a line that leaves its last command behind
)

// scheduleLike matches a word that is more likely a field of a schedule than a command.
var scheduleLike = regexp.MustCompile(`^(\*|[0-9*][-0-9*/,]*)$`)

// wishes returns names for a job: the comment above it if it is short, or the subject of the command.
func wishes(comments []string, command string) []string {
	about := nameOfCommand(command)
	if len(comments) != 1 || len(comments[0]) > 40 || len(strings.Fields(comments[0])) > 6 {
		return []string{about}
	}
	if _, ok := entryOf(comments[0], false); ok && strings.ContainsAny(comments[0][:1], "*@0123456789") {
		return []string{about} // an entry that was switched off
	}
	return []string{comments[0], about}
}

var userHeading = regexp.MustCompile(`(?i)\b(who|user(-?name)?)\s+command\b`)

// systemUsers has common names in the user column that are no commands.
var systemUsers = words("root www-data nobody daemon postgres mysql redis mail backup munin nagios apache nginx " +
	"httpd git jenkins bin sys uucp news list man games")

var (
	likeUser    = regexp.MustCompile(`^[a-z_][-a-z0-9_]*$`)
	certainUser = regexp.MustCompile(`^(root|operator|nobody|www|www-data|_[a-z][-a-z0-9]*)$`) // and no command
)

// hasUserColumn guesses whether lines have a user column: from the file's path, its comments, or the words in the
// column. These are known users, or names of which one is certainly a user, and several lines have the same.
func hasUserColumn(file string, lines []string) bool {
	slashed := strings.ReplaceAll(file, `\`, "/")
	if strings.HasSuffix(slashed, "etc/crontab") || path.Base(path.Dir(slashed)) == "cron.d" {
		return true
	}
	entries, known, certain, names := 0, true, false, map[string]bool{}
	for _, line := range lines {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "#") {
			if formatComment.MatchString(trimmed) {
				return userHeading.MatchString(trimmed)
			}
			continue
		}
		if _, ok := variableOf(line); ok || trimmed == "" {
			continue
		}
		e, ok := entryOf(trimmed, true)
		if !ok || !likeUser.MatchString(e.user) {
			return false
		}
		entries, names[e.user] = entries+1, true
		isUser := certainUser.MatchString(e.user)
		certain, known = certain || isUser, known && (isUser || systemUsers[e.user])
	}
	return entries > 0 && (known || certain && len(names) < entries)
}
