// Package browser tests the status page in a real browser. It is a module of its own, so that the library that drives
// the browser is no dependency of Solotick.
package browser
