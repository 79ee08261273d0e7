package adapters_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"

	"github.com/solotick/solotick/internal/testing/rig"
)

// jars are those of Debian's libquartz2-java and libslf4j-java.
const jars = "/usr/share/java/quartz2.jar:/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-nop.jar"

// noPerfData keeps Java from leaving a directory beside its temporary ones.
const noPerfData = "-XX:-UsePerfData"

// java is light, and has a proxy that does not exist.
var java = []string{"java", noPerfData, "-Xshare:auto", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
	"-Dhttp.proxyHost=127.0.0.1", "-Dhttp.proxyPort=1", "-Dhttp.nonProxyHosts="}

func classes() string { return filepath.Join(scratch, "classes") }

// compile compiles files of Java, with what the jars and the classes have.
func compile(into string, files ...string) error {
	argv := []string{"javac", "-J" + noPerfData, "-Xlint:all,-path", "-Werror", "-cp", classes() + ":" + jars, "-d", into}
	return command("", append(argv, files...)...)()
}

// compiled makes the classes of the app for Quartz.
var compiled = sync.OnceValue(func() error {
	return compile(classes(), "quartz/Solotick.java", "quartz/App.java")
})

// hasQuartz fails if the machine cannot run the app.
func hasQuartz() error {
	if rig.Faketime() == "" {
		return errors.New("libfaketime is missing")
	}
	return command("", "sh", "-c", "command -v javac && ls "+strings.ReplaceAll(jars, ":", " "))()
}
