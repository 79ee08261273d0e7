// Package rig is what measurements from the outside are made with: real processes on the loopback interface, and an app
// that writes down every request. It knows the product by its command line, its table and its headers alone, so what it
// says does not rest on the code that it measures. It promises no precision beyond the machine's: all times are taken
// by this process' wall clock, which replicas need not share.
package rig
