package config

import (
	"time"

	"github.com/solotick/solotick/config/strict"
)

// Kinds of values, as the user reads them.
const (
	kindJobs      = "list of jobs"
	kindCalendars = "mapping of calendars"
	kindDates     = "list of dates"
	kindDate      = "date"
	kindSchedule  = "text or list of text"
)

const (
	// LockMargin is how long before the end of a lock its replica stops trusting it. With a ttl of at most this, a
	// replica would never trust its lock. Package lock owns the value; config repeats it because it does not import
	// lock.
	LockMargin = time.Second

	// maxTTL bounds how long a job can stand still after its replica died.
	maxTTL = time.Hour

	mostRunning = 10_000

	mostStartRetries = 100
	mostConcurrency  = 1000
	mostPriority     = 100

	maxRetries = 100
	maxBackoff = 24 * time.Hour

	maxBody = 64 << 10
)

// Go and the ECMAScript of JSON Schema read these patterns alike.
const (
	localhost = `[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt]`
	webScheme = `[Hh][Tt][Tt][Pp][Ss]?://`
	onLocal   = `(` + localhost + `|127\.[0-9.]+|\[[^\]]*\])`

	headerNames   = "^[-!#$%&'*+.^_`|~0-9A-Za-z]+$"
	regions       = `^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$`
	variableNames = `^[A-Za-z_][A-Za-z0-9_]*$`

	// oneLine matches text without line breaks and other control characters.
	oneLine = `^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$`

	// durations matches Go's durations, except those that are always refused.
	durations = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	moments   = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{1,2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})$`
)

// These are the forms of values whose kind does not say enough.
var (
	nameForm    = strict.Form{Pattern: `^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`, Length: 63}
	filledForm  = strict.Form{Pattern: `\S`}
	listenForm  = strict.Form{Pattern: `^$|:[0-9]+$`}
	adminForm   = strict.Form{Pattern: `^$|^` + onLocal + `:[0-9]+$`}
	tcpForm     = strict.Form{Pattern: `^` + onLocal + `:[0-9]+$`}
	addrsForm   = strict.Form{Pattern: `^[^ /@]+:[0-9]+$`, Filled: true}
	redisForm   = strict.Form{Pattern: `^` + Embedded + `$|^[Rr][Ee][Dd][Ii][Ss]{1,2}://.|^[Uu][Nn][Ii][Xx]:/.`}
	webForm     = strict.Form{Pattern: `^` + webScheme + `.`}
	localForm   = strict.Form{Pattern: `^http://unix:/|^` + webScheme + `([^/?#]*@)?` + onLocal}
	pingForm    = strict.Form{Pattern: `^$|^` + webScheme + `.`}
	methodForm  = strict.Form{Pattern: "^[-!#$%&'*+.^_`|~0-9A-Z]+$"}
	bodyForm    = strict.Form{Length: maxBody}
	codesForm   = strict.Form{Pattern: `^([0-9]{3})(?: *- *([0-9]{3}))?$`, Least: 100, Most: 599, Filled: true}
	programForm = strict.Form{Filled: true}
	runbookForm = strict.Form{Pattern: webForm.Pattern, Length: 1000}
	labelsForm  = strict.Form{Names: `^[a-z][a-z0-9_]{0,39}$`, Most: 5, Pattern: oneLine, Length: 100}
)

// filledWith is filledForm for a key that needs another one beside it.
func filledWith(other string) strict.Form {
	return strict.Form{Pattern: filledForm.Pattern, Needs: other}
}

// lineForm is the form of text that must be one line of at most so many characters.
func lineForm(most int) strict.Form { return strict.Form{Pattern: oneLine, Length: most} }
