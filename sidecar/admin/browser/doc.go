// Package browser looks at the status page with a real browser. It is a module of its own, so that what drives the
// browser is no dependency of Solotick.
package browser
