// Command solotick runs beside every replica of a service and fires each tick of its cron table on exactly one of them.
package main

import (
	"os"
)

func main() {
	private()
	os.Exit((&app{out: os.Stdout, err: os.Stderr}).commandLine(os.Args[1:]))
}
