// Package imports holds the rules of who may import whom. Calls point one way, cmd → sidecar → {config, lock, execute},
// so that each part can be read, tested and used without what stands above it. The rules are its test, and so is the
// one clock that the lock goes by.
package imports
